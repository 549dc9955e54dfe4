from decimal import Decimal

import pytest

from omni_operator import quantity


@pytest.mark.parametrize(("text", "amount"), [("500m", "0.5"), ("2", "2"), ("1.5Gi", 1.5 * 2**30), ("3k", 3000)])
def test_a_quantity_is_a_number(text: str, amount: str | float) -> None:
    assert quantity.amount(text) == Decimal(amount)


@pytest.mark.parametrize("text", ["", "abc", "1X", "Gi", "1.2.3", "-1"])
def test_other_text_is_no_quantity(text: str) -> None:
    assert quantity.amount(text) is None


@pytest.mark.parametrize(
    ("text", "added", "total"), [("2Gi", 64 << 20, "2112Mi"), ("1Gi", 1 << 30, "2Gi"), ("1000", 1, "1001")]
)
def test_a_sum_has_the_spelling_that_the_server_keeps(text: str, added: int, total: str) -> None:
    assert quantity.plus_bytes(text, added) == total
