"""An authority for a whole file of tests: making keys takes longer than the tests."""

import pytest

from tests.support.certificates import CertificateMaker


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory) -> CertificateMaker:
    return CertificateMaker.create(tmp_path_factory.mktemp("ours"))


@pytest.fixture(scope="module")
def foreign_maker(tmp_path_factory: pytest.TempPathFactory) -> CertificateMaker:
    return CertificateMaker.create(tmp_path_factory.mktemp("foreign"), "foreign")
