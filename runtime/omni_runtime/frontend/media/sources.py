"""Pure: where a URL of a request points to."""

import base64
import binascii
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from omni_runtime.frontend.validation import LONGEST_VALUE, shortened

LONGEST_LINK = 8192
WHITE = re.compile(r"\s+")


class RefusedSourceError(ValueError):
    """A URL that nothing is read from; the text says why."""


@dataclass(frozen=True)
class Inline:
    """A data URL's own bytes, still in base64."""

    base64: str

    def data(self) -> bytes:
        try:
            return base64.b64decode(WHITE.sub("", self.base64), validate=True)
        except (binascii.Error, ValueError) as exc:
            raise RefusedSourceError("the data URL holds no valid base64") from exc


@dataclass(frozen=True)
class Link:
    url: str
    host: str


@dataclass(frozen=True)
class LocalFile:
    path: Path


Source: TypeAlias = Inline | Link | LocalFile


def source_of(url: str) -> Source:
    """Raises RefusedSourceError for what is neither a data URL, nor an http(s) link, nor a file."""
    if url[:5].lower() == "data:":
        head, comma, data = url.partition(",")
        if not comma or not head.lower().endswith(";base64"):
            raise RefusedSourceError('a data URL must be "data:TYPE;base64,DATA"')
        return Inline(data)
    if url[:5].lower() == "file:":
        return LocalFile(Path(unquote(urlsplit(url).path)))
    return link_of(url)


def link_of(url: str) -> Link:
    """Raises RefusedSourceError; user names in a link are refused, since they only disguise where it points to."""
    if len(url) > LONGEST_LINK:
        raise RefusedSourceError(f"the link has more than {LONGEST_LINK} characters")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as exc:
        raise RefusedSourceError("the link cannot be read") from exc
    if parts.scheme.lower() not in ("http", "https"):
        raise RefusedSourceError(f'use an http(s) link or a data URL, got "{shortened(url, LONGEST_VALUE)}"')
    if not host or "@" in parts.netloc:
        raise RefusedSourceError("the link must name a host, and no user")
    return Link(url, host)
