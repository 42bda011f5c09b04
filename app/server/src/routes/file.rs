//! Files of projections, such as packages: opened, or made, on a thread that may block.
//!
//! A file with a permanent address never changes, so it may be cached permanently and requested in
//! parts. An address whose bytes follow the changes of a set is answered with the present bytes,
//! and their permanent address in `Content-Location`.

use super::document::{accepts_gzip, making};
use crate::message::negotiate;
use crate::message::respond::{
    Answer, Content, Dated, REDIRECT_VALID, REPR_DIGEST, Representation, problem, try_later,
};
use crate::site::served::Site;
use abreast_folder::Stat;
use abreast_hub::Client;
use abreast_source::projection::{FileContent, FileError, PublishedFile};
use abreast_source::publish::Freshness;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LOCATION, CONTENT_SECURITY_POLICY, LINK, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use std::io;
use std::sync::Arc;

pub(crate) async fn answer(
    site: &Arc<Site>,
    path: String,
    query: Option<&str>,
    (method, client): (&Method, &Client),
    headers: &HeaderMap,
    redirect_from: Option<u64>,
) -> io::Result<Answer> {
    let (site, query) = (Arc::clone(site), query.map(str::to_owned));
    let (method, headers) = (method.clone(), headers.clone());
    let memory = site.memory.make(client).await;
    let answered = move || {
        let _memory = memory;
        let mut file = match site.publisher.file(&path, query.as_deref()) {
            Ok(file) => file,
            Err(error) => return Ok(refusal(&error)),
        };
        if file.negotiated && negotiate::choose(&headers, &[&*file.content_type]).is_none() {
            return Ok(not_acceptable(&file.content_type));
        }
        let packed = file.gzip.take();
        let mut more = Vec::new();
        if packed.is_some() {
            more.push((VARY, HeaderValue::from_static("accept-encoding")));
        }
        let packed = packed.filter(|_| accepts_gzip(&headers, true));
        // A URL of the object store does not have a content coding.
        let redirect_from = redirect_from.filter(|_| packed.is_none());
        if let Some(packed) = packed {
            file.content = packed;
            more.push((CONTENT_ENCODING, HeaderValue::from_static("gzip")));
        }
        Ok(match represent(&site, file, more, redirect_from)? {
            Ok((representation, None)) => representation.answer(&method, &headers),
            Ok((representation, Some(url))) => representation.redirect(&url, &headers),
            Err(error) => refusal(&error),
        })
    };
    tokio::task::spawn_blocking(answered).await.map_err(io::Error::other)?
}

/// The representation of a file, and the URL to which clients are redirected in its place.
fn represent(
    site: &Site,
    file: PublishedFile,
    mut more: Vec<(HeaderName, HeaderValue)>,
    redirect_from: Option<u64>,
) -> io::Result<Result<(Representation, Option<String>), FileError>> {
    let PublishedFile { content, content_type, set, location, freshness, negotiated, .. } = file;
    // The digest is computed without content coding [rfc9530 §3].
    if let Some(digest) =
        file.digest.filter(|_| !more.iter().any(|(name, _)| name == CONTENT_ENCODING))
    {
        let digest = format!("sha-256=:{}:", BASE64.encode(digest));
        let digest = HeaderValue::from_str(&digest).map_err(io::Error::other)?;
        more.push((REPR_DIGEST, digest));
    }
    let changing = freshness == Freshness::Revalidate;
    let dated = if changing { Dated::Coarse } else { Dated::Final };
    let kept = if changing { "no-cache" } else { "public, max-age=31536000, immutable" };
    more.push((CACHE_CONTROL, HeaderValue::from_static(kept)));
    // Some files are published resources, so their scripts must not run.
    more.push((CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox")));
    if negotiated {
        more.push((VARY, HeaderValue::from_static("accept")));
    }
    more.extend(site.sets.find(&set.slug).map(|set| (LINK, set.link())));
    if let Some(url) = location.and_then(|url| HeaderValue::from_str(&url).ok()) {
        more.push((CONTENT_LOCATION, url));
    }
    let media_type = content_type;
    let content_type = HeaderValue::from_str(&media_type)
        .unwrap_or(HeaderValue::from_static("application/octet-stream"));
    let mut redirected = None;
    let representation = match content {
        FileContent::File(file) => {
            let stat = Stat::of(&file).map_err(io::Error::other)?;
            Representation {
                length: stat.size,
                // With ctime, because the modification time of a changed file can be set back.
                tag: {
                    let time = if changing { stat.ctime_ns } else { stat.mtime_ns };
                    format!("\"{time:x}-{:x}-{:x}\"", stat.size, stat.inode)
                },
                modified: Some(stat.mtime_ns.div_euclid(1_000_000_000)),
                content_type,
                dated,
                content: Content::File(Arc::new(file), stat),
                more,
            }
        }
        FileContent::Part { file, start, length } => {
            let stat = Stat::of(&file).map_err(io::Error::other)?;
            Representation {
                length,
                tag: format!("\"{:x}-{:x}-{start:x}\"", stat.mtime_ns, stat.inode),
                modified: Some(stat.mtime_ns.div_euclid(1_000_000_000)),
                content_type,
                dated,
                content: Content::Part(Arc::new(file), stat, start),
                more,
            }
        }
        FileContent::Shared { file: shared, start, length } => {
            let (tag, is_whole) = (shared.tag(), start == 0 && length == shared.length());
            if is_whole && redirect_from.is_some_and(|least| length >= least) {
                redirected = match shared.signed_url(&media_type, REDIRECT_VALID) {
                    Ok(url) => url,
                    Err(error) => return Ok(Err(error)),
                };
            }
            let content = if redirected.is_some() {
                Content::Memory(Bytes::new())
            } else {
                let file = match shared.open() {
                    Ok(file) => file,
                    Err(error) => return Ok(Err(error)),
                };
                let stat = Stat::of(&file).map_err(io::Error::other)?;
                Content::Part(Arc::new(file), stat, start)
            };
            Representation {
                length,
                tag: if is_whole { format!("\"{tag}\"") } else { format!("\"{tag}-{start:x}\"") },
                modified: Some(shared.modified().as_seconds()),
                content_type,
                dated,
                content,
                more,
            }
        }
        FileContent::Stored { tag, content } => Representation {
            length: content.length(),
            tag: format!("\"{tag}\""),
            modified: None,
            content_type,
            dated: Dated::Coarse,
            content: Content::of_stored(content)?,
            more,
        },
        FileContent::Made { tag, body } => Representation {
            length: body.length(),
            tag: format!("\"{tag}\""),
            modified: None,
            content_type,
            dated: Dated::Coarse,
            content: Content::of(&body)?,
            more,
        },
    };
    Ok(Ok((representation, redirected)))
}

fn not_acceptable(content_type: &str) -> Answer {
    let detail = format!("this address has {content_type} only; the feed lists the others");
    let mut answer = problem(StatusCode::NOT_ACCEPTABLE, &detail);
    answer.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    answer
}

fn refusal(error: &FileError) -> Answer {
    let detail = error.to_string();
    match error {
        FileError::NotFound(_) => problem(StatusCode::NOT_FOUND, &detail),
        FileError::BadQuery(_) => problem(StatusCode::BAD_REQUEST, &detail),
        FileError::Gone(_) => problem(StatusCode::GONE, &detail),
        FileError::TooLarge(_) => problem(StatusCode::PAYLOAD_TOO_LARGE, &detail),
        FileError::NotAcceptable(_) => {
            let mut answer = problem(StatusCode::NOT_ACCEPTABLE, &detail);
            answer.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
            answer
        }
        FileError::Making { seconds, .. } => making(&detail, *seconds),
        FileError::Later { seconds, .. } => try_later(&detail, *seconds),
        _ => {
            let cause = std::error::Error::source(error)
                .map_or(String::new(), |cause| format!(": {cause}"));
            tracing::error!("cannot make a file that was asked for: {error}{cause}");
            problem(
                StatusCode::INTERNAL_SERVER_ERROR,
                &format!("{detail}; the server's log has the reason"),
            )
        }
    }
}
