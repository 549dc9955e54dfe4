"""Where producers come from: a process that has imported what they need, once, and forks itself for each of them.

usage: python -m tests.connectors.nursery SOCKET ; says "ready". Whoever connects there has a producer of his own, whose
options are the first line, as JSON; all others are commands.
"""

import gc
import json
import signal
import socket
import sys
from os import _exit, fork
from typing import NoReturn

from tests.connectors import producer

LINE_BYTES = 2**16


def main(path: str) -> None:
    # Nobody waits for them here.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        print("ready", flush=True)
        while True:
            connection, _ = listening.accept()
            if fork() == 0:
                listening.close()
                produce(connection)
            connection.close()


def produce(connection: socket.socket) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # The peer sends no more before it has an answer.
    producer.run(json.loads(connection.recv(LINE_BYTES)), connection)
    _exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
