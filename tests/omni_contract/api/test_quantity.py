from decimal import Decimal

import pytest

from omni_contract.api.quantity import quantity


@pytest.mark.parametrize(
    ("text", "number"),
    [("2", 2), ("500m", Decimal("0.5")), ("1.5Gi", 1610612736), ("2k", 2000), ("64Mi", 67108864), ("3T", 3 * 10**12)],
)
def test_a_quantity_stands_for_its_number(text: str, number: Decimal | int) -> None:
    assert quantity(text) == number
