import pytest

from omni_runtime.families.qwen2_5_omni.mel import cap_and_align_mel_length, resolve_max_mel_frames


def test_a_limit_that_a_request_names_wins_even_if_it_is_zero():
    assert resolve_max_mel_frames(None, 30_000) == 30_000
    assert resolve_max_mel_frames(0, 30_000) == 0
    assert resolve_max_mel_frames(7, 30_000) == 7


@pytest.mark.parametrize(
    ("codes", "limit", "expected"),
    [
        (0, 100, (0, 0)),
        (10, 100, (10, 20)),
        (10, 20, (10, 20)),
        (10, 19, (9, 18)),
        (10, 2, (1, 2)),
        (10, 1, (10, 20)),
        (10, 0, (10, 20)),
        (1, 2, (1, 2)),
    ],
)
def test_mel_is_whole_codes_within_the_limit(codes, limit, expected):
    assert cap_and_align_mel_length(codes, 2, limit) == expected
