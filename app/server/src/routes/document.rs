//! Published documents: from memory immediately, otherwise rendered on a blocking thread.

use crate::message::negotiate;
use crate::message::present::policy_of;
use crate::message::respond::{
    Answer, Content, Dated, Representation, is_passing, out_of_reach, problem, text, try_later,
};
use crate::observe::followers::Following;
use crate::site::served::Site;
use abreast_hub::Client;
use abreast_source::publish::{Body, Document, Freshness, PublishError, Reader};
use abreast_webtypes::Timestamp;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, LINK, LOCATION, RETRY_AFTER, VARY,
};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Most sets whose links are in the header of a document about all sets. If there are more, the
/// header has one link to the Source Description. Web servers in front often read 4 KiB of header
/// fields.
const LINKS_MAX: usize = 10;
/// Documents with fewer bytes are sent uncompressed.
const WORTH_COMPRESSING: u64 = 1_024;

pub(crate) async fn answer(
    site: &Arc<Site>,
    single_flight: &SingleFlight,
    path: String,
    query: Option<&str>,
    (method, client): (&Method, &Client),
    headers: &HeaderMap,
) -> io::Result<Answer> {
    let is_in_languages = site.publisher.is_in_languages(&path);
    let languages = if is_in_languages { negotiate::languages(headers) } else { Vec::new() };
    let query = query.filter(|query| site.publisher.takes_query(&path, query));
    let query = query.or((!languages.is_empty()).then_some(""));
    let reader = Reader::of_browser(languages);
    let set = path.split('/').next().and_then(|slug| site.publisher.find_set(slug));
    let copies = set.and_then(|set| set.copies.links(&set.urls.resources()));
    // Read before the document, which may have later changes.
    let head = set.and_then(|set| Some((set, site.publisher.log().known_head(set.id)?.position)));
    let wanted = DocumentRequest {
        path: path.into(),
        query: query.map(|query| (query.to_owned(), reader)),
        gzip: [false, true].map(|worth| accepts_gzip(headers, worth)),
    };
    let path = Arc::clone(&wanted.path);
    let mut ready = match wanted.obtain(site, single_flight, client).await {
        Ok(ready) => ready,
        Err(error) => return Ok(refusal(&error)),
    };
    let mut is_other_form = false;
    if let Some((media_type, added)) = ready.document.other_form
        && negotiate::prefers(headers, media_type, ready.document.content_type)
    {
        let gzip = [false, true].map(|worth| accepts_gzip(headers, worth));
        let wanted = DocumentRequest { path: format!("{path}{added}").into(), query: None, gzip };
        ready = match wanted.obtain(site, single_flight, client).await {
            Ok(ready) => ready,
            Err(error) => return Ok(refusal(&error)),
        };
        is_other_form = true;
    }
    let mut answer = represent(site, &ready, headers, is_other_form)?;
    if is_in_languages {
        answer.more.push((VARY, HeaderValue::from_static("Accept-Language")));
    }
    let copies = copies.and_then(|copies| HeaderValue::from_str(&copies).ok());
    answer.more.extend(copies.map(|copies| (LINK, copies)));
    let mut answer = answer.answer(method, headers);
    if let Some((set, position)) = head.filter(|_| ready.document.is_newest) {
        answer.extensions_mut().insert(Following::Set(set.slug.clone(), position));
    }
    Ok(answer)
}

/// A lock for each document that is being made: parallel requests for the same document wait for
/// it.
#[derive(Debug, Default)]
pub(crate) struct SingleFlight(Mutex<HashMap<Arc<str>, Weak<tokio::sync::Mutex<()>>>>);

impl SingleFlight {
    fn of(&self, path: &Arc<str>) -> Arc<tokio::sync::Mutex<()>> {
        let mut single_flight = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = single_flight.get(path).and_then(Weak::upgrade) {
            return known;
        }
        single_flight.retain(|_, turn| turn.strong_count() > 0);
        let new = Arc::default();
        single_flight.insert(Arc::clone(path), Arc::downgrade(&new));
        new
    }
}

/// A requested document, and whether the client accepts gzip: for documents that are too small to
/// benefit, and for others.
struct DocumentRequest {
    path: Arc<str>,
    /// A query that changes the document, which is then made for this request, and the reader.
    query: Option<(String, Reader)>,
    gzip: [bool; 2],
}

/// A document and the bytes to send.
struct Ready {
    document: Arc<Document>,
    body: Body,
    gzip: bool,
}

impl DocumentRequest {
    /// Whether the answer to this request is compressed.
    fn gzip(&self, document: &Document) -> bool {
        self.gzip[usize::from(document.plain().length() >= WORTH_COMPRESSING)]
    }

    /// Returns the document from memory, or makes it.
    async fn obtain(
        self,
        site: &Arc<Site>,
        single_flight: &SingleFlight,
        client: &Client,
    ) -> Result<Ready, PublishError> {
        if self.query.is_some() {
            let memory = site.memory.make(client).await;
            return blocking(site, move |site| {
                let _memory = memory;
                self.make(site)
            })
            .await;
        }
        if let Some(ready) = self.ready(site) {
            return Ok(ready);
        }
        // Requests for the same document wait here without using a thread.
        let turn = single_flight.of(&self.path).lock_owned().await;
        if let Some(ready) = self.ready(site) {
            return Ok(ready);
        }
        // If the client disconnects, the result is still used by others that wait.
        blocking(site, move |site| {
            let ready = self.make(site);
            drop(turn);
            ready
        })
        .await
    }

    /// A document that can be sent immediately.
    fn ready(&self, site: &Site) -> Option<Ready> {
        let document = site.publisher.cached(&self.path)?;
        let gzip = self.gzip(&document);
        let body = if gzip { document.gzip_if_ready()? } else { document.plain() }.clone();
        Some(Ready { document, body, gzip })
    }

    /// Renders and compresses the document, as needed; blocks.
    fn make(&self, site: &Site) -> Result<Ready, PublishError> {
        let document = match &self.query {
            Some((query, reader)) => site.publisher.queried_by(&self.path, query, reader)?,
            None => site.publisher.document(&self.path)?,
        };
        let gzip = self.gzip(&document);
        let body = if gzip { site.publisher.gzip(&document)? } else { document.plain().clone() };
        Ok(Ready { document, body, gzip })
    }
}

/// The representation. With `is_other_form`, `Accept` selected this document instead of another
/// one.
fn represent(
    site: &Site,
    ready: &Ready,
    headers: &HeaderMap,
    is_other_form: bool,
) -> io::Result<Representation> {
    let Ready { document, body, gzip } = ready;
    let chosen = choose_media_type(document.media_types, headers);
    let is_chosen = chosen.is_some() || is_other_form;
    let vary = if is_chosen { "Accept, Accept-Encoding" } else { "Accept-Encoding" };
    let mut more = vec![
        (VARY, HeaderValue::from_static(vary)),
        (
            CACHE_CONTROL,
            HeaderValue::from_static(match document.freshness {
                Freshness::Immutable => "public, max-age=31536000, immutable",
                Freshness::Closed => "public, max-age=86400",
                Freshness::Revalidate => "no-cache",
            }),
        ),
    ];
    if *gzip {
        more.push((CONTENT_ENCODING, HeaderValue::from_static("gzip")));
    }
    if document.introduces.len() > LINKS_MAX {
        let all = format!("<{}>; rel=\"resourcesync\"", site.publisher.urls().source_description());
        more.extend(HeaderValue::from_str(&all).ok().map(|all| (LINK, all)));
    } else {
        let sets = document.introduces.iter().filter_map(|set| site.sets.find(&set.slug));
        more.extend(sets.map(|set| (LINK, set.link())));
    }
    let topic = document.topic.as_deref().and_then(|topic| HeaderValue::from_str(topic).ok());
    more.extend(topic.map(|topic| (LINK, topic)));
    if document.content_type == abreast_source::projection::pages::HTML {
        more.extend(policy_of(&site.publisher));
    }
    let length = body.length();
    Ok(Representation {
        content: Content::of(body)?,
        length,
        tag: {
            let gzip = if *gzip { "-gz" } else { "" };
            match chosen {
                None | Some(0) => format!("\"{}{gzip}\"", document.tag),
                // The same bytes with another media type are another representation
                // [rfc9110 §8.8.3].
                Some(other) => format!("\"{}-{other}{gzip}\"", document.tag),
            }
        },
        modified: document.modified.map(Timestamp::as_seconds),
        content_type: HeaderValue::from_static(
            chosen.map_or(document.content_type, |chosen| document.media_types[chosen]),
        ),
        dated: Dated::Live,
        more,
    })
}

/// The media type for a client from the offered ones. If the client accepts none, the first one,
/// because all are JSON. `None` if the document has a single form.
fn choose_media_type(offered: &[&str], headers: &HeaderMap) -> Option<usize> {
    if offered.is_empty() {
        return None;
    }
    Some(negotiate::choose(headers, offered).unwrap_or(0))
}

/// 307: the answer is at another URL temporarily.
fn redirect(url: &str) -> Answer {
    let mut answer = problem(StatusCode::TEMPORARY_REDIRECT, &format!("this is at {url}"));
    let headers = answer.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.extend(HeaderValue::from_str(url).ok().map(|url| (LOCATION, url)));
    answer
}

/// Seconds after which clients should retry while a dump is made.
const RETRY: u32 = 10;

/// 202: the Resource Dump or a snapshot is being made.
pub(super) fn making(detail: &str, seconds: u32) -> Answer {
    let mut answer = text("text/plain; charset=utf-8", format!("{detail}\n"));
    *answer.status_mut() = StatusCode::ACCEPTED;
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    answer
}

async fn blocking<T: Send + 'static>(
    site: &Arc<Site>,
    work: impl FnOnce(&Site) -> Result<T, PublishError> + Send + 'static,
) -> Result<T, PublishError> {
    let site = Arc::clone(site);
    match tokio::task::spawn_blocking(move || work(&site)).await {
        Ok(result) => result,
        Err(error) => Err(PublishError::Cache(io::Error::other(error))),
    }
}

fn refusal(error: &PublishError) -> Answer {
    match error {
        PublishError::NotFound => problem(StatusCode::NOT_FOUND, "there is no such document"),
        PublishError::Gone | PublishError::NotKept => problem(StatusCode::GONE, &error.to_string()),
        PublishError::Importing => try_later(&error.to_string(), 2),
        PublishError::BadQuery(detail) => problem(StatusCode::BAD_REQUEST, detail),
        PublishError::Elsewhere(url) => redirect(url),
        PublishError::Making => making(&error.to_string(), RETRY),
        PublishError::NotMade { reason, seconds } => try_later(reason, *seconds),
        // The source of a transparent error is that of the error inside.
        PublishError::Log(error) if is_passing(error) => out_of_reach(error),
        _ if is_passing(error) => out_of_reach(error),
        _ => {
            tracing::error!("cannot make a document: {error}");
            problem(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the document could not be made; the server's log has the reason",
            )
        }
    }
}

/// Whether the answer should be compressed with gzip. Its weight must not be less than that of the
/// uncompressed bytes [rfc9110 §12.5.3]; with equal weights, `worth` decides.
pub(super) fn accepts_gzip(headers: &HeaderMap, worth: bool) -> bool {
    let (mut gzip, mut identity, mut any) = (None, None, None);
    let fields = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    for coding in fields.flat_map(|value| value.split(',')) {
        let mut parts = coding.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let weight = parts.find_map(weight).unwrap_or(1.0);
        if name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip") {
            gzip = Some(weight);
        } else if name.eq_ignore_ascii_case("identity") {
            identity = Some(weight);
        } else if name == "*" {
            any = Some(weight);
        }
    }
    let gzip = gzip.or(any).unwrap_or(0.0);
    // If the header does not contain `identity`, it is acceptable, but not preferred.
    let identity = identity.or(any.filter(|weight| *weight == 0.0)).unwrap_or(f32::MIN_POSITIVE);
    gzip > 0.0 && gzip >= identity && (worth || identity == 0.0)
}

/// Parses `q=` and a number from 0 to 1. An invalid number counts as 0, which refuses the coding.
fn weight(parameter: &str) -> Option<f32> {
    let (name, value) = parameter.split_once('=')?;
    let number = || value.parse().ok().filter(|weight| (0.0..=1.0).contains(weight)).unwrap_or(0.0);
    name.eq_ignore_ascii_case("q").then(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_chosen_as_the_client_weighs_it() {
        let of = |value: &str, worth| {
            let headers = [(ACCEPT_ENCODING, value.parse().unwrap())].into_iter().collect();
            accepts_gzip(&headers, worth)
        };
        for accepted in [
            "gzip",
            "GZIP;q=0.1",
            "br, x-gzip",
            "*",
            "deflate,gzip;q=1.0,*;q=0.5",
            "identity;q=0, gzip;q=0.001",
        ] {
            assert!(of(accepted, true), "{accepted}");
        }
        for refused in [
            "",
            "br",
            "gzip;q=0",
            "gzip; Q=0.000",
            "*;q=0",
            "gzip;q=0, *",
            "gzip;q=x",
            "gzip;q=-1",
            "gzip;q=0.5, identity",
        ] {
            assert!(!of(refused, true), "{refused}");
        }
        assert!(!of("gzip", false), "small documents are sent as they are");
        assert!(of("identity;q=0, gzip", false), "unless that is refused");
        assert!(of("gzip, *;q=0", false));
        assert!(!accepts_gzip(&HeaderMap::new(), true));
    }
}
