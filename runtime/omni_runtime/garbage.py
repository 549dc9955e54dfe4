"""When Python looks for garbage: hardly ever while a process starts, and never in what its start has made.

What is imported and loaded stays. To go through it again and again would take a quarter of a start, and pause requests.
"""

import gc

RARELY = 50_000
"""New objects between two looks at the young ones, where Python has 700."""
USUAL = gc.get_threshold()


def look_rarely() -> None:
    gc.set_threshold(RARELY)


def keep_what_is_here() -> None:
    """Once the start is over: what is no garbage by now will not be looked at any more."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*USUAL)
