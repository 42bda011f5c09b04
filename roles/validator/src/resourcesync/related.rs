//! Rules for the links of an entry to related resources [rs-core §14].

use crate::fetch::values;
use crate::report::{Findings, rules as r};
use crate::resourcesync::entry::Entry;
use crate::resourcesync::kind;
use crate::resourcesync::markup::has;
use abreast_resourcesync::v1_1::{Capability, Change, Ln, Root};
use abreast_webtypes::excerpt;
use std::collections::HashSet;

const PATCH: &str = "http://www.openarchives.org/rs/terms/patch";

pub(crate) fn links(
    capability: Capability,
    root: Root,
    entry: &Entry,
    paths: &mut HashSet<u64>,
    found: &mut Findings,
) {
    let (mut mementos, mut vias) = (0, 0);
    for link in &entry.links {
        if link.has_rel("duplicate") {
            duplicate(entry, link, found);
        }
        if link.has_rel("alternate") && link.media_type.is_none() {
            let message =
                || format!("a link to the alternate {} has no `type`", excerpt(&link.href));
            found.add(&r::ALTERNATE_TYPE, entry.place, message);
        }
        let elsewhere =
            ["duplicate", "alternate", "canonical"].into_iter().any(|rel| link.has_rel(rel));
        if elsewhere && link.href == entry.loc {
            let message = || format!("a link `{}` to the resource itself", excerpt(&link.rel));
            found.add(&r::DUPLICATE_SELF, entry.place, message);
        }
        if link.has_rel(PATCH) {
            patch(capability, root, entry, link, paths, found);
        } else if link.path.is_some() {
            found.add(
                &r::PATH_ONLY,
                entry.place,
                || "`path` on a link that is not a patch in a package",
            );
        }
        if link.has_rel("timegate")
            && (has_attributes(link) || link.modified.is_some() || link.pri.is_some())
        {
            found.add(&r::TIMEGATE, entry.place, || "a link to a TimeGate with other attributes");
        }
        if link.has_rel("memento") {
            mementos += 1;
            if link.modified.is_none() {
                found.add(
                    &r::MEMENTO_MODIFIED,
                    entry.place,
                    || "a link to a memento without `modified`",
                );
            }
        }
        vias += u32::from(link.has_rel("via"));
    }
    if mementos > 1 {
        found.add(&r::MEMENTO_ONCE, entry.place, || format!("{mementos} links to mementos"));
    }
    if vias > 1 {
        found.add(&r::VIA_ONCE, entry.place, || format!("{vias} links `via`"));
    }
}

fn has_attributes(link: &Ln) -> bool {
    link.media_type.is_some()
        || link.length.is_some()
        || link.encoding.is_some()
        || link.path.is_some()
        || !link.digests.is_empty()
}

fn duplicate(entry: &Entry, link: &Ln, found: &mut Findings) {
    let md = &entry.md;
    let agree = [
        link.digests.agree(&md.digests),
        link.length.zip(md.length).map(|(one, other)| one == other),
        link.media_type
            .as_deref()
            .filter(|_| !md.media_type.is_empty())
            .map(|media_type| values::essence(media_type) == values::essence(&md.media_type)),
    ];
    if agree.contains(&Some(false)) {
        let message = || format!("the mirror {} is listed with other values", excerpt(&link.href));
        found.add(&r::DUPLICATE_DIFFERS, entry.place, message);
    } else if agree.contains(&Some(true)) {
        let message = || format!("the link to {} repeats values of `rs:md`", excerpt(&link.href));
        found.add(&r::DUPLICATE_REPEATS, entry.place, message);
    }
}

fn patch(
    capability: Capability,
    root: Root,
    entry: &Entry,
    link: &Ln,
    paths: &mut HashSet<u64>,
    found: &mut Findings,
) {
    if link.media_type.is_none() {
        let message = || format!("the link to the patch {} has no `type`", excerpt(&link.href));
        found.add(&r::PATCH_TYPE, entry.place, message);
    }
    let change = entry.md.change.filter(|_| entry.md.has(has::CHANGE));
    if !kind::lists_changes(capability, root)
        || matches!(change, Some(Change::Created | Change::Deleted))
    {
        found.add(&r::PATCH_WHERE, entry.place, || format!("a patch for {}", excerpt(&entry.loc)));
    }
    if capability == Capability::ChangeDumpManifest {
        if let Some(path) = &link.path {
            crate::fetch::paths::path(path, entry.place, paths, found);
        } else {
            let message = || format!("the link to the patch {} has no `path`", excerpt(&link.href));
            found.add(&r::PATCH_PATH, entry.place, message);
        }
    } else if link.path.is_some() {
        found.add(&r::PATH_ONLY, entry.place, || "`path` on a patch that is in no package");
    }
}
