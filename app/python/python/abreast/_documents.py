"""Documents of all protocols: read entry by entry, and written."""

import json
import os
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import (Any, BinaryIO, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar,
                    Union)
from urllib.parse import quote

from . import _abreast
from ._errors import LimitError, UsageError
from ._options import Option, words_of
from ._rows import Time, links_of, row_of, time_of

_T = TypeVar("_T")

#: Entries of a document by the specification of ResourceSync.
ENTRIES_MAX = 50_000
#: Entries that are written together.
_BATCH = 1_000


class _Record:
    """What records have in common: JSON has `from` and `type`, and absent members are left out."""

    def as_dict(self) -> Dict[str, Any]:
        """The members that have a value, with the names of the HTTP API."""
        values: Dict[str, Any] = {}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if value is None or value == ():
                continue
            if field.name == "links":
                value = [link.as_dict() for link in value]
            values[field.name.rstrip("_")] = value
        return values

    @property
    def hashes(self) -> Dict[str, str]:
        """The digests by algorithm: `md5`, `sha-1`, `sha-256`, `sha-512`."""
        return dict(part.split(":", 1) for part in (getattr(self, "hash", None) or "").split() if ":" in part)


@dataclass(frozen=True)
class Link(_Record):
    """A link of a document or an entry."""

    rel: str = ""
    href: str = ""
    #: Priority among links with the same relation; 1 is the highest.
    pri: Optional[int] = None
    modified: Optional[str] = None
    length: Optional[int] = None
    hash: Optional[str] = None
    type: Optional[str] = None
    encoding: Optional[str] = None
    path: Optional[str] = None
    title: Optional[str] = None


@dataclass(frozen=True)
class Entry(_Record):
    """A resource, a change, or a link to a document. Times are texts in W3C Datetime.

    `change` is `created`, `updated` or `deleted`; in Activity Streams also `added`, `deprecated`, `removed`, `moved`,
    `refresh` and `other`.
    """

    uri: str = ""
    change: Optional[str] = None
    #: The time of the change.
    datetime: Optional[str] = None
    lastmod: Optional[str] = None
    length: Optional[int] = None
    #: The digests as in the document: `md5:… sha-256:…`.
    hash: Optional[str] = None
    #: The media type.
    type: Optional[str] = None
    encoding: Optional[str] = None
    #: The path in a package.
    path: Optional[str] = None
    #: The capability of a listed document, such as `changelist`.
    capability: Optional[str] = None
    at: Optional[str] = None
    completed: Optional[str] = None
    from_: Optional[str] = None
    until: Optional[str] = None
    #: Identifier of the activity, or of the entry in a feed.
    id: Optional[str] = None
    title: Optional[str] = None
    #: The position of a change in the log, if a server returned the entry.
    position: Optional[int] = None
    links: Tuple[Link, ...] = ()


@dataclass(frozen=True)
class Statement(_Record):
    """A statement of RDF, with its terms as in N-Triples. In a patch, `change` is `added` or `removed`."""

    subject: str = ""
    predicate: str = ""
    object: str = ""
    #: The graph; `None` for the default graph.
    graph: Optional[str] = None
    change: Optional[str] = None


@dataclass(frozen=True)
class Head(_Record):
    """The properties of a document."""

    url: str = ""
    #: `ResourceSync 1.1`, `ResourceSync 0.1`, `Sitemaps`, `Activity Streams`, `SDShare`, `RDF` or `RDF Patch`.
    protocol: str = ""
    #: The name in the specification, such as `Change List Index`.
    kind: str = ""
    is_index: bool = False
    capability: Optional[str] = None
    at: Optional[str] = None
    completed: Optional[str] = None
    from_: Optional[str] = None
    until: Optional[str] = None
    modified: Optional[str] = None
    title: Optional[str] = None
    links: Tuple[Link, ...] = ()


def _made(kind: Type[_T], values: Dict[str, Any]) -> _T:
    """A record of values from the native part, whose members are those of the class. Missing members have the defaults
    of the class; this is several times faster than its constructor."""
    if "links" in values:
        values["links"] = tuple(_made(Link, link) for link in values["links"])
    if "from" in values:
        values["from_"] = values.pop("from")
    record = object.__new__(kind)
    record.__dict__.update(values)
    return record


class Reader(Iterator[Union[Entry, Statement]]):
    """An iterator over the entries of a document; see `read`.

    The properties of the document, such as `kind` and `until`, are attributes. With `follow_indexes` they belong to the
    document of the last entry. `entries()` and `statements()` are the same iterator for type checkers. The iterator is a
    context manager; `close()` ends the reading early.
    """

    def __init__(self, words: List[str], bytes_: Optional[bytes], url: Optional[str], follow_indexes: bool) -> None:
        self._reading = _abreast.Reading(words, bytes_, url, follow_indexes)
        self._follows = follow_indexes
        self._batch: Iterator[Union[Entry, Statement]] = iter(())
        self._is_closed = False
        self.head = Head()
        #: Heads of all documents so far, at most 10,000.
        self.documents: List[Head] = []
        self._receive()

    def _receive(self) -> bool:
        text = self._reading.next()
        if text is None:
            return False
        for kind, values in json.loads(text).items():
            if kind == "document":
                self.head = _made(Head, values[0])
                self.documents.append(self.head)
            elif kind == "entries":
                # The documents of a followed index come in place of its entries.
                if not (self._follows and self.head.is_index):
                    self._batch = map(_entry, values)
            else:
                self._batch = map(_statement, values)
        return True

    def __iter__(self) -> "Reader":
        return self

    def __next__(self) -> Union[Entry, Statement]:
        while not self._is_closed:
            for item in self._batch:
                return item
            if not self._receive():
                break
        raise StopIteration

    def entries(self) -> Iterator[Entry]:
        """The entries of a document that is not RDF."""
        for item in self:
            if not isinstance(item, Entry):
                raise UsageError(f"{self.head.url} is {self.head.kind}", help="use statements()")
            yield item

    def statements(self) -> Iterator[Statement]:
        """The statements of RDF or of a patch."""
        for item in self:
            if not isinstance(item, Statement):
                raise UsageError(f"{self.head.url} is a {self.head.kind}", help="use entries()")
            yield item

    def close(self) -> None:
        """End the reading. Any thread may close the iterator, and more than once."""
        self._is_closed = True
        self._reading.close()

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The address after redirects, or the path."""
        return self.head.url

    @property
    def protocol(self) -> str:
        """Name of the protocol, such as `ResourceSync 1.1`."""
        return self.head.protocol

    @property
    def kind(self) -> str:
        """Name of the kind in its specification, such as `Resource List`."""
        return self.head.kind

    @property
    def is_index(self) -> bool:
        """Whether the entries are documents of the same kind."""
        return self.head.is_index

    @property
    def capability(self) -> Optional[str]:
        """The capability, such as `resourcelist`."""
        return self.head.capability

    @property
    def at(self) -> Optional[str]:
        """The start of a snapshot: earlier changes are included."""
        return self.head.at

    @property
    def completed(self) -> Optional[str]:
        """When the snapshot was complete."""
        return self.head.completed

    @property
    def from_(self) -> Optional[str]:
        """The start of the period whose changes are included."""
        return self.head.from_

    @property
    def until(self) -> Optional[str]:
        """The end of the period; the document does not change any more."""
        return self.head.until

    @property
    def links(self) -> Tuple[Link, ...]:
        """The links of the document."""
        return self.head.links


def _entry(values: Dict[str, Any]) -> Entry:
    return _made(Entry, values)


def _statement(values: Dict[str, Any]) -> Statement:
    return _made(Statement, values)


def read(
    source: Union[str, "os.PathLike[str]", bytes, bytearray],
    *,
    url: Optional[str] = None,
    follow_indexes: bool = False,
    **options: Option,
) -> Reader:
    """Read a document of any protocol, and yield its entries: `for entry in abreast.read(url)`.

    `source` is a URL, a path, or the bytes of a document, whose address may be given as `url`. Documents are those of
    ResourceSync 1.1 and 0.1, plain Sitemaps, pages in Activity Streams (EMM, IIIF Change Discovery), feeds of SDShare,
    RDF in any syntax and RDF Patch; gzip is unpacked. The items are `Entry`, or `Statement` for RDF.

    With `follow_indexes`, the documents of an index are read in place of its entries, and the next pages of a feed too, in
    their order and from the same host; `allow_host` adds hosts. Memory does not grow with the document, except for a page in Activity Streams
    and for JSON-LD. Options of access and limits are those of `abreast explore`, with `_` for `-`.

    Raises the exception of the exit code when the fault is reached: entries before it were yielded.
    """
    if isinstance(source, (bytes, bytearray)):
        return Reader(words_of(options, [url or os.devnull]), bytes(source), url or "", follow_indexes)
    if url is not None:
        raise UsageError("`url` is the address of bytes", help="leave it out for a document at an address or in a file")
    return Reader(words_of(options, [source]), None, None, follow_indexes)


#: Members of an entry in a document.
_MEMBERS = tuple(field.name.rstrip("_") for field in fields(Entry))


class _List:
    """A document of ResourceSync to be written."""

    _capability = ""

    def __init__(self, entries: Iterable[Union[Entry, Mapping[str, Any]]], head: Dict[str, Any],
                 up: Optional[str], links: Sequence[Union[Link, Mapping[str, Any]]]) -> None:
        self.entries = entries
        self._is_once = iter(entries) is entries
        self._is_read = False
        given = links_of(links)
        ups = [{"rel": "up", "href": up}] if up else []
        self._head = {name: value for name, value in head.items() if value is not None}
        self._head.update(capability=self._capability, links=ups + given)

    def _iterator(self) -> Iterator[Union[Entry, Mapping[str, Any]]]:
        """The entries from the first one."""
        if self._is_once and self._is_read:
            raise UsageError("the entries were already read, and an iterator yields them once",
                             help="pass a list, or make a new document with a new iterator")
        self._is_read = True
        return iter(self.entries)

    def pieces(self) -> Iterator[bytes]:
        """The document in pieces, for a response or a compressor."""
        yield from self._pieces(self._iterator())

    def _pieces(self, entries: Iterator[Union[Entry, Mapping[str, Any]]], before: int = 0,
                **head: Any) -> Iterator[bytes]:
        """The document in pieces. `before` is the number of entries in earlier parts."""
        writer = _abreast.Writer(json.dumps({**self._head, **head}), before)
        number = before
        while True:
            batch = []
            for number, entry in enumerate(islice(entries, _BATCH), number + 1):
                values = row_of(entry, number, _MEMBERS)
                values.pop("position", None)
                batch.append(values)
            if not batch:
                break
            if number - before > ENTRIES_MAX:
                raise LimitError(f"a document has at most {ENTRIES_MAX} entries",
                                 help="use `write_parts`, which writes several documents and their index")
            yield writer.entries(json.dumps(batch))
        yield writer.end()

    def to_bytes(self) -> bytes:
        """The document as bytes."""
        return b"".join(self.pieces())

    def write(self, file: Union[str, "os.PathLike[str]", BinaryIO]) -> None:
        """Write the document to a path or a binary file. A path is replaced when the document is complete."""
        if isinstance(file, (str, os.PathLike)):
            _replace(Path(file), self.pieces())
            return
        for piece in self.pieces():
            file.write(piece)

    def write_parts(self, folder: Union[str, "os.PathLike[str]"], url: str, size: int = ENTRIES_MAX) -> List[Path]:
        """Write documents of at most `size` entries into a folder, and their index if there are several.

        `url` is the address of the folder. Returns the paths, the document to publish first: `resourcelist.xml` or
        `changelist.xml`, which is the index if there are parts.
        """
        if not 1 <= size <= ENTRIES_MAX:
            raise UsageError(f"`size` is {size}", help=f"expected 1 to {ENTRIES_MAX}")
        root, name = Path(folder), self._capability
        base = url if url.endswith("/") else url + "/"
        top = root / f"{name}.xml"
        entries = self._iterator()
        paths: List[Path] = []
        first = list(islice(entries, 1))
        following = list(islice(entries, size - 1))
        rest = list(islice(entries, 1))
        if not rest:
            _replace(top, self._pieces(chain(first, following)))
            return [top]
        index = {"rel": "index", "href": base + quote(top.name)}
        parts: Iterator[Union[Entry, Mapping[str, Any]]] = chain(first, following, rest, entries)
        listed: List[Dict[str, Any]] = []
        own = {key: value for key, value in self._head.items() if key in ("at", "completed", "from", "until")}
        while True:
            part = list(islice(parts, size))
            if not part:
                break
            path = root / f"{name}-{len(paths) + 1}.xml"
            _replace(path, self._pieces(iter(part), len(paths) * size, links=[*self._head["links"], index]))
            listed.append({"uri": base + quote(path.name), **{k: v for k, v in own.items() if k in ("at", "from")}})
            paths.append(path)
        _replace(top, self._pieces(iter(listed), is_index=True))
        return [top, *paths]


def _replace(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file as a whole: readers see the old or the new one."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with open(partial, "wb") as file:
            for piece in pieces:
                file.write(piece)
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


class ResourceList(_List):
    """A Resource List of entries, which are `Entry` or mappings with the same members.

    `at` is the time at which the list was begun, by default now: all earlier changes must be in it. `up` is the address
    of the Capability List.
    """

    _capability = "resourcelist"

    def __init__(self, entries: Iterable[Union[Entry, Mapping[str, Any]]], *, at: Optional[Time] = None,
                 completed: Optional[Time] = None, up: Optional[str] = None,
                 links: Sequence[Union[Link, Mapping[str, Any]]] = ()) -> None:
        begun = time_of("at", at) or time_of("at", datetime.now(timezone.utc).replace(microsecond=0))
        super().__init__(entries, {"at": begun, "completed": time_of("completed", completed)}, up, links)


class ChangeList(_List):
    """A Change List of entries with `change` and `datetime`, oldest first.

    `from_` is the time from which on all changes are in the list. A list with `until` is closed: it never changes.
    """

    _capability = "changelist"

    def __init__(self, entries: Iterable[Union[Entry, Mapping[str, Any]]], *, from_: Time,
                 until: Optional[Time] = None, up: Optional[str] = None,
                 links: Sequence[Union[Link, Mapping[str, Any]]] = ()) -> None:
        super().__init__(entries, {"from": time_of("from_", from_), "until": time_of("until", until)}, up, links)
