//! Lists of URIs: the listed entities are fetched at their IRIs, even if the feed does not contain
//! their changes.

use super::document::Read;
use super::entity::{ACCEPT, by_iri, each_change};
use super::pages::{Way, way};
use crate::read::walk::Walk;
use crate::report::error::Error;
use crate::report::options::SyncOptions;
use crate::report::uri_list::UriList;
use crate::request::admit::Admission;
use crate::request::pieces::{Asked, Nothing, read_unknown};
use crate::request::requests::Requests;
use abreast_emm::Action;

/// Maximum number of tested entities of the feed, of which one must be available at its IRI.
const PROBES_MAX: usize = 3;

fn admission(options: &SyncOptions, url: &str) -> Admission {
    Admission::new(url, &options.allow_hosts, options.allow_downgrade)
}

/// The list of URIs, if its entities are fetched individually: the list is short, all its URIs may
/// be requested, and the feed's entities are available at their IRIs.
pub(super) fn short_list<'o>(
    entry: &Read,
    requests: &Requests<'_>,
    options: &'o SyncOptions,
) -> Result<Option<&'o UriList>, Error> {
    let mut admission = admission(options, &entry.url);
    let mut is_admitted = |uri: &str| admission.check(uri).is_ok();
    let list = options.uris.as_deref();
    let Some(list) =
        list.filter(|list| list.short().is_some_and(|all| all.iter().all(|uri| is_admitted(uri))))
    else {
        return Ok(None);
    };
    let (way, _) = way(requests, options, entry, &mut |_| ())?;
    let mut has_failed = false;
    let items = way.begin().document.items.iter();
    let there = items.filter(|item| item.action.is_put() || item.action == Action::Deprecate);
    let objects = there.flat_map(|item| &item.objects).filter(|object| is_admitted(&object.id));
    for object in objects.take(PROBES_MAX) {
        requests.check_cancelled()?;
        if is_there(requests, &object.id)? {
            return Ok(Some(list));
        }
        has_failed = true;
    }
    Ok((!has_failed).then_some(list))
}

/// Passes on the resources of the list that may be requested. With `anew`, includes resources that
/// the copy already has.
pub(super) fn hand_over_wanted(
    list: &UriList,
    entry: &Read,
    is_of_files: bool,
    walk: &mut Walk<'_, '_>,
    anew: bool,
) -> Result<(), Error> {
    let (requests, options) = (walk.requests, walk.options);
    let is_file = is_of_files || lists_files(&way(requests, options, entry, &mut |_| ())?.0);
    let mut admission = admission(options, &entry.url);
    list.each(&mut |uri| {
        requests.check_cancelled()?;
        match admission.check(uri) {
            Ok(()) => walk.wanted(&by_iri(uri, is_file), anew),
            Err(_) => Ok(()),
        }
    })
}

/// Whether an entity is found at its IRI; not, where its host does not want it to be requested.
fn is_there(requests: &Requests<'_>, iri: &str) -> Result<bool, Error> {
    if let Some(robots) = &requests.robots
        && requests.run(robots.check(&requests.client, iri, false))?.is_err()
    {
        return Ok(false);
    }
    let asked = Asked { accept: Some(ACCEPT), ..Asked::begin(iri, 0, u64::MAX) };
    Ok(read_unknown(requests, &asked, &mut Nothing).is_ok())
}

/// Whether the resources of a feed are files, and no entities.
fn lists_files(way: &Way) -> bool {
    let page = way.begin();
    let (mut files, mut others) = (0, 0);
    for item in &page.document.items {
        let _ = each_change((&page.document, &page.url), item, false, false, &mut |listed| {
            *(if listed.describes { &mut others } else { &mut files }) += 1;
            Ok::<_, Error>(())
        });
    }
    files > 0 && others == 0
}
