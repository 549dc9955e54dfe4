"""Our families hand to a talker what transformers' own `generate` hands to it, in its prompt and at each step."""

from dataclasses import dataclass, field
from typing import Any

import numpy
import pytest
import torch
from PIL import Image
from transformers import AutoProcessor, Qwen2_5OmniForConditionalGeneration, Qwen3OmniMoeForConditionalGeneration

from omni_runtime.families.qwen2_5_omni import talker_input as qwen2_5
from omni_runtime.families.qwen3_omni import talker_input as qwen3
from omni_runtime.families.reply_rows import ReplyRows
from tests.models.talker_reference import keep_masks

WORDS = 6
FRAMES = 12
"""More than words, so that the talker reads the end of the answer and its padding."""
CONVERSATIONS = {
    "text": [{"role": "user", "content": [{"type": "text", "text": "hello world"}]}],
    "turns": [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "the fox"}]},
        {"role": "assistant", "content": "jumps"},
        {"role": "user", "content": [{"type": "text", "text": "over what?"}]},
    ],
    "media": [{"role": "user", "content": [{"type": "image"}, {"type": "audio"}, {"type": "text", "text": "hello"}]}],
}


@dataclass
class Seen:
    """What went into the parts of a model while it generated."""

    thinker: Any = None
    talker: dict[str, Any] = field(default_factory=dict)
    steps: list[torch.Tensor] = field(default_factory=list)
    codes: Any = None

    def states(self, layer: int) -> torch.Tensor:
        """Of all tokens that the thinker read, the answer's included."""
        return torch.cat([step[layer] for step in self.thinker.hidden_states], dim=1)[0]


def watched(model: Any) -> Seen:
    seen = Seen()
    think, speak = model.thinker.generate, model.talker.generate

    def thinker_generate(*args: Any, **kwargs: Any) -> Any:
        seen.thinker = think(*args, **kwargs)
        return seen.thinker

    def talker_generate(**kwargs: Any) -> Any:
        seen.talker = {name: value.clone() if torch.is_tensor(value) else value for name, value in kwargs.items()}
        seen.codes = speak(**kwargs)
        return seen.codes

    model.thinker.generate, model.talker.generate = thinker_generate, talker_generate
    model.talker.model.register_forward_pre_hook(
        lambda _, args, kwargs: seen.steps.append(kwargs["inputs_embeds"][0].clone()), with_kwargs=True
    )
    return seen


def inputs_of(processor: Any, conversation: str) -> Any:
    text = processor.apply_chat_template(CONVERSATIONS[conversation], add_generation_prompt=True)
    noise = numpy.random.default_rng(0)
    media: dict[str, Any] = {}
    if conversation == "media":
        picture = Image.fromarray(noise.integers(0, 255, (64, 64, 3), dtype=numpy.uint8))
        media = {"images": [picture], "audio": [noise.normal(size=16_000).astype(numpy.float32)]}
    return processor(text=text, return_tensors="pt", **media)


def reply_of(rows: torch.Tensor, prompt: int, over: torch.Tensor, padding: torch.Tensor) -> ReplyRows:
    reply = ReplyRows(over, padding)
    reply.add(rows[prompt:])
    reply.end()
    return reply


@pytest.mark.parametrize("conversation", CONVERSATIONS)
def test_qwen2_5_omnis_talker_gets_transformers_own_rows(conversation, tiny_checkpoint):
    folder = tiny_checkpoint("qwen2.5-omni")
    model = Qwen2_5OmniForConditionalGeneration.from_pretrained(folder).eval()
    config, seen = model.config.talker_config, watched(model)
    keep_masks(model.talker)
    inputs = dict(inputs_of(AutoProcessor.from_pretrained(folder), conversation))
    if "pixel_values" in inputs:
        inputs["thinker_pixel_values"] = inputs.pop("pixel_values")
    limits = {"thinker_max_new_tokens": WORDS, "talker_max_new_tokens": FRAMES, "token2wav_num_steps": 2}
    greedy = {"thinker_do_sample": False, "talker_do_sample": False, "talker_eos_token_id": [config.vocab_size - 2]}
    model.generate(**inputs, speaker="Ethan", **limits, **greedy)

    read = seen.thinker.sequences[0, :-1].tolist()
    prompt = inputs["input_ids"].shape[1]
    voice = model.speaker_map["Ethan"]["bos_token"]
    table, codec = model.thinker.get_input_embeddings().weight, model.talker.get_input_embeddings().weight
    rows = qwen2_5.select(read, seen.states(0), seen.states(-1), qwen2_5.media_ids(model.config.thinker_config))
    thinker = qwen2_5.ThinkerRows(*(table[row] for row in qwen2_5.row_ids(config, voice)))
    reply = reply_of(rows, prompt, thinker.over, thinker.padding)
    begin = qwen2_5.CodecRows(codec[config.tts_codec_pad_token_id], codec[config.tts_codec_start_token_id])
    ours = qwen2_5.prompt_rows(rows[:prompt], reply, thinker, begin)

    project = model.talker.thinker_to_talker_proj
    assert seen.talker["input_ids"][0].tolist() == qwen2_5.prompt_ids(config, prompt)
    assert seen.talker["input_text_ids"][0].tolist() == qwen2_5.position_ids(read[:prompt], voice, read[prompt])
    assert seen.talker["suppress_tokens"] == list(qwen2_5.suppressed_ids(config))
    torch.testing.assert_close(project(ours), seen.steps[0])
    spoken = seen.codes[0, prompt + 2 :].tolist()
    assert len(spoken) == FRAMES
    for step, theirs in enumerate(seen.steps[1:]):
        torch.testing.assert_close(project(qwen2_5.step_row(codec[spoken[step]], reply, step))[None], theirs)


@pytest.mark.parametrize("conversation", CONVERSATIONS)
def test_qwen3_omnis_talker_gets_transformers_own_rows(conversation, tiny_checkpoint):
    folder = tiny_checkpoint("qwen3-omni")
    model = Qwen3OmniMoeForConditionalGeneration.from_pretrained(folder).eval()
    # Without it, transformers cannot place a talker's sound.
    model.talker.config.audio_config = model.config.thinker_config.audio_config
    config, seen = model.config, watched(model)
    inputs = inputs_of(AutoProcessor.from_pretrained(folder), conversation)
    limits = {"thinker_max_new_tokens": WORDS, "talker_max_new_tokens": FRAMES, "thinker_eos_token_id": 10**6}
    model.generate(**inputs, speaker="Ethan", **limits, thinker_do_sample=False, talker_do_sample=False)

    read = seen.thinker.sequences[0, :-1].tolist()
    length = inputs["input_ids"].shape[1]
    prompt, talker = read[:length], model.talker
    states = [seen.states(layer) for layer in qwen3.thinker_layers(config.talker_config)]
    rows = qwen3.select(read, states[0], states[1], qwen3.media_ids(config.thinker_config))
    table = model.thinker.get_input_embeddings().weight[list(qwen3.row_ids(config))]
    speech = qwen3.SpeechRows(*talker.text_projection(table))
    reply = reply_of(talker.text_projection(rows), length, speech.over, speech.padding)
    codec = talker.get_input_embeddings().weight
    own = codec[qwen3.codec_ids(config.talker_config, config.talker_config.speaker_id["ethan"])]
    ours = (qwen3.prompt_rows(prompt, rows[:length], config, talker), qwen3.beginning_rows(own, reply, speech))

    torch.testing.assert_close(torch.cat(ours), seen.steps[0])
    assert seen.talker["talker_input_ids"][0].tolist() == qwen3.prompt_ids(prompt, config)
    assert seen.talker["suppress_tokens"] == qwen3.suppressed_ids(config.talker_config)
    frames = [step[-1][0] for step in seen.codes.hidden_states if step[-1] is not None]
    assert len(frames) > WORDS
    tables = [talker.get_input_embeddings(), *talker.code_predictor.get_input_embeddings()]
    for step, (frame, theirs) in enumerate(zip(frames, seen.steps[1:], strict=True)):
        code_rows = torch.stack([embed(code) for embed, code in zip(tables, frame, strict=True)])
        torch.testing.assert_close(qwen3.step_row(code_rows, reply, step)[None], theirs)


def test_a_reply_of_one_word_ends_at_once_and_goes_on_with_padding():
    """Transformers itself cannot speak such an answer: its only word is the token that ends it, which has no row."""
    reply = ReplyRows(over=torch.tensor([1.0]), padding=torch.tensor([2.0]))
    assert not reply.has(0)
    with pytest.raises(IndexError, match="the talker is at word 0, and the thinker has said 0"):
        reply.row(0)
    reply.end()
    assert reply.rows(0, 3).flatten().tolist() == [1, 2, 2]


def test_a_talker_may_follow_while_the_thinker_still_speaks():
    reply = ReplyRows(over=torch.tensor([1.0]), padding=torch.tensor([2.0]))
    reply.add(torch.tensor([[5.0], [6.0]]))
    assert [reply.has(step) for step in range(3)] == [True, True, False]
    assert reply.rows(0, 2).flatten().tolist() == [5, 6]
    reply.end()
    assert reply.rows(1, 3).flatten().tolist() == [6, 1, 2]


def test_a_talker_that_leaves_out_turns_closes_the_gaps_and_keeps_media_in_their_places():
    picture = [[4, 4, 4], [4, 4, 5], [4, 5, 4], [4, 5, 5]]
    prompt = torch.tensor([*([place] * 3 for place in range(4)), *picture, *([place] * 3 for place in range(6, 12))])
    heard = [3, 4, 5, 6, 7, 8, 12, 13]
    placed = qwen3.positions(prompt, heard, following=2).tolist()
    assert placed[:6] == [[0, 0, 0], [1, 1, 1], [1, 1, 2], [1, 2, 1], [1, 2, 2], [3, 3, 3]]
    assert placed[6:] == [[place] * 3 for place in (4, 5, 6, 7)]
    assert qwen2_5.positions(prompt).tolist() == [*prompt.tolist(), [12] * 3, [13] * 3]
