//! The full download of an Entry Point, from which a copy starts [emm-1.0 §A.2].

use super::document::Read;
use super::entity;
use super::entity::cost;
use super::find::check_host;
use crate::read::descriptions::DescriptionFile;
use crate::read::resourcesync::resource_list::is_resource_list;
use crate::report::error::Error;
use crate::report::options::SyncOptions;
use crate::request::requests::Requests;
use abreast_emm::Link;
use abreast_rdf::Syntax;
use abreast_webtypes::Timestamp;

/// Media types that a Resource List may have.
const LIST_TYPES: [&str; 2] = ["application/xml", "text/xml"];
/// Media types of files that are packed.
const PACKED_TYPES: [&str; 6] = [
    "application/gzip",
    "application/x-gzip",
    "application/x-bzip2",
    "application/x-xz",
    "application/zstd",
    "application/octet-stream",
];
/// Links of these types that are requested to find a Resource List.
const LISTS_MAX: usize = 3;

/// A full download that can be read.
#[derive(Debug)]
pub(super) enum Download {
    /// Descriptions of entities.
    Descriptions(Whole),
    /// The address of a Resource List [rs-core §10]: the resources of the feed are files.
    List(String),
}

/// Descriptions in RDF.
#[derive(Debug)]
pub(super) struct Whole {
    /// One file, or several files with the same time and syntax that together form the download.
    pub(super) files: Vec<DescriptionFile>,
    /// The time up to which changes are included; `None` if the server's clock has not reached it.
    pub(super) updated: Option<Timestamp>,
    /// The listed time, if the server's clock has not reached it.
    pub(super) future: Option<Timestamp>,
}

impl Whole {
    /// The URL of the first file, for messages.
    pub(super) fn name(&self) -> &str {
        self.files.first().map_or("", |file| &file.url)
    }
}

/// The full download of an Entry Point that can be read: in RDF, or else a Resource List.
pub(super) fn download(
    requests: &Requests<'_>,
    options: &SyncOptions,
    entry: &Read,
) -> Result<Option<Download>, Error> {
    if let Some(whole) = whole(entry) {
        return Ok(Some(Download::Descriptions(whole)));
    }
    let lists = entry.document.downloads.iter().filter(|link| is_list_type(link));
    let admitted = lists.filter(|link| check_host(options, &entry.url, &link.href).is_ok());
    for link in admitted.take(LISTS_MAX) {
        requests.check_cancelled()?;
        if is_resource_list(requests, &link.href)? {
            return Ok(Some(Download::List(link.href.clone())));
        }
    }
    Ok(None)
}

fn is_list_type(link: &Link) -> bool {
    let essence = link.media_type.as_deref().and_then(|value| value.split(';').next());
    essence.is_some_and(|value| LIST_TYPES.iter().any(|it| value.trim().eq_ignore_ascii_case(it)))
}

/// The syntax of a full download, which may be packed: by the end of its address then.
fn syntax_of(link: &Link) -> Option<Syntax> {
    entity::syntax_of(link).or_else(|| {
        let essence = link.media_type.as_deref()?.split(';').next()?.trim();
        PACKED_TYPES.iter().find(|kind| essence.eq_ignore_ascii_case(kind))?;
        let path = link.href.split(['?', '#']).next()?;
        Some(Syntax::of_file_name(path.rsplit('/').next()?)?.syntax)
    })
}

/// The descriptions that are cheapest to read, of the newest of all in RDF.
fn whole(entry: &Read) -> Option<Whole> {
    let links = entry.document.downloads.iter();
    let readable: Vec<_> = links.filter_map(|link| Some((link, syntax_of(link)?))).collect();
    let newest = readable.iter().map(|(link, _)| link.updated).max()?;
    let parts = || readable.iter().filter(|(link, _)| link.updated == newest);
    let cheapest = parts().map(|(_, syntax)| cost(Some(*syntax))).min()?;
    let files = parts().filter(|(_, syntax)| cost(Some(*syntax)) == cheapest);
    let files = files.map(|(link, syntax)| DescriptionFile {
        url: link.href.clone(),
        media_type: link.media_type.clone(),
        syntax: *syntax,
    });
    let latest = entry.answered.latest_now();
    let is_past = |time: &Timestamp| *time <= latest;
    let (updated, future) = (newest.filter(is_past), newest.filter(|time| !is_past(time)));
    Some(Whole { files: files.collect(), updated, future })
}
