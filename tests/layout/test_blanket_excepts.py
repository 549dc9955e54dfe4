from tests.layout.blanket_excepts import ALLOWED
from tests.layout.source import Source, our_sources


def blanket_excepts() -> set[str]:
    return {f"{source.name}:{scope}" for source in our_sources() for scope in source.blanket_excepts}


def test_only_listed_places_catch_everything() -> None:
    assert blanket_excepts() - set(ALLOWED) == set()


def test_the_list_names_no_place_that_is_gone() -> None:
    assert set(ALLOWED) - blanket_excepts() == set()


def test_an_except_is_named_by_its_class_and_function() -> None:
    text = "class A:\n    def f(self):\n        try:\n            g()\n        except Exception:\n            pass\n"
    assert list(Source("x.py", text).blanket_excepts) == ["A.f"]
