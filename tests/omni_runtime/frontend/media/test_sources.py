"""Where a URL of a request points to, and which ones point nowhere."""

from pathlib import Path

import pytest

from omni_runtime.frontend.media.sources import Inline, Link, LocalFile, RefusedSourceError, source_of


@pytest.mark.parametrize(
    "url", ["data:image/png;base64,aGk=", "DATA:;BASE64, aGk=", "data:video/mp4;codecs=x;base64,a\nG k="]
)
def test_a_data_url_holds_its_bytes_with_blanks_or_without(url: str) -> None:
    source = source_of(url)
    assert isinstance(source, Inline) and source.data() == b"hi"


@pytest.mark.parametrize("data", ["a", "aGk", "aGk=#", "é"])
def test_damaged_base64_is_refused(data: str) -> None:
    source = source_of(f"data:;base64,{data}")
    assert isinstance(source, Inline)
    with pytest.raises(RefusedSourceError, match="no valid base64"):
        source.data()


def test_links_and_files_are_told_apart() -> None:
    assert source_of("https://example.org:8443/a.png?b=c") == Link("https://example.org:8443/a.png?b=c", "example.org")
    assert source_of("http://[::1]/a") == Link("http://[::1]/a", "::1")
    assert source_of("file:///data/a%20b.png") == LocalFile(Path("/data/a b.png"))


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("data:text/plain,hello", '"data:TYPE;base64,DATA"'),
        ("data:;base64", '"data:TYPE;base64,DATA"'),
        ("ftp://example.org/a", "use an http"),
        ("gopher://example.org/a", "use an http"),
        ("/etc/passwd", "use an http"),
        ("javascript:alert(1)", "use an http"),
        ("http:///a", "must name a host"),
        ("http://user:word@example.org/a", "and no user"),
        ("http://example.org@10.0.0.1/a", "and no user"),
        ("http://[::1/a", "cannot be read"),
        ("http://example.org:99999/a", "cannot be read"),
        ("http://example.org/" + "a" * 9000, "more than 8192 characters"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_points_nowhere_is_refused_with_a_way_out(url: str, words: str) -> None:
    with pytest.raises(RefusedSourceError, match=words) as caught:
        source_of(url)
    assert len(str(caught.value)) < 150
