//! The paths and queries of SDShare, and the addresses made of them.

use crate::names::{Naming, key_of, path_of};
use crate::projection::plain_number;
use crate::publish::{PublishedSet, SourceUrls};
use abreast_core::Position;
use abreast_sdshare::{SinceError, since_in_query, stamp};
use abreast_webtypes::{Timestamp, decode_segment, encode_segment};

/// A feed; `S` is how its set is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FeedPath<S> {
    /// `/sdshare`: all collections
    Overview,
    /// `/{set}/sdshare`: the two feeds of a collection
    Collection(S),
    /// `/{set}/sdshare/snapshots`
    Snapshots(S),
    /// `/{set}/sdshare/fragments`
    Fragments(S),
}

impl<S> FeedPath<S> {
    /// The feed at a path below the public base; `find` finds a set by its name.
    pub(super) fn parse(path: &str, find: impl FnOnce(&str) -> Option<S>) -> Option<Self> {
        if path == "sdshare" {
            return Some(Self::Overview);
        }
        let (slug, rest) = path.split_once('/')?;
        let feed = match rest {
            "sdshare" => Self::Collection,
            "sdshare/snapshots" => Self::Snapshots,
            "sdshare/fragments" => Self::Fragments,
            _ => return None,
        };
        find(slug).map(feed)
    }
}

/// The address of the overview feed.
pub(super) fn overview(urls: &SourceUrls) -> String {
    format!("{}sdshare", urls.base())
}

/// The address of a collection feed.
pub(super) fn collection(set: &PublishedSet) -> String {
    format!("{}sdshare", set.urls.base())
}

/// The address of a snapshots feed.
pub(super) fn snapshots(set: &PublishedSet) -> String {
    format!("{}sdshare/snapshots", set.urls.base())
}

/// The address of a fragments feed, which is also that of its topic.
pub(super) fn fragments(set: &PublishedSet) -> String {
    format!("{}sdshare/fragments", set.urls.base())
}

/// The path of the fragment of a resource: `/{set}/sdshare/fragment/r/{key}` for a resource of the
/// set's own, and `/{set}/sdshare/fragment/u/{URI as one segment}` for any other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FragmentPath<S> {
    pub(super) set: S,
    pub(super) key: String,
}

const OWN: &str = "sdshare/fragment/r/";
const FOREIGN: &str = "sdshare/fragment/u/";

impl<S> FragmentPath<S> {
    pub(super) fn parse(path: &str, find: impl FnOnce(&str) -> Option<S>) -> Option<Self> {
        let (slug, rest) = path.split_once('/')?;
        let key = if let Some(key) = rest.strip_prefix(OWN) {
            // Its one spelling, however a client encodes it.
            key_of(&path_of(key))
        } else {
            let segment = rest.strip_prefix(FOREIGN)?;
            String::from_utf8(decode_segment(segment.as_bytes())).ok()?
        };
        let right = !key.is_empty() && Naming::is_own(&key) == rest.starts_with(OWN);
        if !right {
            return None;
        }
        find(slug).map(|set| Self { set, key })
    }
}

/// The address of the fragment of a resource.
pub(super) fn fragment(set: &PublishedSet, key: &str) -> String {
    let base = set.urls.base();
    if Naming::is_own(key) {
        return format!("{base}{OWN}{key}");
    }
    let mut url = format!("{base}{FOREIGN}");
    encode_segment(key.as_bytes(), &mut url);
    url
}

/// The query of a fragments feed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FragmentsQuery {
    /// Entries that are older are left out.
    pub(super) since: Option<Timestamp>,
    /// Where the page begins.
    pub(super) cursor: Cursor,
}

/// The beginning of a page of a fragments feed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Cursor {
    /// With the first entry.
    #[default]
    Start,
    /// Behind a resource that has not changed since the log began, in the order of keys.
    Unchanged(String),
    /// Behind a change, in the order of the log.
    Changed(Position),
}

impl FragmentsQuery {
    /// Reads a query; `None` when nothing in it is for this feed.
    ///
    /// # Errors
    /// Text for the client.
    pub(super) fn parse(query: &str) -> Option<Result<Self, String>> {
        let since = since_in_query(query);
        let value = |name: &str| {
            query.split('&').find_map(|pair| {
                let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                (key == name).then_some(value)
            })
        };
        let cursor = match (value("after"), value("behind")) {
            (Some(after), _) => match plain_number(after) {
                Some(position) => Cursor::Changed(Position(position)),
                None => return Some(Err(NO_CURSOR.to_owned())),
            },
            (None, Some(key)) => match String::from_utf8(decode_segment(key.as_bytes())) {
                Ok(key) => Cursor::Unchanged(key),
                Err(_) => return Some(Err(NO_CURSOR.to_owned())),
            },
            (None, None) => Cursor::Start,
        };
        match since {
            Ok(None) if cursor == Cursor::Start => None,
            Ok(since) => Some(Ok(Self { since, cursor })),
            Err(error) => Some(Err(refusal(&error))),
        }
    }

    /// The address of the page.
    pub(super) fn url(&self, set: &PublishedSet) -> String {
        let mut url = fragments(set);
        let mut separator = '?';
        let mut add = |name: &str, value: &str| {
            url.push(separator);
            url.push_str(name);
            url.push('=');
            url.push_str(value);
            separator = '&';
        };
        if let Some(since) = self.since {
            add("since", &stamp(since));
        }
        match &self.cursor {
            Cursor::Start => {}
            Cursor::Unchanged(key) => {
                let mut encoded = String::new();
                encode_segment(key.as_bytes(), &mut encoded);
                // A `&` or `+` in a query is read differently.
                add("behind", &encoded.replace('&', "%26").replace('+', "%2B"));
            }
            Cursor::Changed(position) => add("after", &position.to_string()),
        }
        url
    }
}

const NO_CURSOR: &str =
    "this is no page of the feed\n  help: follow the links `next` from its first page";

fn refusal(error: &SinceError) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_core::SetId;

    fn set() -> PublishedSet {
        PublishedSet::new(SetId(1), "b", SourceUrls::new("https://example.org/x").set("b"))
    }

    fn find(slug: &str) -> Option<usize> {
        ["a", "b"].iter().position(|name| *name == slug)
    }

    #[test]
    fn every_feed_has_one_path() {
        assert_eq!(FeedPath::parse("sdshare", find), Some(FeedPath::Overview));
        assert_eq!(FeedPath::parse("b/sdshare", find), Some(FeedPath::Collection(1)));
        assert_eq!(FeedPath::parse("a/sdshare/snapshots", find), Some(FeedPath::Snapshots(0)));
        assert_eq!(FeedPath::parse("b/sdshare/fragments", find), Some(FeedPath::Fragments(1)));
        for path in ["", "sdshare/", "c/sdshare", "a/sdshare/", "a/sdshare/fragment", "a/b/sdshare"]
        {
            assert_eq!(FeedPath::parse(path, find), None, "{path}");
        }
    }

    #[test]
    fn the_fragment_of_every_key_has_an_address() {
        for key in ["a", "a%20b/c%3Ad", "https://example.net/ä?x=1&y#z", "urn:x:%41"] {
            let url = fragment(&set(), key);
            let path = url.strip_prefix("https://example.org/x/").unwrap();
            let read = FragmentPath::parse(path, find);
            assert_eq!(read, Some(FragmentPath { set: 1, key: key.to_owned() }), "{url}");
        }
        let unusual = FragmentPath::parse("b/sdshare/fragment/r/%61 b", find).unwrap();
        assert_eq!(unusual.key, "a%20b");
        for path in [
            "b/sdshare/fragment/r/",
            "b/sdshare/fragment/u/a",
            "b/sdshare/fragment/u/%ff:",
            "b/sdshare/fragment/x/a",
            "c/sdshare/fragment/r/a",
        ] {
            assert_eq!(FragmentPath::parse(path, find), None, "{path}");
        }
    }

    #[test]
    fn the_query_of_every_page_reads_back() {
        let since = Some(Timestamp::from_micros(7));
        for (since, cursor) in [
            (since, Cursor::Start),
            (since, Cursor::Changed(Position(17))),
            (None, Cursor::Changed(Position(0))),
            (None, Cursor::Unchanged("a%20b/c&d+e".to_owned())),
            (since, Cursor::Unchanged("https://example.net/?x=1&y=+".to_owned())),
        ] {
            let query = FragmentsQuery { since, cursor };
            let url = query.url(&set());
            let (_, text) = url.split_once('?').unwrap();
            assert_eq!(FragmentsQuery::parse(text), Some(Ok(query)), "{url}");
        }
        for text in ["", "since=", "x=1", "&&"] {
            assert_eq!(FragmentsQuery::parse(text), None, "{text}");
        }
        for text in ["since=soon", "after=x", "after=-1", "after=01", "behind=%ff"] {
            let refused = FragmentsQuery::parse(text).unwrap().unwrap_err();
            assert!(refused.contains("help: "), "{refused}");
        }
    }
}
