"""Exceptions, one class for each exit code of the command line."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Type


@dataclass(frozen=True)
class ProblemDetails:
    """The answer of a server to a request that it refused: RFC 9457, `application/problem+json`."""

    status: int
    #: The name in docs/api.md, such as `key-reused`; empty if the answer has none.
    name: str = ""
    title: str = ""
    detail: str = ""
    help: Optional[str] = None
    #: The first faults of a batch.
    errors: List[Any] = field(default_factory=list)


class Error(Exception):
    """An error of abreast.

    `code` is the exit code that the command has for the error, `name` the stable code in its messages, such as
    `delete.limit`, `help` the solution if one is known, `report` the report of a run that ended, if it did, and
    `problem` the answer of a server to a request of its API.
    """

    code: int = 1
    name: str = "failed"
    help: Optional[str] = None
    report: Optional[object] = None
    problem: Optional[ProblemDetails] = None

    def __init__(self, message: str = "", *, code: Optional[int] = None, name: Optional[str] = None,
                 help: Optional[str] = None, report: Optional[object] = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
        if name is not None:
            self.name = name
        self.help = help
        self.report = report

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text} (help: {self.help})" if self.help else text


class DiffersError(Error):
    """The copy differs from its Source, or the documents have errors (1)."""

    code, name = 1, "differs"


class UsageError(Error, ValueError):
    """Options that are wrong or do not fit together (2)."""

    code, name = 2, "usage"


class PartialError(Error):
    """Some resources could not be kept up to date, or not all could be compared (3)."""

    code, name = 3, "partial"


class SourceError(Error):
    """The documents of the Source cannot be used (4)."""

    code, name = 4, "source"


class TemporaryError(Error):
    """A transient failure of the network or the Source: a later run may succeed (5)."""

    code, name = 5, "network"


class TlsError(Error):
    """No secure connection can be made (6)."""

    code, name = 6, "tls"


class DeletionsHeldError(Error):
    """More deletions are due than one run may make (7)."""

    code, name = 7, "delete.limit"


class LimitError(Error):
    """A limit of failures, bytes or time was reached; the next run continues (8)."""

    code, name = 8, "limit"


class LockedError(Error):
    """Another run uses the same copy (10)."""

    code, name = 10, "locked"


class GapError(Error):
    """Changes were missed, and the Source has no list of all resources (11)."""

    code, name = 11, "gap"


class AccessError(Error):
    """The Source refuses the request, or requires other credentials (12)."""

    code, name = 12, "access"


class DiskError(Error, OSError):
    """The disk failed or is full, or this user may not read or write there (13)."""

    code, name = 13, "io"

    # An `OSError` takes its number and message from the arguments.
    def __init__(self, message: str = "", *, code: Optional[int] = None, name: Optional[str] = None,
                 help: Optional[str] = None, report: Optional[object] = None) -> None:
        Error.__init__(self, message, code=code, name=name, help=help, report=report)


class ConflictError(Error):
    """The server has another state than the request expects (1)."""

    code, name = 1, "conflict"


class CancelledError(Error):
    """The run was cancelled (130)."""

    code, name = 130, "cancelled"


_CLASSES: Dict[int, Type[Error]] = {
    kind.code: kind
    for kind in (DiffersError, UsageError, PartialError, SourceError, TemporaryError, TlsError, DeletionsHeldError,
                 LimitError, LockedError, GapError, AccessError, DiskError, CancelledError)
}


def class_of(code: int) -> Type[Error]:
    """The class of an exit code."""
    return _CLASSES.get(code, Error)


def error_of(exit_code: int, name: str, message: str, help: Optional[str]) -> Error:
    """The exception for an error; the native part calls it."""
    # Code 1 is of audits and validations that end; an error that ends a run has no class of its own.
    kind = Error if exit_code == 1 else class_of(exit_code)
    return kind(message, code=exit_code, name=name, help=help)
