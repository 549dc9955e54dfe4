"""Who gets the next turn on the step thread: everyone in order of arrival, one turn each, the cancelled first."""

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Rotation(Generic[T]):
    """Not thread-safe; its owner holds a lock. Members are distinct."""

    def __init__(self) -> None:
        self._waiting: deque[T] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def join(self, member: T) -> None:
        """Take the last place; a member that had its turn joins again."""
        self._waiting.append(member)

    def hurry(self, member: T) -> None:
        """Move to the front, if waiting."""
        if member in self._waiting:
            self._waiting.remove(member)
            self._waiting.appendleft(member)

    def take(self) -> T:
        """Remove and return the first; IndexError if nobody waits."""
        return self._waiting.popleft()
