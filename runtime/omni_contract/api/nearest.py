"""The nearest known name, for messages about an unknown one."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name that the user most likely meant; None if none is close."""
    by_lower = {name.lower().replace("_", "").replace("-", ""): name for name in known}
    folded = word.lower().replace("_", "").replace("-", "")
    matches = get_close_matches(folded, by_lower, n=1, cutoff=0.6)
    return by_lower[matches[0]] if matches else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A clause to put into a message; empty if no known name is close."""
    name = nearest(word, known)
    return f' (did you mean "{name}"?)' if name else ""
