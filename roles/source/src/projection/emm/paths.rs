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
use crate::projection::plain_number;
use crate::publish::PublishedSet;
use abreast_core::{Head, Position};
use abreast_emm::Profile;
use abreast_rdf::Syntax;
use abreast_webtypes::{decode_segment, encode_segment};
use std::fmt::Write as _;
use std::sync::Arc;

/// Suffix of the path of an Entity Patch for the plain patch.
pub(super) const RDF_PATCH: &str = ".rdfp";

/// Positions of the log that a page has, whether they are listed on it or not.
pub const POSITIONS_PER_PAGE: u64 = 1_000;

/// Selection and order of the changes in a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum View {
    History,
    Newest,
    Latest,
    Patches,
    Labels,
    /// Type of entities, by the last part of the type's IRI.
    Type(String),
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

    fn parse(path: &str) -> Option<Self> {
        Some(match path {
            "newest" => Self::Newest,
            "latest" => Self::Latest,
            "patches" => Self::Patches,
            "labels" => Self::Labels,
            _ => {
                let name = path.strip_prefix("type/")?;
                let name = String::from_utf8(decode_segment(name.as_bytes())).ok()?;
                if name.is_empty() || path.matches('/').count() > 1 {
                    return None;
                }
                Self::Type(name)
            }
        })
    }

    /// Appends the path of the view, below the path of the profile's Entry Point.
    fn write(&self, url: &mut String) {
        match self {
            Self::History => {}
            Self::Newest => url.push_str("/newest"),
            Self::Latest => url.push_str("/latest"),
            Self::Patches => url.push_str("/patches"),
            Self::Labels => url.push_str("/labels"),
            Self::Type(name) => {
                url.push_str("/type/");
                encode_segment(name.as_bytes(), url);
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
        let mut url = String::new();
        self.write_begin(&mut url);
        url.push_str(self.file_names().0);
        url
    }

    /// URL of a page of the feed.
    pub(super) fn page(&self, number: u64) -> String {
        let mut url = String::new();
        self.write_page(number, &mut url);
        url
    }

    /// Appends the URL of a change's activity in this feed.
    pub(super) fn write_activity(&self, position: Position, url: &mut String) {
        if self.is_file() {
            self.write_page(self.page_of(position), url);
            let _ = write!(url, "#{position}");
        } else {
            self.write_begin(url);
            let _ = write!(url, "/activity/{position}");
        }
    }

    fn write_page(&self, number: u64, url: &mut String) {
        self.write_begin(url);
        let _ = write!(url, "/page/{number}{}", self.file_names().1);
    }

    /// Appends the common prefix of the feed's URLs.
    fn write_begin(&self, url: &mut String) {
        url.push_str(self.set.urls.base());
        url.push_str(root(self.profile));
        self.view.write(url);
    }

    /// Suffixes of the URLs of the Entry Point and of the pages.
    fn file_names(&self) -> (&'static str, &'static str) {
        if self.is_file() { (COLLECTION, FILE) } else { ("", "") }
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

/// Name of the file of an Entry Point.
const COLLECTION: &str = "/collection.json";
/// Suffix of the names of files of pages.
const FILE: &str = ".json";
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
        if let Some(patch) = log_patch(rest) {
            let (set, profile) = (find(slug)?, Profile::Emm01);
            let feed = Feed { set, profile, view: View::Patches, per_page };
            return feed.view.is_offered(set, profile).then_some(Self::Log(feed, patch));
        }
        let (profile, rest) = Profile::ALL.into_iter().find_map(|profile| {
            let rest = rest.strip_prefix(root(profile))?;
            (rest.is_empty() || rest.starts_with('/')).then_some((profile, rest))
        })?;
        let set = find(slug)?;
        let history = Feed { set, profile, view: View::History, per_page };
        if history.is_file() {
            if rest == COLLECTION {
                return Some(Self::EntryPoint(history));
            }
            let number = rest.strip_prefix("/page/")?.strip_suffix(FILE)?;
            return plain_number(number).map(|number| Self::Page(history, number));
        }
        let feed = |view| Some(Feed { view, ..history.clone() });
        let Some(rest) = rest.strip_prefix('/') else {
            return feed(View::History).map(Self::EntryPoint);
        };
        if let Some((view, number)) = rest.rsplit_once("/activity/")
            && let Some(view @ View::Type(_)) = View::parse(view)
        {
            let (feed, position) = (feed(view)?, Position(plain_number(number)?));
            return feed
                .view
                .is_offered(feed.set, profile)
                .then_some(Self::Activity(feed, position));
        }
        if let Some(activity) = rest.strip_prefix("activity/") {
            let (number, raw) = match activity.split_once('/') {
                None => (activity, None),
                Some((number, "instrument/1")) => (number, Some(false)),
                Some((number, name)) if name.strip_suffix(RDF_PATCH) == Some("instrument/1") => {
                    (number, Some(true))
                }
                Some(_) => return None,
            };
            let position = Position(plain_number(number)?);
            let feed = feed(View::History)?;
            return match raw {
                None => Some(Self::Activity(feed, position)),
                Some(raw) => View::Patches
                    .is_offered(feed.set, profile)
                    .then_some(Self::Patch(feed, position, raw)),
            };
        }
        let (view, part) = match rest.rsplit_once('/') {
            _ if rest == "skip-to" => ("", Part::SkipTo),
            Some((view, "skip-to")) => (view, Part::SkipTo),
            Some(("page", number)) => ("", Part::Page(plain_number(number)?)),
            Some((before, number)) if before.ends_with("/page") => {
                (before.strip_suffix("/page")?, Part::Page(plain_number(number)?))
            }
            _ => (rest, Part::EntryPoint),
        };
        let is_whole = matches!(part, Part::EntryPoint);
        let view = if view.is_empty() && !is_whole { View::History } else { View::parse(view)? };
        let feed = feed(view)?;
        if !feed.view.is_offered(feed.set, profile) {
            return None;
        }
        Some(match part {
            Part::EntryPoint => Self::EntryPoint(feed),
            Part::Page(number) => Self::Page(feed, number),
            Part::SkipTo => Self::SkipTo(feed),
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

/// Parses the path of a patch in the log, below the path of the set.
fn log_patch(path: &str) -> Option<LogPatch> {
    match path {
        "init" => Some(LogPatch::Init),
        "current" => Some(LogPatch::Current),
        _ => {
            let name = path.strip_prefix("patch/")?;
            match plain_number(name) {
                Some(position) => Some(LogPatch::At(Position(position))),
                None => rdf_patch::parse_uuid(name).map(LogPatch::Id),
            }
        }
    }
}

enum Part {
    EntryPoint,
    Page(u64),
    SkipTo,
}
