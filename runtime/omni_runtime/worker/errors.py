"""Why a worker process ends before it is told to: each error is one sentence and an exit code."""

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.exit_codes import ExitCode

SENTENCE_CHARACTERS = 1_000
"""A library may say a page; a pod's termination message holds 4 KiB of log."""


class WorkerError(Exception):
    """Ends the process; the message is the last line of its log."""

    exit_code = ExitCode.DEFECT


class MisconfiguredError(WorkerError):
    exit_code = ExitCode.MISCONFIGURED


class ListenError(WorkerError):
    """An address cannot be served; the message names it."""

    exit_code = ExitCode.LISTEN_FAILED


class EngineEndedError(WorkerError):
    exit_code = ExitCode.ENGINE_DIED


class DrainTimedOutError(WorkerError):
    exit_code = ExitCode.DRAIN_TIMED_OUT


class StartupTimedOutError(Exception):
    """Loading took longer than the stage file allows."""


class LoadError(WorkerError):
    """The engine did not load, whatever it or one of its libraries raised."""

    def __init__(self, stage: str, cause: BaseException) -> None:
        said = cause.message if isinstance(cause, OmniError) else f"{type(cause).__name__}: {cause}"
        super().__init__(f'stage "{stage}" cannot load: {one_line(said)}')
        self.exit_code = _load_exit_code(cause)


def one_line(text: str) -> str:
    return " ".join(text.split())[:SENTENCE_CHARACTERS]


def _load_exit_code(cause: BaseException) -> ExitCode:
    if isinstance(cause, StartupTimedOutError):
        return ExitCode.LOAD_TIMED_OUT
    if isinstance(cause, MemoryError) or (isinstance(cause, OmniError) and cause.code is ErrorCode.OUT_OF_MEMORY):
        return ExitCode.OUT_OF_MEMORY
    return ExitCode.LOAD_FAILED
