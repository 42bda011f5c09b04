"""The changes of a Source without a copy."""

import base64
import hashlib
import json
import os
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Type, Union
from urllib.parse import urlsplit

from . import _abreast
from ._documents import _Record
from ._errors import CancelledError, SourceError, UsageError, class_of
from ._options import Option, words_of
from ._records import Problem, _record

#: The algorithms of `hash` in Python, the strongest first.
_ALGORITHMS = {"sha-512": "sha512", "sha-256": "sha256", "sha-1": "sha1", "md5": "md5"}
#: Options of a run that requests of contents have too.
_SHARED = ("proxy", "no_proxy", "user", "password_file", "password_command", "token_file", "token_command", "netrc",
           "client_cert", "client_key", "ca_file", "pin", "contact", "sign_key", "sign_agent", "retries", "rate")


@dataclass(frozen=True)
class SourceChange(_Record):
    """A change of a resource of the Source. The content is fetched when it is needed."""

    uri: str = ""
    #: `created`, `updated` or `deleted`.
    change: str = ""
    #: The time of the change; missing for resources of the first run.
    datetime: Optional[str] = None
    lastmod: Optional[str] = None
    length: Optional[int] = None
    #: The digests as listed: `md5:… sha-256:…`.
    hash: Optional[str] = None
    #: The address of the request, if it is not the URI.
    href: Optional[str] = None
    #: The media type, if the content came with the change.
    type: Optional[str] = None
    _content: Optional[bytes] = field(default=None, repr=False, compare=False)
    _contents: Optional["_Contents"] = field(default=None, repr=False, compare=False)

    def as_dict(self) -> Dict[str, Any]:
        """The members that have a value."""
        return {name: value for name, value in super().as_dict().items() if not name.startswith("_")}

    def content(self, max_bytes: int = 256 << 20) -> bytes:
        """The content of the resource, verified by the listed digest, or by the length if no digest is listed.

        Raises `SourceError` with the name `digest` if the content is another one: the resource has changed again, and a
        later change reports it.
        """
        if self._content is not None:
            return self._content
        if self.change == "deleted" or self._contents is None:
            raise UsageError(f"{self.uri} was deleted", help="a deleted resource has no content")
        content = self._contents.fetch(self.href or self.uri, max_bytes)
        self._verify(content)
        return content

    def _verify(self, content: bytes) -> None:
        listed = self.hashes
        for name, algorithm in _ALGORITHMS.items():
            if name in listed:
                if hashlib.new(algorithm, content, usedforsecurity=False).hexdigest() != listed[name]:
                    raise SourceError(f"the content of {self.uri} does not have the listed {name} digest",
                                      name="digest", help="the resource may have changed again; continue with the "
                                      "following changes")
                return
        if self.length is not None and len(content) != self.length:
            raise SourceError(f"the content of {self.uri} has {len(content)} bytes, and {self.length} are listed",
                              name="digest")


class _Contents:
    """Fetches contents, with connections that are used again."""

    def __init__(self, url: str, options: Mapping[str, Option]) -> None:
        shared = {name: value for name, value in options.items() if name in _SHARED}
        self._http = _abreast.Http(words_of(shared, [url]), None)
        self._host = urlsplit(url).netloc

    def fetch(self, url: str, most: int) -> bytes:
        is_other = urlsplit(url).netloc != self._host
        status, _, body = self._http.request("GET", url, None, None, (most, is_other))
        if status != 200:
            kind = class_of(12) if status in (401, 403) else SourceError
            raise kind(f"{url} answered {status}", name=f"http.{status}")
        return body


class SourceChanges(Iterator[SourceChange]):
    """An iterator over the changes of a Source; see `follow`.

    The position is in the folder `state`. A change counts as processed when the next change is requested, or when the
    `with` block ends without an exception. Changes that were not processed are yielded again by the next iterator with
    the same `state`; since several changes are recorded together, some processed ones may be repeated too.
    """

    def __init__(self, url: str, state: Optional[Path], problem: Optional[Callable[[Problem], object]],
                 options: Dict[str, Option]) -> None:
        self._temporary = None if state else tempfile.TemporaryDirectory(prefix="abreast-")
        #: The folder that has the position.
        self.state: Path = state or Path(self._temporary.name)  # type: ignore[union-attr]
        self._contents = _Contents(url, options)
        self._problem = problem
        self._lines: List[str] = []
        self._is_delivered = False
        self._is_closed = False
        # A function that handles a signal may close the iterator while the same thread closes it.
        self._closing = threading.RLock()
        self._streaming = _abreast.Streaming(words_of({**options, "state": self.state}, [url, "-"]))

    def __iter__(self) -> "SourceChanges":
        return self

    def __next__(self) -> SourceChange:
        while not self._is_closed:
            if self._lines:
                return self._change(json.loads(self._lines.pop()))
            self._accept()
            try:
                text = self._streaming.next()
            except CancelledError:
                break
            except BaseException:
                self.close()
                raise
            if text is None:
                break
            if text.startswith("\n"):
                self._lines = text.splitlines()[:0:-1]
                self._is_delivered = True
                continue
            values = json.loads(text)
            if values["type"] in ("error", "notice") and self._problem is not None:
                self._problem(_record(Problem, {**values, "is_notice": values["type"] == "notice"}))
        self.close()
        raise StopIteration

    def _accept(self) -> None:
        if self._is_delivered and not self._lines:
            self._is_delivered = False
            self._streaming.accept()

    def _change(self, values: Dict[str, Any]) -> SourceChange:
        content = values.get("content")
        return SourceChange(
            uri=values["uri"], change=values["change"], datetime=values.get("datetime"), lastmod=values.get("lastmod"),
            length=values.get("length"), hash=values.get("hash"), href=values.get("href"), type=values.get("media_type"),
            _content=None if content is None else base64.b64decode(content), _contents=self._contents)

    def close(self) -> None:
        """End the run, and wait until the state is free. Changes that were not processed come again.

        Any thread may close the iterator, and more than once.
        """
        # The lines remain: without them, a thread in `__next__` would confirm them.
        self._is_closed = True
        with self._closing:
            self._streaming.close()
            if self._temporary is not None:
                self._temporary.cleanup()

    def __enter__(self) -> "SourceChanges":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if error is None and not self._is_closed:
            self._accept()
        self.close()


def stream(url: str, state: Union[None, str, "os.PathLike[str]"], problem: Optional[Callable[[Problem], object]],
           options: Dict[str, Option]) -> SourceChanges:
    """The changes of a Source, with their position in a folder."""
    return SourceChanges(url, None if state is None else Path(os.fspath(state)), problem, options)
