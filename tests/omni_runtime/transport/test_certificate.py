"""A certificate that cannot be used is told from its files, by the one at fault."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from omni_runtime.transport.certificate import is_made_out_to, read_certificate
from omni_runtime.transport.protocol import TransportError
from tests.cluster.commands import run
from tests.support.certificates import EXPIRED, CertificateMaker, name_of

DAY_S = 86_400


@pytest.fixture
def copied(maker: CertificateMaker, tmp_path: Path) -> Path:
    """A good folder of plain files that the test may spoil."""
    folder = tmp_path / "tls"
    folder.mkdir()
    good = maker.folder_of("denoiser")
    for name in ("tls.crt", "tls.key", "ca.crt"):
        shutil.copy(good / name, folder)
    return folder


def test_a_good_one_tells_its_names_and_its_end(maker: CertificateMaker):
    names = [name_of("denoiser"), name_of("frontend")]
    certificate = read_certificate(maker.folder("two", names, days="30"))
    assert certificate.names == tuple(names)
    assert abs(certificate.expires_s - time.time() - 30 * DAY_S) < DAY_S


def _encrypted(folder: Path) -> None:
    key = folder / "tls.key"
    run(["openssl", "ec", "-aes256", "-passout", "pass:secret", "-in", key, "-out", folder / "locked"])
    (folder / "locked").replace(key)


def _for_clients_only(folder: Path) -> None:
    made = CertificateMaker.create(folder / "made").authority
    pair = made.client("client", "somebody")
    for source, name in ((pair.certificate, "tls.crt"), (pair.key, "tls.key"), (made.certificate, "ca.crt")):
        shutil.copy(source, folder / name)


FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no certificate": (lambda folder: (folder / "tls.crt").unlink(), r"tls\.crt: No such file"),
    "no key": (lambda folder: (folder / "tls.key").unlink(), r"tls\.key: No such file"),
    "no authority": (lambda folder: (folder / "ca.crt").unlink(), r"ca\.crt: No such file"),
    "junk for a certificate": (
        lambda folder: (folder / "tls.crt").write_text("junk"),
        r"tls\.crt: holds no certificate",
    ),
    "junk for a key": (lambda folder: (folder / "tls.key").write_text("junk"), r"tls\.key: holds no private key"),
    "junk for an authority": (lambda folder: (folder / "ca.crt").write_text("junk"), r"ca\.crt: holds no certificate"),
    "a locked key": (_encrypted, r"tls\.key: holds no private key in PEM form, or an encrypted one"),
    "for clients only": (_for_clients_only, r"tls\.crt: .*purpose: it must be allowed for both server and client"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_at_fault_is_named(copied: Path, fault: str):
    spoil, sentence = FAULTS[fault]
    spoil(copied)
    with pytest.raises(TransportError, match=sentence):
        read_certificate(copied)


def test_a_key_of_another_certificate_is_named(copied: Path, maker: CertificateMaker):
    shutil.copy(maker.folder_of("encoder") / "tls.key", copied)
    with pytest.raises(TransportError, match=r"tls\.key: is not the key of tls\.crt"):
        read_certificate(copied)


def test_a_certificate_that_the_authority_did_not_sign_is_refused(copied: Path, foreign_maker: CertificateMaker):
    shutil.copy(foreign_maker.authority.certificate, copied / "ca.crt")
    with pytest.raises(TransportError, match=r"tls\.crt: .*was not signed by ca\.crt"):
        read_certificate(copied)


def test_an_expired_certificate_is_refused(maker: CertificateMaker):
    with pytest.raises(TransportError, match=r"tls\.crt: certificate has expired"):
        read_certificate(maker.folder_of("denoiser", EXPIRED))


@pytest.mark.parametrize(
    ("name", "is_good"),
    [("a.m.n.omni", True), ("b.m.n.omni", False), ("c.x.n.omni", True), ("a.b.x.n.omni", False), ("x.n.omni", False)],
)
def test_a_wildcard_stands_for_one_part_of_a_name(name: str, is_good: bool):
    assert is_made_out_to(name, ("a.m.n.omni", "*.x.n.omni")) is is_good
