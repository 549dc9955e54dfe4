from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.cluster.errors import CommandFailed
from tests.cluster.kind.backend import reason_against_docker, reason_against_image
from tests.cluster.kind.sandbox import may_raise_limits
from tests.cluster.packages import WrongSystem, missing, require_debian

IMAGE = "kindest/node:v1@sha256:0"


def docker_that_refuses(*refused: str) -> Callable[[Sequence[str]], str]:
    """A `run` for which the docker commands with one of these words fail."""

    def call(argv: Sequence[str]) -> str:
        if set(argv) & set(refused):
            raise CommandFailed(argv, 1, "Error response\ndial: no route to host")
        return ""

    return call


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        ((), None),
        (("inspect",), None),
        (("inspect", "pull"), "Docker cannot pull kindest/node:v1: dial: no route to host"),
    ],
    ids=["the image is there", "the image can be had", "no registry"],
)
def test_docker_is_taken_if_it_has_or_gets_the_image(refused: tuple[str, ...], reason: str | None) -> None:
    assert reason_against_image(IMAGE, docker_that_refuses(*refused)) == reason


def test_without_a_docker_that_answers_the_reason_says_so() -> None:
    assert reason_against_docker(docker_that_refuses("info")) == "no Docker answers"
    assert reason_against_docker(docker_that_refuses()) is None


def test_another_system_than_the_node_image_is_made_of_is_named(tmp_path: Path) -> None:
    release = tmp_path / "os-release"
    release.write_text('PRETTY_NAME="Other 1"\nVERSION_CODENAME=other\n')

    with pytest.raises(WrongSystem, match="Other 1"):
        require_debian(release)


def test_only_absent_packages_are_installed() -> None:
    assert missing(("jq", "tini"), {"jq", "bash"}) == ["tini"]


@pytest.mark.parametrize(("bounding", "may"), [("000001ffffffffff", True), ("000001fffeffffff", False)])
def test_a_bounding_set_without_sys_resource_is_recognised(tmp_path: Path, bounding: str, may: bool) -> None:
    status = tmp_path / "status"
    status.write_text(f"Name:\tx\nCapBnd:\t{bounding}\n")

    assert may_raise_limits(status) is may
