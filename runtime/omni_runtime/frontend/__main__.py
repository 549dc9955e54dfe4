"""`python -m omni_runtime.frontend`, the same as `omni frontend`."""

import argparse
import sys

from omni_runtime.frontend.command import command


def main() -> int:
    parser = argparse.ArgumentParser(prog="omni frontend", description=command.help)
    command.configure(parser)
    return command.run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
