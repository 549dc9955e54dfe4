"""Sums and comparisons of Kubernetes quantities ("500m", "2Gi")."""

import re
from collections.abc import Iterable
from decimal import Decimal

from omni_contract.api.quantity import FACTORS, quantity

_FORM = re.compile(rf"[0-9]+(\.[0-9]+)?({'|'.join(FACTORS)})")


def amount(text: str) -> Decimal | None:
    """The number that a quantity stands for; None if the text is no quantity."""
    return quantity(text) if _FORM.fullmatch(text) else None


def of_bytes(size: int) -> str:
    """The shortest exact spelling, which is the one that the API server keeps."""
    for unit in ("Ti", "Gi", "Mi", "Ki"):
        if size and size % int(FACTORS[unit]) == 0:
            return f"{size // int(FACTORS[unit])}{unit}"
    return str(size)


def total(texts: Iterable[str]) -> str:
    """The sum, in whole units or thousandths."""
    amount_of_all = sum((quantity(text) for text in texts), Decimal())
    whole = int(amount_of_all)
    return of_bytes(whole) if whole == amount_of_all else f"{int(amount_of_all * 1000)}m"


def plus_bytes(text: str, size: int) -> str:
    return of_bytes(int(quantity(text)) + size)
