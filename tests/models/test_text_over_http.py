"""A language model on vLLM behind a real frontend, asked by the official SDK."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from openai import BadRequestError, NotFoundError, OpenAI

from omni_contract.api.v1alpha1 import OmniModelSpec
from omni_contract.resolve import resolve
from tests.models import tiny_text
from tests.models.ar_engines import SMALL
from tests.models.tiny_adapter import NAME, PATH, RANK, add_adapter
from tests.support.media_files import data_url, image_file
from tests.support.model_files import catalog
from tests.support.model_processes import model_processes

MODEL = "writer"
HELLO: Any = [{"role": "user", "content": "Hello, fox!"}]
GREEDY: dict[str, Any] = {"model": MODEL, "temperature": 0, "max_tokens": 12, "extra_body": {"min_tokens": 12}}


@pytest.fixture(scope="module")
def openai(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAI]:
    folder = tmp_path_factory.mktemp("writer")
    tiny_text.build(folder / "models" / "tiny")
    add_adapter(folder / "models" / "tiny")
    engine = SMALL | {"loras": [{"name": NAME, "path": PATH}], "max_lora_rank": RANK}
    spec = OmniModelSpec.model_validate(
        {
            "model": {"source": "pvc://models/tiny"},
            "stages": [
                {"name": "writer", "ar": engine, "output": {"modality": "text"}, "accelerator": {"pool": "cpu"}}
            ],
        }
    )
    model = resolve(MODEL, "default", spec, catalog())
    with model_processes(model, folder, volumes=folder / "models") as processes:
        asyncio.run(processes.start())
        with OpenAI(base_url=f"{processes.urls[0]}/v1", api_key="none", max_retries=0, timeout=120) as client:
            yield client


def chat(openai: OpenAI, **fields: Any) -> Any:
    return openai.chat.completions.create(**{"messages": HELLO, **GREEDY, **fields})


def test_a_chat_is_its_template_gone_on_from(openai: OpenAI) -> None:
    answer = chat(openai)
    prompt = "<|im_start|>user\nHello, fox!<|im_end|>\n<|im_start|>assistant\n"
    completed = openai.completions.create(prompt=prompt, **GREEDY)
    assert answer.choices[0].message.content == completed.choices[0].text != ""
    assert (answer.usage.completion_tokens, answer.choices[0].finish_reason) == (12, "length")
    assert completed.usage and completed.usage.prompt_tokens == answer.usage.prompt_tokens > 0


def test_a_stream_says_what_the_whole_answer_says(openai: OpenAI) -> None:
    chunks = list(chat(openai, stream=True, stream_options={"include_usage": True}))
    text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    whole = chat(openai)
    assert (text, chunks[-1].usage) == (whole.choices[0].message.content, whole.usage)


def test_the_likeliest_token_is_the_one_that_a_greedy_answer_chooses(openai: OpenAI) -> None:
    tokens = chat(openai, logprobs=True, top_logprobs=3).choices[0].logprobs.content
    assert len(tokens) == 12
    assert all(token.logprob == max(top.logprob for top in token.top_logprobs) for token in tokens)
    assert all(len(token.top_logprobs) == 3 for token in tokens)


def test_seeds_choose_and_choice_i_is_that_of_seed_plus_i(openai: OpenAI) -> None:
    sampled = {"temperature": 1.0, "max_tokens": 8, "extra_body": {"min_tokens": 8}}
    several = chat(openai, n=3, seed=5, **sampled)
    alone = [chat(openai, seed=5 + index, **sampled).choices[0].message.content for index in range(3)]
    assert [choice.message.content for choice in several.choices] == alone
    assert len(set(alone)) > 1


@pytest.mark.case("runtime:A28")
def test_an_adapter_answers_who_names_it_and_nobody_else(openai: OpenAI) -> None:
    def said(**more: Any) -> str:
        return str(chat(openai, extra_body={"min_tokens": 12, **more}).choices[0].message.content)

    plain, poetic = said(), said(lora=NAME)
    assert plain != poetic
    assert said(sampling_params_list=[{"lora": NAME}]) == poetic
    assert said() == plain
    with pytest.raises(NotFoundError, match=r"the adapters are: .*poet") as caught:
        said(lora="painter")
    assert caught.value.param == "lora"


def test_what_only_the_stage_can_know_is_refused_with_its_field(openai: OpenAI) -> None:
    with pytest.raises(BadRequestError) as caught:
        openai.completions.create(model=MODEL, prompt=[10**6])
    assert caught.value.param == "prompt"
    with pytest.raises(BadRequestError, match="reads text alone") as caught:
        image = {"type": "image_url", "image_url": {"url": data_url(image_file())}}
        chat(openai, messages=[{"role": "user", "content": [image]}])
    assert caught.value.param == "messages"
