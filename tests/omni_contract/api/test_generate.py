import shutil
from pathlib import Path

import pytest

from omni_contract.api.generate import CRD_FILE, PROTO_FILE, PROTO_ROOT, REFERENCE_FILE, generated, main


@pytest.fixture(scope="module")
def names(request: pytest.FixtureRequest) -> list[str]:
    return list(generated(request.config.rootpath))


@pytest.fixture
def checkout(tmp_path: Path, names: list[str], request: pytest.FixtureRequest) -> Path:
    """A copy of what the generator reads and writes."""
    root = request.config.rootpath
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, tmp_path / name)
    shutil.copy(root / PROTO_ROOT / PROTO_FILE, tmp_path / PROTO_ROOT / PROTO_FILE)
    return tmp_path


def test_what_is_committed_is_up_to_date(request: pytest.FixtureRequest) -> None:
    assert main(["--check", "--root", str(request.config.rootpath)]) == 0


@pytest.mark.parametrize("name", [CRD_FILE, REFERENCE_FILE, f"{PROTO_ROOT}/omni_contract/wire/stage_pb2.py"])
def test_check_names_a_file_that_differs_and_leaves_it(
    checkout: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / name).write_text("edited by hand\n")

    assert main(["--check", "--root", str(checkout)]) == 1

    assert capsys.readouterr().err == f"{name}: is out of date; run make generate\n"
    assert (checkout / name).read_text() == "edited by hand\n"


def test_generating_repairs_what_differs_or_is_missing(checkout: Path) -> None:
    (checkout / CRD_FILE).unlink()
    (checkout / REFERENCE_FILE).write_text("edited by hand\n")

    assert main(["--root", str(checkout)]) == 0

    assert main(["--check", "--root", str(checkout)]) == 0


def test_a_changed_message_shows_in_the_check(checkout: Path) -> None:
    proto = checkout / PROTO_ROOT / PROTO_FILE
    proto.write_text(
        proto.read_text().replace("message DescribeRequest {}", "message DescribeRequest { bool all = 1; }")
    )

    assert main(["--check", "--root", str(checkout)]) == 1


def test_a_broken_proto_ends_with_a_sentence(checkout: Path) -> None:
    (checkout / PROTO_ROOT / PROTO_FILE).write_text("this is no proto")

    with pytest.raises(SystemExit, match="does not compile"):
        main(["--root", str(checkout)])


def test_generating_twice_gives_the_same_bytes(request: pytest.FixtureRequest) -> None:
    assert generated(request.config.rootpath) == generated(request.config.rootpath)
