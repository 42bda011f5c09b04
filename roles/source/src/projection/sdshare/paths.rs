//! Paths and queries of SDShare, and URLs with them.

use super::form::Form;
use super::snapshot_name::SnapshotName;
use crate::names::keys::{key_of, path_of};
use crate::names::naming::Naming;
use crate::projection::plain_number;
use crate::publish::{PublishedSet, SourceUrls};
use abreast_core::Position;
use abreast_sdshare::{SinceError, since_in_query, stamp};
use abreast_webtypes::{Timestamp, decode_segment, encode_segment};
use std::sync::Arc;

/// A feed; `S` is a reference to its set, or the set's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FeedPath<S> {
    /// `/sdshare`: feed of all collections
    Overview,
    /// `/{set}/sdshare`: the two feeds of a collection
    Collection(S),
    /// `/{set}/sdshare/snapshots`
    Snapshots(S),
    /// `/{set}/sdshare/snapshots/{name}/chunks`
    Chunks(S, SnapshotName),
    /// `/{set}/sdshare/fragments`
    Fragments(S),
}

impl<S> FeedPath<S> {
    /// Parses a path below the public base; `find` returns the set with a name.
    pub(super) fn parse(path: &str, find: impl FnOnce(&str) -> Option<S>) -> Option<Self> {
        if path == "sdshare" {
            return Some(Self::Overview);
        }
        let (slug, rest) = path.split_once('/')?;
        let feed = match rest {
            "sdshare" => Self::Collection,
            "sdshare/snapshots" => Self::Snapshots,
            "sdshare/fragments" => Self::Fragments,
            _ => {
                let name = rest.strip_prefix(SNAPSHOTS)?.strip_suffix("/chunks")?;
                let name = SnapshotName::parse(name)?;
                return find(slug).map(|set| Self::Chunks(set, name));
            }
        };
        find(slug).map(feed)
    }
}

/// URL of the overview feed.
pub(super) fn overview(urls: &SourceUrls) -> String {
    format!("{}sdshare", urls.base())
}

/// URL of a collection feed.
pub(super) fn collection(set: &PublishedSet) -> String {
    format!("{}sdshare", set.urls.base())
}

/// URL of a snapshots feed.
pub(super) fn snapshots(set: &PublishedSet) -> String {
    format!("{}sdshare/snapshots", set.urls.base())
}

/// URL of a fragments feed, which is also the URL of the topic.
pub(super) fn fragments(set: &PublishedSet) -> String {
    format!("{}sdshare/fragments", set.urls.base())
}

/// Path of a fragment. In a set of files it is `/{set}/sdshare/fragment/r/{key}` for a resource
/// with a URI below the set's base, and `/{set}/sdshare/fragment/u/{URI as one segment}` for any
/// other resource. In a set of entities it is `/{set}/sdshare/fragment/{form}/{path of the
/// entity}`.
#[derive(Clone, Debug)]
pub(super) struct FragmentPath<'p> {
    pub(super) set: &'p Arc<PublishedSet>,
    pub(super) key: String,
    /// Form of a description in a set of entities; `None` in a set of files.
    pub(super) form: Option<Form>,
}

const FRAGMENT: &str = "sdshare/fragment/";
const OWN: &str = "r";
const FOREIGN: &str = "u";

impl<'p> FragmentPath<'p> {
    /// Parses a path below the public base; `find` returns the set with a name.
    pub(super) fn parse(
        path: &str,
        find: impl FnOnce(&str) -> Option<&'p Arc<PublishedSet>>,
    ) -> Option<Self> {
        let (slug, rest) = path.split_once('/')?;
        let (kind, path) = rest.strip_prefix(FRAGMENT)?.split_once('/')?;
        let set = find(slug)?;
        let naming = set.urls.naming();
        if naming.names_entities() {
            let form = Some(Form::of_name(kind)?);
            return Some(Self { set, key: naming.key_at(path)?, form });
        }
        let key = match kind {
            // Canonical form of the key, for any encoding in the request.
            OWN => key_of(&path_of(path)),
            FOREIGN => String::from_utf8(decode_segment(path.as_bytes())).ok()?,
            _ => return None,
        };
        let right = !key.is_empty() && Naming::is_own(&key) == (kind == OWN);
        right.then_some(Self { set, key, form: None })
    }
}

/// URL of a fragment of a resource.
pub(super) fn fragment(
    set: &PublishedSet,
    naming: &Naming,
    key: &str,
    form: Option<Form>,
) -> String {
    let base = set.urls.base();
    if let Some(form) = form {
        return format!("{base}{FRAGMENT}{}/{}", form.name(), naming.address_path(key));
    }
    if Naming::is_own(key) {
        return format!("{base}{FRAGMENT}{OWN}/{key}");
    }
    let mut url = format!("{base}{FRAGMENT}{FOREIGN}/");
    encode_segment(key.as_bytes(), &mut url);
    url
}

/// A file of a snapshot, `/{set}/sdshare/snapshots/{name}.{form}`, or one chunk of it,
/// `/{set}/sdshare/snapshots/{name}/{number}.{form}`.
#[derive(Clone, Debug)]
pub(super) struct SnapshotPath<S> {
    pub(super) set: S,
    pub(super) name: SnapshotName,
    /// Number of the chunk, counted from 1; `None` for the whole file.
    pub(super) chunk: Option<usize>,
    pub(super) form: Form,
}

const SNAPSHOTS: &str = "sdshare/snapshots/";

impl<S> SnapshotPath<S> {
    pub(super) fn parse(path: &str, find: impl FnOnce(&str) -> Option<S>) -> Option<Self> {
        let (slug, rest) = path.split_once('/')?;
        let (stem, form) = rest.strip_prefix(SNAPSHOTS)?.rsplit_once('.')?;
        let form = Form::of_name(form)?;
        let (name, chunk) = match stem.split_once('/') {
            Some((name, chunk)) => (name, Some(usize::try_from(plain_number(chunk)?).ok()?)),
            None => (stem, None),
        };
        let name = SnapshotName::parse(name)?;
        find(slug).map(|set| Self { set, name, chunk, form })
    }
}

/// URL of a snapshot without its form, which is also the id of the snapshot.
pub(super) fn snapshot(set: &PublishedSet, name: SnapshotName) -> String {
    format!("{}/{name}", snapshots(set))
}

/// URL of the feed with the chunks of a snapshot.
pub(super) fn chunks(set: &PublishedSet, name: SnapshotName) -> String {
    format!("{}/chunks", snapshot(set, name))
}

/// Query of a request for a fragments feed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FragmentsQuery {
    /// Time from which entries are listed; older entries are left out.
    pub(super) since: Option<Timestamp>,
    /// Start of the page in the feed.
    pub(super) cursor: Cursor,
}

/// Start of a page of a fragments feed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Cursor {
    /// The page starts with the first entry.
    #[default]
    Start,
    /// The page starts after a resource without changes since the log began, in the order of keys.
    Unchanged(String),
    /// The page starts after a change, in the order of the log.
    Changed(Position),
}

impl FragmentsQuery {
    /// Parses a query; `None` if it does not have parameters of this feed.
    ///
    /// # Errors
    /// A parameter is not valid; the text is for the client.
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

    /// URL of the page.
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
                // Some clients decode `&` and `+` in a query differently.
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
        let files = Arc::new(set());
        let entities = SourceUrls::new("https://example.org/x").set("b").of_entities("http://id/");
        let entities = Arc::new(PublishedSet::new(SetId(1), "b", entities));
        let cases: [(_, _, &[Option<Form>]); 2] = [
            (&files, ["a", "a%20b/c%3Ad", "https://example.net/ä?x=1&y#z", "urn:x:%41"], &[None]),
            (
                &entities,
                ["http://id/a", "http://id/a//b?c#d", "https://example.net/ä", "urn:x:%41"],
                &Form::ALL.map(Some),
            ),
        ];
        for (set, keys, forms) in cases {
            for key in keys {
                for form in forms {
                    let url = fragment(set, &set.urls.naming(), key, *form);
                    let path = url.strip_prefix("https://example.org/x/").unwrap();
                    let read = FragmentPath::parse(path, |slug| (slug == "b").then_some(set));
                    let read = read.unwrap_or_else(|| panic!("{url}"));
                    assert_eq!((read.key.as_str(), read.form), (key, *form), "{url}");
                }
            }
        }
        let of = |path: &str| FragmentPath::parse(path, |slug| (slug == "b").then_some(&files));
        assert_eq!(of("b/sdshare/fragment/r/%61 b").unwrap().key, "a%20b");
        for path in [
            "b/sdshare/fragment/r/",
            "b/sdshare/fragment/u/a",
            "b/sdshare/fragment/u/%ff:",
            "b/sdshare/fragment/x/a",
            "b/sdshare/fragment/nt/a",
            "c/sdshare/fragment/r/a",
        ] {
            assert!(of(path).is_none(), "{path}");
        }
        let of = |path: &str| FragmentPath::parse(path, |_| Some(&entities));
        assert!(of("b/sdshare/fragment/r/a").is_none() && of("b/sdshare/fragment/nt/").is_none());
    }

    #[test]
    fn every_file_of_a_snapshot_has_an_address() {
        let set = set();
        let name = SnapshotName::parse("1767432000000001-17").unwrap();
        let path = |url: String| url.strip_prefix("https://example.org/x/").unwrap().to_owned();
        let whole = path(format!("{}.nt", snapshot(&set, name)));
        let read = SnapshotPath::parse(&whole, find).unwrap();
        assert_eq!((read.set, read.name, read.chunk, read.form), (1, name, None, Form::NTriples));
        let chunk = path(format!("{}/3.txt", snapshot(&set, name)));
        let read = SnapshotPath::parse(&chunk, find).unwrap();
        assert_eq!((read.chunk, read.form), (Some(3), Form::PlainText));
        let feed = FeedPath::parse(&path(chunks(&set, name)), find);
        assert_eq!(feed, Some(FeedPath::Chunks(1, name)));
        for path in [
            "b/sdshare/snapshots/1-2.zip",
            "b/sdshare/snapshots/1-2/03.nt",
            "b/sdshare/snapshots/x.nt",
        ] {
            assert!(SnapshotPath::parse(path, find).is_none(), "{path}");
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
