//! ResourceSync 0.1 (alpha draft of August 2012), as another view of the same log [rs-0.1 §2.2.2].
//!
//! | file | subject |
//! |---|---|
//! | `options.rs` | settings of a set |
//! | `paths.rs` | paths and addresses |
//! | `sitemap.rs` | Sitemaps and their index |
//! | `change_set.rs` | change sets: current, closed, pushed |
//! | `dump/` | dumps |
//! | `entries.rs`, `links.rs` | resources and changes as entries, their links and categories |
//!
//! Every document has a separate address: documents are not selected by negotiation. Closed change
//! sets never change a byte.

mod change_set;
mod dump;
mod entries;
mod links;
mod options;
mod paths;
mod sitemap;
mod values;

pub(crate) use dump::PartCounter;
pub use options::{Options, PushLink};

use super::site_link;
use crate::projection::resourcesync_0_1::values::{Limits, XML};
use crate::projection::routes::Route as _;
use crate::publish::files::{FileError, PublishedFile};
use crate::publish::publisher::{Projection, Publisher};
use crate::publish::{
    HeadReader, LogState, Output, PublishError, PublishedSet, Rendered, ResolvedDocument, SetUrls,
    SiteDocument, SiteStage, Topic, TopicContent, Version,
};
use abreast_core::Position;
use abreast_resourcesync::v0_1::{CALLBACK_PROTOCOL, CHANGE_SET, Link, SITEMAP};
use abreast_webtypes::{self as webtypes};
use change_set::ChangeSets;
use dump::{DumpPath, SetDump};
use paths::SetDocument;
use sitemap::{Outlines, Sitemaps};
use std::sync::Arc;

/// The projection of ResourceSync 0.1.
#[derive(Debug, Default)]
pub struct ResourceSync01 {
    limits: Limits,
    dumps: dump::KnownParts,
    outlines: Outlines,
}

impl ResourceSync01 {
    /// Limits the number of bytes and of entries in each document. Both limits must be at most the
    /// limits of the specification [rs-0.1 §3.2].
    #[must_use]
    pub fn with_limits(self, bytes: usize, entries: u64) -> Self {
        let most = Limits::default();
        let limits =
            Limits { bytes: bytes.clamp(1, most.bytes), entries: entries.clamp(1, most.entries) };
        Self { limits, ..self }
    }

    fn change_sets<'a>(
        &'a self,
        publisher: &'a Publisher,
        set: &'a PublishedSet,
    ) -> ChangeSets<'a> {
        let positions = self.limits.entries.min(change_set::MAX_POSITIONS);
        ChangeSets { log: &**publisher.log(), set, positions }
    }

    fn dump<'a>(&'a self, set: &'a Arc<PublishedSet>) -> SetDump<'a> {
        SetDump { set, known: &self.dumps, limits: self.limits }
    }

    fn sitemaps<'a>(&'a self, publisher: &'a Publisher, set: &'a PublishedSet) -> Sitemaps<'a> {
        Sitemaps { log: &**publisher.log(), set, outlines: &self.outlines, limits: self.limits }
    }
}

fn sitemap_url(urls: &SetUrls) -> String {
    SetDocument::Sitemap.url(urls)
}

/// URL of a set's current change set.
pub fn change_set_url(urls: &SetUrls) -> String {
    SetDocument::CurrentChangeSet.url(urls)
}

/// URL at which callbacks subscribe to a set's change sets [rs-0.1 §5.2.2].
pub fn subscribe_url(urls: &SetUrls) -> String {
    paths::subscribe(urls)
}

/// Links from a resource or a page of a set to its Sitemap, its current change set and its dump, if
/// the set has a dump [rs-0.1 §7.2.2, §7.2.3].
pub fn set_links(set: &PublishedSet, has_one_dump: bool) -> Vec<webtypes::Link> {
    let mut links = vec![
        site_link(SITEMAP, sitemap_url(&set.urls), XML),
        site_link(&format!("current {CHANGE_SET}"), change_set_url(&set.urls), XML),
    ];
    if has_one_dump {
        links.extend(dump::set_links(set));
    }
    links
}

/// Whether the dump of the set is a single file, or would be when the first request makes the dump.
/// Only the Sitemap links to a dump of several files.
pub fn has_one_dump(set: &PublishedSet) -> bool {
    dump::has_one(set)
}

impl Projection for ResourceSync01 {
    fn resolve<'p>(
        &'p self,
        publisher: &'p Publisher,
        path: &str,
    ) -> Option<Box<dyn ResolvedDocument + 'p>> {
        let (set, document) = SetDocument::parse_in_set(path, |slug| publisher.find_set(slug))?;
        Some(Box::new(Resolved { projection: self, publisher, set, document }))
    }

    fn is_file(&self, publisher: &Publisher, path: &str) -> bool {
        DumpPath::parse(path, |slug| publisher.find_set(slug)).is_some()
    }

    fn file(
        &self,
        publisher: &Publisher,
        path: &str,
        _query: Option<&str>,
    ) -> Result<PublishedFile, FileError> {
        let found = DumpPath::parse(path, |slug| publisher.find_set(slug));
        let found = found.ok_or_else(|| FileError::NotFound("there is no such file".to_owned()))?;
        self.dump(found.set).open(&found)
    }

    fn site(&self, publisher: &Publisher) -> Result<Vec<SiteDocument>, PublishError> {
        let mut documents = Vec::new();
        let urls = publisher.urls();
        for set in publisher.sets() {
            let mut add = |document: SetDocument, stage, closed| {
                let path = urls.path_of(&document.url(&set.urls));
                documents.push(SiteDocument { path, stage, closed });
            };
            for number in self.change_sets(publisher, set).all_closed()? {
                add(SetDocument::ClosedChangeSet(number), SiteStage::List, true);
            }
            for sitemap in self.sitemaps(publisher, set).all()? {
                add(sitemap, SiteStage::List, false);
            }
            // Changes are written before resources, so that a reader of the old Sitemap finds the
            // later changes.
            add(SetDocument::CurrentChangeSet, SiteStage::EntryPoint, false);
            add(SetDocument::Sitemap, SiteStage::EntryPoint, false);
        }
        Ok(documents)
    }

    fn site_links(&self, publisher: &Publisher) -> Vec<webtypes::Link> {
        let sets = publisher.sets().iter();
        sets.map(|set| site_link(SITEMAP, sitemap_url(&set.urls), XML)).collect()
    }

    fn page_links(&self, set: &Arc<PublishedSet>) -> Vec<webtypes::Link> {
        set_links(set, has_one_dump(set))
    }

    fn robots_sitemaps(&self, publisher: &Publisher) -> Vec<String> {
        let named = publisher.sets().iter().filter(|set| set.resourcesync_0_1().robots);
        named.map(|set| sitemap_url(&set.urls)).collect()
    }

    fn numbered_folders(&self) -> &'static [&'static str] {
        &["v0.1/changesets", "v0.1/sitemaps"]
    }

    fn topics(&self, publisher: &Publisher) -> Vec<Topic> {
        publisher.sets().iter().filter_map(topic).collect()
    }

    fn topic(&self, publisher: &Publisher, path: &str) -> Option<Topic> {
        let (slug, rest) = path.split_once('/')?;
        topic(publisher.find_set(slug).filter(|_| rest == paths::TOPIC)?)
    }

    fn callback_topic(&self, publisher: &Publisher, path: &str) -> Option<Topic> {
        let (slug, rest) = path.split_once('/')?;
        let set = publisher.find_set(slug).filter(|_| rest == paths::SUBSCRIBE)?;
        let mut offered = set.resourcesync_0_1().push.iter();
        topic(set).filter(|_| offered.any(|link| link.protocol == CALLBACK_PROTOCOL))
    }

    fn topic_urls(&self, set: &Arc<PublishedSet>) -> Vec<String> {
        vec![paths::topic(&set.urls)]
    }

    fn notification(
        &self,
        publisher: &Publisher,
        topic: &Topic,
        after: Position,
        last: Position,
    ) -> Result<Vec<u8>, PublishError> {
        change_set::notification(&**publisher.log(), &topic.set, after, last)
    }

    fn gap(&self, publisher: &Publisher, topic: &Topic) -> Result<Option<Vec<u8>>, PublishError> {
        let log = &**publisher.log();
        let head = log.head(topic.set.id)?.position;
        change_set::notification(log, &topic.set, head, head).map(Some)
    }
}

/// The topic of pushed change sets, if notifications of changes are enabled [rs-0.1 §5.2].
fn topic(set: &Arc<PublishedSet>) -> Option<Topic> {
    set.notifications.as_ref().filter(|notifications| notifications.changes)?;
    Some(Topic {
        url: paths::topic(&set.urls),
        set: Arc::clone(set),
        record: format!("{}/v0.1", set.slug),
        content: TopicContent::Changes,
        media_type: XML,
        links: format!("<{}>; rel=\"current {CHANGE_SET}\"", change_set_url(&set.urls)),
    })
}

/// A document of a publisher.
struct Resolved<'p> {
    projection: &'p ResourceSync01,
    publisher: &'p Publisher,
    set: &'p Arc<PublishedSet>,
    document: SetDocument,
}

impl ResolvedDocument for Resolved<'_> {
    fn follows(&self) -> Option<&PublishedSet> {
        matches!(self.document, SetDocument::Shard(..) | SetDocument::ClosedChangeSet(_))
            .then_some(self.set)
    }

    fn introduces(&self) -> Vec<Arc<PublishedSet>> {
        vec![Arc::clone(self.set)]
    }

    fn is_newest(&self) -> bool {
        matches!(self.document, SetDocument::CurrentChangeSet)
    }

    fn topic(&self) -> Option<String> {
        match self.document {
            SetDocument::CurrentChangeSet => topic(self.set).map(|topic| topic.url),
            _ => None,
        }
    }

    fn version(&self, heads: HeadReader<'_>) -> Result<Version, PublishError> {
        let state = LogState::of(heads, self.set).ok_or(PublishError::Importing)?;
        let created = state.created.as_micros() as u64;
        let changing = |of| Version::changing([created, of]);
        Ok(match self.document {
            SetDocument::Sitemap => {
                changing(state.position.0 ^ SetDump::version(self.set).rotate_left(24))
            }
            SetDocument::Shard((id, _)) => {
                let shard = self.publisher.log().shard(self.set.id, id)?;
                changing(shard.ok_or(PublishError::NotFound)?.version.0)
            }
            SetDocument::ClosedChangeSet(number) => {
                let sets = self.projection.change_sets(self.publisher, self.set);
                if !sets.has(number, state.position)? {
                    return Err(PublishError::NotFound);
                }
                Version::closed([created, 0])
            }
            SetDocument::CurrentChangeSet => changing(state.position.0),
        })
    }

    fn render(&self, output: &mut dyn Output) -> Result<Rendered, PublishError> {
        let (projection, publisher, set) = (self.projection, self.publisher, self.set);
        match self.document {
            SetDocument::Sitemap => {
                projection.sitemaps(publisher, set).entry_point(self.links(), output)
            }
            SetDocument::Shard((id, part)) => {
                projection.sitemaps(publisher, set).shard(id, part, output)
            }
            SetDocument::CurrentChangeSet => projection.change_sets(publisher, set).current(output),
            SetDocument::ClosedChangeSet(number) => {
                projection.change_sets(publisher, set).closed(number, output)
            }
        }
    }
}

impl Resolved<'_> {
    /// Links of the Sitemap, without the link to the change set: to dumps, to services that push
    /// changes, and the links of the set as a whole.
    fn links(&self) -> Vec<Link> {
        let mut links = self.projection.dump(self.set).links();
        links.extend(self.set.resourcesync_0_1().push.iter().map(|push| Link {
            href: push.href.clone(),
            protocol: Some(push.protocol.to_owned()),
            pubsub_node: push.node.clone(),
            ..Link::default()
        }));
        links.extend(links::of_set(self.set));
        links
    }
}
