//! Pages about a Source and its sets, the targets of `describedby` links [rs-core §8, §9]. HTML
//! link discovery starts at these pages [rs-core §6.3.2].

use super::dataset;
use super::documents::{NamedDocument, documents, entry_points, of_projections};
use super::paths::{Form, SetPage, SourcePage};
use super::set_view::{SetView, paragraphs};
use super::shell::{Shell, Time, name_of, page, text_of};
use crate::projection::resourcesync::Channel;
use crate::projection::routes::Route as _;
use crate::projection::sdshare::newest_snapshot;
use crate::publish::publisher::Publisher;
use crate::publish::{About, PublishError, PublishedSet, Rendered};
use abreast_webtypes::{Link, count};
use askama::Template;
use askama::filters::Safe;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "source.html")]
struct SourceTemplate<'p> {
    shell: Shell<'p>,
    /// Each set, with its entry points of other protocols.
    sets: Vec<(SetView<'p>, Vec<NamedDocument>)>,
}

/// Page of the Source with its sets.
pub(super) fn source_page(publisher: &Publisher) -> Result<Rendered, PublishError> {
    let shell = Shell::of(name_of(publisher.institution()), publisher);
    let sets = publisher.sets().iter().map(|set| {
        Ok::<_, PublishError>((SetView::of(publisher, set)?, entry_points(publisher, set)))
    });
    page(&SourceTemplate { shell, sets: sets.collect::<Result<_, _>>()? })
}

#[derive(Template)]
#[template(path = "set.html")]
struct SetTemplate<'p> {
    /// Result and time of the last validation.
    validation: Option<(String, Safe<Time>)>,
    shell: Shell<'p>,
    set: SetView<'p>,
    tab: &'static str,
    paragraphs: Vec<&'p str>,
    links: Vec<Link>,
    /// Address of the description in DCAT, without the ending of a syntax.
    dataset: String,
    json_ld: String,
    resources: String,
    resources_base: String,
    resource_list: String,
    change_list: String,
    topic: Option<String>,
    hubs: &'p [String],
    documents: Vec<NamedDocument>,
    download: Option<Download>,
}

/// The newest snapshot of a set.
struct Download {
    time: Safe<Time>,
    /// URL and media type of each form.
    files: Vec<(String, &'static str)>,
}

/// Renders the page of a set.
pub(super) fn set_page(
    publisher: &Publisher,
    set: &Arc<PublishedSet>,
) -> Result<Rendered, PublishError> {
    let view = SetView::of(publisher, set)?;
    let dataset = SetPage::Dataset(Form::ALL[0]).url(&set.urls);
    let links = of_projections(publisher, set);
    let notifications = set.notifications.as_ref();
    page(&SetTemplate {
        shell: Shell::of(view.title, publisher),
        tab: "about",
        paragraphs: paragraphs(set).collect(),
        dataset: dataset.trim_end_matches(".ttl").to_owned(),
        json_ld: dataset::schema_org(publisher, set, &view),
        resources: set.urls.resources(),
        resources_base: set.urls.resources().trim_end_matches('/').to_owned(),
        // The reference client finds the time of the last run by the URL of the list.
        resource_list: set.urls.resource_list(),
        change_list: set.urls.change_list(),
        topic: notifications
            .filter(|notifications| notifications.changes)
            .map(|_| set.urls.topic(Channel::Change)),
        hubs: notifications.map_or(&[], |notifications| &notifications.hubs),
        documents: documents(publisher, set, &links),
        download: newest_snapshot(set)
            .map(|(time, files)| Download { time: Time::of(time), files }),
        validation: set.about.validation().map(|found| {
            let [errors, warnings, documents] = [
                (found.errors, "error"),
                (found.warnings, "warning"),
                (found.documents, "document"),
            ]
            .map(|(number, noun)| count(number, noun));
            (format!("{errors}, {warnings} in {documents}"), Time::of(found.time))
        }),
        set: view,
        links,
    })
}

/// Style sheet of all pages.
#[derive(Template)]
#[template(path = "style.css")]
struct Style {
    accent: crate::publish::Accent,
}

/// Icon of all pages.
#[derive(Template)]
#[template(path = "icon.svg")]
struct Icon {
    accent: crate::publish::Accent,
}

/// The script of the page of changes.
const LIVE: &str = include_str!("../../../templates/live.js");
const SEARCH: &str = include_str!("../../../templates/search.js");
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The style sheet, the icon or the script of all pages.
pub(super) fn asset(publisher: &Publisher, asset: SourcePage) -> Result<Rendered, PublishError> {
    let accent = publisher.institution().accent;
    let (bytes, content_type) = match asset {
        SourcePage::Icon => (text_of(&Icon { accent })?, "image/svg+xml"),
        SourcePage::Live => (LIVE.into(), SCRIPT),
        SourcePage::Search => (SEARCH.into(), SCRIPT),
        _ => (text_of(&Style { accent })?, "text/css; charset=utf-8"),
    };
    Ok(Rendered { bytes, content_type })
}

impl About {
    pub(crate) fn title<'a>(&'a self, set: &'a PublishedSet) -> &'a str {
        if self.title.is_empty() { &set.slug } else { &self.title }
    }
}
