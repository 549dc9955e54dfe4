"""A byte limit shared by all that one process holds for others, and the errors of holding."""


class StoreFullError(Exception):
    """Holding the payload would exceed the byte limit."""


class PayloadGoneError(Exception):
    """Released, past its deadline, or never held here."""


class Budget:
    """Bytes in use, never above the limit."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0

    def spares(self, size_bytes: int) -> bool:
        """Whether it can be lent to who could also wait: half of all is kept for who cannot."""
        return self.used_bytes + size_bytes <= self.limit_bytes // 2

    def take(self, size_bytes: int) -> None:
        if self.used_bytes + size_bytes > self.limit_bytes:
            raise StoreFullError(
                f"no room for {size_bytes:,} bytes: {self.used_bytes:,} of {self.limit_bytes:,} bytes are in use"
            )
        self.used_bytes += size_bytes

    def give(self, size_bytes: int) -> None:
        self.used_bytes -= size_bytes
