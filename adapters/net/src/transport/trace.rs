//! Spans of requests for traces, and the context of a trace in their headers.
//!
//! Nothing is recorded until a subscriber of `tracing` enables spans with the target [`TRACE`].

use crate::address::userinfo::without_userinfo;
use http::HeaderMap;
use std::sync::OnceLock;
use tracing::Span;

/// Target of all spans for traces.
pub const TRACE: &str = "abreast_trace";

/// How requests carry the context of a trace, such as `traceparent` of W3C Trace Context.
#[derive(Clone, Copy, Debug)]
pub struct Propagation {
    /// Adds the context of a span to the headers of a request that is sent.
    pub inject: fn(&Span, &mut HeaderMap),
    /// Makes a span a part of the trace in the headers of a received request.
    pub extract: fn(&Span, &HeaderMap),
}

static PROPAGATION: OnceLock<Propagation> = OnceLock::new();

impl Propagation {
    /// Sets the propagation of this process; a second one is ignored.
    pub fn install(self) {
        let _ = PROPAGATION.set(self);
    }
}

/// Makes the span of a received request a part of the trace in its headers.
pub fn continue_trace(span: &Span, headers: &HeaderMap) {
    if let Some(propagation) = PROPAGATION.get().filter(|_| !span.is_disabled()) {
        (propagation.extract)(span, headers);
    }
}

/// Adds the trace of a span to the headers of a request.
pub(crate) fn carry(span: &Span, headers: &mut HeaderMap) {
    if let Some(propagation) = PROPAGATION.get().filter(|_| !span.is_disabled()) {
        (propagation.inject)(span, headers);
    }
}

/// The span of a request that is sent.
pub(crate) fn client_span(method: &http::Method, url: &str) -> Span {
    tracing::debug_span!(
        target: TRACE,
        "request",
        otel.kind = "client",
        otel.name = %method,
        otel.status_code = tracing::field::Empty,
        http.request.method = %method,
        url.full = without_userinfo(url),
        http.response.status_code = tracing::field::Empty,
    )
}
