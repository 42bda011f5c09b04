//! `/{set}/r/…` of several nodes: the files as the log has them, from stored contents.

use crate::message::respond::{
    Answer, Content, Dated, REDIRECT_VALID, Representation, problem, try_later,
};
use crate::site::served::{ServedSet, Site};
use abreast_core::{Resource, State};
use abreast_source::Naming;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, LINK};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use std::io;
use std::sync::Arc;

pub(super) async fn answer(
    site: &Arc<Site>,
    set: &Arc<ServedSet>,
    relative: Vec<u8>,
    (method, headers): (&Method, &HeaderMap),
    redirect_from: Option<u64>,
) -> io::Result<Answer> {
    let (log, own) = (Arc::clone(site.publisher.log()), Arc::clone(set));
    let key = Naming::key(&relative);
    let media_type = abreast_source::media_type_of(&relative);
    let read = move || -> io::Result<_> {
        let found = log.resource(own.published.id, &key).map_err(io::Error::other)?;
        let Some(Resource { state, .. }) = found else { return Ok(None) };
        let Some(kept) = own.published.representations.open_kept(&state)? else {
            return Ok(Some((state, None)));
        };
        let length = kept.length();
        let source = redirect_from.filter(|least| length >= *least).map(|_| kept.clone());
        let signed = source.map(|kept| kept.into_source().signed_url(media_type, REDIRECT_VALID));
        let url = signed.transpose()?.flatten();
        Ok(Some((state, Some((length, Content::of_stored(kept)?, url)))))
    };
    let found = tokio::task::spawn_blocking(read).await.map_err(io::Error::other)??;
    let Some((state, opened)) = found else {
        return Ok(problem(StatusCode::NOT_FOUND, "there is no such resource"));
    };
    let Some((id, (length, content, url))) = state.content.as_ref().zip(opened) else {
        // A newer version replaced it between the two reads.
        return Ok(try_later("the resource is being written", 1));
    };
    let mut more = vec![
        (LINK, set.link()),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        // Published files are not trusted, so their scripts and forms must not run on this origin.
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox")),
    ];
    if set.links.active() {
        let links = set.links.headers_of(&state.links);
        more.extend(
            links.iter().filter_map(|link| Some((LINK, HeaderValue::from_str(link).ok()?))),
        );
    }
    let representation = Representation {
        content,
        length,
        tag: format!("\"{id}\""),
        modified: Some(state.modified.as_seconds()),
        content_type: HeaderValue::from_static(media_type),
        dated: Dated::Live,
        more,
    };
    Ok(match url {
        Some(url) => representation.redirect(&url, headers),
        None => representation.answer(method, headers),
    })
}

/// The stored bytes of a resource, and their number. Blocks.
pub(crate) fn open(set: &ServedSet, state: &State) -> io::Result<Option<(u64, Content)>> {
    let Some(kept) = set.published.representations.open_kept(state)? else { return Ok(None) };
    Ok(Some((kept.length(), Content::of_stored(kept)?)))
}
