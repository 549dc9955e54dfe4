"""Kubernetes quantities as numbers: "500m" CPUs, "2Gi" bytes."""

from decimal import Decimal

FACTORS: dict[str, Decimal] = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    "k": Decimal(10) ** 3,
    "M": Decimal(10) ** 6,
    "G": Decimal(10) ** 9,
    "T": Decimal(10) ** 12,
    "Ki": Decimal(2) ** 10,
    "Mi": Decimal(2) ** 20,
    "Gi": Decimal(2) ** 30,
    "Ti": Decimal(2) ** 40,
}


def quantity(text: str) -> Decimal:
    """The number that a quantity stands for; the schema has checked its form."""
    digits = text.rstrip("mkMGTi")
    return Decimal(digits) * FACTORS[text.removeprefix(digits)]
