"""Runs every benchmark, one after the other, in about 30 minutes: `python -m benchmarks`."""

import subprocess
import sys

BENCHMARKS = (
    "hop",
    "endpoint",
    "cancel",
    "replicas",
    "overload",
    "shm",
    "image",
    "mooncake",
    "first_audio",
    "omni",
    "ar",
    "reconcile",
)


def main() -> int:
    failed = [name for name in BENCHMARKS if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"]).returncode]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
