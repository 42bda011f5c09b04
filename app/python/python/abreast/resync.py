"""The part of the package `resync` for reading lists: `ResourceList`, `ChangeList` and `Resource`.

>>> from abreast.resync import ResourceList
>>> resources = ResourceList()
>>> resources.read("https://papers.example.org/papers/resourcelist.xml")  # doctest: +SKIP

The differences from `resync` are in docs/python.md.
"""

import os
from datetime import datetime, timezone
from typing import IO, Any, Dict, Iterable, Iterator, List, Optional, Set, Tuple, Union

from ._documents import ChangeList as _ChangeList
from ._documents import Entry, Link, Reader
from ._documents import ResourceList as _ResourceList
from ._documents import read as _read
from ._errors import SourceError
from ._options import Option

__all__ = ["ChangeList", "Resource", "ResourceList"]


def _timestamp(text: Optional[str]) -> Optional[float]:
    """Seconds since 1970 of a W3C Datetime."""
    if text is None:
        return None
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Resource:
    """A resource or a change, with the attributes of `resync.Resource`."""

    __slots__ = ("uri", "length", "mime_type", "change", "path", "ln", "lastmod", "datetime", "capability", "md_at",
                 "md_completed", "md_from", "md_until", "_hashes")

    def __init__(self, uri: str, lastmod: Optional[str] = None, length: Optional[int] = None,
                 md5: Optional[str] = None, sha1: Optional[str] = None, sha256: Optional[str] = None,
                 mime_type: Optional[str] = None, change: Optional[str] = None, datetime: Optional[str] = None,
                 path: Optional[str] = None, ln: Optional[List[Dict[str, Any]]] = None,
                 capability: Optional[str] = None) -> None:
        self.uri, self.lastmod, self.length, self.mime_type = uri, lastmod, length, mime_type
        self.change, self.datetime, self.path, self.ln, self.capability = change, datetime, path, ln, capability
        self.md_at: Optional[str] = None
        self.md_completed: Optional[str] = None
        self.md_from: Optional[str] = None
        self.md_until: Optional[str] = None
        digests = (("md5", md5), ("sha-1", sha1), ("sha-256", sha256))
        self._hashes = {name: value for name, value in digests if value is not None}

    @classmethod
    def _of(cls, entry: Entry) -> "Resource":
        made = cls(entry.uri, entry.lastmod, entry.length, mime_type=entry.type, change=entry.change,
                   datetime=entry.datetime, path=entry.path, capability=entry.capability,
                   ln=[link.as_dict() for link in entry.links] or None)
        made._hashes = entry.hashes
        made.md_at, made.md_completed = entry.at, entry.completed
        made.md_from, made.md_until = entry.from_, entry.until
        return made

    def _entry(self) -> Entry:
        links = self.ln or []
        values: Dict[str, Any] = {"uri": self.uri, "lastmod": self.lastmod, "length": self.length, "type": self.mime_type,
                                  "change": self.change, "datetime": self.datetime, "path": self.path,
                                  "hash": self.hash, "capability": self.capability}
        return Entry(**values, links=tuple(Link(**link) for link in links))

    @property
    def md5(self) -> Optional[str]:
        """The MD5 digest in hexadecimal."""
        return self._hashes.get("md5")

    @property
    def sha1(self) -> Optional[str]:
        """The SHA-1 digest in hexadecimal."""
        return self._hashes.get("sha-1")

    @property
    def sha256(self) -> Optional[str]:
        """The SHA-256 digest in hexadecimal."""
        return self._hashes.get("sha-256")

    @property
    def hash(self) -> Optional[str]:
        """All digests, as in a document."""
        return " ".join(f"{name}:{value}" for name, value in self._hashes.items()) or None

    @property
    def timestamp(self) -> Optional[float]:
        """The last modification in seconds since 1970."""
        return _timestamp(self.lastmod)

    @property
    def ts_datetime(self) -> Optional[float]:
        """The time of the change in seconds since 1970."""
        return _timestamp(self.datetime)

    @property
    def basename(self) -> str:
        """The last segment of the URI."""
        return self.uri.rstrip("/").rsplit("/", 1)[-1]

    def link(self, rel: str) -> Optional[Dict[str, Any]]:
        """The first link with this relation."""
        return next((link for link in self.ln or [] if rel in link["rel"].split()), None)

    def link_href(self, rel: str) -> Optional[str]:
        """The target of the first link with this relation."""
        link = self.link(rel)
        return link["href"] if link else None

    def __eq__(self, other: object) -> bool:
        """Equal as far as both have a digest, or else a time and a length, as in `resync`."""
        if not isinstance(other, Resource):
            return NotImplemented
        if self.uri != other.uri or self.change != other.change:
            return False
        common = self._hashes.keys() & other._hashes.keys()
        if any(self._hashes[name] != other._hashes[name] for name in common):
            return False
        if self.length is not None and other.length is not None and self.length != other.length:
            return False
        if common or self.lastmod is None or other.lastmod is None:
            return True
        return abs((self.timestamp or 0) - (other.timestamp or 0)) < 1

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Resource({self.uri!r}, lastmod={self.lastmod!r}, length={self.length!r}, change={self.change!r})"


class _Container:
    """A list of resources in memory."""

    def __init__(self, resources: Optional[Iterable[Resource]] = None, md: Optional[Dict[str, str]] = None,
                 ln: Optional[List[Dict[str, Any]]] = None, uri: Optional[str] = None, **options: Option) -> None:
        self.md: Dict[str, Optional[str]] = dict(md or {})
        self.ln: List[Dict[str, Any]] = list(ln or [])
        self.uri = uri
        #: The number of documents that were read.
        self.num_files = 0
        self._options = options
        for resource in resources or ():
            self.add(resource)

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
                        (("capability", head.capability), ("at", head.at), ("completed", head.completed),
                         ("from", head.from_), ("until", head.until)) if value is not None})
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

    @property
    def md_at(self) -> Optional[str]:
        """The start of the snapshot."""
        return self.md.get("at")

    @property
    def md_completed(self) -> Optional[str]:
        """When the snapshot was complete."""
        return self.md.get("completed")

    @property
    def md_from(self) -> Optional[str]:
        """The start of the period."""
        return self.md.get("from")

    @property
    def md_until(self) -> Optional[str]:
        """The end of the period."""
        return self.md.get("until")

    def link_href(self, rel: str) -> Optional[str]:
        """The target of the first link of the document with this relation."""
        return next((link["href"] for link in self.ln if rel in link["rel"].split()), None)

    @property
    def up(self) -> Optional[str]:
        """The address of the document above."""
        return self.link_href("up")

    def _list(self) -> Union[_ResourceList, _ChangeList]:
        raise NotImplementedError

    def as_xml(self) -> str:
        """The document as a text."""
        return self._list().to_bytes().decode()

    def write(self, basename: Union[str, "os.PathLike[str]"]) -> None:
        """Write the document to a file."""
        self._list().write(basename)


class ResourceList(_Container):
    """A Resource List: one resource for each URI. The iteration is in the order of the URIs, as in `resync`."""

    def __init__(self, resources: Optional[Iterable[Resource]] = None, md: Optional[Dict[str, str]] = None,
                 ln: Optional[List[Dict[str, Any]]] = None, uri: Optional[str] = None, **options: Option) -> None:
        self.resources: Dict[str, Resource] = {}
        super().__init__(resources, md, ln, uri, **options)

    def add(self, resource: Union[Resource, Iterable[Resource]], replace: bool = False) -> None:
        """Add a resource, or several; with `replace`, a resource with the same URI is replaced."""
        for each in [resource] if isinstance(resource, Resource) else resource:
            if each.uri in self.resources and not replace:
                raise ValueError(f"{each.uri} is already in the list")
            self.resources[each.uri] = each

    def __iter__(self) -> Iterator[Resource]:
        return (self.resources[uri] for uri in sorted(self.resources))

    def __len__(self) -> int:
        return len(self.resources)

    def __contains__(self, uri: object) -> bool:
        return uri in self.resources

    def compare(self, src: "ResourceList") -> "Tuple[ResourceList, ResourceList, ResourceList, ResourceList]":
        """Compare with the list of the Source: same, updated, deleted and created resources."""
        same, updated, deleted, created = ResourceList(), ResourceList(), ResourceList(), ResourceList()
        for resource in self:
            other = src.resources.get(resource.uri)
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
                             links=self.ln)


class ChangeList(_Container):
    """A Change List: all changes in their order; a URI may occur several times."""

    def __init__(self, resources: Optional[Iterable[Resource]] = None, md: Optional[Dict[str, str]] = None,
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

    def __len__(self) -> int:
        return len(self.resources)

    def _list(self) -> _ChangeList:
        first = self.resources[0].datetime if self.resources else None
        begun = self.md_from or first or datetime.now(timezone.utc)
        return _ChangeList((resource._entry() for resource in self), from_=begun, until=self.md_until, links=self.ln)
