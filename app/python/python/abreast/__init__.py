"""Copy what ResourceSync, SDShare and change feeds publish, keep copies in sync, and check both.

>>> import abreast
>>> report = abreast.sync("http://127.0.0.1:8080/", "papers")  # doctest: +SKIP
"""

from importlib.metadata import version as _version

from ._changes import SourceChange, SourceChanges
from ._documents import ChangeList, Entry, Head, Link, Reader, ResourceList, Statement, read
from ._errors import (AccessError, CancelledError, ConflictError, DeletionsHeldError, DiffersError, DiskError, Error,
                      GapError, LimitError, LockedError, PartialError, ProblemDetails, SourceError, TemporaryError,
                      TlsError, UsageError)
from ._options import Option
from ._records import AuditReport, Change, Document, Finding, Problem, Status, SyncReport, ValidationReport
from ._run import Event, Follower, audit, follow, sync, validate
from ._source import Changes, Recorded, SetInfo, Source

__version__ = _version("abreast")

__all__ = [
    "AccessError", "AuditReport", "CancelledError", "Change", "ChangeList", "Changes", "ConflictError",
    "DeletionsHeldError", "DiffersError", "DiskError", "Document", "Entry", "Error", "Event", "Finding", "Follower",
    "GapError", "Head", "LimitError", "Link", "LockedError", "Option", "PartialError", "Problem", "ProblemDetails",
    "Reader", "Recorded", "ResourceList", "SetInfo", "Source", "SourceChange", "SourceChanges", "SourceError",
    "Statement", "Status", "SyncReport", "TemporaryError", "TlsError", "UsageError", "ValidationReport", "audit",
    "follow", "read", "sync", "validate",
]
