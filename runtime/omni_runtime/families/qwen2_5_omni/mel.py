"""How much mel a piece of speech has: frames for codes, under a limit that a request may lower. Pure."""


def resolve_max_mel_frames(asked: int | None, default: int) -> int:
    """What the request says counts, even if that is nothing."""
    return default if asked is None else asked


def cap_and_align_mel_length(code_length: int, repeats: int, max_mel_frames: int) -> tuple[int, int]:
    """Codes that are used and their frames of mel: whole codes only, and at least one if there is any.

    A limit of less than one code's frames is none.
    """
    if code_length == 0:
        return 0, 0
    if max_mel_frames >= repeats:
        code_length = max(1, min(code_length, max_mel_frames // repeats))
    return code_length, code_length * repeats
