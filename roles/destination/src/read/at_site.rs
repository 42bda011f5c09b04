//! The choice of a reader for an address that is not a document: a page or a site may link to a
//! document of either version of ResourceSync. The later version is preferred.

use super::resourcesync::discover::{Discovered, discover};
use super::resourcesync::reader::ResourceSync;
use super::resourcesync_0_1::reader::ResourceSync01;
use super::resourcesync_0_1::{PROTOCOL as OLD, recognise, site};
use crate::read::protocol::{AnswerHead, AtSite, HEAD_BYTES};
use crate::report::error::Error;
use crate::report::options::SyncOptions;
use crate::request::requests::Requests;
use abreast_webtypes::xml::utf8_begin;

/// The reader for the documents to which the address links.
pub(super) fn reader_at_site(
    requests: &Requests<'_>,
    options: &SyncOptions,
) -> Result<AtSite, Error> {
    let (found, mut tried) = (discover(requests, options), Vec::new());
    let old = match &found {
        Ok(found) => old_sitemap(requests, options, found)?,
        // A broken document is reported, even if the site has another one.
        Err(error) if matches!(error.code(), "discover.page" | "discover.nothing") => {
            site::find(requests, options, &mut tried)?
        }
        Err(_) => None,
    };
    if let Some(old) = old {
        return Ok((Some(OLD.name), Box::new(ResourceSync01::found_at(old))));
    }
    let found = found.map_err(|error| error.with_tried(&tried));
    Ok((None, Box::new(ResourceSync::found(found))))
}

/// A Sitemap that was found and is of 0.1.
fn old_sitemap(
    requests: &Requests<'_>,
    options: &SyncOptions,
    found: &Discovered,
) -> Result<Option<site::Found>, Error> {
    let (entry_points, route) = (&found.entry_points, found.route.as_ref());
    let Some(list) = entry_points.resource_list.as_ref() else { return Ok(None) };
    if entry_points.capability_list.is_some() {
        return Ok(None);
    }
    let (is_old, begin) = requests.open(list, HEAD_BYTES, |answer| {
        let bytes = utf8_begin(answer.map_or(&[][..], |begun| &begun.begin)).into_owned();
        (recognise::recognises(&AnswerHead { bytes: &bytes }), bytes)
    })?;
    let is_old = is_old || recognise::leads_to_0_1(requests, options, list, &begin)?;
    let route = || route.cloned().unwrap_or_else(|| format!("found {list}"));
    Ok(is_old.then(|| {
        // Until now, the list was treated as a plain Sitemap.
        requests.diagnostics.forget(list);
        let mut found = site::Found::default();
        found.add(list.clone(), route());
        found
    }))
}
