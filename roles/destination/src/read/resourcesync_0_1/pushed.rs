//! Change sets that were pushed and continue from the cursor of the copy: their changes are applied
//! like those of the current change set, and none is requested [rs-0.1 §5.2].
//!
//! A pushed change set continues what is known if it has a change that was read before, as for any
//! change set [rs-0.1 §6.1], or if it states the time since which it has all changes. It must name the
//! change set of the copy as the current one: it may be one of another set. Whenever
//! anything is odd, the current change set is requested.

use super::change_sets::{LAST, Unclear, change_of, known_since};
use super::cursor;
use super::document::{from_of, is_change_set};
use crate::clock::now;
use crate::error::Error;
use crate::events::Mode;
use crate::plan::changes::{Seen, Span};
use crate::plan::listed::without_fragment;
use crate::plan::planner::PlanContext;
use crate::read::boundary::Boundary;
use crate::read::resourcesync::subscriber::{NotificationContent, NotifiedChange};
use crate::read::sitemap::pushed::{self, CLOCK_MICROS, Place, odd, read_strictly};
use abreast_resourcesync::v0_1::{CHANGE_SET, Document, Entry, Root, V0_1};
use abreast_store::mirror::Mirror;
use abreast_webtypes::Timestamp;

/// The cursor, when a pushed change set moved it and no document has confirmed it yet, microseconds.
const PUSHED: &str = "rs01-pushed";
/// What it is called in messages.
const NAME: &str = "a pushed change set";

/// A pushed change set that is as it should be.
#[derive(Debug)]
struct Pushed {
    /// The current change set that it names.
    current: Option<String>,
    /// It has all changes since then, if that is stated.
    from: Option<Timestamp>,
    newest: Timestamp,
    entries: Vec<Entry>,
}

/// Plans what was pushed; `false` when the current change set has to be requested. `announced` is
/// the time up to which changes are known to be missing.
pub(super) fn plan_pushed(
    run: &mut PlanContext<'_, '_>,
    change_set: &str,
    cursor: Timestamp,
    announced: &mut Option<Timestamp>,
) -> Result<bool, Error> {
    let read = |bytes: &[u8]| {
        let one = read_pushed(bytes)?;
        match one.current.as_deref().map(str::trim) {
            Some(current) if current == change_set => {}
            Some(other) => {
                return Err(format!("{NAME} is of another set, whose current one is {other}"));
            }
            None => return Err(format!("{NAME} does not name the current one")),
        }
        Ok((one.newest, one))
    };
    pushed::plan_pushed(run, change_set, announced, &read, &|run, mut pushed| {
        // Whatever order they came in.
        pushed.sort_by_key(|one| (one.newest, one.from));
        plan_in_order(run, change_set, cursor, &pushed)
    })
}

fn plan_in_order(
    run: &mut PlanContext<'_, '_>,
    change_set: &str,
    known: Timestamp,
    pushed: &[Pushed],
) -> Result<bool, Error> {
    let mirror = run.planner.mirror;
    let (mut at, mut seen) = (known, Seen::default());
    let now = now().plus_micros(CLOCK_MICROS);
    let mut unclear = Unclear::since(known_since(mirror, known, None)?, now);
    for one in pushed {
        let mut boundary = Boundary::read(mirror, LAST)?;
        boundary.begin();
        for (time, uri) in one.changes() {
            boundary.note(time, uri);
        }
        let place = place(one.from, one.newest, at, boundary.is_found());
        tracing::debug!(from = one.from.map(|from| from.to_string()), until = %one.newest, cursor = %at, ?place, "a pushed change set");
        match place {
            Place::Old => continue,
            Place::Apart => return Ok(false),
            Place::Next => {}
        }
        let mut reading = run.reading_changes(change_set);
        seen.next_list();
        seen.begin_list(Span::default(), seen.last);
        for entry in &one.entries {
            if let Some(change) = change_of(run, change_set, entry, &mut unclear)? {
                run.note_change(&change, known, &mut seen, &mut reading)?;
            }
        }
        at = at.max(one.newest);
        boundary.keep(mirror, false)?;
    }
    if at == known {
        return Ok(true);
    }
    run.planner.since.get_or_insert(known);
    unclear.report(run, change_set)?;
    run.plan_coming()?;
    run.report.summary.mode = Mode::Incremental;
    tracing::debug!(change_set, "pushed changes are applied");
    cursor::set(mirror, Some(at))?;
    cursor::keep_time(mirror, PUSHED, Some(at))?;
    Ok(true)
}

/// Whether a pushed change set moved the cursor to where it is, and no document has confirmed that
/// yet.
pub(super) fn is_pushed(run: &PlanContext<'_, '_>, at: Timestamp) -> Result<bool, Error> {
    Ok(cursor::time_of(run.planner.mirror, PUSHED)? == Some(at))
}

/// The current change set has what was pushed.
pub(super) fn forget_pushed(mirror: &Mirror) -> Result<(), Error> {
    cursor::keep_time(mirror, PUSHED, None)
}

impl NotificationContent {
    /// Reads a change set, for subscribers that keep no copy; `None` for other content.
    pub fn read_change_set(body: &[u8]) -> Option<Self> {
        let document = Document::from_slice(body).ok().filter(|it| it.head.change_set)?;
        let from = from_of(&document.head);
        let until = document.head.modified.map(|time| time.instant);
        let entries = document.to_1_1().entries.into_iter();
        let changes = entries.map(NotifiedChange::of).collect();
        Some(Self { capability: "changeset", from, until, changes })
    }
}

/// Where a change set stands beside a copy; `is_joined` when it has the change that was read last.
fn place(from: Option<Timestamp>, newest: Timestamp, cursor: Timestamp, is_joined: bool) -> Place {
    // Of changes within one second of a coarse clock some may have come before others.
    let is_fine = cursor.as_micros() % 1_000_000 != 0;
    if newest < cursor || newest == cursor && is_fine {
        return Place::Old;
    }
    let goes_on = from.is_some_and(|from| from < cursor || from == cursor && is_fine);
    if newest > cursor && (goes_on || is_joined && is_fine) { Place::Next } else { Place::Apart }
}

/// Reads one, strictly: for anything odd the current change set is requested.
fn read_pushed(bytes: &[u8]) -> Result<Pushed, String> {
    let (head, entries) = read_strictly::<V0_1>(bytes, NAME)?;
    let odd = |what: &str| Err(odd(NAME, what));
    if head.root != Root::UrlSet || !is_change_set(&head, "") {
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
    Ok(Pushed { current, from: from_of(&head), newest, entries })
}

impl Pushed {
    fn changes(&self) -> impl Iterator<Item = (Timestamp, &str)> {
        let of = |entry: &'_ Entry| entry.time.map(|time| time.instant);
        self.entries
            .iter()
            .filter_map(move |entry| Some((of(entry)?, without_fragment(&entry.loc))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_resourcesync::v0_1::Change as Kind;

    const SECOND: i64 = 1_000_000;

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    #[test]
    fn only_what_goes_on_from_what_is_known_is_applied() {
        let here = 1_000 * SECOND + 1;
        for (from, newest, is_joined, expected) in [
            (None, here - 1, false, Place::Old),
            (None, here, true, Place::Old),
            (None, here + 1, false, Place::Apart),
            (None, here + 1, true, Place::Next),
            (Some(here), here + 1, false, Place::Next),
            (Some(here - 1), here + 1, false, Place::Next),
            (Some(here + 1), here + 2, false, Place::Apart),
        ] {
            let found = place(from.map(at), at(newest), at(here), is_joined);
            assert_eq!(found, expected, "{from:?} {newest} {is_joined}");
        }
        // A clock of whole seconds is ambiguous within a second.
        let coarse = at(1_000 * SECOND);
        assert_eq!(place(None, coarse, coarse, true), Place::Apart);
        assert_eq!(place(None, at(1_001 * SECOND), coarse, true), Place::Apart);
        assert_eq!(place(Some(at(999 * SECOND)), at(1_001 * SECOND), coarse, false), Place::Next);
    }

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
        let read = |root: &str, inside: &str| read_pushed(document(root, inside).as_bytes());
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
            assert!(read_pushed(bytes.as_bytes()).is_err(), "{bytes}");
        }
    }
}
