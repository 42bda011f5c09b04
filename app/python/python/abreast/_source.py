"""A client of the HTTP API of a running server."""

import json
import math
import mimetypes
import os
import re
import uuid
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Type, Union
from urllib.parse import quote, urlencode, urlsplit

from . import _abreast
from ._documents import Entry, _made, read
from ._errors import (AccessError, CancelledError, ConflictError, DiskError, Error, GapError, LimitError, ProblemDetails, SourceError,
                      TemporaryError, UsageError)
from ._options import Option, words_of
from ._rows import Time, row_of, time_of

#: Changes of one batch; the server accepts 10,000.
BATCH_MAX = 1_000
#: Bytes of an answer of the API.
_ANSWER_MAX = 64 << 20
#: Seconds that one request waits for a change: the most that a server accepts.
_WAIT_MAX = 30
_CLASSES: Dict[int, Type[Error]] = {400: UsageError, 401: AccessError, 403: AccessError, 404: UsageError, 405: UsageError, 408: TemporaryError,
            409: ConflictError, 412: ConflictError, 413: LimitError, 415: UsageError, 422: UsageError,
            429: TemporaryError, 500: TemporaryError, 502: TemporaryError, 503: TemporaryError, 504: TemporaryError,
            507: DiskError}


@dataclass(frozen=True)
class Recorded:
    """The answer to a change: it is durable."""

    #: The position of the last change of the set.
    head: int = 0
    #: Changes that were recorded.
    recorded: int = 0
    #: Changes that were already recorded.
    unchanged: int = 0


@dataclass(frozen=True)
class SetInfo:
    """A set of a server."""

    name: str = ""
    title: str = ""
    #: `folder` or `records`.
    kind: str = ""
    #: The number of resources.
    count: int = 0
    #: The position of the last change.
    head: int = 0
    #: The time at which the log of the set was created: a different time is a different log.
    created: str = ""
    #: The prefix of the URIs of the resources.
    resources: str = ""
    capability_list: str = ""
    state: str = ""
    #: All members of the answer.
    values: Dict[str, Any] = field(default_factory=dict, repr=False)


class Source:
    """A running server, through its HTTP API: `Source("http://127.0.0.1:8080/", set="papers", token="…")`.

    `url` is the address of the server, `set` the name of a set, which may be left out if the server has only one, and
    `token` a bearer token (`abreast token create`). Options of access are those of `abreast explore`, with `_` for `-`:
    `token_file`, `ca_file`, `retries` and others.

    Changes are durable when a method returns. Requests are repeated after transient failures; each batch has an
    idempotency key, so it is recorded once. Errors have the class of their status, and `error.problem` has the details.
    """

    def __init__(self, url: str, *, set: Optional[str] = None, token: Optional[str] = None, **options: Option) -> None:
        parts = urlsplit(url)
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.split('/api/v1')[0].rstrip('/')}"
        self._options = options
        self._http = _abreast.Http(words_of(options, [url]), token.strip() if token else None)
        self._set = set

    def __repr__(self) -> str:
        return f"Source({self.url!r}, set={self._set!r})"

    @property
    def set(self) -> str:
        """Name of the set."""
        if self._set is None:
            names = [found.name for found in self.sets()]
            if len(names) != 1:
                raise UsageError(f"the server has {len(names)} sets: {', '.join(names)}",
                                 help="choose one: Source(url, set=…)")
            self._set = names[0]
        return self._set

    def sets(self) -> List[SetInfo]:
        """The sets of the server that the token may read."""
        return [_set_info(values) for values in self._json("GET", "/api/v1/sets")["sets"]]

    def info(self) -> SetInfo:
        """The set: its number of resources, its last position and its state."""
        return _set_info(self._json("GET", self._path("")))

    def resource(self, uri: str) -> Optional[Entry]:
        """The recorded state of a resource, by its URI or its path; `None` if the set does not have the resource."""
        status, values = self._send("GET", self._path("/resource?" + urlencode({"uri": uri}, quote_via=quote)))
        if status == 404 and values.get("type", "").endswith(":not-found"):
            self.info()
            return None
        return _made(Entry, self._checked(status, values))

    def resources(self) -> Iterator[Entry]:
        """All resources of the set, from its Resource List."""
        options: Dict[str, Any] = dict(self._options)
        capabilities = read(self.info().capability_list, **options).entries()
        found = next((entry.uri for entry in capabilities if entry.capability == "resourcelist"), None)
        if found is None:
            raise SourceError("the set has no Resource List", name="documents.kind")
        return read(found, follow_indexes=True, **options).entries()

    def record(self, entries: Union[Entry, Mapping[str, Any], Iterable[Union[Entry, Mapping[str, Any]]]], *,
               idempotency_key: Optional[str] = None) -> Recorded:
        """Record changes of resources that are stored elsewhere: one entry, or any number.

        An entry has `uri`, and optionally `change` (`deleted`, otherwise the log decides), `lastmod`, `length`, `hash`,
        `type`, `encoding` and `links`. Batches of 1,000 are recorded completely or not at all. With an
        `idempotency_key`, a repeated call records nothing; the same entries must be given again. An error has the number
        of the entry, from 1.
        """
        if isinstance(entries, (Entry, Mapping)):
            entries = [entries]
        remaining, number, before, total = iter(entries), 0, 0, Recorded()
        key = idempotency_key or f"python-{uuid.uuid4().hex}"
        while True:
            batch = [_change(entry, place) for place, entry in enumerate(islice(remaining, BATCH_MAX), before + 1)]
            if not batch and number:
                return total
            number += 1
            if not batch:
                return Recorded(head=self.info().head)
            name = key if number == 1 else f"{key}.{number}"
            try:
                done = self._json("POST", self._path("/changes"), json.dumps(batch).encode(), key=name)
            except UsageError as error:
                raise _counted(error, before) from None
            before += len(batch)
            total = Recorded(done["head"], total.recorded + done["recorded"], total.unchanged + done["unchanged"])

    def delete(self, uri: str) -> Recorded:
        """Record the deletion of a resource, by its URI or its path; a file of the set's folder is deleted."""
        return _recorded(self._json("DELETE", self._path("/resource?" + urlencode({"uri": uri}, quote_via=quote))))

    def upload(self, path: str, data: Union[bytes, str, "os.PathLike[str]", BinaryIO]) -> Entry:
        """Store a file in the folder of the set, completely or not at all, and return its resource.

        `path` is relative to the folder. `data` is bytes, a text (stored in UTF-8), the path of a file as a `Path`, or a
        binary file. The data are in memory while they are sent.
        """
        if isinstance(data, str):
            body = data.encode()
        elif isinstance(data, (bytes, bytearray)):
            body = bytes(data)
        elif isinstance(data, os.PathLike):
            body = Path(data).read_bytes()
        else:
            body = data.read()
        kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
        values = self._json("PUT", self._path("/content/" + quote(path)), body, kind=kind)
        return _made(Entry, values["resource"])

    def download(self, path: str, max_bytes: int = 1 << 30) -> bytes:
        """The content of a file of the set's folder, at most `max_bytes`."""
        url = self.url + self._path("/content/" + quote(path))
        status, kind, body = self._http.request("GET", url, None, None, (max_bytes, False))
        if status != 200:
            self._checked(status, _parsed(kind, body))
        return body

    def changes(self, after: int = 0, *, since: Optional[Time] = None, wait: float = 0, limit: int = 1_000) -> "Changes":
        """The changes after a position, oldest first.

        The iteration ends at the last change, or, with `wait`, when no change came for that many seconds; `math.inf`
        waits without end. The iterator's `position` is that of the last change that was returned: save it, and pass it
        as `after` later. `since` starts at a time instead. `limit` is the number of changes of one request.

        Raises `GapError` if the log was restored or created again: read `resources()`, and continue after `info().head`.
        """
        return Changes(self, after, time_of("since", since), wait, limit)

    def _path(self, rest: str) -> str:
        return f"/api/v1/sets/{quote(self.set, safe='')}{rest}"

    def _send(self, method: str, path: str, body: Optional[bytes] = None, kind: str = "application/json",
              key: Optional[str] = None, http: Optional[_abreast.Http] = None) -> Tuple[int, Dict[str, Any]]:
        sent = None if body is None else (body, kind)
        status, answered, text = (http or self._http).request(method, self.url + path, sent, key, (_ANSWER_MAX, False))
        return status, _parsed(answered, text)

    def _json(self, method: str, path: str, body: Optional[bytes] = None, kind: str = "application/json",
              key: Optional[str] = None) -> Dict[str, Any]:
        status, values = self._send(method, path, body, kind, key)
        return self._checked(status, values)

    def _checked(self, status: int, values: Dict[str, Any]) -> Dict[str, Any]:
        if 200 <= status < 300:
            return values
        raise _error(status, values, self.url)


class Changes(Iterator[Entry]):
    """An iterator over the changes of a set; see `Source.changes`.

    The iterator is a context manager; `close()` ends a request that waits for changes.
    """

    def __init__(self, source: Source, after: int, since: Optional[str], wait: float, limit: int) -> None:
        #: The position of the last change that was returned.
        self.position = after
        self._source, self._since, self._wait, self._limit = source, since, wait, limit
        self._page: List[Dict[str, Any]] = []
        self._next = after
        self._http = source._http.share()
        self._is_closed = False

    def __iter__(self) -> "Changes":
        return self

    def __next__(self) -> Entry:
        waited = 0.0
        while not self._page or self._is_closed:
            if self._is_closed:
                raise StopIteration
            pause = 0 if self._wait <= waited else min(_WAIT_MAX, math.ceil(self._wait - waited)
                                                       if math.isfinite(self._wait) else _WAIT_MAX)
            query: Dict[str, Any] = {"after": self._next, "limit": self._limit}
            if self._since is not None:
                query = {"since": self._since, "limit": self._limit}
            if pause:
                query["wait"] = pause
            path = self._source._path("/changes?" + urlencode(query))
            try:
                status, values = self._source._send("GET", path, http=self._http)
            except CancelledError:
                raise StopIteration from None
            if status == 409:
                raise _error(status, values, self._source.url, GapError)
            self._source._checked(status, values)
            self._page, self._next, self._since = values["changes"][::-1], values["next"], None
            if not self._page:
                if not pause:
                    raise StopIteration
                waited += pause
        entry = _made(Entry, self._page.pop())
        self.position = entry.position or self.position
        return entry

    def close(self) -> None:
        """End the iteration. Any thread may close the iterator, and more than once."""
        self._is_closed = True
        self._http.close()

    def __enter__(self) -> "Changes":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()


def _set_info(values: Dict[str, Any]) -> SetInfo:
    names = set(SetInfo.__dataclass_fields__) - {"values"}
    return SetInfo(**{name: value for name, value in values.items() if name in names}, values=values)


def _recorded(values: Mapping[str, Any]) -> Recorded:
    return Recorded(values["head"], values["recorded"], values["unchanged"])


#: Members of an entry that the API accepts, and of an `Entry` that it does not.
_MEMBERS = ("uri", "change", "datetime", "lastmod", "length", "hash", "type", "encoding", "links", "position",
            "idempotency_key")
_OTHERS = ("path", "capability", "at", "completed", "from", "until", "id", "title")


def _change(entry: Union[Entry, Mapping[str, Any]], number: int) -> Dict[str, Any]:
    """An entry as the API accepts it."""
    values = row_of(entry, number, _MEMBERS if isinstance(entry, Mapping) else (*_MEMBERS, *_OTHERS))
    for name in ("position", *_OTHERS):
        values.pop(name, None)
    if values.get("change") == "deleted":
        for name in ("hash", "length", "links", "lastmod", "type", "encoding"):
            values.pop(name, None)
    return values


def _counted(error: UsageError, before: int) -> UsageError:
    """An error of a batch, with the numbers of the entries in the whole call."""
    problem = error.problem
    if not before or problem is None:
        return error
    errors = [{**each, "change": each["change"] + before} if "change" in each else each for each in problem.errors]
    detail = re.sub(r"^change (\d+):", lambda found: f"change {int(found[1]) + before}:", problem.detail)
    counted = UsageError(f"{detail}; the first {before} entries are recorded", name=error.name, help=error.help)
    counted.problem = replace(problem, errors=errors, detail=detail)
    return counted


def _parsed(kind: str, text: bytes) -> Dict[str, Any]:
    if "json" not in kind:
        return {}
    try:
        values = json.loads(text)
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}


def _error(status: int, values: Dict[str, Any], url: str, kind: Optional[Type[Error]] = None) -> Error:
    problem = ProblemDetails(status=status, name=values.get("type", "").rsplit(":", 1)[-1], title=values.get("title", ""),
                       detail=values.get("detail", ""), help=values.get("help"), errors=values.get("errors", []))
    made = (kind or _CLASSES.get(status, SourceError))(
        problem.detail or problem.title or f"{url} answered {status}", name=problem.name or f"http.{status}",
        help=problem.help)
    made.problem = problem
    return made
