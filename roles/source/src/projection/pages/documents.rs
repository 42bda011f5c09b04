//! The documents of all protocols about a set, for its page and its description.

use super::paths::{Form, SetPage};
use crate::projection::routes::Route as _;
use crate::publish::{PublishedSet, Publisher};
use abreast_webtypes::Link;
use std::sync::Arc;

/// A document in the table of a set's page.
pub(super) struct NamedDocument {
    pub(super) name: String,
    pub(super) url: String,
}

/// Entry points of other protocols.
pub(super) fn entry_points(publisher: &Publisher, set: &Arc<PublishedSet>) -> Vec<NamedDocument> {
    titled(&of_projections(publisher, set)).collect()
}

/// The links with a title.
fn titled(links: &[Link]) -> impl Iterator<Item = NamedDocument> + '_ {
    links.iter().filter_map(|link| {
        Some(NamedDocument { name: link.param("title")?.to_owned(), url: link.target.clone() })
    })
}

/// Documents of all protocols about a set.
pub(super) fn documents(
    publisher: &Publisher,
    set: &Arc<PublishedSet>,
    links: &[Link],
) -> Vec<NamedDocument> {
    let named = |name: &str, url: String| NamedDocument { name: name.to_owned(), url };
    let urls = &set.urls;
    let mut all = vec![
        named("Capability List", urls.capability_list()),
        named("Resource List", urls.resource_list()),
        named("Change List", urls.change_list()),
    ];
    let has_dumps = set.has_dumps();
    all.extend(has_dumps.resources.then(|| named("Resource Dump", urls.resource_dump())));
    all.extend(has_dumps.changes.then(|| named("Change Dump", urls.change_dump())));
    let archives = set.archive_kinds();
    all.extend(archives.into_iter().map(|kind| named(kind.title(), urls.archive(kind))));
    all.extend(titled(links));
    all.push(named("Changes as Atom feed", SetPage::Feed.url(urls)));
    let forms = Form::ALL.into_iter();
    all.extend(forms.map(|form| {
        named(&format!("Description in DCAT ({})", form.0.name()), SetPage::Dataset(form).url(urls))
    }));
    all.push(named("Source Description", publisher.urls().source_description()));
    all
}

/// Links of other protocols for the page of a set.
pub(super) fn of_projections(publisher: &Publisher, set: &Arc<PublishedSet>) -> Vec<Link> {
    publisher.projections().flat_map(|projection| projection.page_links(set)).collect()
}
