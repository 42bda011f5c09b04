//! `/timemap/{URI}`: all versions of a resource [rfc7089 §5], a thousand in a page.
//! `/timemap/{time}/{URI}` is the page whose first version has this time, and `/timemap/json/…` is
//! the same in JSON.

use crate::message::respond::{Answer, Content, Dated, Representation, problem};
use crate::routes::memento::VersionedResource;
use crate::routes::timegate::whole;
use crate::site::served::Site;
use abreast_source::publish::tag_of_bytes;
use abreast_source::versions::{LINK_FORMAT, TimeMap, VERSIONS_PER_PAGE, at_stamp};
use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use std::io;
use std::sync::Arc;

pub(crate) async fn answer(
    site: &Arc<Site>,
    rest: &str,
    method: &Method,
    headers: &HeaderMap,
) -> io::Result<Answer> {
    let (json, rest) = rest.strip_prefix("json/").map_or((false, rest), |rest| (true, rest));
    let page = rest.split_once('/').and_then(|(stamp, uri)| Some((at_stamp(stamp)?, uri)));
    let (from, uri) = match page {
        Some(((time, true), uri)) => (Some(time), uri),
        _ => (None, rest),
    };
    for asked in VersionedResource::by_uri(site, &whole(uri)) {
        let read = move |log: &dyn abreast_core::ChangeLog, set, key: &str| {
            TimeMap::read(log, set, key, from, VERSIONS_PER_PAGE)
        };
        match asked.find(site, read).await? {
            Ok(Some(page)) => return Ok(represent(&page, &asked, json).answer(method, headers)),
            Ok(None) => {}
            Err(refusal) => return Ok(refusal),
        }
    }
    Ok(problem(StatusCode::NOT_FOUND, "no version of such a resource is kept here"))
}

fn represent(page: &TimeMap, asked: &VersionedResource, json: bool) -> Representation {
    let (body, content_type) = if json {
        (page.to_json(&asked.urls, &asked.key), "application/json")
    } else {
        (page.to_links(&asked.urls, &asked.key), LINK_FORMAT)
    };
    Representation {
        length: body.len() as u64,
        tag: format!("\"{}\"", tag_of_bytes(content_type, body.as_bytes())),
        modified: None,
        content_type: HeaderValue::from_static(content_type),
        dated: Dated::Coarse,
        content: Content::Memory(body.into()),
        more: vec![(CACHE_CONTROL, HeaderValue::from_static("no-cache"))],
    }
}
