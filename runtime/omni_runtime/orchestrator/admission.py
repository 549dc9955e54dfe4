"""How many requests may wait: beyond that, new ones are refused at once instead of waiting in vain."""

from omni_contract.wire.errors import ErrorCode, OmniError


class OverloadedError(OmniError):
    """The queue is full; `retry_after_s` is a guess at when it will not be."""

    def __init__(self, waiting: int, most: int, retry_after_s: int) -> None:
        text = f"{waiting} requests wait already and the queue takes {most}; try again in {retry_after_s} s"
        super().__init__(ErrorCode.OVERLOADED, text)
        self.retry_after_s = retry_after_s


def check_queue(waiting: int, arriving: int, free: int, most: int, drain_s: float) -> None:
    """Raises if the queue cannot take those of the `arriving` that find no free slot. Nobody overtakes who waits."""
    free_now = 0 if waiting else free
    if waiting + max(0, arriving - free_now) > most:
        raise OverloadedError(waiting, most, max(1, min(60, round(drain_s))))
