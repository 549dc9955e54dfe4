"""What `omni serve` prints once it serves: the address, and two requests to paste."""

from omni_runtime.local.plan import LocalPlan

TEMPLATE = """
{model} serves at {url}/v1

  curl -s {url}/v1/images/generations -H 'content-type: application/json' \\
    -d '{{"model": "{name}", "prompt": "a red fox", "size": "{size}", "seed": 1}}'

  from base64 import b64decode
  from openai import OpenAI

  client = OpenAI(base_url="{url}/v1", api_key="{key}")
  answer = client.images.generate(model="{name}", prompt="a red fox", size="{size}", extra_body={{"seed": 1}})
  open("fox.png", "wb").write(b64decode(answer.data[0].b64_json))

Ctrl-C stops it.
"""


def banner(plan: LocalPlan, needs_key: bool) -> str:
    key = "YOUR-KEY" if needs_key else "none"
    return TEMPLATE.format(model=plan.model, url=plan.url, name=plan.served_name, size=plan.size, key=key)
