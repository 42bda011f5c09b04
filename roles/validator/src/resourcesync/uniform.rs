//! Consistency between the capabilities of a set, by samples [rs-core §9].

use crate::fetch::{is_url, values};
use crate::report::{Findings, Options, Rule, rules as r};
use crate::resourcesync::doc::Doc;
use crate::resourcesync::package::Package;
use crate::resourcesync::sets::SetData;
use crate::walk::node::Walked;
use abreast_resourcesync::v1_1::{Capability, Change, Root};
use abreast_webtypes::{W3cDatetime, excerpt};
use std::collections::HashMap;

/// Documents of a set that were read, and whether they are complete.
#[derive(Default)]
struct Reading {
    /// `at` of the Resource List or of its index.
    at: Option<W3cDatetime>,
    lists: usize,
    lists_missing: bool,
    dumps: usize,
    dumps_missing: bool,
    dump_at: Option<W3cDatetime>,
    changes: usize,
    changes_missing: bool,
    /// Steps of the walk when the last Resource List and the first open Change List were read.
    last_list: u64,
    first_open: u64,
}

/// Compares the capabilities of each set. Findings belong to the documents with the entries.
pub(super) fn compare(walked: &mut Walked, sets: &HashMap<String, SetData>, options: &Options) {
    let mut found: HashMap<String, Findings> = HashMap::new();
    for (set, data) in sets {
        let reading = reading(walked, set);
        let mut add = |url: &str, rule: &'static Rule, place: (u64, u64), message: String| {
            let of = found.entry(url.to_owned());
            let of = of.or_insert_with(|| Findings::new(url, options.mode, options.most_each));
            of.add(rule, place, || message);
        };
        if reading.lists == 0 || reading.lists_missing {
            continue;
        }
        if reading.changes > 0 && !reading.changes_missing && reading.first_open > reading.last_list
        {
            changes(data, &reading, &mut add);
        }
        if reading.dumps > 0 {
            dumps(data, &reading, &mut add);
        }
    }
    walked.add(found);
}

/// Finds the documents of a set that were read.
fn reading(walked: &Walked, set: &str) -> Reading {
    let mut reading = Reading { first_open: u64::MAX, ..Reading::default() };
    let Some(list) = walked.record::<Doc>(set) else {
        reading.lists_missing = true;
        return reading;
    };
    for child in &list.children {
        let mut urls = vec![child.url.clone()];
        let top = document(walked, &child.url);
        if let Some((doc, _)) = top.filter(|(doc, _)| doc.root() == Root::SitemapIndex) {
            urls.extend(doc.children.iter().map(|child| child.url.clone()));
        }
        let md = top.and_then(|(doc, _)| doc.head.md.as_ref());
        match child.capability {
            Some(Capability::ResourceList) => reading.at = md.and_then(|md| md.at),
            Some(Capability::ResourceDump) => reading.dump_at = md.and_then(|md| md.at),
            _ => {}
        }
        for url in urls {
            let read = document(walked, &url);
            let whole = read.is_some_and(|(doc, _)| doc.complete);
            match child.capability {
                Some(Capability::ResourceList) => {
                    reading.lists += 1;
                    reading.lists_missing |= !whole;
                    reading.last_list = reading.last_list.max(read.map_or(0, |(_, steps)| steps.1));
                }
                Some(Capability::ChangeList) => {
                    reading.changes += 1;
                    reading.changes_missing |= !whole;
                    if let Some((doc, steps)) = read
                        && doc.head.md.as_ref().is_some_and(|md| md.until.is_none())
                    {
                        reading.first_open = reading.first_open.min(steps.0);
                    }
                }
                Some(Capability::ResourceDump) => {
                    let Some((doc, _)) = read.filter(|(doc, _)| doc.root() == Root::UrlSet) else {
                        continue;
                    };
                    for package in &doc.children {
                        let package = walked.record::<Package>(&package.url);
                        let whole = package.is_some_and(|package| package.complete);
                        reading.dumps += usize::from(whole);
                        reading.dumps_missing |= !whole;
                    }
                }
                _ => {}
            }
        }
    }
    reading
}

fn document<'w>(walked: &'w Walked, url: &str) -> Option<(&'w Doc, (u64, u64))> {
    let node = &walked.nodes[*walked.by_url.get(url)?];
    let doc = node.outcome.record().filter(|_| is_url(&node.url))?;
    Some((doc, node.steps))
}

type AddFinding<'a> = &'a mut dyn FnMut(&str, &'static Rule, (u64, u64), String);

/// Checks that the Resource List shows the last change of each resource until `at`.
fn changes(data: &SetData, reading: &Reading, add: AddFinding<'_>) {
    let threshold = data.listed.threshold().min(data.changed.threshold());
    for (hash, changes) in data.changed.iter().filter(|(hash, _)| *hash <= threshold) {
        let Some(last) = changes.latest.last() else { continue };
        let uri = excerpt(&changes.uri);
        let is_deleted = last.change == Change::Deleted;
        let Some(listed) = data.listed.get(hash) else {
            let is_included = reading.at.is_some_and(|at| last.time.instant <= at.instant);
            if is_included && !is_deleted {
                let message =
                    format!("{uri} is in no Resource List, though it was not deleted since");
                add(&last.document, &r::UNIFORM_CHANGES, last.place, message);
            }
            continue;
        };
        let is_included = listed.at.is_some_and(|at| last.time.instant <= at.instant);
        let fault = if is_deleted {
            Some("was deleted")
        } else if listed.digests.agree(&last.digests) == Some(false) {
            Some("had another digest after its last change")
        } else if listed.length.zip(last.length).is_some_and(|(one, other)| one != other) {
            Some("had another length after its last change")
        } else {
            None
        };
        if let (true, Some(fault)) = (is_included, fault) {
            let message = format!("{uri} {fault} at {}, before the list's `at`", last.time.instant);
            add(&listed.document, &r::UNIFORM_CHANGES, listed.place, message);
        }
    }
}

/// Checks that the dump contains the listed resources, and the reverse.
fn dumps(data: &SetData, reading: &Reading, add: AddFinding<'_>) {
    let threshold = data.listed.threshold().min(data.dumped.threshold());
    let same_time =
        reading.at.zip(reading.dump_at).is_some_and(|(one, other)| !values::differ(one, other));
    // A resource that has changed, or may have changed, between snapshots of two times may differ.
    let explained = |hash, lastmod: Option<W3cDatetime>| {
        let before_both = lastmod.is_some_and(|lastmod| {
            [reading.at, reading.dump_at]
                .into_iter()
                .flatten()
                .all(|at| values::is_before(lastmod, at))
        });
        !same_time && (data.changed.get(hash).is_some() || !before_both)
    };
    if !reading.dumps_missing {
        for (hash, listed) in data.listed.iter().filter(|(hash, _)| *hash <= threshold) {
            if data.dumped.get(hash).is_none() && !explained(hash, listed.lastmod) {
                let message =
                    format!("{} is in no package of the Resource Dump", excerpt(&listed.uri));
                add(&listed.document, &r::UNIFORM_DUMP, listed.place, message);
            }
        }
    }
    for (hash, dumped) in data.dumped.iter().filter(|(hash, _)| *hash <= threshold) {
        let message = match data.listed.get(hash) {
            None if !explained(hash, dumped.lastmod) => "is in no Resource List",
            Some(listed) if same_time && listed.digests.agree(&dumped.digests) == Some(false) => {
                "has another digest in the Resource List"
            }
            _ => continue,
        };
        add(
            &dumped.document,
            &r::UNIFORM_DUMP,
            dumped.place,
            format!("{} {message}", excerpt(&dumped.uri)),
        );
    }
}
