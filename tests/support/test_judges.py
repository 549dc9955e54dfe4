"""A judge that fails or is late spoils no other's answer."""

from pathlib import Path

import pytest

from tests.support.judges import ask

BOTH_WAYS = pytest.mark.parametrize("forks", [True, False])


def judge(folder: Path, name: str, *lines: str) -> Path:
    script = folder / f"{name}.py"
    script.write_text("\n".join(["import sys, threading", "def main(*said):", *(f"    {line}" for line in lines)]))
    return script


def copying(folder: Path) -> Path:
    return judge(folder, f"copying_{folder.name}", "open(said[0], 'w').write(sys.stdin.read())", "print('copied')")


def test_a_judge_reads_what_is_given_and_says_its_own(tmp_path: Path) -> None:
    assert ask(copying(tmp_path), [tmp_path / "copy"], "question") == "copied\n"
    assert (tmp_path / "copy").read_text() == "question"


@BOTH_WAYS
def test_after_one_that_failed_the_next_is_heard(forks: bool, tmp_path: Path) -> None:
    failing = judge(tmp_path, f"failing_{forks}", "raise ValueError('no such voice')")
    with pytest.raises(AssertionError, match="no such voice" if forks else "its court has ended"):
        ask(failing, [], "", forks=forks)
    ask(copying(tmp_path), [tmp_path / "copy"], "question", forks=forks)
    assert (tmp_path / "copy").read_text() == "question"


@BOTH_WAYS
def test_one_that_is_late_is_not_taken_for_the_next(forks: bool, tmp_path: Path) -> None:
    late = judge(tmp_path, f"late_{forks}", "threading.Event().wait()")
    with pytest.raises(AssertionError, match=r"did not answer in 0\.1 s"):
        ask(late, [], "", forks=forks, timeout_s=0.1)
    ask(copying(tmp_path), [tmp_path / "copy"], "question", forks=forks)
    assert (tmp_path / "copy").read_text() == "question"


def test_judges_of_one_name_in_two_folders_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    first = judge(tmp_path, "twin", "print('first')")
    second = judge(tmp_path / "a", "twin", "print('second')")
    assert [ask(one, [], "") for one in (first, second)] == ["first\n", "second\n"]
