//! Every published document: from memory at once, else rendered on a blocking thread.

use crate::respond::{Answer, Content, Representation, problem, try_later};
use crate::site::Site;
use abreast_source::publish::{Body, Document, DocumentPath, Freshness, PublishError};
use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, LINK, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use std::fs::File;
use std::io;
use std::sync::Arc;

/// Documents below this are sent as they are.
const WORTH_COMPRESSING: u64 = 1_024;

pub(crate) async fn answer(site: &Arc<Site>, path: DocumentPath, headers: &HeaderMap) -> io::Result<Answer> {
    let document = match site.publisher.cached(&path) {
        Some(document) => document,
        None => match blocking(site, move |site| site.publisher.document(&path)).await {
            Ok(document) => document,
            Err(error) => return Ok(refusal(&error)),
        },
    };
    let compressed = document.plain().length() >= WORTH_COMPRESSING && accepts_gzip(headers);
    let body = if !compressed {
        document.plain().clone()
    } else if let Some(body) = document.gzip_if_ready() {
        body.clone()
    } else {
        let document = Arc::clone(&document);
        match blocking(site, move |site| site.publisher.gzip(&document)).await {
            Ok(body) => body,
            Err(error) => return Ok(refusal(&error)),
        }
    };
    represent(site, &document, path, body, compressed)?.answer(headers)
}

fn represent(
    site: &Site,
    document: &Document,
    path: DocumentPath,
    body: Body,
    gzip: bool,
) -> io::Result<Representation> {
    let mut more = vec![
        (VARY, HeaderValue::from_static("Accept-Encoding")),
        (
            CACHE_CONTROL,
            HeaderValue::from_static(match document.freshness {
                Freshness::Immutable => "public, max-age=31536000, immutable",
                Freshness::Revalidate => "no-cache",
            }),
        ),
    ];
    if gzip {
        more.push((CONTENT_ENCODING, HeaderValue::from_static("gzip")));
    }
    let sets = match path {
        DocumentPath::SitemapIndex => site.sets.as_slice(),
        DocumentPath::SitemapShard(set, _) => site.sets.get(set..=set).unwrap_or_default(),
        _ => &[],
    };
    more.extend(sets.iter().filter_map(|set| Some((LINK, HeaderValue::from_str(&set.link).ok()?))));
    let length = body.length();
    let content = match body {
        Body::Memory(bytes) => Content::Memory(bytes),
        Body::File(file) => Content::File(File::open(file.path())?),
    };
    Ok(Representation {
        content,
        length,
        tag: format!("\"{}{}\"", document.tag, if gzip { "-gz" } else { "" }),
        modified: document.modified.map(abreast_webtypes::Timestamp::as_seconds),
        content_type: HeaderValue::from_static(document.content_type),
        more,
    })
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
        PublishError::Gone => problem(StatusCode::GONE, &error.to_string()),
        PublishError::Importing => try_later(&error.to_string(), 2),
        _ => {
            tracing::error!("cannot make a document: {error}");
            problem(StatusCode::INTERNAL_SERVER_ERROR, "the document could not be made; the server's log says why")
        }
    }
}

/// Is gzip named, and not refused with `q=0`?
fn accepts_gzip(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|coding| {
            let mut parts = coding.split(';').map(str::trim);
            let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
            named && !parts.any(|part| part.strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0)))
        })
}
