//! The paths of change feeds, and the addresses made of them.
//!
//! | path below that of an Entry Point | |
//! |---|---|
//! | | all changes, the oldest first |
//! | `/newest` | all changes, the newest first |
//! | `/latest` | the latest change of each resource |
//! | `/patches` | all changes, each with its Entity Patch |
//! | `/labels` | changes of labels |
//! | `/type/{name}` | changes of entities of a type, by the last part of its IRI |
//! | `…/page/{number}` | a page of a feed above |
//! | `…/skip-to?datetime=` | the page with the first change at or after a time |
//! | `/activity/{position}` | one change |
//! | `/type/{name}/activity/{position}` | a change that is a different activity in the feed of a
//! type |
//! | `/activity/{position}/instrument/1` | the Entity Patch of a change; the plain patch with
//! `.rdfp` |
//!
//! In a static site, only the feed of all changes is published. Its Entry Point is the file
//! `/collection.json`, its pages are the files `/page/{number}.json`, and a change is a part of its
//! page, `/page/{number}.json#{position}`.
//!
//! The log of patches is at `/{set}/patch/{position or UUID}`, `/{set}/current` and `/{set}/init`,
//! where followers of RDF Delta expect it.

use super::log_patch::LogPatch;
use crate::projection::routes::{Route as _, routes};
use crate::publish::PublishedSet;
use abreast_core::{Head, Position};
use abreast_emm::Profile;
use abreast_rdf::Syntax;
use std::fmt::Write as _;
use std::sync::Arc;

/// Suffix of the path of an Entity Patch for the plain patch.
pub(super) const RDF_PATCH: &str = ".rdfp";

/// Positions of the log that a page has, whether they are listed on it or not.
pub const POSITIONS_PER_PAGE: u64 = 1_000;

routes! {
    /// Selection and order of the changes in a feed, by the path below that of an Entry Point.
    enum View {
        History = "",
        Newest = "/newest",
        Latest = "/latest",
        Patches = "/patches",
        Labels = "/labels",
        /// Type of entities, by the last part of the type's IRI.
        Type(name: String) = "/type/{}",
    }
}

routes! {
    /// A document of a feed, by its path below the path of the view.
    enum Part {
        EntryPoint = "",
        /// The Entry Point in a static site.
        EntryFile = "/collection.json",
        Page(number: u64) = "/page/{}",
        /// A page in a static site.
        PageFile(number: u64) = "/page/{}.json",
        /// The page with the first change at or after a time.
        SkipTo = "/skip-to",
        Activity(position: Position) = "/activity/{}",
        /// The Entity Patch of a change.
        Patch(position: Position) = "/activity/{}/instrument/1",
        /// The plain patch of a change, with the suffix [`RDF_PATCH`].
        PlainPatch(position: Position) = "/activity/{}/instrument/1.rdfp",
    }
}

impl View {
    /// Whether a set has this view in a profile.
    fn is_offered(&self, set: &PublishedSet, profile: Profile) -> bool {
        match self {
            Self::History | Self::Latest => true,
            // IIIF only has the order from the oldest change, and each page has at least one item
            // [iiif-discovery §3.1, §3.2].
            _ if profile == Profile::Iiif1 => false,
            Self::Newest => true,
            Self::Type(_) => set.urls.naming().names_entities(),
            // These views use earlier descriptions.
            Self::Patches | Self::Labels => {
                set.urls.naming().names_entities() && set.versions.is_some()
            }
        }
    }

    /// Description of the view for people.
    pub(super) fn summary(&self) -> String {
        match self {
            Self::History => "all changes".to_owned(),
            Self::Newest => "all changes, the newest first".to_owned(),
            Self::Latest => "the latest change of each entity".to_owned(),
            Self::Patches => "all changes, with what each added and deleted".to_owned(),
            Self::Labels => "changes of labels".to_owned(),
            Self::Type(name) => format!("changes of entities of the type {name}"),
        }
    }
}

/// A feed of a set: a view in a profile.
#[derive(Clone, Debug)]
pub(super) struct Feed<'p> {
    pub(super) set: &'p Arc<PublishedSet>,
    pub(super) profile: Profile,
    pub(super) view: View,
    /// Number of positions of the log on each page.
    pub(super) per_page: u64,
}

impl Feed<'_> {
    /// Feed of all changes, whose URLs are the ids of activities.
    pub(super) fn history(&self) -> Self {
        Self { view: View::History, ..self.clone() }
    }

    /// Whether the documents of the feed are files of a static site.
    pub(super) fn is_file(&self) -> bool {
        self.set.urls.are_in_files()
    }

    /// URL of the Entry Point.
    pub(super) fn url(&self) -> String {
        self.url_of(&if self.is_file() { Part::EntryFile } else { Part::EntryPoint })
    }

    /// URL of a page of the feed.
    pub(super) fn page(&self, number: u64) -> String {
        let part = if self.is_file() { Part::PageFile } else { Part::Page };
        self.url_of(&part(number))
    }

    /// Appends the URL of a change's activity in this feed.
    pub(super) fn write_activity(&self, position: Position, url: &mut String) {
        if self.is_file() {
            self.write(&Part::PageFile(self.page_of(position)), url);
            let _ = write!(url, "#{position}");
        } else {
            self.write(&Part::Activity(position), url);
        }
    }

    /// URL of a document of the feed.
    pub(super) fn url_of(&self, part: &Part) -> String {
        let mut url = String::new();
        self.write(part, &mut url);
        url
    }

    fn write(&self, part: &Part, url: &mut String) {
        url.push_str(self.set.urls.base());
        url.push_str(root(self.profile));
        self.view.write_path(url);
        part.write_path(url);
    }

    /// Default media type of the feed's documents. Web servers derive the media type of a file from
    /// its name.
    pub(super) fn media_type(&self) -> &'static str {
        if self.is_file() { JSON } else { self.profile.media_types()[0] }
    }

    /// Syntaxes for the description of an entity, each with the suffix of its URL.
    pub(super) fn syntaxes(&self) -> &'static [(&'static str, Syntax)] {
        if self.is_file() { &FILE_SYNTAXES } else { &SYNTAXES }
    }

    /// Whether a page never changes again: a change after the page is recorded, so that the next
    /// page is known too.
    pub(super) fn is_closed(&self, page: u64, last: Position) -> bool {
        page.saturating_mul(self.per_page) < last.0
    }

    /// Number of the page that has a position.
    pub(super) fn page_of(&self, position: Position) -> u64 {
        position.0.saturating_sub(1) / self.per_page + 1
    }

    /// Number of the page with the last change; if there are no changes, of the page for the first
    /// change.
    pub(super) fn last_page(&self, head: &Head) -> u64 {
        self.page_of(if head.has_changes() { head.position } else { head.position.next() })
    }
}

const JSON: &str = "application/json";

/// Syntaxes in which every description is available.
const SYNTAXES: [(&str, Syntax); 3] = [
    ("?syntax=nt", Syntax::NTriples),
    ("?syntax=ttl", Syntax::Turtle),
    ("?syntax=jsonld", Syntax::JsonLd),
];
/// Syntax of descriptions that are files.
const FILE_SYNTAXES: [(&str, Syntax); 1] = [("", Syntax::NTriples)];

/// Folders of pages in a static site, below the folder of the set.
pub(super) const PAGE_FOLDERS: [&str; 3] = ["emm/0.1/page", "emm/1.0/page", "iiif/page"];

/// Path of the Entry Point for all changes, below the path of the set.
const fn root(profile: Profile) -> &'static str {
    match profile {
        Profile::Emm01 => "emm/0.1",
        Profile::Emm10 => "emm/1.0",
        Profile::Iiif1 => "iiif",
    }
}

/// A document of a change feed, by its path.
#[derive(Clone, Debug)]
pub(super) enum FeedPath<'p> {
    EntryPoint(Feed<'p>),
    Page(Feed<'p>, u64),
    SkipTo(Feed<'p>),
    Activity(Feed<'p>, Position),
    /// The patch of a change; `true` for the plain patch.
    Patch(Feed<'p>, Position, bool),
    Log(Feed<'p>, LogPatch),
}

impl<'p> FeedPath<'p> {
    /// Parses a path below the public base; `find` returns the set with a name.
    pub(super) fn parse(
        path: &str,
        per_page: u64,
        find: impl FnOnce(&str) -> Option<&'p Arc<PublishedSet>>,
    ) -> Option<Self> {
        let (slug, rest) = path.split_once('/')?;
        if let Some(patch) = LogPatch::parse_path(rest) {
            let (set, profile) = (find(slug)?, Profile::Emm01);
            let feed = Feed { set, profile, view: View::Patches, per_page };
            return feed.view.is_offered(set, profile).then_some(Self::Log(feed, patch));
        }
        let (profile, rest) = Profile::ALL
            .into_iter()
            .find_map(|profile| Some((profile, rest.strip_prefix(root(profile))?)))?;
        let mut ends = rest.match_indices('/').map(|(at, _)| at).chain([rest.len()]);
        let (view, part) = ends.find_map(|end| {
            let (view, part) = rest.split_at(end);
            Some((View::parse_path(view)?, Part::parse_path(part)?))
        })?;
        let feed = Feed { set: find(slug)?, profile, view, per_page };
        let (is_file, is_history) = (feed.is_file(), feed.view == View::History);
        let has_patches = is_history && View::Patches.is_offered(feed.set, profile);
        Some(match part {
            Part::EntryFile if is_file && is_history => Self::EntryPoint(feed),
            Part::PageFile(number) if is_file && is_history => Self::Page(feed, number),
            _ if is_file || !feed.view.is_offered(feed.set, profile) => return None,
            Part::EntryPoint => Self::EntryPoint(feed),
            Part::Page(number) => Self::Page(feed, number),
            Part::SkipTo => Self::SkipTo(feed),
            Part::Activity(position) if is_history || matches!(feed.view, View::Type(_)) => {
                Self::Activity(feed, position)
            }
            Part::Patch(position) if has_patches => Self::Patch(feed, position, false),
            Part::PlainPatch(position) if has_patches => Self::Patch(feed, position, true),
            _ => return None,
        })
    }

    /// Feed that has the document.
    pub(super) fn feed(&self) -> &Feed<'p> {
        match self {
            Self::EntryPoint(feed)
            | Self::Page(feed, _)
            | Self::SkipTo(feed)
            | Self::Activity(feed, _)
            | Self::Patch(feed, _, _)
            | Self::Log(feed, _) => feed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::projection::routes::tests::assert_read_back;
    use crate::publish::SourceUrls;
    use abreast_core::SetId;

    #[test]
    fn every_route_reads_back() {
        assert_read_back::<View>();
        assert_read_back::<Part>();
        assert_read_back::<LogPatch>();
    }

    #[test]
    fn every_document_of_a_feed_has_one_path() {
        let urls = SourceUrls::new("https://example.org/").set("b").of_entities("http://id/");
        let set = Arc::new(PublishedSet::new(SetId(1), "b", urls));
        let of = |path: &str| FeedPath::parse(path, 10, |slug| (slug == "b").then_some(&set));
        for (path, is_of_type) in [("b/emm/1.0", false), ("b/emm/1.0/type/page", true)] {
            assert!(matches!(of(path), Some(FeedPath::EntryPoint(_))));
            let page = of(&format!("{path}/page/3"));
            assert!(matches!(page, Some(FeedPath::Page(feed, 3))
                if matches!(feed.view, View::Type(_)) == is_of_type));
            assert!(matches!(of(&format!("{path}/skip-to")), Some(FeedPath::SkipTo(_))));
            let activity = of(&format!("{path}/activity/7"));
            assert!(matches!(activity, Some(FeedPath::Activity(_, Position(7)))));
        }
        for path in [
            "b/emm/1.0/",
            "b/emm/1.01",
            "b/emm/1.0/collection.json",
            "b/emm/1.0/page/03",
            "b/emm/1.0//page/3",
            "b/emm/1.0/type/",
            "b/emm/1.0/type/a/b",
            "b/emm/1.0/newest/activity/7",
            "b/emm/1.0/type/a/activity/7/instrument/1",
            "b/iiif/newest",
            "c/emm/1.0",
        ] {
            assert!(of(path).is_none(), "{path}");
        }
    }
}
