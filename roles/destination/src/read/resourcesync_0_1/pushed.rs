//! Change sets as pushed documents [rs-0.1 §5.2]. A pushed change set continues from the position
//! if it has a known change, as any change set [rs-0.1 §6.1], or if it contains the start of its
//! changes. It must link to the copy's change set as the current one, because it may belong to
//! another set.

use super::change_sets::hand_over;
use super::document::from_of;
use crate::read::Pushed;
use crate::read::resourcesync::subscriber::{NotificationContent, NotifiedChange};
use crate::read::sitemap::pushed::{odd, read_strictly};
use crate::read::walk::Walk;
use crate::report::clock::now;
use crate::report::error::Error;
use abreast_resourcesync::v0_1::{CHANGE_SET, Document, Entry, Root, V0_1};
use abreast_webtypes::Timestamp;

/// The words for a pushed change set in messages.
const NAME: &str = "a pushed change set";
/// Maximum distance of deletions into the future by our clock, in microseconds.
const CLOCK_MICROS: i64 = 60_000_000;

/// A pushed change set that is valid.
#[derive(Debug)]
struct PushedChangeSet {
    /// The link to the current change set.
    current: Option<String>,
    /// The start of the interval whose changes the change set contains completely, if specified.
    from: Option<Timestamp>,
    newest: Timestamp,
    entries: Vec<Entry>,
}

/// Parses a pushed change set for a copy whose current change set is `change_set`.
pub(super) fn read_pushed(bytes: &[u8], change_set: &str) -> Result<Box<dyn Pushed>, String> {
    let one = read(bytes)?;
    match one.current.as_deref().map(str::trim) {
        Some(current) if current == change_set => Ok(Box::new(one)),
        Some(other) => Err(format!("{NAME} is of another set, whose current one is {other}")),
        None => Err(format!("{NAME} does not name the current one")),
    }
}

impl Pushed for PushedChangeSet {
    fn from(&self) -> Option<Timestamp> {
        self.from
    }

    fn until(&self) -> Timestamp {
        self.newest
    }

    /// Whether others of the time of its newest change follow is not known.
    fn is_span(&self) -> bool {
        false
    }

    fn each(&self, walk: &mut Walk<'_, '_>) -> Result<(), Error> {
        let url = self.current.as_deref().unwrap_or_default();
        let now = now().plus_micros(CLOCK_MICROS);
        walk.begin_changes(url, self.from.map(Into::into), None);
        for entry in &self.entries {
            hand_over(walk, url, entry, now)?;
        }
        Ok(())
    }
}

impl NotificationContent {
    /// Parses a change set, for subscribers without a copy; `None` for other content.
    pub fn read_change_set(body: &[u8]) -> Option<Self> {
        let document = Document::from_slice(body).ok().filter(|it| it.head.change_set)?;
        let from = from_of(&document.head);
        let until = document.head.modified.map(|time| time.instant);
        let entries = document.to_1_1().entries.into_iter();
        let changes = entries.map(NotifiedChange::of).collect();
        Some(Self { capability: "changeset", from, until, changes })
    }
}

/// Parses a pushed change set strictly: if it is not valid, the current change set is requested.
fn read(bytes: &[u8]) -> Result<PushedChangeSet, String> {
    let (head, entries) = read_strictly::<V0_1>(bytes, NAME)?;
    let odd = |what: &str| Err(odd(NAME, what));
    if head.root != Root::UrlSet || !head.is_change_set("") {
        return odd("it is no change set");
    }
    for entry in &entries {
        let is_change = entry.change.is_some() && entry.time.is_some() && entry.protocol.is_none();
        if !is_change || !entry.loc.starts_with("http") {
            return odd(&format!("the entry in line {} is no change", entry.line));
        }
    }
    let Some(newest) = entries.iter().filter_map(|entry| entry.time).map(|it| it.instant).max()
    else {
        return odd("it contains no changes");
    };
    let current = head.links.iter().find(|it| it.has_rel(CHANGE_SET) && it.has_rel("current"));
    let current = current.map(|link| link.href.clone());
    Ok(PushedChangeSet { current, from: from_of(&head), newest, entries })
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_resourcesync::v0_1::Change as Kind;

    #[test]
    fn what_is_odd_is_not_read() {
        let document = |root: &str, inside: &str| {
            format!(
                "<urlset {root} xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' \
                 xmlns:rs='http://www.openarchives.org/rs/terms/' xmlns:xhtml='http://www.w3.org/1999/xhtml'>{inside}</urlset>"
            )
        };
        let entry = |uri: &str, time: &str| format!("<url><loc>{uri}</loc>{time}</url>");
        let typed = "rs:type='changeset'";
        let updated = "<lastmod rs:type='updated'>2026-01-01T00:00:02.5Z</lastmod>";
        let deleted = "<expires>2026-01-01T00:00:01Z</expires>";
        let both = entry("http://h/a", updated) + &entry("http://h/b", deleted);
        let read = |root: &str, inside: &str| super::read(document(root, inside).as_bytes());
        let whole = read(typed, &both).unwrap();
        assert_eq!((whole.entries.len(), whole.from, whole.current), (2, None, None));
        let link = format!("<xhtml:link rel='current {CHANGE_SET}' href='http://h/c.xml'/>");
        let current = read(typed, &format!("{link}{both}")).unwrap().current;
        assert_eq!(current.as_deref(), Some("http://h/c.xml"));
        assert_eq!(whole.newest.to_string(), "2026-01-01T00:00:02.500000Z");
        let untyped = read(typed, &entry("http://h/a", "<lastmod>2026-01-01T00:00:02Z</lastmod>"));
        assert_eq!(untyped.unwrap().entries[0].change, Some(Kind::Updated));
        let period =
            "<xhtml:meta name='DCTERMS.temporal' content='start=2026-01-01T00:00:00Z; end=2026'/>";
        let from = read(typed, &format!("{period}{both}")).unwrap().from;
        assert_eq!(from.map(|from| from.to_string()).as_deref(), Some("2026-01-01T00:00:00Z"));
        for (root, inside) in [
            ("", both.clone()),
            (typed, String::new()),
            (typed, entry("/a", updated)),
            (typed, entry("http://h/a", "")),
            (typed, entry("http://h/a", "<expires>2026-01-01T00:00:01</expires>")),
        ] {
            assert!(read(root, &inside).is_err(), "{root} {inside}");
        }
        for bytes in ["", "<urlset", "{}", "<!DOCTYPE a [<!ENTITY b \"c\">]><urlset>&b;</urlset>"] {
            assert!(super::read(bytes.as_bytes()).is_err(), "{bytes}");
        }
    }
}
