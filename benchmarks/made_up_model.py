"""A folder of a Qwen3 of 1.7 billion weights, without them: `python -m benchmarks.made_up_model FOLDER`.

For vLLM's `load_format: dummy`. What such a model says is any token, so the tokenizer has a text for every one: where
one has none, vLLM spells an answer anew with each token, and measures that.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from itertools import islice, product
from pathlib import Path
from string import ascii_lowercase

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

VOCABULARY = 151_936
SPECIAL = ("<|bos|>", "<|eos|>", "<|im_start|>", "<|im_end|>")
SPACE = "Ġ"
"""As byte-level tokenizers write it."""
CONFIG: Mapping[str, object] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "vocab_size": VOCABULARY,
    "hidden_size": 2048,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 6144,
    "tie_word_embeddings": True,
    "max_position_embeddings": 40_960,
    "rope_theta": 1_000_000.0,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
    "attention_bias": False,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "torch_dtype": "bfloat16",
}
TOKENIZER_CONFIG: Mapping[str, object] = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": "<|bos|>",
    "eos_token": "<|eos|>",
    "pad_token": "<|eos|>",
}


def write_model(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "generation_config.json").write_text(json.dumps({"bos_token_id": 0, "eos_token_id": 1}))
    (folder / "tokenizer_config.json").write_text(json.dumps(TOKENIZER_CONFIG))
    tokenizer().save(str(folder / "tokenizer.json"))


def tokenizer() -> Tokenizer:
    """Bytes and words, whose merges nobody has learnt: it spells better than it reads."""
    texts = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    words = (SPACE + "".join(letters) for letters in product(ascii_lowercase, repeat=4))
    texts += islice(words, VOCABULARY - len(texts))
    made = Tokenizer(models.BPE(vocab={text: number for number, text in enumerate(texts)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(list(SPECIAL))
    return made


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.made_up_model", description=__doc__)
    parser.add_argument("folder", type=Path)
    write_model(parser.parse_args().folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
