from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cluster.errors import ClusterError
from tests.cluster.programs import Programs, build_command, key, linker_flags, module_version
from tests.cluster.recipes import CONTROL, RECIPES, SOURCES
from tests.cluster.settings import Settings

SETTINGS = Settings.from_environment({"OMNI_CACHE": "/cache"})


def test_the_key_changes_with_the_recipe_and_with_nothing_else() -> None:
    recipe = RECIPES["runc"]

    assert key(recipe) == key(replace(recipe))
    assert key(recipe) != key(replace(recipe, tags=""))


@pytest.mark.parametrize("line", ["require k8s.io/kubernetes v1.37.2", "require (\n\tk8s.io/kubernetes v1.37.2\n)"])
def test_the_version_comes_from_go_mod(line: str) -> None:
    assert module_version(f"module x\n\n{line}\n", "k8s.io/kubernetes") == "v1.37.2"


def test_a_module_that_go_mod_does_not_require_is_named() -> None:
    with pytest.raises(ClusterError, match=r"k8s\.io/nothing"):
        module_version("module x\n", "k8s.io/nothing")


def test_kubernetes_programs_announce_the_version_that_go_mod_pins() -> None:
    flags = linker_flags(RECIPES["kubernetes-control"])
    pinned = module_version((SOURCES / "kubernetes" / "go.mod").read_text(), "k8s.io/kubernetes")

    assert f"gitVersion={pinned}" in flags
    assert "gitMajor=1" in flags


def test_a_program_with_another_name_than_its_package_is_built_under_its_own() -> None:
    command = build_command(RECIPES["etcd"], Path("/out"))

    assert command[-3:] == ["-o", "/out/etcd", "go.etcd.io/etcd/server/v3"]


def test_every_program_has_one_place_in_the_cache() -> None:
    programs = Programs(SETTINGS, CONTROL)

    assert set(programs) == {
        *("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok")
    }
    assert all(path.is_relative_to("/cache/programs") for path in programs.values())


@pytest.mark.parametrize("path", sorted(SOURCES.glob("*/go.*")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_module_files_name_versions_and_no_address(path: Path) -> None:
    assert "://" not in path.read_text()
