"""Steps as items, and tokens as bytes."""

from omni_runtime.engines.ar.items import Spelling, TextItems
from omni_runtime.engines.ar.step import Candidate, Chosen, Step

TOKENS = {1: "Ġhello", 2: "Ã", 3: "¤", 4: "<|im_end|>"}


class ByteLevelTokenizer:
    """As transformers' fast ones: each character of a token stands for a byte."""

    class backend_tokenizer:
        decoder = "ByteLevel(...)"

    def convert_ids_to_tokens(self, token_id):
        return TOKENS.get(token_id)

    def decode(self, ids):
        return "".join(TOKENS[token_id] for token_id in ids)


SPELLING = Spelling(ByteLevelTokenizer())


def test_a_token_may_be_a_part_of_a_character():
    assert [SPELLING.token_bytes(token_id) for token_id in (1, 2, 3)] == [b" hello", b"\xc3", b"\xa4"]
    assert SPELLING.token_bytes(4) == b"<|im_end|>"
    assert SPELLING.token_bytes(99) == b""


def test_the_first_item_tells_the_prompts_length_and_the_last_one_why_it_ends():
    items = TextItems(SPELLING, None)
    first = items.item(Step((1,), " hello", prompt_token_ids=(7, 8)))
    last = items.item(Step((4,), "", finish_reason="stop", stop_reason=4))
    assert first == {"text": " hello", "token_ids": [1], "prompt_tokens": 2}
    assert last == {"text": "", "token_ids": [4], "finish_reason": "stop", "stop_reason": 4}


def test_log_probabilities_have_as_many_likeliest_tokens_as_were_asked_for():
    step = Step((2,), logprobs=(Chosen(Candidate(2, -0.5), (Candidate(2, -0.5), Candidate(1, -1.5))),))
    (place,) = TextItems(SPELLING, 1).item(step)["logprobs"]
    assert (place["token_id"], place["logprob"], place["bytes"], place["token"]) == (2, -0.5, [0xC3], "\ufffd")
    assert [one["token_id"] for one in place["top"]] == [2]
    assert TextItems(SPELLING, 0).item(step)["logprobs"][0]["top"] == []
