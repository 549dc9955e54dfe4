"""What can go wrong in the operator.

OperatorError
├── SettingsError             the settings file cannot be used
├── LeaseLost                 another operator may lead now; this process must end
└── ApiError                  the API server did not do what was asked
    ├── NotFound              404
    ├── Conflict              409: the object changed under us, or exists already
    ├── Expired               410: a watch must start from a new list
    ├── Refused               400, 403, 413, 422: asking again changes nothing until somebody acts
    │   └── NamespaceEnding   403: the namespace is being deleted
    └── Unavailable           429, 5xx or no connection: ask again later
"""

from pathlib import Path


class OperatorError(Exception):
    """Base of all errors that the operator raises by itself."""


class SettingsError(OperatorError):
    def __init__(self, path: Path, problem: Exception) -> None:
        super().__init__(f"{path}: {problem}")


class LeaseLost(OperatorError):
    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f'lease "{name}" is lost: {reason}')


class ApiError(OperatorError):
    """An answer of the API server that is not a success, in its own words."""

    def __init__(self, status: int, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after_s = retry_after_s


class NotFound(ApiError):
    pass


class Conflict(ApiError):
    pass


class Expired(ApiError):
    pass


class Refused(ApiError):
    pass


class NamespaceEnding(Refused):
    pass


class Unavailable(ApiError):
    pass
