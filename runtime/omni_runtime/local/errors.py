"""Why `omni serve` cannot go on, in words for the person at the terminal."""


class ServeError(Exception):
    """Base of what ends `omni serve` with a message and no traceback."""

    exit_code = 1


class InputError(ServeError):
    """The command line or the model file is at fault; nothing was started."""

    exit_code = 2


class StartError(ServeError):
    """A process did not become ready."""

    def __init__(self, process: str, reason: str, last_line: str = "") -> None:
        words = f"; its last line: {last_line}" if last_line else ""
        super().__init__(f"{process} did not start: {reason}{words}")
