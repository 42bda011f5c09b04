"""The part of the package `resync` for reading lists: `ResourceList`, `ChangeList` and `Resource`.

>>> from abreast.resync import ResourceList
>>> resources = ResourceList()
>>> resources.read("https://papers.example.org/papers/resourcelist.xml")  # doctest: +SKIP

The differences from `resync` are in docs/python.md.
"""

import os
import re
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import IO, Any, Dict, Iterable, Iterator, List, NoReturn, Optional, Set, Tuple, Union

from ._documents import ChangeList as _ChangeList
from ._documents import ENTRIES_MAX, Entry, Reader
from ._documents import ResourceList as _ResourceList
from ._documents import read as _read
from ._errors import SourceError, UsageError
from ._options import Option
from ._rows import Time, time_of

__all__ = ["ChangeList", "Resource", "ResourceList"]

_CHANGES = ("created", "updated", "deleted")
_HEXADECIMAL = {"md5": 32, "sha-1": 40, "sha-256": 64}
_W3C = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(Z|[+-]\d\d:\d\d))?)?)?")
#: Names of `resync` that are missing here, and what replaces each.
_REPLACED = {
    "count": "pass the resources as a list; the number is its length",
    "mapper": "use `write_parts(folder, url)`", "max_sitemap_entries": "use `write_parts(folder, url, size)`",
    "allow_multifile": "documents of an index are always read; `write_parts` writes several documents",
    "spec_version": "documents are those of ResourceSync 1.1", "add_lastmod": "set `lastmod` of each resource",
    "resources_class": "a Resource List is in the order of the URIs", "pretty_xml": "documents are always indented",
    "sitemapindex": "`write_parts` writes the index", "check_url_authority": "other hosts need `allow_host`",
    "requires_multifile": "use `write_parts`", "as_xml_index": "use `write_parts`", "as_xml_part": "use `write_parts`",
    "read_component_sitemap": "`read` reads the documents of an index",
}
_CLASSES = {
    "Client": "abreast.sync", "SourceDescription": "abreast.read", "CapabilityList": "abreast.read",
    "ResourceDump": "abreast.read", "ResourceDumpManifest": "abreast.read", "ChangeDump": "abreast.read",
    "ChangeDumpManifest": "abreast.read", "ResourceListArchive": "abreast.read", "ResourceDumpArchive": "abreast.read",
    "ChangeListArchive": "abreast.read", "ChangeDumpArchive": "abreast.read",
    "ResourceListBuilder": "abreast serve FOLDER",
}


def __getattr__(name: str) -> NoReturn:
    if name in _CLASSES:
        raise ImportError(f"abreast.resync has no `{name}` (help: use `{_CLASSES[name]}`)")
    raise AttributeError(f"module 'abreast.resync' has no attribute {name!r}")


def _timestamp(text: Optional[str]) -> Optional[float]:
    """Seconds since 1970 of a W3C Datetime. A date is the start of the day in UTC."""
    if text is None:
        return None
    found = _W3C.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a W3C Datetime such as 2026-01-31T09:00:00Z")
    year, month, day, hour, minute, second = (int(part or least) for part, least in zip(found.groups(), (1, 1, 1, 0, 0, 0)))
    zone = found[8] or "Z"
    offset = timedelta() if zone == "Z" else timedelta(hours=int(zone[1:3]), minutes=int(zone[4:]))
    made = datetime(year, month, day, hour, minute, second, int((found[7] or "")[:6].ljust(6, "0")), timezone.utc)
    return (made + offset if zone[0] == "-" else made - offset).timestamp()


def _text(seconds: Optional[float]) -> Optional[str]:
    """The W3C Datetime of seconds since 1970, to the microsecond."""
    if seconds is None:
        return None
    # The same rounding as in `resync`.
    made = datetime.fromtimestamp(seconds + 0.0000001, timezone.utc)
    return made.isoformat().replace("+00:00", "Z")


def _checked(name: str, value: Optional[Time]) -> Optional[str]:
    """The text of a time that was set."""
    text = time_of(name, value)
    _timestamp(text)
    return text


def _time_property(name: str, about: str) -> Any:
    """A time as a text, stored in a slot."""
    def written(self: Any, value: Optional[Time]) -> None:
        setattr(self, "_" + name, _checked(name, value))

    return property(lambda self: getattr(self, "_" + name), written, doc=about)


def _seconds_property(name: str, about: str) -> Any:
    """The same time in seconds since 1970."""
    def written(self: Any, value: Optional[float]) -> None:
        setattr(self, "_" + name, _text(value))

    return property(lambda self: _timestamp(getattr(self, "_" + name)), written, doc=about)


def _check_digest(name: str, value: str) -> None:
    length = _HEXADECIMAL.get(name)
    if length is None:
        raise ValueError(f"{name!r} is not a digest algorithm: use one of {', '.join(_HEXADECIMAL)}")
    if not re.fullmatch(rf"[0-9a-fA-F]{{{length}}}", value):
        raise ValueError(f"{value!r} is not a {name} digest of {length} hexadecimal digits")


def _digest_property(name: str, about: str) -> Any:
    def written(self: Any, value: Optional[str]) -> None:
        if value is None:
            self._hashes.pop(name, None)
            return
        _check_digest(name, value)
        self._hashes[name] = value

    return property(lambda self: self._hashes.get(name), written, doc=about)


def _link_property(rel: str, about: str, **attributes: str) -> Any:
    return property(lambda self: self.link_href(rel), lambda self, href: self.link_set(rel, href, **attributes), doc=about)


def _links(links: Optional[List[Dict[str, Any]]]) -> List[Dict[str, Any]]:
    """Links for a document. Programs with `resync` write numbers as texts."""
    return [{name: int(value) if name in ("pri", "length") and str(value).isdecimal() else value
             for name, value in link.items()} for link in links or []]


class _Linked:
    """An object with links."""

    __slots__ = ()
    ln: Optional[List[Dict[str, Any]]]

    def link(self, rel: str) -> Optional[Dict[str, Any]]:
        """The first link with this relation."""
        return next((link for link in self.ln or [] if rel in link["rel"].split()), None)

    def link_href(self, rel: str) -> Optional[str]:
        """The target of the first link with this relation."""
        link = self.link(rel)
        return link["href"] if link else None

    def link_set(self, rel: str, href: str, allow_duplicates: bool = False, **attributes: Any) -> None:
        """Set the target and attributes of the link with this relation, or add the link."""
        link = None if allow_duplicates else self.link(rel)
        if link is None:
            link = {"rel": rel}
            self.ln = [*(self.ln or []), link]
        link.update(href=href, **attributes)

    def link_add(self, rel: str, href: str, **attributes: Any) -> None:
        """Add a link, also if there is one with the same relation."""
        self.link_set(rel, href, allow_duplicates=True, **attributes)

    describedby = _link_property("describedby", "The target of the link `describedby`.")
    up = _link_property("up", "The address of the document above.")
    index = _link_property("index", "The address of the index.")
    contents = _link_property("contents", "The target of the link `contents`.", type="application/xml")


class Resource(_Linked):
    """A resource or a change, with the attributes of `resync.Resource`.

    Times are texts (`lastmod`, `datetime`, `md_at` …) or seconds since 1970 (`timestamp`, `ts_datetime`, `ts_at` …): each
    can be set, and both change.
    """

    __slots__ = ("uri", "length", "mime_type", "path", "ln", "capability", "_change", "_hashes", "_lastmod", "_datetime",
                 "_md_at", "_md_completed", "_md_from", "_md_until")

    def __init__(self, uri: Optional[str] = None, timestamp: Optional[float] = None, length: Optional[int] = None,
                 mime_type: Optional[str] = None, md5: Optional[str] = None, sha1: Optional[str] = None,
                 sha256: Optional[str] = None, change: Optional[str] = None, ts_datetime: Optional[float] = None,
                 path: Optional[str] = None, ln: Optional[List[Dict[str, Any]]] = None, capability: Optional[str] = None,
                 ts_at: Optional[float] = None, ts_completed: Optional[float] = None, ts_from: Optional[float] = None,
                 ts_until: Optional[float] = None, lastmod: Optional[Time] = None, datetime: Optional[Time] = None,
                 md_at: Optional[Time] = None, md_completed: Optional[Time] = None, md_from: Optional[Time] = None,
                 md_until: Optional[Time] = None, resource: "Optional[Resource]" = None) -> None:
        given = {name: value for name, value in locals().items()
                 if name not in ("self", "resource", "__class__") and value is not None}
        for name in self.__slots__:
            setattr(self, name, getattr(resource, name, None))
        self._hashes: Dict[str, str] = dict(self._hashes or {})
        if self.ln is not None:
            self.ln = [dict(link) for link in self.ln]
        for name, value in given.items():
            setattr(self, name, value)
        if self.uri is None:
            raise ValueError("a resource needs a URI")

    @classmethod
    def _of(cls, entry: Entry) -> "Resource":
        made = cls(entry.uri, length=entry.length, mime_type=entry.type, path=entry.path, capability=entry.capability,
                   ln=[link.as_dict() for link in entry.links] or None)
        # Values of a document that was read are correct.
        made._hashes, made._change = entry.hashes, entry.change
        made._lastmod, made._datetime = entry.lastmod, entry.datetime
        made._md_at, made._md_completed = entry.at, entry.completed
        made._md_from, made._md_until = entry.from_, entry.until
        return made

    def _entry(self) -> Dict[str, Any]:
        return {"uri": self.uri, "lastmod": self.lastmod, "length": self.length, "type": self.mime_type,
                "change": self.change, "datetime": self.datetime, "path": self.path, "hash": self.hash,
                "capability": self.capability, "at": self.md_at, "completed": self.md_completed, "from": self.md_from,
                "until": self.md_until, "links": _links(self.ln)}

    @property
    def change(self) -> Optional[str]:
        """`created`, `updated`, `deleted`, or `None`."""
        return self._change

    @change.setter
    def change(self, value: Optional[str]) -> None:
        if value is not None and value not in _CHANGES:
            raise ValueError(f"the change is {value!r}, expected one of {', '.join(_CHANGES)}")
        self._change = value

    lastmod = _time_property("lastmod", "The last modification, as a W3C Datetime.")
    timestamp = _seconds_property("lastmod", "The last modification in seconds since 1970.")
    datetime = _time_property("datetime", "The time of the change, as a W3C Datetime.")
    ts_datetime = _seconds_property("datetime", "The time of the change in seconds since 1970.")
    md_at = _time_property("md_at", "The start of a snapshot.")
    ts_at = _seconds_property("md_at", "The start of a snapshot in seconds since 1970.")
    md_completed = _time_property("md_completed", "When the snapshot was complete.")
    ts_completed = _seconds_property("md_completed", "When the snapshot was complete, in seconds since 1970.")
    md_from = _time_property("md_from", "The start of the period.")
    ts_from = _seconds_property("md_from", "The start of the period in seconds since 1970.")
    md_until = _time_property("md_until", "The end of the period.")
    ts_until = _seconds_property("md_until", "The end of the period in seconds since 1970.")
    md5 = _digest_property("md5", "The MD5 digest in hexadecimal.")
    sha1 = _digest_property("sha-1", "The SHA-1 digest in hexadecimal.")
    sha256 = _digest_property("sha-256", "The SHA-256 digest in hexadecimal.")

    @property
    def hash(self) -> Optional[str]:
        """All digests, as in a document."""
        return " ".join(f"{name}:{value}" for name, value in self._hashes.items()) or None

    @hash.setter
    def hash(self, value: Optional[str]) -> None:
        hashes: Dict[str, str] = {}
        for part in (value or "").split():
            name, _, digest = part.partition(":")
            _check_digest(name, digest)
            hashes[name] = digest
        self._hashes = hashes

    @property
    def basename(self) -> str:
        """The last segment of the URI."""
        return (self.uri or "").rstrip("/").rsplit("/", 1)[-1]

    def equal(self, other: "Optional[Resource]", delta: float = 0.0) -> bool:
        """Equal if no value differs: a time within `delta` seconds, and each digest and length that both have."""
        if other is None or self.uri != other.uri:
            return False
        mine, others = self.timestamp, other.timestamp
        if mine != others and (mine is None or others is None or abs(mine - others) >= delta):
            return False
        if any(self._hashes[name] != other._hashes[name] for name in self._hashes.keys() & other._hashes.keys()):
            return False
        return self.length is None or other.length is None or self.length == other.length

    def __eq__(self, other: object) -> bool:
        """Equal with times within a second, as in `resync`."""
        return self.equal(other, 1.0) if isinstance(other, Resource) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Resource({self.uri!r}, lastmod={self.lastmod!r}, length={self.length!r}, change={self.change!r})"

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a resource of `abreast.resync` has no `{name}`")


class _Sorted(Dict[str, Resource]):
    """Resources by URI. The iteration yields resources in the order of their URIs, as in `resync`."""

    def __iter__(self) -> Iterator[Resource]:  # type: ignore[override]
        return (self[uri] for uri in sorted(self.keys()))

    def add(self, resource: Resource, replace: bool = False) -> None:
        """Add a resource; with `replace`, a resource with the same URI is replaced."""
        uri = resource.uri or ""
        if uri in self and not replace:
            raise ValueError(f"{uri} is already in the list")
        self[uri] = resource

    def uris(self) -> List[str]:
        """The URIs in their order."""
        return sorted(self.keys())


def _head_property(name: str, about: str) -> Any:
    """A time of the document: a text, `now`, a `datetime`, or seconds since 1970."""
    def written(self: Any, value: Union[None, Time, float]) -> None:
        if value == "now":
            value = time.time()
        is_number = isinstance(value, (int, float))
        self.md[name] = _text(value) if is_number else _checked(name, value)  # type: ignore[arg-type]

    return property(lambda self: self.md.get(name), written, doc=about)


class _Container(_Linked):
    """A list of resources in memory. `options` are those of `abreast.read`."""

    ln: List[Dict[str, Any]]
    _capability = ""

    def __init__(self, resources: Optional[Iterable[Resource]] = None, md: Optional[Dict[str, Optional[str]]] = None,
                 ln: Optional[List[Dict[str, Any]]] = None, uri: Optional[str] = None, **options: Option) -> None:
        for name in options.keys() & _REPLACED.keys():
            raise UsageError(f"`abreast.resync` has no `{name}`", help=_REPLACED[name])
        #: `capability`, `md_at`, `md_completed`, `md_from` and `md_until`.
        self.md: Dict[str, Optional[str]] = dict(md or {})
        self.ln = list(ln or [])
        self.uri = uri
        #: The number of documents that were read.
        self.num_files = 0
        self._options = options
        for resource in resources or ():
            self.add(resource)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _REPLACED:
            raise UsageError(f"`abreast.resync` has no `{name}`", help=_REPLACED[name])
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> NoReturn:
        help = f" (help: {_REPLACED[name]})" if name in _REPLACED else ""
        raise AttributeError(f"a {type(self).__name__} of `abreast.resync` has no `{name}`{help}")

    def add(self, resource: Union[Resource, Iterable[Resource]], replace: bool = False) -> None:
        """Add a resource, or several."""
        raise NotImplementedError

    def read(self, uri: Union[None, str, "os.PathLike[str]"] = None) -> int:
        """Read a document, and the documents of an index, and add their resources. Returns their number."""
        place = uri if uri is not None else self.uri
        if place is None:
            raise SourceError("no address is given", name="usage")
        options: Dict[str, Any] = dict(self._options)
        return self._take(_read(place, follow_indexes=True, **options))

    def parse(self, uri: Optional[str] = None, fh: Optional[IO[Any]] = None, str_data: Optional[str] = None) -> int:
        """Read a document from an address, an open file or a text. Returns the number of its resources."""
        if fh is not None:
            data = fh.read()
            return self._take(_read(data if isinstance(data, bytes) else data.encode()))
        if str_data is not None:
            return self._take(_read(str_data.encode()))
        return self.read(uri)

    def _take(self, reader: Reader) -> int:
        head, count = reader.head, 0
        self.md.update({name: value for name, value in
                        (("capability", head.capability), ("md_at", head.at), ("md_completed", head.completed),
                         ("md_from", head.from_), ("md_until", head.until)) if value is not None})
        self.ln.extend(link.as_dict() for link in head.links)
        for entry in reader.entries():
            self.add(Resource._of(entry))
            count += 1
        self.num_files += len(reader.documents)
        return count

    def __iter__(self) -> Iterator[Resource]:
        raise NotImplementedError

    def uris(self) -> List[str]:
        """The URIs, in the order of the iteration."""
        return [resource.uri for resource in self]

    @property
    def capability(self) -> Optional[str]:
        """The capability of the document."""
        return self.md.get("capability")

    @capability.setter
    def capability(self, value: Optional[str]) -> None:
        if value is not None and value != self._capability:
            raise ValueError(f"the capability of a {type(self).__name__} is {self._capability!r}, not {value!r}")
        self.md["capability"] = value

    def default_capability(self) -> None:
        """Set the capability of the document, if it is not set."""
        self.md.setdefault("capability", self._capability)

    md_at = _head_property("md_at", "The start of the snapshot.")
    md_completed = _head_property("md_completed", "When the snapshot was complete.")
    md_from = _head_property("md_from", "The start of the period.")
    md_until = _head_property("md_until", "The end of the period.")

    def _list(self) -> Union[_ResourceList, _ChangeList]:
        raise NotImplementedError

    def as_xml(self) -> str:
        """The document as a text."""
        return self._list().to_bytes().decode()

    def write(self, basename: Union[str, "os.PathLike[str]"]) -> None:
        """Write the document to a file."""
        self._list().write(basename)

    def write_parts(self, folder: Union[str, "os.PathLike[str]"], url: str, size: int = ENTRIES_MAX) -> List[Path]:
        """Write documents of at most `size` entries and their index; see `abreast.ResourceList.write_parts`."""
        return self._list().write_parts(folder, url, size)


class ResourceList(_Container):
    """A Resource List: one resource for each URI. The iteration is in the order of the URIs, as in `resync`."""

    _capability = "resourcelist"

    def __init__(self, resources: Optional[Iterable[Resource]] = None, md: Optional[Dict[str, Optional[str]]] = None,
                 ln: Optional[List[Dict[str, Any]]] = None, uri: Optional[str] = None, **options: Option) -> None:
        self.resources = _Sorted()
        super().__init__(resources, md, ln, uri, **options)

    def add(self, resource: Union[Resource, Iterable[Resource]], replace: bool = False) -> None:
        """Add a resource, or several; with `replace`, a resource with the same URI is replaced."""
        for each in [resource] if isinstance(resource, Resource) else resource:
            self.resources.add(each, replace)

    def __iter__(self) -> Iterator[Resource]:
        return iter(self.resources)

    def __getitem__(self, uri: str) -> Resource:
        return self.resources[uri]

    def __len__(self) -> int:
        return len(self.resources)

    def __contains__(self, uri: object) -> bool:
        return uri in self.resources

    def compare(self, src: "ResourceList") -> "Tuple[ResourceList, ResourceList, ResourceList, ResourceList]":
        """Compare with the list of the Source: same, updated, deleted and created resources."""
        same, updated, deleted, created = ResourceList(), ResourceList(), ResourceList(), ResourceList()
        for resource in self:
            other = src.resources.get(resource.uri or "")
            if other is None:
                deleted.add(resource)
            elif resource == other:
                same.add(resource)
            else:
                updated.add(other)
        created.add(resource for resource in src if resource.uri not in self.resources)
        return same, updated, deleted, created

    def hashes(self) -> Set[str]:
        """The algorithms of the digests in the list."""
        return {name for resource in self for name in resource._hashes}

    def _list(self) -> _ResourceList:
        return _ResourceList((resource._entry() for resource in self), at=self.md_at, completed=self.md_completed,
                             links=_links(self.ln))


class ChangeList(_Container):
    """A Change List: all changes in their order; a URI may occur several times."""

    _capability = "changelist"

    def __init__(self, resources: Optional[Iterable[Resource]] = None, md: Optional[Dict[str, Optional[str]]] = None,
                 ln: Optional[List[Dict[str, Any]]] = None, uri: Optional[str] = None, **options: Option) -> None:
        self.resources: List[Resource] = []
        super().__init__(resources, md, ln, uri, **options)

    def add(self, resource: Union[Resource, Iterable[Resource]], replace: bool = False) -> None:
        """Add a change, or several."""
        for each in [resource] if isinstance(resource, Resource) else resource:
            if each.change is None:
                raise ValueError(f"{each.uri} has no change")
            self.resources.append(each)

    def __iter__(self) -> Iterator[Resource]:
        return iter(self.resources)

    def __getitem__(self, place: int) -> Resource:
        return self.resources[place]

    def __len__(self) -> int:
        return len(self.resources)

    def add_changed_resources(self, resources: Iterable[Resource], change: Optional[str] = None) -> None:
        """Add copies of resources, as changes of this kind."""
        self.add([Resource(resource=resource, change=change) for resource in resources])

    def prune_updates_before(self, timestamp: float) -> int:
        """Remove changes before a time in seconds since 1970. Returns their number."""
        for resource in self.resources:
            if resource.ts_datetime is None:
                raise ValueError(f"the change of {resource.uri} has no time")
        remaining = [resource for resource in self.resources if resource.ts_datetime >= timestamp]
        removed, self.resources = len(self.resources) - len(remaining), remaining
        return removed

    def prune_dupes(self) -> int:
        """Remove all but the last change of each resource, and resources that were created and then deleted. Returns
        the number of removed changes."""
        first = {resource.uri: resource.change for resource in reversed(self.resources)}
        last = {resource.uri: place for place, resource in enumerate(self.resources)}
        remaining = [resource for place, resource in enumerate(self.resources) if last[resource.uri] == place
                     and not (resource.change == "deleted" and first[resource.uri] == "created")]
        removed, self.resources = len(self.resources) - len(remaining), remaining
        return removed

    def _list(self) -> _ChangeList:
        first = self.resources[0].datetime if self.resources else None
        begun = self.md_from or first or datetime.now(timezone.utc)
        return _ChangeList((resource._entry() for resource in self), from_=begun, until=self.md_until, links=_links(self.ln))
