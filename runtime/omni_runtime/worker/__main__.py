"""Starts a stage worker: `python -m omni_runtime.worker --stage-file FILE --listen ADDRESS ...`."""

import argparse
import sys

from omni_runtime.worker.command import command

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m omni_runtime.worker", description=command.help)
    command.configure(parser)
    sys.exit(command.run(parser.parse_args()))
