"""Records of runs: reports, changes, progress and problems."""

from dataclasses import dataclass, field, fields
from typing import Any, Dict, List, Mapping, Optional, Type, TypeVar

from ._errors import Error, class_of

_T = TypeVar("_T")


def _record(kind: Type[_T], values: Mapping[str, Any]) -> _T:
    """A record of the values that its class has."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in values.items() if name in names})


@dataclass(frozen=True)
class Status:
    """Progress of a run within its phase: `reading`, `fetching`, `deleting`, `comparing` or `waiting`."""

    phase: str
    done: int
    #: Resources of this phase; 0 if not known.
    total: int
    #: Bytes received since the start of the run.
    bytes: int
    #: Bytes to receive; 0 if not known.
    total_bytes: int
    #: Seconds since the start of the phase.
    seconds: float


@dataclass(frozen=True)
class Change:
    """A change of one resource of the copy, or in an audit a difference.

    `change` is `created`, `updated`, `deleted`, `unchanged` or `held`; in an audit `missing`, `extra` or `different`.
    """

    uri: str
    change: str
    #: The path in the copy.
    path: str
    #: Bytes received for the resource.
    bytes: int = 0
    #: The address of the request, if it is not the URI.
    href: Optional[str] = None


@dataclass(frozen=True)
class Problem:
    """A failure or a notice about one resource or document, with its stable code; the run continued."""

    code: str
    message: str
    uri: str = ""
    help: Optional[str] = None
    is_notice: bool = False


@dataclass(frozen=True)
class _Outcome:
    exit_code: int

    @property
    def ok(self) -> bool:
        """Whether the exit code is 0."""
        return self.exit_code == 0

    def check(self) -> None:
        """Raise the exception of the exit code, with this report as its `report`, unless the code is 0."""
        if not self.ok:
            raise self._error()

    def _error(self) -> Error:
        return class_of(self.exit_code)(self._message(), code=self.exit_code, report=self)

    def _message(self) -> str:
        return f"the run ended with exit code {self.exit_code}"


@dataclass(frozen=True)
class SyncReport(_Outcome):
    """The outcome of one run of `sync`. Fields are those of the summary in docs/json.md."""

    #: `baseline`, `incremental` or `unchanged`.
    mode: str
    dry_run: bool
    created: int
    updated: int
    deleted: int
    unchanged: int
    #: Resources left out by filters.
    excluded: int
    #: Resources that were due and not tried, because a limit ended the run.
    untried: int
    #: Resources refused, for example without a safe path.
    skipped: int
    failed: int
    #: Deletions that were held back.
    held: int
    #: Files of the copy that were missing or altered.
    damaged: int
    #: Resources without a digest.
    unverified: int
    bytes: int
    requests: int
    retries: int
    #: The instant up to which changes of the Source are known, as a W3C Datetime.
    cursor: Optional[str]
    seconds: float
    #: The first failures and notices, at most 1,000.
    problems: List[Problem] = field(default_factory=list)
    #: All fields of the summary.
    summary: Dict[str, Any] = field(default_factory=dict, repr=False)

    def _message(self) -> str:
        text = (f"the copy is not in sync: {self.failed} failed, {self.skipped} skipped, {self.held} deletions held, "
                f"{self.untried} not tried")
        first = next((problem for problem in self.problems if not problem.is_notice), None)
        return f"{text}; first: {first.uri} {first.message} [{first.code}]" if first else text


@dataclass(frozen=True)
class AuditReport(_Outcome):
    """The outcome of an audit. Exit code 0: equal; 1: different; 3: equal as far as could be compared."""

    full: bool
    same: int
    different: int
    missing: int
    extra: int
    #: Resources listed without a digest, length or time to compare with.
    unverified: int
    #: Resources that cannot be judged: the documents list too little.
    unknown: int
    partial: bool
    requests: int
    seconds: float
    #: The differences.
    changes: List[Change] = field(default_factory=list, repr=False)
    problems: List[Problem] = field(default_factory=list)

    def _message(self) -> str:
        if self.exit_code == 3:
            return f"no difference was found, but {self.unverified + self.unknown} resources could not be compared"
        return f"the copy differs: {self.different} different, {self.missing} missing, {self.extra} extra"


@dataclass(frozen=True)
class Document:
    """A document that a validation read, or could not read."""

    url: str
    name: str
    read: bool
    entries: int
    bytes: int
    problem: Optional[str] = None


@dataclass(frozen=True)
class Finding:
    """A deviation from a specification, found by a rule of docs/validating.md."""

    rule: str
    #: `error`, `warning` or `note`.
    severity: str
    url: str
    message: str
    #: The section of the specification.
    cites: str
    line: Optional[int] = None
    column: Optional[int] = None
    help: Optional[str] = None
    #: How many findings of the rule in the document are counted and not listed.
    more: int = 0


@dataclass(frozen=True)
class ValidationReport(_Outcome):
    """The outcome of a validation. Exit code 0: no errors; 1: errors."""

    errors: int
    warnings: int
    notes: int
    #: Resources that were fetched and compared with the lists.
    sampled: int
    #: The seed of the samples, to repeat them.
    seed: int
    documents: List[Document] = field(default_factory=list, repr=False)
    findings: List[Finding] = field(default_factory=list, repr=False)

    def _message(self) -> str:
        text = f"{self.errors} errors, {self.warnings} warnings"
        first = self.findings[0] if self.findings else None
        return f"{text}; first: {first.url} {first.message} [{first.rule}]" if first else text
