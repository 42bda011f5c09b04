//! An activity as a change of a resource.

use crate::plan::listed::Listed;
use abreast_core::Kind;
use abreast_emm::{Action, Document, Item, Link, ReadObject};
use abreast_rdf::Syntax;
use abreast_webtypes::{Digests, Timestamp};
use std::sync::LazyLock;

/// The value of `Accept` for an entity whose feed does not list representations.
pub(super) const ACCEPT: &str = "application/n-triples, text/turtle;q=0.9, application/rdf+xml;q=0.8, \
                      application/ld+json;q=0.7";

/// Types of objects that are files instead of entities, in Activity Streams and IIIF.
const FILES: [&str; 9] =
    ["Document", "Image", "Audio", "Video", "Page", "Manifest", "Collection", "Canvas", "Range"];

/// Namespaces of the IRIs of these types.
const NAMESPACES: [&str; 4] = [
    "as:",
    "https://www.w3.org/ns/activitystreams#",
    "http://iiif.io/api/",
    "https://iiif.io/api/",
];

static NO_DIGESTS: LazyLock<Digests> = LazyLock::new(Digests::default);

/// Whether an activity may contain a patch of its entity.
fn may_have_patch(item: &Item) -> bool {
    let is_version = item.action.is_put()
        || matches!(item.action, Action::Deprecate | Action::Delete | Action::Remove);
    item.objects.len() == 1 && is_version
}

/// Passes on the changes in an activity of the page at `url`. With `has_patch`, the patch in the
/// activity applies to the previous version. With `only_files`, resources are never entities,
/// regardless of their types and links.
pub(super) fn each_change<E>(
    (page, url): (&Document, &str),
    item: &Item,
    has_patch: bool,
    only_files: bool,
    each: &mut dyn FnMut(&Listed<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let change = match item.action {
        Action::Create | Action::Add | Action::Update => Kind::Update,
        Action::Deprecate => Kind::Deprecate,
        Action::Remove => Kind::Remove,
        Action::Delete | Action::Move => Kind::Delete,
        Action::Refresh | Action::Other => return Ok(()),
    };
    let moved_to = if item.action == Action::Move { item.target() } else { &[] };
    if item.action == Action::Move && moved_to.is_empty() {
        return Ok(());
    }
    let patch = item.patch().and_then(|(_, content)| content);
    let patch = patch.filter(|_| has_patch && may_have_patch(item));
    for object in &item.objects {
        let listed = listed((page, url), item, object, change, only_files);
        let patch = patch.filter(|_| listed.describes);
        each(&Listed { replaced_by: moved_to, patch, ..listed })?;
    }
    if item.action == Action::Move {
        for target in item.target() {
            let object = ReadObject { id: target.clone(), ..ReadObject::default() };
            // The target has the types of the moved entity.
            let types = item.objects.first().map(|object| object.types.clone());
            let object = ReadObject { types: types.unwrap_or_default(), ..object };
            each(&listed((page, url), item, &object, Kind::Update, only_files))?;
        }
    }
    Ok(())
}

/// A resource that is known by its IRI alone.
pub(super) fn by_iri(iri: &str, is_file: bool) -> Listed<'_> {
    Listed {
        uri: iri,
        href: None,
        accept: (!is_file).then_some(ACCEPT),
        describes: !is_file,
        body: None,
        document: iri,
        modified: None,
        modified_is_change: true,
        length: None,
        media_type: None,
        digests: &NO_DIGESTS,
        change: None,
        changed: None,
        id: None,
        patch: None,
        replaced_by: &[],
        patches: Vec::new(),
        links: Vec::new(),
        categories: Vec::new(),
    }
}

fn listed<'l>(
    (page, url): (&'l Document, &'l str),
    item: &'l Item,
    object: &'l ReadObject,
    change: Kind,
    only_files: bool,
) -> Listed<'l> {
    let link = object
        .links
        .iter()
        .filter(|link| !only_files && syntax_of(link).is_some())
        .min_by_key(|link| cost(syntax_of(link)));
    let is_file = only_files
        || link.is_none() && (page.is_iiif || object.types.iter().any(|kind| is_file_type(kind)));
    Listed {
        uri: &object.id,
        href: link.map(|link| link.href.as_str()),
        accept: match link {
            Some(link) => link.media_type.as_deref(),
            None => (!is_file).then_some(ACCEPT),
        },
        describes: !is_file,
        body: None,
        document: url,
        // An entity that is deprecated has another description as well.
        modified: item.time.map(Timestamp::as_micros),
        modified_is_change: true,
        length: None,
        media_type: link.and_then(|link| link.media_type.as_deref()),
        digests: &NO_DIGESTS,
        change: Some(change),
        changed: item.moment,
        id: item.id.as_deref(),
        patch: None,
        replaced_by: &[],
        patches: Vec::new(),
        links: Vec::new(),
        categories: Vec::new(),
    }
}

/// The syntax of the target of a link; a profile of JSON-LD is the same syntax.
pub(super) fn syntax_of(link: &Link) -> Option<Syntax> {
    let essence = link.media_type.as_deref()?.split(';').next()?.trim();
    Syntax::of_media_type(essence)
}

/// The relative cost of parsing a syntax.
pub(super) fn cost(syntax: Option<Syntax>) -> u8 {
    match syntax {
        Some(Syntax::NTriples) => 0,
        Some(Syntax::Turtle) => 1,
        Some(Syntax::NQuads | Syntax::TriG) => 2,
        Some(Syntax::RdfXml) => 3,
        Some(Syntax::JsonLd) => 4,
        _ => 5,
    }
}

/// Whether a type is in [`FILES`], as a term or in a known namespace.
fn is_file_type(kind: &str) -> bool {
    let local = NAMESPACES.iter().find_map(|namespace| kind.strip_prefix(namespace));
    let local = local.map_or(kind, |rest| rest.rsplit(['#', '/']).next().unwrap_or(rest));
    FILES.contains(&local)
}
