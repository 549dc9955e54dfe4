"""The frontend's image has no accelerator library, so its process must not ask for one."""

import subprocess
import sys

import pytest

IMPORTS = """
import sys
import omni_runtime.frontend.server
{extra}
heavy = {{"torch", "numpy", "diffusers", "transformers", "safetensors", "vllm"}}
print(sorted(heavy & set(sys.modules)))
"""


@pytest.mark.case("runtime:K1")
@pytest.mark.parametrize("extra", ["", "import omni_runtime.orchestrator.discovery.kubernetes"])
def test_the_frontend_imports_no_accelerator_library(extra: str) -> None:
    code = IMPORTS.format(extra=extra)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
