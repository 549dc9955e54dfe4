"""What `omni serve` prints once it serves: the address, and two requests to paste for each kind of answer."""

from omni_runtime.local.plan import LocalPlan

IMAGE_REQUEST = """
  curl -s {url}/v1/images/generations -H 'content-type: application/json' \\
    -d '{{"model": "{name}", "prompt": "a red fox", "size": "{size}", "seed": 1}}'
"""
IMAGE_CODE = """
  answer = client.images.generate(model="{name}", prompt="a red fox", size="{size}", extra_body={{"seed": 1}})
  open("fox.png", "wb").write(b64decode(answer.data[0].b64_json))
"""
TEXT_REQUEST = """
  curl -s {url}/v1/chat/completions -H 'content-type: application/json' \\
    -d '{{"model": "{name}", "messages": [{{"role": "user", "content": "Hello!"}}], "modalities": ["text"]}}'
"""
TEXT_CODE = """
  answer = client.chat.completions.create(
      model="{name}", messages=[{{"role": "user", "content": "Hello!"}}], modalities=["text"]
  )
  print(answer.choices[0].message.content)
"""
SPOKEN_CODE = """
  answer = client.chat.completions.create(
      model="{name}",
      messages=[{{"role": "user", "content": "Hello!"}}],
      modalities=["text", "audio"],
      audio={{"format": "wav"{voice}}},
  )
  open("hello.wav", "wb").write(b64decode(answer.choices[0].message.audio.data))
"""
SPEECH_REQUEST = """
  curl -s {url}/v1/audio/speech -H 'content-type: application/json' \\
    -d '{{"model": "{name}", "input": "Hello!"{voice}}}' > hello.mp3
"""
SPEECH_CODE = """
  answer = client.audio.speech.create(model="{name}", input="Hello!"{named_voice})
  answer.write_to_file("hello.mp3")
"""
DECODING = "  from base64 import b64decode\n"
TEMPLATE = """
{model} serves at {url}/v1
{requests}
{decoding}  from openai import OpenAI

  client = OpenAI(base_url="{url}/v1", api_key="{key}")
{code}
Ctrl-C stops it.
"""


def banner(plan: LocalPlan, needs_key: bool) -> str:
    key = "YOUR-KEY" if needs_key else "none"
    voice = "" if plan.voice is None else f', "voice": "{plan.voice}"'
    named = "" if plan.voice is None else f', voice="{plan.voice}"'
    known = {
        "model": plan.model,
        "url": plan.url,
        "name": plan.served_name,
        "size": plan.size,
        "voice": voice,
        "named_voice": named,
    }
    requests, code = _samples(plan.modalities, plan.voice is not None)
    filled = "".join(request.format(**known) for request in requests)
    told = "".join(code).lstrip("\n").format(**known)
    decoding = DECODING if "b64decode" in told else ""
    return TEMPLATE.format(requests=filled, decoding=decoding, code=told, key=key, **known)


def _samples(modalities: tuple[str, ...], has_voices: bool) -> tuple[list[str], list[str]]:
    """What to paste into a shell, and into Python. A model that clones or designs voices needs more than a text."""
    requests, code = [], []
    if "image" in modalities:
        requests.append(IMAGE_REQUEST)
        code.append(IMAGE_CODE)
    if "text" in modalities:
        requests.append(TEXT_REQUEST)
        code.append(SPOKEN_CODE if "audio" in modalities else TEXT_CODE)
    elif "audio" in modalities and has_voices:
        requests.append(SPEECH_REQUEST)
        code.append(SPEECH_CODE)
    return requests, code
