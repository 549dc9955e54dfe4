import subprocess
import sys

import pytest

import omni_runtime

HEAVY = ("torch", "grpc", "numpy", "pydantic", "asyncio")


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = f"import sys, omni_runtime; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_name_that_is_not_offered_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Omnni"):
        _ = omni_runtime.Omnni
