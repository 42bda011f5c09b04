//! Selection of links and entries of a document to follow.

use crate::fetch::archive;
use crate::report::{Options, Share};
use crate::resourcesync::doc::Doc;
use crate::resourcesync::kind;
use crate::walk::node::{FoundBy, Lead, Origin, Stage};
use abreast_resourcesync::v1_1::{Capability, Root};
use abreast_webtypes::resolve;
use std::any::Any;
use std::collections::HashSet;

/// All links to follow from a document at this level.
pub(super) fn leads(
    doc: &Doc,
    url: &str,
    origin: &Origin,
    level: u32,
    options: &Options,
) -> Vec<Lead> {
    let mut all = Vec::new();
    for (rel, found_by) in
        [("up", FoundBy::Up), ("index", FoundBy::Index), ("archives", FoundBy::Archives)]
    {
        if let Some((target, _)) = doc.link(url, rel) {
            let above = u32::from(!doc.is(Capability::CapabilityList));
            let level = if found_by == FoundBy::Up { above } else { 2 };
            let stage = stage(doc, found_by, 0, false);
            all.push(Lead { stage, ..Lead::new(target, found_by, level) });
        }
    }
    if doc.silent {
        // A topic without content has no `up` link, so the link to the Capability List is in the
        // `Link` header.
        let links = doc.facts.links.iter().filter_map(|link| resolve(url, link).ok());
        all.extend(links.map(|target| Lead::new(target, FoundBy::Page, 1)));
    }
    // Documents in a notification may be deleted by now. The walk finds them through the Capability
    // List.
    let capability =
        doc.capability().filter(|capability| *capability != Capability::FrameworkNotification);
    let Some(capability) = capability.filter(|_| level < options.depth) else { return all };
    let archived = origin.archived || kind::is_archive(capability);
    let is_dump = kind::points_to_packages(capability, doc.root());
    let chosen = chosen(doc.children.len(), options.packages);
    for (entry, child) in doc.children.iter().enumerate() {
        let mut add = |target: &str, found_by, index, note| {
            let stage = stage(doc, found_by, entry, archived);
            let origin = Origin { index, archived };
            all.push(Lead { note, origin, stage, ..Lead::new(target, found_by, level + 1) });
        };
        if is_dump {
            if let Some(contents) = &child.contents {
                add(contents, FoundBy::Contents, None, None);
            }
            if chosen.contains(&entry) && archive::may_be_zip(&child.media_type, &child.url) {
                let note: Box<dyn Any + Send + Sync> = Box::new((child.clone(), capability));
                add(&child.url, FoundBy::Package, None, Some(note));
            }
            continue;
        }
        let index = (doc.root() == Root::SitemapIndex).then(|| url.to_owned());
        let is_topic = capability == Capability::CapabilityList
            && child.capability.is_some_and(kind::is_notification);
        add(&child.url, if is_topic { FoundBy::Topic } else { FoundBy::Down }, index, None);
    }
    all
}

/// Stage at which a target is read. Change Lists are read late, so that they contain all changes
/// that the other lists reflect. Documents of archives are read last, because a list that is still
/// in its index is not archived.
fn stage(doc: &Doc, found_by: FoundBy, entry: usize, archived: bool) -> Stage {
    let is_change_list = || {
        doc.is(Capability::ChangeList) && found_by == FoundBy::Down
            || doc.is(Capability::CapabilityList)
                && doc
                    .children
                    .get(entry)
                    .is_some_and(|c| c.capability == Some(Capability::ChangeList))
    };
    match archived {
        true => Stage::Past,
        false if is_change_list() => Stage::Late,
        false => Stage::Now,
    }
}

/// Number of levels between the Source Description and a document.
pub(super) fn level(doc: &Doc, url: &str, from_index: bool, expected: u32) -> u32 {
    match doc.capability() {
        Some(Capability::Description) => u32::from(from_index),
        Some(Capability::CapabilityList) => 1,
        Some(capability) if kind::is_manifest(capability) => expected.max(3),
        Some(_) if from_index || doc.link(url, "index").is_some() => expected.max(3),
        Some(_) => expected.max(2),
        None => expected,
    }
}

/// Selects the packages to check: the first, the last, and others at regular distances.
fn chosen(count: usize, share: Share) -> HashSet<usize> {
    match share {
        Share::Some(0) => HashSet::new(),
        Share::Some(some) if (some as usize) < count => {
            let some = some as usize;
            (0..some)
                .map(|number| if some == 1 { 0 } else { number * (count - 1) / (some - 1) })
                .collect()
        }
        _ => (0..count).collect(),
    }
}
