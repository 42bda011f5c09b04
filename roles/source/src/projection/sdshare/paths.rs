//! Paths and queries of SDShare, and URLs with them.

use super::form::Form;
use super::snapshot_name::SnapshotName;
use crate::names::keys::{key_of, path_of};
use crate::names::naming::Naming;
use crate::projection::plain_number;
use crate::projection::routes::{PathValue, Route as _, routes};
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
    OfSet(S, SetFeed),
}

routes! {
    /// A feed of a set, by its path below the path of the set.
    #[derive(Copy)]
    enum SetFeed {
        /// The two feeds of a collection.
        Collection = "sdshare",
        Snapshots = "sdshare/snapshots",
        /// Chunks of a snapshot.
        Chunks(name: SnapshotName) = "sdshare/snapshots/{}/chunks",
        /// Fragments; the URL is also the URL of the topic.
        Fragments = "sdshare/fragments",
    }
}

routes! {
    /// A file of a snapshot, by its path below the path of the set.
    #[derive(Copy)]
    enum SnapshotFile {
        /// A chunk, counted from 1.
        Chunk(name: SnapshotName, number: u64, form: Form) = "sdshare/snapshots/{}/{}.{}",
        Whole(name: SnapshotName, form: Form) = "sdshare/snapshots/{}.{}",
    }
}

routes! {
    /// A fragment, by its path below the path of the set.
    enum Fragment {
        /// In a set of files: a resource with a URI below the set's base.
        Own(key: OwnKey) = "sdshare/fragment/r/{}",
        /// In a set of files: any other resource, with its URI as one segment.
        Foreign(key: ForeignKey) = "sdshare/fragment/u/{}",
        /// In a set of entities: a form, and the path of the entity.
        OfEntity(form: Form, path: EntityPath) = "sdshare/fragment/{}/{}",
    }
}

/// Key of a resource below the set's base, for any encoding in the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnKey(String);

/// Key of a resource elsewhere, for any encoding in the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ForeignKey(String);

/// Path of an entity, as the set's naming writes the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EntityPath(String);

impl PathValue for OwnKey {
    fn parse(text: &str) -> Option<Self> {
        Some(key_of(&path_of(text))).filter(|key| !key.is_empty() && Naming::is_own(key)).map(Self)
    }

    fn write(&self, path: &mut String) {
        path.push_str(&self.0);
    }
}

impl PathValue for ForeignKey {
    fn parse(text: &str) -> Option<Self> {
        let key = String::from_utf8(decode_segment(text.as_bytes())).ok()?;
        (!key.is_empty() && !Naming::is_own(&key)).then_some(Self(key))
    }

    fn write(&self, path: &mut String) {
        encode_segment(self.0.as_bytes(), path);
    }
}

impl PathValue for EntityPath {
    fn parse(text: &str) -> Option<Self> {
        Some(Self(text.to_owned()))
    }

    fn write(&self, path: &mut String) {
        path.push_str(&self.0);
    }
}

impl<S> FeedPath<S> {
    /// Parses a path below the public base; `find` returns the set with a name.
    pub(super) fn parse(path: &str, find: impl FnOnce(&str) -> Option<S>) -> Option<Self> {
        if path == "sdshare" {
            return Some(Self::Overview);
        }
        SetFeed::parse_in_set(path, find).map(|(set, feed)| Self::OfSet(set, feed))
    }
}

/// URL of the overview feed.
pub(super) fn overview(urls: &SourceUrls) -> String {
    format!("{}sdshare", urls.base())
}

/// URL of a snapshot without its form, which is also the id of the snapshot.
pub(super) fn snapshot(set: &PublishedSet, name: SnapshotName) -> String {
    format!("{}/{name}", SetFeed::Snapshots.url(&set.urls))
}

/// A fragment, by the resource.
#[derive(Clone, Debug)]
pub(super) struct FragmentPath<'p> {
    pub(super) set: &'p Arc<PublishedSet>,
    pub(super) key: String,
    /// Form of a description in a set of entities; `None` in a set of files.
    pub(super) form: Option<Form>,
}

impl<'p> FragmentPath<'p> {
    /// Parses a path below the public base; `find` returns the set with a name.
    pub(super) fn parse(
        path: &str,
        find: impl FnOnce(&str) -> Option<&'p Arc<PublishedSet>>,
    ) -> Option<Self> {
        let (set, fragment) = Fragment::parse_in_set(path, find)?;
        let naming = set.urls.naming();
        let (key, form) = match (fragment, naming.names_entities()) {
            (Fragment::OfEntity(form, path), true) => (naming.key_at(&path.0)?, Some(form)),
            (Fragment::Own(OwnKey(key)) | Fragment::Foreign(ForeignKey(key)), false) => (key, None),
            _ => return None,
        };
        Some(Self { set, key, form })
    }
}

/// URL of a fragment of a resource.
pub(super) fn fragment(
    set: &PublishedSet,
    naming: &Naming,
    key: &str,
    form: Option<Form>,
) -> String {
    let fragment = match form {
        Some(form) => Fragment::OfEntity(form, EntityPath(naming.address_path(key))),
        None if Naming::is_own(key) => Fragment::Own(OwnKey(key.to_owned())),
        None => Fragment::Foreign(ForeignKey(key.to_owned())),
    };
    fragment.url(&set.urls)
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
        let mut url = SetFeed::Fragments.url(&set.urls);
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
    use crate::projection::routes::tests::assert_read_back;
    use abreast_core::SetId;

    fn set() -> PublishedSet {
        PublishedSet::new(SetId(1), "b", SourceUrls::new("https://example.org/x").set("b"))
    }

    fn find(slug: &str) -> Option<usize> {
        ["a", "b"].iter().position(|name| *name == slug)
    }

    #[test]
    fn every_route_reads_back() {
        assert_read_back::<SetFeed>();
        assert_read_back::<SnapshotFile>();
        assert_read_back::<Fragment>();
    }

    #[test]
    fn every_feed_has_one_path() {
        assert_eq!(FeedPath::parse("sdshare", find), Some(FeedPath::Overview));
        for (path, set, feed) in [
            ("b/sdshare", 1, SetFeed::Collection),
            ("a/sdshare/snapshots", 0, SetFeed::Snapshots),
            ("b/sdshare/fragments", 1, SetFeed::Fragments),
        ] {
            assert_eq!(FeedPath::parse(path, find), Some(FeedPath::OfSet(set, feed)));
        }
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
        assert_eq!(path(snapshot(&set, name)), format!("b/sdshare/snapshots/{name}"));
        for (file, end) in [
            (SnapshotFile::Whole(name, Form::NTriples), ".nt"),
            (SnapshotFile::Chunk(name, 3, Form::PlainText), "/3.txt"),
        ] {
            let url = file.url(&set.urls);
            assert_eq!(url, format!("{}{end}", snapshot(&set, name)));
            assert_eq!(SnapshotFile::parse_in_set(&path(url), find), Some((1, file)));
        }
        let chunks = SetFeed::Chunks(name);
        let feed = FeedPath::parse(&path(chunks.url(&set.urls)), find);
        assert_eq!(feed, Some(FeedPath::OfSet(1, chunks)));
        for path in [
            "b/sdshare/snapshots/1-2.zip",
            "b/sdshare/snapshots/1-2/03.nt",
            "b/sdshare/snapshots/x.nt",
        ] {
            assert!(SnapshotFile::parse_in_set(path, find).is_none(), "{path}");
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
