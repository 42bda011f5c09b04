//! Requests to a server, and their options.

use bytes::Bytes;
use http::Method;
use std::fmt;

use crate::address::secret::Authorization;
use crate::address::userinfo::without_userinfo;

/// Handling of a `Content-Encoding` that was not requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnaskedEncoding {
    /// Fail with `http.encoding`: the bytes are not the requested representation.
    #[default]
    Refuse,
    /// Unpack gzip, refuse all others.
    Decode,
    /// Pass on the bytes as received, with or without gzip; see the header for the encoding.
    Raw,
}

/// The body of a POST.
#[derive(Clone, Copy)]
pub struct Post<'a> {
    /// The bytes of the body.
    pub body: &'a Bytes,
    /// The media type of the body.
    pub content_type: &'a str,
    /// Sent as `Idempotency-Key`. Only a POST with a key is sent again if a reused connection was
    /// closed.
    pub idempotency_key: Option<&'a str>,
}

/// One GET or HEAD, or a POST.
///
/// The path and query of `url` are sent as written: percent-encodings and dot segments are not
/// changed, the fragment is dropped, and characters that no URL may have are percent-encoded. User
/// and password before the host are sent as `Basic` credentials to that origin unless
/// `authorization` is given.
///
/// # Examples
/// ```
/// use abreast_net::Request;
///
/// // The rest of a film, of which 40 MiB are there already.
/// let request = Request {
///     range_from: Some((40 << 20, "\"v7\"")),
///     ..Request::new("https://me:hush@archive.example/film.mp4")
/// };
/// // The password is in no message.
/// assert!(!format!("{request:?}").contains("hush"));
/// ```
#[derive(Clone, Copy, Default)]
pub struct Request<'a> {
    /// An absolute http or https URL.
    pub url: &'a str,
    /// Send `If-None-Match` with this entity tag, quotes included.
    pub if_none_match: Option<&'a str>,
    /// Send `If-Modified-Since` with this HTTP date.
    pub if_modified_since: Option<&'a str>,
    /// Request the bytes from this offset on if the entity tag still matches. A weak or empty tag
    /// cannot guarantee the same bytes, so then the whole is requested. Check
    /// [`Response::is_partial_from`](crate::Response::is_partial_from).
    pub range_from: Option<(u64, &'a str)>,
    /// Allow the server to compress the body with gzip; it is unpacked while it is read. Not
    /// together with `range_from`.
    pub accept_gzip: bool,
    /// Handling of an encoding that was not requested.
    pub unasked_encoding: UnaskedEncoding,
    /// Send `Cache-Control: no-cache`: caches must ask the server before they answer
    /// [rfc9111 §5.2.1].
    pub no_cache: bool,
    /// Allow the request to be sent before earlier ones are answered, if the server has answered
    /// regularly by HTTP/1.1 [rfc9112 §9.3.2]. Only for a small body that the caller verifies with a
    /// digest, since a server may mix up answers. Statuses other than 200, 429 and 503 are asked
    /// for again alone. The caller must read a response before it waits for another one.
    pub pipelined: bool,
    /// Send an `Accept` header with this value.
    pub accept: Option<&'a str>,
    /// Send `Last-Event-ID` with this value, after which an event stream continues.
    pub last_event_id: Option<&'a str>,
    /// Send a HEAD request, which returns the headers only.
    pub head: bool,
    /// Connect to public addresses only, as for redirects to another host. For URLs from untrusted
    /// sources.
    pub public_only: bool,
    /// Credentials for the URL's origin.
    pub authorization: Option<&'a Authorization>,
    /// Send a POST with this body instead of a GET. Its redirects are not followed.
    pub post: Option<Post<'a>>,
    /// PUT or DELETE instead of POST; such a request may be sent again after a failure.
    pub method: Option<&'a Method>,
}

impl<'a> Request<'a> {
    /// A plain GET of the URL.
    pub fn new(url: &'a str) -> Self {
        Self { url, ..Self::default() }
    }

    pub(crate) fn is_conditional(&self) -> bool {
        self.if_none_match.is_some() || self.if_modified_since.is_some()
    }

    /// Whether the request may be sent before earlier ones are answered.
    pub(crate) fn may_be_pipelined(&self) -> bool {
        self.pipelined
            && !self.head
            && self.post.is_none()
            && self.method.is_none()
            && !self.is_conditional()
            && self.range_from.is_none()
            && !self.no_cache
    }

    /// The range to request. Only a strong tag guarantees that the joined body is correct
    /// [rfc9110 §13.1.5].
    pub(crate) fn usable_range(&self) -> Option<(u64, &'a str)> {
        self.range_from.filter(|(offset, etag)| *offset > 0 && etag.starts_with('"'))
    }
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("url", &without_userinfo(self.url))
            .field("head", &self.head)
            .field("range_from", &self.range_from)
            .finish_non_exhaustive()
    }
}
