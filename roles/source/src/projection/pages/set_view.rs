//! A set as all its pages show it.

use super::paths::SetPage;
use super::shell::{Count, Linked, Shell, Time};
use crate::SetState;
use crate::projection::routes::Route as _;
use crate::publish::{PublishError, PublishedSet, Publisher};
use askama::filters::Safe;

/// A set, for templates.
pub(super) struct SetView<'p> {
    pub(super) title: &'p str,
    /// First paragraph of the description.
    pub(super) description: Option<&'p str>,
    /// Number of resources; during the first scan, a word for its progress.
    pub(super) count: String,
    /// The number with its unit.
    pub(super) resources: String,
    pub(super) changed: Option<Safe<Time>>,
    pub(super) licence: Option<Safe<Linked<'p>>>,
    pub(super) contact: Option<Safe<Linked<'p>>>,
    pub(super) page: String,
    pub(super) capability_list: String,
    pub(super) changes: String,
    pub(super) feed: String,
    /// Address of the list of resources, which a static site does not have.
    pub(super) browse: String,
}

impl<'p> SetView<'p> {
    pub(super) fn of(publisher: &Publisher, set: &'p PublishedSet) -> Result<Self, PublishError> {
        let (about, urls) = (&set.about, &set.urls);
        let head = publisher.log().head(set.id)?;
        let (count, resources) = if head.importing {
            let state = match SetState::of(&**publisher.log(), set)? {
                SetState::Reading => "being read".to_owned(),
                state => state.name().to_owned(),
            };
            (state.clone(), state)
        } else {
            let count = Count(head.resources);
            let noun = if head.resources == 1 { "resource" } else { "resources" };
            (count.to_string(), format!("{count} {noun}"))
        };
        Ok(Self {
            title: about.title(set),
            description: paragraphs(set).next(),
            count,
            resources,
            changed: (!head.importing).then_some(Time::of(head.time)),
            licence: about.licence.as_deref().map(Linked::new),
            contact: about.contact.as_deref().map(Linked::new),
            page: urls.page(),
            capability_list: urls.capability_list(),
            changes: SetPage::Changes.url(urls),
            feed: SetPage::Feed.url(urls),
            browse: SetPage::Resources.url(urls),
        })
    }
}

/// Paragraphs of the description of a set.
pub(super) fn paragraphs(set: &PublishedSet) -> impl Iterator<Item = &str> {
    let description = set.about.description.as_deref().unwrap_or_default();
    description.split("\n\n").map(str::trim).filter(|text| !text.is_empty())
}

/// The frame of a page of a set, below the page of the set.
pub(super) fn shell<'p>(publisher: &'p Publisher, set: &PublishedSet, title: &'p str) -> Shell<'p> {
    Shell::of(title, publisher).below(set.about.title(set), set.urls.page())
}
