//! Files of projections, such as packages: opened, or made, on a thread that may block.
//!
//! A file with a permanent address never changes, so it may be cached permanently and requested in
//! parts. An address whose bytes follow the changes of a set is answered with the present bytes,
//! and their permanent address in `Content-Location`.

use super::document::{accepts_gzip, making};
use crate::message::negotiate;
use crate::message::respond::{Answer, Content, Dated, Representation, problem, try_later};
use crate::site::served::Site;
use abreast_folder::Stat;
use abreast_hub::Client;
use abreast_source::projection::{FileContent, FileError, PublishedFile};
use abreast_source::publish::Freshness;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
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
) -> io::Result<Answer> {
    let (open, query) = (Arc::clone(site), query.map(str::to_owned));
    let memory = site.memory.make(client).await;
    let opened = move || {
        let _memory = memory;
        open.publisher.file(&path, query.as_deref())
    };
    match tokio::task::spawn_blocking(opened).await.map_err(io::Error::other)? {
        Ok(file)
            if file.negotiated && negotiate::choose(headers, &[&*file.content_type]).is_none() =>
        {
            Ok(not_acceptable(&file.content_type))
        }
        Ok(mut file) => {
            let packed = file.gzip.take();
            let vary = packed.is_some();
            let packed = packed.filter(|_| accepts_gzip(headers, true));
            let mut more = Vec::new();
            if vary {
                more.push((VARY, HeaderValue::from_static("accept-encoding")));
            }
            if let Some(packed) = packed {
                file.content = packed;
                more.push((CONTENT_ENCODING, HeaderValue::from_static("gzip")));
            }
            Ok(represent(site, file, more)?.answer(method, headers))
        }
        Err(error) => Ok(refusal(&error)),
    }
}

fn represent(
    site: &Site,
    file: PublishedFile,
    mut more: Vec<(HeaderName, HeaderValue)>,
) -> io::Result<Representation> {
    let PublishedFile { content, content_type, set, location, freshness, negotiated, .. } = file;
    // The digest is computed without content coding [rfc9530 §3].
    if let Some(digest) =
        file.digest.filter(|_| !more.iter().any(|(name, _)| name == CONTENT_ENCODING))
    {
        let digest = format!("sha-256=:{}:", BASE64.encode(digest));
        let digest = HeaderValue::from_str(&digest).map_err(io::Error::other)?;
        more.push((HeaderName::from_static("repr-digest"), digest));
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
    let content_type = HeaderValue::from_str(&content_type)
        .unwrap_or(HeaderValue::from_static("application/octet-stream"));
    Ok(match content {
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
        FileContent::Shared { tag, file, start, length } => {
            let stat = Stat::of(&file).map_err(io::Error::other)?;
            let is_whole = start == 0 && length == stat.size;
            Representation {
                length,
                tag: if is_whole { format!("\"{tag}\"") } else { format!("\"{tag}-{start:x}\"") },
                modified: Some(stat.mtime_ns.div_euclid(1_000_000_000)),
                content_type,
                dated,
                content: Content::Part(Arc::new(file), stat, start),
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
    })
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
