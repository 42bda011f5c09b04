//! The full download that an Entry Point links to, with which a copy begins [emm-1.0 §A.2].

use super::document::Read;
use super::entity::{cost, syntax_of};
use super::find::check_host;
use crate::error::Error;
use crate::options::SyncOptions;
use crate::package::download::Downloads;
use crate::plan::listed::Listed;
use crate::read::descriptions::{DescriptionFile, each_description, fetch_sorted, no_temporary};
use crate::read::resourcesync::resource_list::is_resource_list;
use crate::requests::Requests;
use crate::state_folder::StateFolder;
use abreast_emm::Link;
use abreast_webtypes::Timestamp;

/// Media types that a Resource List may have.
const LIST_TYPES: [&str; 2] = ["application/xml", "text/xml"];
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
    /// One, or several of one time and syntax, which are its parts.
    pub(super) files: Vec<DescriptionFile>,
    /// Up to when changes are in it.
    pub(super) updated: Option<Timestamp>,
}

impl Whole {
    /// Its name in messages.
    pub(super) fn name(&self) -> &str {
        self.files.first().map_or("", |file| &file.url)
    }

    /// Hands over each description.
    pub(super) fn each(
        &self,
        requests: &Requests<'_>,
        each: &mut dyn FnMut(&Listed<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let folder = tempfile::tempdir().map_err(no_temporary)?;
        let downloads = Downloads::new(StateFolder::at(folder.path())?);
        let name = self.name();
        let sorted = fetch_sorted(requests, name, &self.files, &downloads)?;
        each_description(name, &sorted, &mut |described| each(&described.listed(name, 0)))?;
        Ok(())
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
    // Changes from then on are read: a clock that is ahead must not hide any.
    let latest = entry.answered.date.plus_micros(1_000_000);
    Some(Whole { files: files.collect(), updated: newest.map(|updated| updated.min(latest)) })
}
