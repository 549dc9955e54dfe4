"""omni render."""

from argparse import ArgumentParser
from pathlib import Path

import pytest
import yaml

from omni_operator.commands.render import command
from tests.support.operator_models import CATALOG, a_model, a_spec, a_stage

EXAMPLE = Path(__file__).parents[3] / "examples" / "tiny-qwen-image.yaml"
FOR_CLUSTERS = [
    path
    for path in sorted(EXAMPLE.parent.glob("*.yaml"))
    if any(command in path.read_text() for command in ("kubectl apply", "omni render"))
]


def render(*arguments: str) -> int:
    parser = ArgumentParser()
    command.configure(parser)
    return command.run(parser.parse_args(arguments))


def test_the_example_becomes_its_objects(capsys: pytest.CaptureFixture[str]) -> None:
    assert render(str(EXAMPLE)) == 0
    objects = list(yaml.safe_load_all(capsys.readouterr().out))
    names = {(one["kind"], one["metadata"]["name"]) for one in objects}
    assert ("Deployment", "tiny-qwen-image-denoiser") in names
    assert ("Service", "tiny-qwen-image-frontend") in names


@pytest.mark.parametrize("path", FOR_CLUSTERS, ids=lambda path: path.stem)
def test_every_example_for_clusters_can_be_rendered_without_a_catalog(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert render(str(path)) == 0, capsys.readouterr().err


def test_a_catalog_says_which_pools_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, catalog = tmp_path / "model.yaml", tmp_path / "catalog.yaml"
    spec = a_model(a_spec(a_stage("denoiser", "mi300")))
    spec["metadata"] = {"name": "toy"}
    model.write_text(yaml.safe_dump(spec))
    catalog.write_text(yaml.safe_dump(CATALOG))
    assert render(str(model), "--catalog", str(catalog)) == 0
    assert "runtime-rocm:1" in capsys.readouterr().out
    assert render(str(model)) == 1
    assert 'pool "mi300"' in capsys.readouterr().err


def test_a_file_that_cannot_be_used_is_refused_with_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("kind: OmniModel\n")
    assert render(str(bad)) == 1
    assert "bad.yaml" in capsys.readouterr().err
    assert render(str(tmp_path / "absent.yaml")) == 1
    assert "absent.yaml" in capsys.readouterr().err
