//! Problem details: machine-readable and human-readable errors of requests [rfc9457 §3].

use super::model::RecordFault;
use crate::message::body::ResponseBody;
use crate::message::respond::Answer;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;

/// A kind of problem; its name is the last part of the URI in `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProblemKind {
    NotFound,
    Method,
    Query,
    TokenInUrl,
    TokenMissing,
    TokenRefused,
    Scope,
    Browser,
    WritingOff,
    Syntax,
    Field,
    Precondition,
    Conflict,
    TooLarge,
    MediaType,
    TooSlow,
    KeyReused,
    Importing,
    Busy,
    Unavailable,
    Store,
    Disk,
}

impl ProblemKind {
    const fn parts(self) -> (&'static str, StatusCode, &'static str) {
        match self {
            Self::NotFound => ("not-found", StatusCode::NOT_FOUND, "Not found"),
            Self::Method => {
                ("method", StatusCode::METHOD_NOT_ALLOWED, "The method is not for this address")
            }
            Self::Query => ("query", StatusCode::BAD_REQUEST, "The query is wrong"),
            Self::TokenInUrl => {
                ("token-in-url", StatusCode::BAD_REQUEST, "A token does not belong in a URL")
            }
            Self::TokenMissing => ("token-missing", StatusCode::UNAUTHORIZED, "A token is needed"),
            Self::TokenRefused => {
                ("token-refused", StatusCode::UNAUTHORIZED, "The token is not valid")
            }
            Self::Scope => ("scope", StatusCode::FORBIDDEN, "The token does not allow this"),
            Self::Browser => {
                ("browser", StatusCode::FORBIDDEN, "Pages of browsers do not write without a token")
            }
            Self::WritingOff => {
                ("writing-off", StatusCode::FORBIDDEN, "This server takes nothing in")
            }
            Self::Syntax => ("syntax", StatusCode::BAD_REQUEST, "The body cannot be read"),
            Self::Field => (
                "field",
                StatusCode::UNPROCESSABLE_ENTITY,
                "A value is wrong; nothing was recorded",
            ),
            Self::Precondition => (
                "precondition",
                StatusCode::PRECONDITION_FAILED,
                "The resource is in another state",
            ),
            Self::Conflict => ("conflict", StatusCode::CONFLICT, "The set does not allow this"),
            Self::TooLarge => ("too-large", StatusCode::PAYLOAD_TOO_LARGE, "The body is too large"),
            Self::MediaType => {
                ("media-type", StatusCode::UNSUPPORTED_MEDIA_TYPE, "The media type is not taken")
            }
            Self::TooSlow => {
                ("too-slow", StatusCode::REQUEST_TIMEOUT, "The body did not come in time")
            }
            Self::KeyReused => (
                "key-reused",
                StatusCode::UNPROCESSABLE_ENTITY,
                "The idempotency key was used for something else",
            ),
            Self::Importing => {
                ("importing", StatusCode::SERVICE_UNAVAILABLE, "The set is being read")
            }
            Self::Busy => ("busy", StatusCode::SERVICE_UNAVAILABLE, "Too much is waiting"),
            Self::Unavailable => {
                ("unavailable", StatusCode::SERVICE_UNAVAILABLE, "A store is out of reach")
            }
            Self::Store => ("store", StatusCode::INTERNAL_SERVER_ERROR, "The store failed"),
            Self::Disk => ("disk", StatusCode::INSUFFICIENT_STORAGE, "There is no space left"),
        }
    }
}

/// An error answer to a request.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    kind: ProblemKind,
    detail: String,
    help: Option<String>,
    /// For several faults at once: the number of each change, from 1, and its fault.
    errors: Vec<FieldError>,
    allow: Option<&'static str>,
}

/// The error in one change of a batch.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FieldError {
    /// Number of the change, from 1.
    pub(crate) change: usize,
    /// The error.
    pub(crate) detail: String,
}

#[derive(Serialize)]
struct Body<'a> {
    r#type: String,
    title: &'a str,
    status: u16,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [FieldError],
}

impl Problem {
    pub(crate) fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), help: None, errors: Vec::new(), allow: None }
    }

    /// Puts a text about completed actions before the detail.
    pub(crate) fn after(mut self, done: &str) -> Self {
        self.detail.insert_str(0, done);
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn errors(mut self, errors: Vec<FieldError>) -> Self {
        self.errors = errors;
        self
    }

    pub(crate) const fn allow(mut self, methods: &'static str) -> Self {
        self.allow = Some(methods);
        self
    }

    pub(crate) fn answer(&self) -> Answer {
        let (name, status, title) = self.kind.parts();
        let body = Body {
            r#type: format!("urn:abreast:problem:{name}"),
            title,
            status: status.as_u16(),
            detail: &self.detail,
            help: self.help.as_deref(),
            errors: &self.errors,
        };
        let mut text = serde_json::to_vec(&body).unwrap_or_default();
        text.push(b'\n');
        let mut answer = Response::new(ResponseBody::from(text));
        *answer.status_mut() = status;
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"abreast\""));
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("2"));
        }
        if let Some(methods) = self.allow {
            headers.insert(ALLOW, HeaderValue::from_static(methods));
        }
        answer
    }
}

/// The problem for a failure that a full disk caused; `None` for other causes.
pub(crate) fn full_disk(error: &(dyn std::error::Error + 'static)) -> Option<Problem> {
    let is_full = |error: &(dyn std::error::Error + 'static)| {
        let of_files = error.downcast_ref().map(std::io::Error::kind);
        let of_log = error.downcast_ref().map(abreast_core::LogError::kind);
        let of_contents = error.downcast_ref().map(abreast_core::contents::Error::kind);
        of_log == Some(abreast_core::ErrorKind::Full)
            || of_contents == Some(abreast_core::contents::ErrorKind::Full)
            || of_files.is_some_and(|kind| {
                matches!(kind, std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
            })
    };
    std::iter::successors(Some(error), |error| error.source()).any(is_full).then(disk_full)
}

/// The problem for a failure because a store is out of reach; `None` for other causes.
pub(crate) fn out_of_reach(error: &(dyn std::error::Error + 'static)) -> Option<Problem> {
    let is_busy = |error: &(dyn std::error::Error + 'static)| {
        // The inner error of an IO error is not among its sources.
        let inner = error.downcast_ref().and_then(std::io::Error::get_ref);
        let inner = inner.and_then(|inner| inner.downcast_ref::<abreast_core::contents::Error>());
        inner
            .or_else(|| error.downcast_ref())
            .is_some_and(|error| error.kind() == abreast_core::contents::ErrorKind::Busy)
    };
    std::iter::successors(Some(error), |error| error.source()).any(is_busy).then(|| {
        Problem::new(
            ProblemKind::Unavailable,
            "the store of contents is out of reach; nothing was changed",
        )
        .help("send it again in a while")
    })
}

/// The problem that the disk is full, so that the request failed without effect.
pub(crate) fn disk_full() -> Problem {
    Problem::new(ProblemKind::Disk, "the disk is full; nothing was changed")
        .help("free space, and send it again")
}

impl From<RecordFault> for Problem {
    fn from(fault: RecordFault) -> Self {
        match fault {
            RecordFault::Field(detail) => Self::new(ProblemKind::Field, detail),
            RecordFault::Log(error) => error.into(),
        }
    }
}

impl From<abreast_core::LogError> for Problem {
    fn from(error: abreast_core::LogError) -> Self {
        use abreast_core::ErrorKind;
        let (detail, help) = match error.to_string().split_once("\n  help: ") {
            Some((detail, help)) => (detail.to_owned(), Some(help.to_owned())),
            None => (error.to_string(), None),
        };
        let kind = match error.kind() {
            ErrorKind::NoSet => ProblemKind::NotFound,
            ErrorKind::Busy => ProblemKind::Busy,
            ErrorKind::Unavailable => ProblemKind::Unavailable,
            ErrorKind::Full => ProblemKind::Disk,
            ErrorKind::Refused => ProblemKind::Field,
            _ => {
                tracing::error!("the store failed for a request of the API: {error}");
                ProblemKind::Store
            }
        };
        Self { kind, detail, help, errors: Vec::new(), allow: None }
    }
}
