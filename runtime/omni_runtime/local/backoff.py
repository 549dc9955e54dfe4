"""How long a crashed process waits before it is started again."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BackOff:
    """Doubles from `first_s` to `longest_s`; a run of at least `healthy_s` starts the count anew."""

    first_s: float = 0.5
    longest_s: float = 30.0
    healthy_s: float = 60.0

    def delay_s(self, crashes: int) -> float:
        """The wait after the `crashes`-th crash in a row, counted from 1."""
        return min(self.longest_s, self.first_s * 2.0 ** min(crashes - 1, 16))

    def crashes_after(self, earlier: int, ran_s: float) -> int:
        return 1 if ran_s >= self.healthy_s else earlier + 1
