//! `/{set}/m/{time}/…`: a resource as it was since that time [rfc7089 §2.1.1].
//!
//! The address of a version means the same bytes forever. A version in which the resource did not
//! exist (it was deleted) is answered with 410, and is still a version [rfc7089 §4.5.5]. The time
//! has microseconds; a time in seconds, as users write it, redirects to the version that was
//! current then.

use crate::message::conditional::http_date;
use crate::message::respond::{
    Answer, Dated, Representation, is_passing, out_of_reach, problem, try_later,
};
use crate::site::resource::relative_path;
use crate::site::served::{ServedSet, Site};
use crate::site::stored_resource;
use abreast_core::{LogError, SetId, State, Version};
use abreast_source::Naming;
use abreast_source::versions::{History, VersionUrls, at_stamp};
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, LINK, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use std::io;
use std::sync::Arc;

/// Time since which the version was the resource's content [rfc7089 §2.1.1].
const MEMENTO_DATETIME: HeaderName = HeaderName::from_static("memento-datetime");

pub(crate) async fn answer(
    site: &Arc<Site>,
    set: &Arc<ServedSet>,
    rest: &str,
    method: &Method,
    headers: &HeaderMap,
) -> io::Result<Answer> {
    let Some((stamp, path)) = rest.split_once('/') else { return Ok(nothing()) };
    let Some((time, exact)) = at_stamp(stamp) else { return Ok(nothing()) };
    let Some(asked) = VersionedResource::of(set, key_in(set, path)) else { return Ok(nothing()) };
    let found = asked.find(site, move |log, set, key| {
        if exact {
            History::exactly(log, set, key, time)
        } else {
            History::at(log, set, key, time.as_seconds())
        }
    });
    match found.await? {
        Ok(Some(history)) if exact => represent(&asked, &history, method, headers).await,
        Ok(Some(history)) => Ok(redirect(&asked.urls.memento(&asked.key, history.chosen.time))),
        Ok(None) => Ok(problem(
            StatusCode::NOT_FOUND,
            "no version of this time is kept; the resource's TimeMap lists those that are",
        )),
        Err(refusal) => Ok(refusal),
    }
}

/// A requested resource in a set with versions.
pub(crate) struct VersionedResource {
    set: Arc<ServedSet>,
    pub(crate) key: String,
    pub(crate) urls: VersionUrls,
}

impl VersionedResource {
    pub(crate) fn of(set: &Arc<ServedSet>, key: Option<String>) -> Option<Self> {
        Some(Self { set: Arc::clone(set), key: key?, urls: set.published.versions.clone()? })
    }

    /// The resource with this URI, from any set.
    pub(crate) fn by_uri(site: &Site, uri: &str) -> Vec<Self> {
        let own = site.sets.all().iter().find_map(|set| {
            let naming = set.published.versions.as_ref()?.naming();
            Self::of(set, key_of_path(naming, uri.strip_prefix(naming.resources())?))
        });
        match own {
            Some(own) => vec![own],
            // Resources of other servers may be in any set.
            None => site.sets.all().iter().filter_map(|set| Self::of(set, absolute(uri))).collect(),
        }
    }

    /// Reads the log on a blocking thread; `None` for a resource that is not shown. If the log
    /// cannot be read now, the response asks the client to retry later.
    pub(crate) async fn find<T: Send + 'static>(
        &self,
        site: &Site,
        read: impl FnOnce(&dyn abreast_core::ChangeLog, SetId, &str) -> Result<Option<T>, LogError>
        + Send
        + 'static,
    ) -> io::Result<Result<Option<T>, Answer>> {
        let (log, set, key) =
            (Arc::clone(site.publisher.log()), Arc::clone(&self.set), self.key.clone());
        let read = move || {
            if !set.shows(&*log, &key) {
                return Ok(Some(None));
            }
            let id = set.published.id;
            if log.head(id)?.importing {
                return Ok(None);
            }
            read(&*log, id, &key).map(Some)
        };
        Ok(match tokio::task::spawn_blocking(read).await.map_err(io::Error::other)? {
            Ok(Some(found)) => Ok(found),
            Ok(None) => Err(try_later("the set is being read for the first time", 2)),
            Err(error) if is_passing(&error) => Err(out_of_reach(&error)),
            Err(error) => {
                tracing::error!("cannot read the versions of a resource: {error}");
                Err(problem(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "the versions could not be read; the server's log has the reason",
                ))
            }
        })
    }
}

/// Adds the Link headers of an original resource. A resource that does not exist gets them only if
/// it has versions [rfc7089 §4.5.2].
pub(crate) async fn link_original(
    site: &Site,
    set: &Arc<ServedSet>,
    path: &str,
    answer: &mut Answer,
) -> io::Result<()> {
    if set.published.versions.is_none() {
        return Ok(());
    }
    let Some(asked) = VersionedResource::of(set, key_in(set, path)) else { return Ok(()) };
    if answer.status() == StatusCode::NOT_FOUND
        && !matches!(asked.find(site, History::newest).await?, Ok(Some(_)))
    {
        return Ok(());
    }
    let links = format!(
        "<{}>; rel=\"timegate\", <{}>; rel=\"timemap\"; type=\"{}\"",
        asked.urls.timegate(&asked.key),
        asked.urls.timemap(&asked.key),
        abreast_source::versions::LINK_FORMAT
    );
    if let Ok(links) = HeaderValue::from_str(&links) {
        answer.headers_mut().append(LINK, links);
    }
    Ok(())
}

async fn represent(
    asked: &VersionedResource,
    history: &History,
    method: &Method,
    headers: &HeaderMap,
) -> io::Result<Answer> {
    let Version { time, state, .. } = &history.chosen;
    let mut more = vec![(LINK, header(&history.links(&asked.urls, &asked.key, false)))];
    let datetime = (MEMENTO_DATETIME, header(&http_date(time.as_seconds())));
    let Some(state) = state else {
        more.push(datetime);
        return Ok(with(
            problem(
                StatusCode::GONE,
                "the resource was deleted then, and not there until its next version",
            ),
            more,
        ));
    };
    let (set, kept_state) = (Arc::clone(&asked.set), state.clone());
    let opened = tokio::task::spawn_blocking(move || stored_resource::open(&set, &kept_state))
        .await
        .map_err(io::Error::other)??;
    let Some((id, (length, content))) = state.content.as_ref().zip(opened) else {
        // Dropped between the two reads, or never stored.
        return Ok(with(
            problem(StatusCode::NOT_FOUND, "the bytes of this version are not kept"),
            more,
        ));
    };
    more.push(datetime);
    more.extend([
        (CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox")),
    ]);
    more.extend(state.encoding.as_ref().map(|encoding| (CONTENT_ENCODING, header(encoding))));
    Ok(Representation {
        length,
        tag: format!("\"{id}\""),
        modified: Some(state.modified.as_seconds()),
        content_type: media_type(state),
        dated: Dated::Coarse,
        content,
        more,
    }
    .answer(method, headers))
}

fn media_type(state: &State) -> HeaderValue {
    let known =
        state.media_type.as_deref().and_then(|media_type| HeaderValue::from_str(media_type).ok());
    known.unwrap_or(HeaderValue::from_static("application/octet-stream"))
}

pub(crate) fn with(mut answer: Answer, more: Vec<(HeaderName, HeaderValue)>) -> Answer {
    answer.headers_mut().extend(more);
    answer
}

/// A header value; empty if the text contains characters that headers must not contain.
pub(crate) fn header(value: &str) -> HeaderValue {
    HeaderValue::from_str(value).unwrap_or(HeaderValue::from_static(""))
}

/// 302 to an address of this server.
pub(crate) fn redirect(url: &str) -> Answer {
    let mut answer = crate::message::respond::text("text/plain; charset=utf-8", format!("{url}\n"));
    *answer.status_mut() = StatusCode::FOUND;
    answer.headers_mut().insert(LOCATION, header(url));
    answer
}

fn nothing() -> Answer {
    problem(StatusCode::NOT_FOUND, "no versions are published at this address")
}

fn key_in(set: &ServedSet, path: &str) -> Option<String> {
    key_of_path(set.published.versions.as_ref()?.naming(), path)
}

/// The key of the resource at a path below a set's resources; the URI of a resource of another
/// server is already a key.
pub(crate) fn key_of_path(naming: &Naming, path: &str) -> Option<String> {
    // URLs of the set's resources do not have a query.
    let own = path.split('?').next().unwrap_or_default();
    if naming.names_entities() {
        return naming.key_at(own);
    }
    absolute(path).or_else(|| relative_path(own).map(|path| Naming::key(&path)))
}

fn absolute(uri: &str) -> Option<String> {
    let sound =
        uri.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>' | b'"'));
    (sound && uri.contains("://")).then(|| uri.to_owned())
}
