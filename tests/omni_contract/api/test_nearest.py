import pytest

from omni_contract.api.nearest import did_you_mean, nearest

KEYS = ["maxBatchSize", "maxInFlight", "replicas", "source"]


@pytest.mark.parametrize(
    ("word", "meant"),
    [("replica", "replicas"), ("max_batch_size", "maxBatchSize"), ("MaxInflight", "maxInFlight"), ("sorce", "source")],
)
def test_a_slip_finds_the_key_that_was_meant(word: str, meant: str) -> None:
    assert nearest(word, KEYS) == meant


def test_a_word_that_is_like_none_finds_none() -> None:
    assert nearest("colour", KEYS) is None
    assert did_you_mean("colour", KEYS) == ""
