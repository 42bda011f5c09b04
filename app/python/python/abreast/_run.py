"""Runs: arguments of functions to words of the command line, and JSON to records."""

import json
import os
from types import TracebackType
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Type, Union, overload

from . import _abreast
from ._changes import SourceChanges, stream
from ._errors import CancelledError, class_of
from ._options import Option, words_of
from ._records import (AuditReport, Change, Document, Finding, Problem, Status, SyncReport, ValidationReport,
                       _record)

Event = Union[Status, Change, Problem]
#: Problems that a report lists.
PROBLEMS_MAX = 1_000


def _event(values: Dict[str, Any]) -> Optional[Event]:
    """The record of an event; summaries are returned by the run."""
    kind = values["type"]
    if kind == "status":
        return _record(Status, values)
    if kind == "item":
        return _record(Change, values)
    if kind in ("error", "notice"):
        return _record(Problem, {**values, "is_notice": kind == "notice"})
    return None


class _Events:
    """Collects problems and differences, and passes all events on."""

    def __init__(self, progress: Optional[Callable[[Event], object]], keeps_changes: bool) -> None:
        self.progress = progress
        self.keeps_changes = keeps_changes
        self.problems: List[Problem] = []
        self.changes: List[Change] = []

    def __call__(self, text: str) -> None:
        event = _event(json.loads(text))
        if event is None:
            return
        if isinstance(event, Problem) and len(self.problems) < PROBLEMS_MAX:
            self.problems.append(event)
        elif isinstance(event, Change) and self.keeps_changes:
            self.changes.append(event)
        if self.progress is not None:
            self.progress(event)


def sync(
    url: str,
    folder: Union[str, "os.PathLike[str]"],
    *,
    progress: Optional[Callable[[Event], object]] = None,
    check: bool = True,
    dry_run: bool = False,
    baseline: bool = False,
    set: Optional[str] = None,
    include: Union[str, Sequence[str]] = (),
    exclude: Union[str, Sequence[str]] = (),
    max_delete: Optional[str] = None,
    **options: Option,
) -> SyncReport:
    """Copy what a Source publishes, or bring the copy up to date: one run of `abreast sync`.

    `url` is any address of the Source, and `folder` the copy, or another target such as `warc:DIR`. `progress` is called
    with each `Status`, `Change` and `Problem`, in this thread. `dry_run` changes nothing, and `baseline` compares the
    whole copy. `include` and `exclude` are patterns: an included resource is copied even if it is excluded, too
    (`filter=["- PATTERN", "+ PATTERN"]` gives rules in another order). `max_delete` limits deletions: a number, or a share such as `"10%"`. All other options are those of the command,
    with `_` for `-`: `connections=4`, `token_file="token"`, `full=True`, `state=PATH`.

    Raises the exception of the exit code if the copy is not in sync afterwards; the exception's `report` is the report.
    With `check=False` the report is returned instead.
    """
    own: Dict[str, Option] = {"dry_run": dry_run, "baseline": baseline, "set": set, "include": _texts(include),
                              "exclude": _texts(exclude), "max_delete": max_delete}
    events = _Events(progress, keeps_changes=False)
    text = _abreast.sync(words_of({**own, **options}, [url, folder]), progress is not None, events)
    summary = json.loads(text)
    report = _record(SyncReport, {**summary, "problems": events.problems, "summary": summary})
    if check:
        report.check()
    return report


def _texts(value: Union[str, Sequence[str]]) -> List[str]:
    """A text, which is also a sequence of texts of one letter, as a list with one text."""
    return [value] if isinstance(value, str) else list(value)


def audit(
    url: str,
    folder: Union[str, "os.PathLike[str]"],
    full: bool = False,
    *,
    progress: Optional[Callable[[Event], object]] = None,
    **options: Option,
) -> AuditReport:
    """Compare a copy with its Source, and change nothing: `abreast audit`.

    With `full`, all digests are compared, not only lengths and times. The report lists the differences as `changes`; its
    `check()` raises an exception if there are any. Options are those of the command, with `_` for `-`.
    """
    events = _Events(progress, keeps_changes=True)
    text = _abreast.audit(words_of({"full": full, **options}, [url, folder]), True, events)
    differences = [change for change in events.changes if change.change != "unchanged"]
    return _record(AuditReport, {**json.loads(text), "problems": events.problems, "changes": differences})


def validate(
    *addresses: Union[str, "os.PathLike[str]"],
    strict: bool = False,
    sample: Union[int, str, None] = None,
    **options: Option,
) -> ValidationReport:
    """Check the documents of a Source, or files, against their specifications: `abreast validate`.

    The report has the documents and findings; its `check()` raises an exception if there are errors. `sample` is the
    number of resources to fetch of each set, or `"all"` or `"none"`. Options are those of the command, with `_` for `-`.

    Raises the exception of the exit code if no document can be read.
    """
    text = _abreast.validate(words_of({"strict": strict, "sample": sample, **options}, addresses))
    code, *lines = text.splitlines()
    documents: List[Document] = []
    findings: List[Finding] = []
    summary: Dict[str, Any] = {}
    for values in map(json.loads, lines):
        if values["type"] == "document":
            documents.append(_record(Document, values))
        elif values["type"] == "finding":
            findings.append(_record(Finding, values))
        else:
            summary = values
    report = _record(ValidationReport, {**summary, "exit_code": int(code), "documents": documents,
                                        "findings": findings})
    if report.exit_code > 1:
        problem = next((f"{found.url}: {found.problem}" for found in documents if found.problem), None)
        raise class_of(report.exit_code)(problem or "no document can be read", report=report)
    return report


class Follower(Iterator[Change]):
    """An iterator over the changes of a copy that follows its Source; see `follow`."""

    def __init__(self, words: List[str], problem: Optional[Callable[[Problem], object]]) -> None:
        self._following = _abreast.Following(words)
        self._problem = problem
        self._is_closed = False

    def __iter__(self) -> "Follower":
        return self

    def __next__(self) -> Change:
        while not self._is_closed:
            try:
                text = self._following.next()
            except CancelledError:
                break
            except BaseException:
                self.close()
                raise
            if text is None:
                break
            event = _event(json.loads(text))
            if isinstance(event, Change) and event.change != "unchanged":
                return event
            if isinstance(event, Problem) and self._problem is not None:
                self._problem(event)
        self.close()
        raise StopIteration

    def close(self) -> None:
        """End the run, and wait until the copy is free. Any thread may close the iterator, and more than once."""
        self._is_closed = True
        self._following.close()

    def __enter__(self) -> "Follower":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()


@overload
def follow(url: str, folder: Union[str, "os.PathLike[str]"], *, state: Union[None, str, "os.PathLike[str]"] = None,
           interval: Optional[str] = None, problem: Optional[Callable[[Problem], object]] = None,
           **options: Option) -> Follower: ...


@overload
def follow(url: str, folder: None = None, *, state: Union[None, str, "os.PathLike[str]"] = None,
           interval: Optional[str] = None, problem: Optional[Callable[[Problem], object]] = None,
           **options: Option) -> SourceChanges: ...


def follow(
    url: str,
    folder: Union[None, str, "os.PathLike[str]"] = None,
    *,
    state: Union[None, str, "os.PathLike[str]"] = None,
    interval: Optional[str] = None,
    problem: Optional[Callable[[Problem], object]] = None,
    **options: Option,
) -> Union[Follower, SourceChanges]:
    """Yield the changes of a Source as they happen, with or without a copy: `abreast sync --follow`.

    With a `folder`, the copy is kept in sync, and each `Change` is yielded after it was applied. Without one, each
    `SourceChange` is yielded, first all resources as `created`; its `content()` fetches the content and verifies it.
    `state` is a folder for the position: the next iterator with the same folder continues there. Without `state`, each
    iterator begins with all resources. `content="64K"` fetches contents up to that length together with the changes.

    `interval` is the time between polls, such as `"30s"`. `problem` is called with each failure and notice; the run
    continues. Options are those of the command, with `_` for `-`. The iterator is a context manager: after the `with`
    block, or `close()`, the run has ended and the copy is free. An interrupt (Ctrl-C) ends it as well.
    """
    given: Dict[str, Option] = {"interval": interval, **options}
    if folder is None:
        return stream(url, state, problem, given)
    return Follower(words_of({**given, "state": state}, [url, folder]), problem)
