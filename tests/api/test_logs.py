"""What the logs of a model's processes say about one request."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.fake_chain import STAGES, fake_chain
from tests.support.model_processes import model_processes
from tests.support.picture_client import client, picture


@pytest.mark.parametrize(("level", "stages_that_tell"), [("info", ()), ("debug", STAGES)])
async def test_the_request_id_is_in_the_line_of_every_process_that_has_one(
    level: str, stages_that_tell: tuple[str, ...], tmp_path: Path
) -> None:
    with model_processes(fake_chain(), tmp_path) as processes:
        for name, plan in processes.plans.items():
            processes.plans[name] = replace(plan, arguments=(*plan.arguments, "--log-level", level))
        await processes.start()
        await picture(client(processes.urls[0]).with_options(default_headers={"x-request-id": "fox-1"}), 1)
        told = {name for name in processes.plans if "fox-1" in processes.log(name)}
    assert told == {"frontend-0", *stages_that_tell}
