import subprocess
import sys

import pytest

from omni_runtime.families.registry import FAMILIES, diffusion_family, family
from omni_runtime.plugins import UnknownPluginError


def test_an_unknown_family_is_refused_with_those_that_exist():
    with pytest.raises(UnknownPluginError, match=r'"qwen-imago".*qwen-image'):
        family("qwen-imago")


@pytest.mark.parametrize("name", [name for name in FAMILIES.names() if family(name).diffusion])
def test_every_diffusion_family_names_blocks_for_every_phase(name):
    part = diffusion_family(name)
    names = [block for phase in ("encode", "denoise", "decode") for block in part.blocks(phase).names]
    assert len(names) == len(set(names)) > 3
    assert part.blocks("denoise").loop in names


def test_asking_for_a_family_imports_no_torch():
    code = (
        "import sys; from omni_runtime.families.registry import *; diffusion_family('qwen-image'); print(*sys.modules)"
    )
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "diffusers", "transformers"} & set(modules)
