"""A stage worker in a process with little memory; its arguments are those of `omni worker`."""

import sys
from argparse import ArgumentParser

from omni_runtime.worker.command import command
from tests.models.out_of_memory import leave_little_room

if __name__ == "__main__":
    parser = ArgumentParser()
    command.configure(parser)
    arguments = parser.parse_args()
    leave_little_room()
    sys.exit(command.run(arguments))
