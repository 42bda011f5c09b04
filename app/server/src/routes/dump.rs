//! `/{set}/dump/NAME.zip`, its manifest `NAME.xml`, and `/{set}/changedump/since`: packages [rs-core §11, §13].
//!
//! Packages are whole when they have a name and never change under it, so they may be kept for ever and asked for in
//! parts. What changed since a point is made when it is asked for, and answered with the address under which the same
//! package stays for a while.

use crate::respond::{Answer, Content, Representation, problem, text, try_later};
use crate::site::Site;
use abreast_folder::Stat;
use abreast_source::dump::{Dumps, Since, SinceError, Which};
use abreast_webtypes::W3cDatetime;
use http::header::{CACHE_CONTROL, CONTENT_LOCATION, LINK, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Asked again after so long while a dump is made.
const RETRY: u32 = 10;

/// A package or a manifest.
pub(crate) fn answer(
    site: &Arc<Site>,
    set: usize,
    name: &str,
    method: &Method,
    headers: &HeaderMap,
) -> io::Result<Answer> {
    let found = site.publisher.dumps().and_then(|dumps| dumps.file(set, name));
    match found.as_deref().and_then(open) {
        Some(file) => Ok(represent(site, set, file, name, None)?.answer(method, headers)),
        None => Ok(problem(
            StatusCode::NOT_FOUND,
            "there is no such package; it may have been replaced: read the Resource Dump or the Change Dump again",
        )),
    }
}

/// What changed since the point that the query names.
pub(crate) async fn since(
    site: &Arc<Site>,
    set: usize,
    query: Option<&str>,
    method: &Method,
    headers: &HeaderMap,
) -> io::Result<Answer> {
    let Some((since, which)) = point(query.unwrap_or_default()) else {
        return Ok(problem(
            StatusCode::BAD_REQUEST,
            "say from where: `?position=` and the position of a change, or `?time=` and a time such as 2026-01-31T12:00:00Z; \
             `&changes=last` leaves out those that a later change of the same resource followed",
        ));
    };
    let Some(dumps) = site.publisher.dumps().map(Arc::clone) else { return Ok(refusal(&SinceError::Disabled)) };
    let made =
        tokio::task::spawn_blocking(move || Dumps::since(&dumps, set, since, which)).await.map_err(io::Error::other)?;
    let path = match made {
        Ok(path) => path,
        Err(error) => return Ok(refusal(&error)),
    };
    let (Some(file), Some(name)) = (open(&path), path.file_name().and_then(|name| name.to_str())) else {
        return Ok(try_later("the package is just being replaced", 1));
    };
    Ok(represent(site, set, file, name, Some(()))?.answer(method, headers))
}

fn open(path: &Path) -> Option<File> {
    File::open(path).ok()
}

fn represent(
    site: &Site,
    set: usize,
    file: File,
    name: &str,
    asked_by_range: Option<()>,
) -> io::Result<Representation> {
    let stat = Stat::of(&file).map_err(io::Error::other)?;
    let kept = match asked_by_range {
        // The same question has another answer after the next change.
        Some(()) => "no-cache",
        None => "public, max-age=31536000, immutable",
    };
    let mut more = vec![(CACHE_CONTROL, HeaderValue::from_static(kept))];
    more.extend(site.sets.get(set).map(|set| (LINK, set.link.clone())));
    if asked_by_range.is_some()
        && let Some(published) = site.publisher.sets().get(set)
        && let Ok(url) = HeaderValue::from_str(&published.urls.package(name.trim_end_matches(".zip")))
    {
        more.push((CONTENT_LOCATION, url));
    }
    let content_type = if name.strip_suffix(".zip").is_some() { "application/zip" } else { "application/xml" };
    Ok(Representation {
        length: stat.size,
        tag: format!("\"{:x}-{:x}-{:x}\"", stat.mtime_ns, stat.size, stat.inode),
        modified: Some(stat.mtime_ns.div_euclid(1_000_000_000)),
        content_type: HeaderValue::from_static(content_type),
        coarse_time: asked_by_range.is_some(),
        content: Content::File(Arc::new(file), stat),
        more,
    })
}

fn refusal(error: &SinceError) -> Answer {
    let detail = error.to_string();
    match error {
        SinceError::Disabled => problem(StatusCode::NOT_FOUND, &detail),
        SinceError::Ahead { .. } => problem(StatusCode::BAD_REQUEST, &detail),
        SinceError::TooOld { .. } | SinceError::NotKept { .. } => problem(StatusCode::GONE, &detail),
        SinceError::TooLarge { .. } => problem(StatusCode::PAYLOAD_TOO_LARGE, &detail),
        SinceError::Importing => try_later(&detail, 2),
        SinceError::Busy | SinceError::Unsettled => try_later(&detail, 1),
        _ => {
            let cause = std::error::Error::source(error).map_or(String::new(), |cause| format!(": {cause}"));
            tracing::error!("cannot make a package of changes: {error}{cause}");
            problem(StatusCode::INTERNAL_SERVER_ERROR, "the package could not be made; the server's log says why")
        }
    }
}

/// 202: the Resource Dump is being made.
pub(crate) fn making(detail: &str) -> Answer {
    let mut answer = text("text/plain; charset=utf-8", format!("{detail}\n"));
    *answer.status_mut() = StatusCode::ACCEPTED;
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(RETRY));
    answer
}

/// `position=N` or `time=W3CDATETIME`, and perhaps `changes=all` or `changes=last`, each once.
fn point(query: &str) -> Option<(Since, Which)> {
    let (mut since, mut which) = (None, None);
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=')?;
        let is_new = match name {
            "position" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                since.replace(Since::Position(value.parse().ok()?)).is_none()
            }
            "time" => {
                let time = abreast_webtypes::decode_segment(value.as_bytes());
                since.replace(Since::Time(W3cDatetime::parse(&time).ok()?.instant)).is_none()
            }
            "changes" => {
                let wanted = match value {
                    "all" => Which::Every,
                    "last" => Which::Last,
                    _ => return None,
                };
                which.replace(wanted).is_none()
            }
            _ => false,
        };
        if !is_new {
            return None;
        }
    }
    Some((since?, which.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_a_position_or_a_time() {
        assert_eq!(point("position=17"), Some((Since::Position(17), Which::Every)));
        assert_eq!(point("changes=last&position=17"), Some((Since::Position(17), Which::Last)));
        assert_eq!(point("position=17&changes=all"), Some((Since::Position(17), Which::Every)));
        let time = W3cDatetime::parse(b"2026-01-31T12:00:00.5Z").unwrap().instant;
        assert_eq!(point("time=2026-01-31T12%3A00%3A00.5Z"), Some((Since::Time(time), Which::Every)));
        for bad in [
            "",
            "position=",
            "position=+1",
            "changes=last",
            "position=1&changes=first",
            "position=1&changes=all&changes=all",
            "position=1&time=2026",
            "time=soon",
            "since=1",
            "position",
        ] {
            assert_eq!(point(bad), None, "{bad}");
        }
    }
}
