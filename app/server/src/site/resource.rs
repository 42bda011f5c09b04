//! `/{set}/r/…`: the resources, read directly from the published folder, or from stored contents.
//!
//! A path is opened relative to the folder's handle, without following symbolic links, and only if
//! every component would be published. Length, tag and time come from the opened file; if a file is
//! written during the response, the connection is closed.

use crate::message::body::unchanged;
use crate::message::respond::{Answer, Content, Dated, Representation, problem, try_later};
use crate::site::served::{ServedSet, Site};
use abreast_folder::{ErrorKind, Kind, Stat};
use abreast_source::{Naming, WatchState};
use abreast_webtypes::decode_segment;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, LINK};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read as _};
use std::sync::Arc;

/// Files up to this size are read immediately, on the thread that answers: they are in the page
/// cache or cost one read.
const READ_AT_ONCE: u64 = 64 * 1024;
/// Seconds after which clients should retry while the folder of a set is missing.
pub(crate) const MISSING_SECONDS: u32 = 30;

pub(crate) async fn answer(
    site: &Arc<Site>,
    set: &Arc<ServedSet>,
    path: &str,
    (method, headers): (&Method, &HeaderMap),
    redirect_from: Option<u64>,
) -> io::Result<Answer> {
    let Some(relative) = relative_path(path) else {
        return Ok(problem(StatusCode::NOT_FOUND, "there is no such resource"));
    };
    if set.published.representations.has_stored_files() {
        let (asked, least) = ((method, headers), redirect_from);
        return super::stored_resource::answer(site, set, relative, asked, least).await;
    }
    let Some(mut folder) = set.published.representations.folder() else {
        return Ok(problem(StatusCode::NOT_FOUND, "there is no such resource"));
    };
    let mut opened = folder.open_file(&relative);
    if opened.is_err()
        && !folder.selects(&relative, Kind::File)
        && holds(site, set, Naming::key(&relative)).await?
    {
        folder = folder.selecting_all();
        opened = folder.open_file(&relative);
    }
    if opened.is_err() && matches!(set.published.watch.state(), WatchState::Vanished(_)) {
        return Ok(try_later("the folder of the set is missing", MISSING_SECONDS));
    }
    let (file, stat) = match opened {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::Denied => {
            return Ok(problem(StatusCode::FORBIDDEN, "the resource may not be read"));
        }
        // Not 503: a copy would repeat the request for each missing file, and wait each time.
        Err(_) if is_held(site, set, Naming::key(&relative)).await? => {
            let detail = "the file is missing in the folder; its deletion is not confirmed, so the lists still have the file";
            return Ok(problem(StatusCode::NOT_FOUND, detail));
        }
        Err(_) => return Ok(problem(StatusCode::NOT_FOUND, "there is no such resource")),
    };
    let content = if stat.size <= READ_AT_ONCE {
        match read(&file, &stat)? {
            Some(bytes) => Content::Memory(bytes),
            None => return Ok(try_later("the resource is being written", 1)),
        }
    } else {
        Content::File(Arc::new(file), stat)
    };
    let mut more = vec![
        (LINK, set.link()),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        // Published files are not trusted, so their scripts and forms must not run on this origin.
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox")),
    ];
    if set.links.active() {
        let links = set.links.headers(&folder, &relative);
        more.extend(
            links.iter().filter_map(|link| Some((LINK, HeaderValue::from_str(link).ok()?))),
        );
    }
    Ok(Representation {
        content,
        length: stat.size,
        // With ctime, because the modification time of a changed file can be set back.
        tag: format!("\"{:x}-{:x}-{:x}\"", stat.ctime_ns, stat.size, stat.inode),
        modified: Some(seconds(stat.mtime_ns)),
        content_type: HeaderValue::from_static(abreast_source::media_type_of(&relative)),
        dated: Dated::Live,
        more,
    }
    .answer(method, headers))
}

const fn seconds(nanoseconds: i64) -> i64 {
    nanoseconds.div_euclid(1_000_000_000)
}

/// Whether the deletion of a resource that the rules leave out is held. Reads the store only if the
/// set has held deletions.
async fn holds(site: &Site, set: &Arc<ServedSet>, key: String) -> io::Result<bool> {
    if !set.holds_any() {
        return Ok(false);
    }
    let (log, set) = (Arc::clone(site.publisher.log()), Arc::clone(set));
    let ask = move || set.holds(&*log, &key);
    tokio::task::spawn_blocking(ask).await.map_err(io::Error::other)
}

/// Whether the set has a resource while deletions are held. Reads the store only then.
async fn is_held(site: &Site, set: &Arc<ServedSet>, key: String) -> io::Result<bool> {
    if set.published.watch.held().is_none() {
        return Ok(false);
    }
    let (log, id) = (Arc::clone(site.publisher.log()), set.published.id);
    let ask = move || log.resource(id, &key).map(|found| found.is_some());
    tokio::task::spawn_blocking(ask).await.map_err(io::Error::other)?.map_err(io::Error::other)
}

/// Reads the bytes of a file; `None` if it was written meanwhile.
fn read(mut file: &File, stat: &Stat) -> io::Result<Option<Bytes>> {
    let mut bytes = Vec::with_capacity(stat.size as usize);
    file.by_ref().take(stat.size).read_to_end(&mut bytes)?;
    let whole = bytes.len() as u64 == stat.size && unchanged(file, stat)?;
    Ok(whole.then(|| bytes.into()))
}

/// The path relative to the folder; `None` for an unpublished path.
pub(crate) fn relative_path(path: &str) -> Option<Vec<u8>> {
    let mut relative = Vec::with_capacity(path.len());
    let encoded = path.contains('%');
    for segment in path.split('/') {
        let name = if encoded {
            Cow::Owned(decode_segment(segment.as_bytes()))
        } else {
            segment.as_bytes().into()
        };
        if !abreast_source::is_published_name(&name)
            || name.iter().any(|byte| matches!(byte, b'/' | 0))
        {
            return None;
        }
        if !relative.is_empty() {
            relative.push(b'/');
        }
        relative.extend_from_slice(&name);
    }
    Some(relative)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside_and_published() {
        assert_eq!(relative_path("a/b%20c/%FF"), Some(b"a/b c/\xff".to_vec()));
        for path in [
            "",
            "a//b",
            "../x",
            "%2e%2e/x",
            "..%2fx",
            "a/%2e%2e%2fx",
            ".git/config",
            "a/.abreast/x",
            "a%00b",
            "a/b~",
        ] {
            assert_eq!(relative_path(path), None, "{path}");
        }
    }
}
