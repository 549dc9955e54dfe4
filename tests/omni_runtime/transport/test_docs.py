"""The recipe of docs/security.md makes a certificate that can be used."""

import re
from pathlib import Path

from omni_runtime.transport.certificate import is_made_out_to, read_certificate
from tests.cluster.commands import run
from tests.layout.source import CHECKOUT

RECIPE = re.compile(r"^A test runs these lines:\n\n```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_openssl_recipe_makes_a_certificate_for_every_part_of_the_model(tmp_path: Path):
    recipe = RECIPE.search((CHECKOUT / "docs" / "security.md").read_text())
    assert recipe is not None
    run(["bash", "-eu", "-c", recipe[1]], cwd=tmp_path)
    names = read_certificate(tmp_path).names
    assert all(is_made_out_to(f"{part}.painter.default.omni", names) for part in ("frontend", "denoiser", "new"))
