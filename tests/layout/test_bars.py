import pytest

from tests.layout.bars import Figure, figures
from tests.layout.source import Source, our_sources

LONG_FUNCTION = "def long() -> None:\n" + "    print()\n" * 81


SHORT = Source("runtime/x.py", "def short() -> None:\n    pass\n")


@pytest.fixture(scope="module")
def ours() -> dict[str, Figure]:
    return {figure.name: figure for figure in figures(our_sources())}


@pytest.mark.parametrize("name", [figure.name for figure in figures([SHORT])])
def test_our_source_is_within_the_bar(ours: dict[str, Figure], name: str) -> None:
    figure = ours[name]
    assert not figure.is_over, f"{figure.name}: {figure.value} is over {figure.bar}; see python -m tests.layout.bars"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (LONG_FUNCTION, "functions over 80 lines"),
        ("def f():\n    pass\n", "functions without return type"),
        ("def f() -> None:\n    pass\n" + "\n" * 400, "largest file"),
        ("def f() -> None:\n    pass  # TO" + "DO\n", "marks of unfinished work"),
    ],
)
def test_what_is_over_a_bar_is_seen(text: str, name: str) -> None:
    over = [figure.name for figure in figures([Source("runtime/x.py", text)]) if figure.is_over]
    assert name in over


def test_a_functions_length_leaves_out_docstring_blank_and_comment_lines() -> None:
    text = 'def f() -> int:\n    """One.\n\n    Two.\n    """\n\n    # why\n    return 1\n'
    assert [function.code_lines for function in Source("x.py", text).functions] == [2]


@pytest.mark.parametrize(
    "read", ['os.environ["A"]', 'os.environ.get("A")', 'os.getenv("A", "x")', 'environ.setdefault("A", "x")']
)
def test_every_way_to_read_the_environment_is_seen(read: str) -> None:
    assert list(Source("x.py", f"a = {read}\n").environment_names) == ["A"]
