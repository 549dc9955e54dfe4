"""The image tool's decisions: what an image is named by, what is refused, what is kept."""

import os
from dataclasses import replace
from importlib.metadata import distributions
from pathlib import Path

import pytest

from images import content, environment, metadata, programs
from images.__main__ import parser
from images.build import KEPT_ARCHIVES, Image, identify, prune
from images.errors import ForbiddenPackages, ProgramMissing
from images.recipes import RECIPES, REPOSITORY, Recipe


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "omni_contract"
    folder.mkdir()
    (folder / "names.py").write_text("PORT = 1\n")
    return folder


@pytest.fixture
def recipe(package: Path) -> Recipe:
    """The runtime's, with a package of ours that a test may edit: an absolute path stays as it is."""
    return replace(RECIPES["runtime-cpu"], packages=(str(package),))


def reference(recipe: Recipe, baked: bool = False) -> str:
    return identify(recipe, Path("cache"), baked).reference


def test_edit_of_our_code_gives_another_image(recipe: Recipe, package: Path) -> None:
    before = reference(recipe)
    (package / "names.py").write_text("PORT = 2\n")

    assert reference(recipe) != before


def test_renamed_file_gives_another_image(recipe: Recipe, package: Path) -> None:
    before = reference(recipe)
    (package / "names.py").rename(package / "ports.py")

    assert reference(recipe) != before


def test_neither_times_nor_compiled_files_count(recipe: Recipe, package: Path) -> None:
    before = reference(recipe)
    os.utime(package / "names.py", (1, 1))
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "names.cpython-311.pyc").write_bytes(b"\0")

    assert reference(recipe) == before


def test_image_with_its_packages_is_another_than_one_without(recipe: Recipe) -> None:
    assert reference(recipe, baked=True) != reference(recipe, baked=False)


def test_texts_are_told_apart_wherever_they_are_split() -> None:
    assert content.of_text("ab", "c") != content.of_text("a", "bc")


@pytest.mark.parametrize("name", ["operator", "frontend"])
def test_torch_in_a_small_image_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "lib" / "python3.11" / "site-packages" / "torch").mkdir(parents=True)

    with pytest.raises(ForbiddenPackages, match=f'image "{name}" must not hold: torch'):
        environment.refuse_forbidden(RECIPES[name], tmp_path)


def test_runtime_may_hold_torch(tmp_path: Path) -> None:
    (tmp_path / "lib" / "python3.11" / "site-packages" / "torch").mkdir(parents=True)

    environment.refuse_forbidden(RECIPES["runtime-cpu"], tmp_path)


def test_processes_in_an_image_can_ask_for_the_version(tmp_path: Path) -> None:
    metadata.write(tmp_path)

    (distribution,) = distributions(path=[str(tmp_path)])
    assert distribution.metadata["Name"] == "omni-operator"
    assert f'version = "{distribution.version}"' in (REPOSITORY / "pyproject.toml").read_text()


def test_no_containerfile_goes_back_to_root() -> None:
    last_users = {
        path.parent.name: [line.split()[1] for line in path.read_text().splitlines() if line.startswith("USER ")][-1:]
        for path in (REPOSITORY / "images").glob("*/Containerfile")
    }

    assert last_users.pop("base") == ["65532:65532"]
    assert all(users in ([], ["65532:65532"]) for users in last_users.values())


def test_every_image_starts_its_process_under_tini() -> None:
    for recipe in RECIPES.values():
        assert (
            'ENTRYPOINT ["/usr/bin/tini", "--", "/opt/venv/bin/python", "-m", "omni_'
            in recipe.containerfile.read_text()
        )


def test_old_archives_make_room_for_new_ones(tmp_path: Path) -> None:
    archives = [tmp_path / f"operator-{number}.tar" for number in range(KEPT_ARCHIVES + 2)]
    for age, archive in enumerate(archives):
        archive.touch()
        os.utime(archive, (age, age))
    (tmp_path / "frontend-0.tar").touch()

    prune(Image("operator", "reference", archives[-1]))

    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "frontend-0.tar", *archives[-KEPT_ARCHIVES:]])


def test_unknown_image_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["build", "frontent"])

    assert 'no image is called "frontent"; there are: operator, frontend, runtime-cpu' in capsys.readouterr().err


def test_uv_is_the_one_on_the_path_or_that_of_the_makefile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert programs.uv(tmp_path / "images") == tmp_path / "tools" / "bin" / "uv"

    (tmp_path / "uv").touch(mode=0o755)
    assert programs.uv(tmp_path / "images") == tmp_path / "uv"


def test_missing_program_is_named_with_the_way_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ProgramMissing, match='the program "buildah" is needed; on Debian: apt-get install buildah'):
        programs.ensure()
