"""Entries, and rows of pandas, polars and numpy, as values that documents and the HTTP API have."""

import os
from datetime import date, datetime, timezone
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, Collection, Dict, Mapping, Optional, Union

from ._errors import UsageError

#: A time: W3C Datetime, a `datetime` with a time zone, or a `date`, which is the start of the day in UTC.
Time = Union[str, date]

_NUMBERS = {"length": 1 << 64, "pri": 1 << 32, "position": 1 << 64}
_TIMES = {"datetime", "lastmod", "at", "completed", "from", "until", "modified"}
#: Members of a link.
LINK = ("rel", "href", "pri", "modified", "length", "hash", "type", "encoding", "path", "title")
#: The longest value in a message.
_SHOWN_MAX = 80


class _Wrong(Exception):
    """A value that cannot be written: the fault, and the solution."""


def row_of(row: Any, number: int, names: Collection[str]) -> Dict[str, Any]:
    """The members of an entry without missing values: `None`, NaN, `NaT` and `NA` of pandas.

    `number` is that of the entry, from 1, and `names` are the possible members. Every wrong value raises `UsageError`
    with the number, the member, the value and the solution.
    """
    def refused(name: str, wrong: _Wrong) -> UsageError:
        return UsageError(f"entry {number}: {name}{wrong.args[0]}", name="entry", help=wrong.args[1])

    if hasattr(row, "as_dict"):
        row = row.as_dict()
    if not isinstance(row, Mapping):
        fault = f"a {type(row).__name__} is not an entry: {_shown(row)}"
        raise refused("", _Wrong(fault, "expected `Entry` or a mapping: `table.to_dict('records')` of pandas, "
                                        "`table.iter_rows(named=True)` of polars"))
    values: Dict[str, Any] = {}
    for name, given in row.items():
        try:
            value = _links(given) if name == "links" else _value(str(name), given, names)
        except _Wrong as wrong:
            raise refused(f"`{name}`", wrong) from None
        if value is not None:
            values[name] = value
    if "uri" not in values:
        raise refused("`uri`", _Wrong(" is missing", "each entry needs the absolute URI of a resource"))
    return values


def time_of(name: str, value: Optional[Time]) -> Optional[str]:
    """The text of a time, of which `name` is the argument."""
    try:
        return _time(_plain(value))
    except _Wrong as wrong:
        raise UsageError(f"`{name}`{wrong.args[0]}", help=wrong.args[1]) from None


def links_of(links: Any) -> Any:
    """The links of a document."""
    try:
        return _links(links) or []
    except _Wrong as wrong:
        raise UsageError(f"`links`{wrong.args[0]}", help=wrong.args[1]) from None


def _value(name: str, given: Any, names: Collection[str]) -> Any:
    if name not in names:
        near = get_close_matches(name, names, 1)
        raise _Wrong(" is not a member of an entry",
                     f"did you mean `{near[0]}`?" if near else "expected " + ", ".join(names))
    value = _plain(given)
    if value is None:
        return None
    if name in _NUMBERS:
        return _number(value, _NUMBERS[name])
    if name in _TIMES:
        return _time(value)
    return _text(name, value)


def _links(given: Any) -> Any:
    given = _plain(given)
    if given is None:
        return None
    if isinstance(given, (str, bytes, Mapping)) or not hasattr(given, "__iter__"):
        raise _Wrong(f": {_shown(given)} is a {type(given).__name__}", "expected a list of links")
    links = []
    for place, link in enumerate(given, 1):
        link = link.as_dict() if hasattr(link, "as_dict") else link
        if not isinstance(link, Mapping):
            raise _Wrong(f", link {place}: {_shown(link)} is a {type(link).__name__}", "expected `Link` or a mapping")
        try:
            made = {name: _value(str(name), value, LINK) for name, value in link.items()}
        except _Wrong as wrong:
            raise _Wrong(f", link {place}{wrong.args[0]}", wrong.args[1]) from None
        made = {name: value for name, value in made.items() if value is not None}
        for needed in ("rel", "href"):
            if needed not in made:
                raise _Wrong(f", link {place}: `{needed}` is missing", "a link needs `rel` and `href`")
        links.append(made)
    return links


def _plain(value: Any) -> Any:
    """A value of Python for a value of numpy, and `None` for missing ones. The packages are not imported."""
    kind = type(value)
    if kind.__name__ in ("NaTType", "NAType"):
        return None
    if kind.__module__ == "numpy":
        if kind.__name__ == "ndarray":
            return value.tolist()
        if kind.__name__ == "datetime64":
            made = value.item()
            # Nanoseconds are a number in Python.
            return made if made is None or isinstance(made, date) else value.astype("datetime64[us]").item()
        value = value.item()
    if isinstance(value, (float, Decimal)) and value != value:
        return None
    return value


def _number(value: Any, most: int) -> int:
    if isinstance(value, float) and value.is_integer() and abs(value) <= 1 << 53:
        # A column with missing values has floating-point numbers in pandas.
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _Wrong(f": {_shown(value)} is a {type(value).__name__}", "expected a whole number, such as `int(value)`")
    if not 0 <= value < most:
        raise _Wrong(f": {_shown(value)} is out of range", f"expected 0 to {most - 1}")
    return value


def _time(value: Any) -> Optional[str]:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise _Wrong(f": the time {value} has no time zone",
                         "use `datetime.now(timezone.utc)`, `column.dt.tz_localize('UTC')` of pandas, or "
                         "`column.dt.replace_time_zone('UTC')` of polars")
        return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if value is None or isinstance(value, str):
        return value
    raise _Wrong(f": {_shown(value)} is a {type(value).__name__}",
                 "expected a text such as `2026-01-31T09:00:00Z`, or a `datetime` with a time zone")


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, os.PathLike):
        if name == "path":
            return os.fspath(value)
        raise _Wrong(f": {_shown(value)} is a path", "expected a text; join the address of the folder and the quoted path")
    raise _Wrong(f": {_shown(value)} is a {type(value).__name__}", "expected a text, such as `str(value)`")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "…"
