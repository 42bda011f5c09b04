"""Copy what ResourceSync, SDShare and change feeds publish, keep copies in sync, and check both.

>>> import abreast
>>> report = abreast.sync("http://127.0.0.1:8080/", "papers")  # doctest: +SKIP
"""

from importlib.metadata import version as _version

from ._errors import (AccessError, CancelledError, DeletionsHeldError, DiffersError, DiskError, Error, GapError,
                      LimitError, LockedError, PartialError, SourceError, TemporaryError, TlsError, UsageError)
from ._records import AuditReport, Change, Document, Finding, Problem, Status, SyncReport, ValidationReport
from ._run import Event, Follower, Option, audit, follow, sync, validate

__version__ = _version("abreast")

__all__ = [
    "AccessError", "AuditReport", "CancelledError", "Change", "DeletionsHeldError", "DiffersError", "DiskError",
    "Document", "Error", "Event", "Finding", "Follower", "GapError", "LimitError", "LockedError", "Option",
    "PartialError", "Problem", "SourceError", "Status", "SyncReport", "TemporaryError", "TlsError", "UsageError",
    "ValidationReport", "audit", "follow", "sync", "validate",
]
