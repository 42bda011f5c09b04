//! Errors of the HTTP client: what failed, at which URL, and what to do about it.

use std::fmt;
use std::time::Duration;

use crate::address::userinfo::without_userinfo;
use abreast_webtypes::help_line;

/// Why a request failed; stable, see [`Error::code`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The connection could not be made.
    Connect,
    /// The host name could not be resolved.
    Dns,
    /// The server sent nothing for `idle_timeout`, or connecting took too long.
    Timeout,
    /// Bytes came more slowly than [`Options::min_speed`](crate::Options::min_speed).
    Slow,
    /// The proxy cannot be used, or refuses.
    Proxy,
    /// The host is on this machine or in its network, and the request is for public hosts only.
    Private,
    /// The server's certificate or TLS itself was refused.
    Tls,
    /// The connection ended before the end of the response.
    Truncated,
    /// A redirect that is not followed: another scheme, a loop, or too many.
    Redirect,
    /// A redirect from https to http.
    Downgrade,
    /// A header block too large, or a header value that cannot be sent.
    Header,
    /// A status that is not a valid response to the request.
    Status,
    /// A bot wall answered with a page for browsers in place of the resource.
    Challenge,
    /// A content encoding that was not requested or is unknown, or invalid gzip.
    Encoding,
    /// The server's bytes are not valid HTTP/1.1.
    Protocol,
    /// The body exceeds its limit, before or after unpacking.
    Size,
    /// The request's URL is not http or https.
    Scheme,
    /// The request's URL is not valid.
    Url,
}

/// A failed request. The message has the URL without credentials; the cause is in `source()`.
#[derive(thiserror::Error)]
#[error(transparent)]
pub struct Error(Box<Inner>);

#[derive(Debug, thiserror::Error)]
#[error(
    "{}{message}{}{}",
    if url.is_empty() { String::new() } else { format!("cannot fetch {url}: ") },
    if *attempts > 1 { format!(" (tried {attempts} times)") } else { String::new() },
    help_line(*help)
)]
struct Inner {
    kind: ErrorKind,
    url: String,
    message: String,
    help: Option<&'static str>,
    transient: bool,
    status: Option<u16>,
    retry_after: Option<Duration>,
    attempts: u32,
    #[source]
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, url: &str, message: impl Into<String>) -> Self {
        let transient = matches!(
            kind,
            ErrorKind::Connect
                | ErrorKind::Dns
                | ErrorKind::Timeout
                | ErrorKind::Slow
                | ErrorKind::Truncated
        );
        Self(Box::new(Inner {
            kind,
            url: without_userinfo(url),
            message: message.into(),
            help: None,
            transient,
            status: None,
            retry_after: None,
            attempts: 1,
            cause: None,
        }))
    }

    /// The error for a request without TLS to a server that requires TLS at this port.
    pub fn needs_tls(url: &str) -> Self {
        Self::new(
            ErrorKind::Tls,
            url,
            "the server speaks TLS at this port, and the address begins with http://",
        )
        .with_help("write the address with https://")
    }

    /// The error for a document that has moved, if the caller does not read it at its new address.
    pub fn has_moved(url: &str, to: &str) -> Self {
        Self::new(ErrorKind::Redirect, url, format!("the document has moved permanently to {to}"))
    }

    pub(crate) fn with_help(mut self, help: &'static str) -> Self {
        self.0.help = Some(help);
        self
    }

    /// Adds the error that caused this one, for [`std::error::Error::source`].
    #[must_use]
    pub fn with_cause(
        mut self,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    pub(crate) fn with_url(mut self, url: &str) -> Self {
        if self.0.url.is_empty() {
            self.0.url = without_userinfo(url);
        }
        self
    }

    pub(crate) fn with_status(
        mut self,
        status: u16,
        transient: bool,
        retry_after: Option<Duration>,
    ) -> Self {
        self.0.status = Some(status);
        self.0.transient = transient;
        self.0.retry_after = retry_after;
        self
    }

    /// Marks the error as transient: a later attempt may succeed.
    ///
    /// # Examples
    /// ```
    /// use abreast_net::Error;
    ///
    /// let error = Error::needs_tls("http://repo.example:8443/");
    /// assert!(!error.is_transient());
    /// assert!(error.passing().is_transient());
    /// ```
    #[must_use]
    pub fn passing(mut self) -> Self {
        self.0.transient = true;
        self
    }

    pub(crate) fn with_attempts(mut self, attempts: u32) -> Self {
        self.0.attempts = attempts;
        self
    }

    /// The kind of the error, for callers to match on.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The stable code of the kind, as in reports.
    pub fn code(&self) -> &'static str {
        match self.0.kind {
            ErrorKind::Connect => "net.connect",
            ErrorKind::Dns => "net.dns",
            ErrorKind::Timeout => "net.timeout",
            ErrorKind::Slow => "net.slow",
            ErrorKind::Proxy => "net.proxy",
            ErrorKind::Private => "net.private",
            ErrorKind::Tls => "net.tls",
            ErrorKind::Truncated => "http.truncated",
            ErrorKind::Redirect => "http.redirect",
            ErrorKind::Downgrade => "http.downgrade",
            ErrorKind::Header => "http.header",
            ErrorKind::Status => "http.status",
            ErrorKind::Challenge => "http.challenge",
            ErrorKind::Encoding => "http.encoding",
            ErrorKind::Protocol => "http.protocol",
            ErrorKind::Size => "http.size",
            ErrorKind::Scheme => "uri.authority",
            ErrorKind::Url => "uri.syntax",
        }
    }

    /// Whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        self.0.transient
    }

    /// The URL that failed, without credentials; after redirects the last one.
    pub fn url(&self) -> &str {
        &self.0.url
    }

    /// The HTTP status, when it is the reason.
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// The pause in the response's `Retry-After`, if it is usable.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Number of attempts for the request, see [`with_retries`](crate::with_retries).
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// Why the request failed, without its URL and without help.
    pub fn reason(&self) -> &str {
        &self.0.message
    }

    /// The failure with its URL, without help.
    pub(crate) fn summary(&self) -> String {
        format!("cannot fetch {}: {}", self.0.url, self.0.message)
    }

    /// Help text for the user, if there is one.
    pub fn help(&self) -> Option<&'static str> {
        self.0.help
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("code", &self.code())
            .field("url", &self.0.url)
            .field("message", &self.0.message)
            .field("cause", &self.0.cause)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn the_text_has_url_tries_and_help() {
        let failed = |url| Error::new(ErrorKind::Dns, url, "no such host");
        assert_eq!(failed("").to_string(), "no such host");
        let error = failed("http://me:hush@h/").with_attempts(3).with_help("check the name");
        let text = "cannot fetch http://h/: no such host (tried 3 times)\n  help: check the name";
        assert_eq!(error.to_string(), text);
        assert!(error.source().is_none());
        let error = error.with_cause(std::io::Error::other("EAI"));
        assert_eq!(
            (error.to_string().as_str(), error.source().unwrap().to_string().as_str()),
            (text, "EAI")
        );
    }
}
