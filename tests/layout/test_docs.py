"""What our documents tell the reader to type works, and prints what they say it prints."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from omni_contract.wire.exit_codes import MEANINGS
from omni_operator.plan.conditions import Reason
from omni_runtime.orchestrator.states import SESSION, STAGE, TERMINAL
from omni_runtime.worker.admin import ROUTES
from omni_runtime.worker.states import ANSWERED, TRANSITIONS, Call
from tests.layout.docs import NEEDS, Block, all_blocks, blocks_of, documents, is_as_shown
from tests.layout.source import CHECKOUT

BLOCKS = all_blocks()
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
MADE_BY_THE_READER = ("out", "models", "wrong.yaml")


def blocks_that_need(needs: str) -> list[Block]:
    return [block for block in BLOCKS if block.needs == needs]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The checkout as a reader has it, but what the commands write stays in a folder of the test's own.

    Without `.venv` and `.git`, which a command could change for everybody.
    """
    for path in CHECKOUT.iterdir():
        if path.name not in MADE_BY_THE_READER and not path.name.startswith("."):
            (tmp_path / path.name).symlink_to(path)
    return tmp_path


def run_block(block: Block, folder: Path) -> None:
    assert block.is_harmless, f"{block}: say behind ```console what these commands need"
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for command in block.commands:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command.line],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0 or command.printed, f"{command.line}\n{done.stdout}"
        assert is_as_shown(done.stdout, command.printed), f"{command.line}\n{done.stdout}"


def test_every_block_says_what_it_needs() -> None:
    assert {block.needs for block in BLOCKS} <= set(NEEDS)
    assert all(block.commands for block in BLOCKS)


@pytest.mark.parametrize("block", blocks_that_need(""), ids=str)
def test_a_command_prints_what_the_document_says(block: Block, clone: Path) -> None:
    run_block(block, clone)


@pytest.mark.models
@pytest.mark.parametrize("block", blocks_that_need("models"), ids=str)
def test_a_command_with_a_model_prints_what_the_document_says(block: Block, clone: Path) -> None:
    run_block(block, clone)


@pytest.mark.parametrize("block", blocks_that_need("make"), ids=str)
def test_a_task_is_in_the_makefile(block: Block) -> None:
    for command in block.commands:
        program, task = command.words
        assert program == "make"
        assert re.search(rf"^{task}:.*## ", (CHECKOUT / "Makefile").read_text(), re.MULTILINE), command.line


@pytest.mark.parametrize("block", blocks_that_need("cluster"), ids=str)
def test_a_command_for_a_cluster_names_files_and_objects_that_exist(block: Block) -> None:
    for command in block.commands:
        assert command.words[0] in ("kubectl", "helm")
        for word in command.words:
            if word.startswith(("examples/", "charts/")):
                assert (CHECKOUT / word).exists(), command.line
            if "tiny-qwen-image" in word and word.startswith(("omnimodel/", "service/")):
                assert word.split("/")[1] in ("tiny-qwen-image", "tiny-qwen-image-frontend"), command.line


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_every_link_leads_to_a_file(document: Path) -> None:
    for target in LINK.findall(document.read_text()):
        assert (document.parent / target).exists(), target


def drawn_moves(page: str) -> set[tuple[str, str, str]]:
    return {
        (source, event, target)
        for source, target, events in re.findall(r"^    (\w+) --> (\w+): (.+)$", page, re.MULTILINE)
        for event in events.split(", ")
    }


def moves_of(table: Mapping[Any, Mapping[Any, Any]]) -> set[tuple[str, str, str]]:
    """All but those that stay where they are."""
    return {
        (str(source), str(event), str(target))
        for source, row in table.items()
        for event, target in row.items()
        if source != target
    }


def test_the_pictures_of_the_session_and_of_its_stages_are_their_tables() -> None:
    page = (CHECKOUT / "docs" / "architecture.md").read_text()
    session, stage = re.findall(r"^```mermaid\n(stateDiagram.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert drawn_moves(session) == moves_of(SESSION)
    assert drawn_moves(stage) == moves_of(STAGE)
    assert set(re.findall(r"^    (\w+) --> \[\*\]$", session, re.MULTILINE)) == set(map(str, TERMINAL))


def test_the_picture_of_the_worker_and_the_table_of_its_calls_are_those_of_the_code() -> None:
    page = (CHECKOUT / "docs" / "operations.md").read_text()
    assert drawn_moves(page) == moves_of(TRANSITIONS)
    rows = re.findall(r"^\| `(POST|GET) (/[\w/]+)(?:\?.*)?` \| `(\w+)` \| (.+?) \|", page, re.MULTILINE)
    assert {(method, path) for method, path, _, _ in rows} == {(route[0], path) for path, route in ROUTES.items()}
    told = {name: set(states.split(", ")) for _, _, name, states in rows}
    for call in Call:
        answered = {str(state) for state in ANSWERED[call]}
        assert told[str(call).title().replace(" ", "")] == (
            {"always"} if answered == {*map(str, TRANSITIONS)} else answered
        )


def test_every_exit_code_is_told_with_its_meaning() -> None:
    page = (CHECKOUT / "docs" / "operations.md").read_text()
    section = page.partition("## Exit codes")[2].partition("## ")[0]
    told = dict(re.findall(r"^\| (\d+) \| (.+?) \|", section, re.MULTILINE))
    assert told.pop("137")
    assert told == {str(int(code)): meaning for code, meaning in MEANINGS.items()}


def test_the_table_of_sources_names_what_exists() -> None:
    page = (CHECKOUT / "docs" / "architecture.md").read_text()
    named = re.findall(r"^\| .* \| `(.+)` \|$", page, re.MULTILINE)
    assert len(named) > 20
    assert [path for path in named if not (CHECKOUT / path).exists()] == []


def test_every_reason_of_a_condition_is_explained() -> None:
    page = (CHECKOUT / "docs" / "reference" / "conditions.md").read_text()
    assert [reason for reason in Reason if f"| `{reason}` |" not in page] == []


def test_every_dependency_has_its_line() -> None:
    import tomllib

    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    names = {re.split(r"[\[=><~!]", requirement)[0] for requirement in wanted}
    page = (CHECKOUT / "docs" / "decisions" / "dependencies.md").read_text()
    told = {name for row in re.findall(r"^\| ([\w, -]+?) \|", page, re.MULTILINE) for name in row.split(", ")}
    assert sorted(names - told) == []


def test_a_block_is_read_with_its_output() -> None:
    text = "one\n```console models\n$ a b\nc\n$ d\n```\n"
    (block,) = blocks_of("x.md", text)
    assert (block.needs, block.number) == ("models", 2)
    assert [(command.line, command.printed) for command in block.commands] == [("a b", "c\n"), ("d", "")]


@pytest.mark.parametrize(
    ("printed", "shown", "is_right"),
    [("a 1 b\n", "a ... b\n", True), ("a\nb\nc\n", "a\n...\n", True), ("a\n", "b\n", False), ("a\n", "", True)],
)
def test_three_dots_stand_for_anything(printed: str, shown: str, is_right: bool) -> None:
    assert is_as_shown(printed, shown) is is_right
