//! The status of a watch, as its node publishes it for other nodes, and the requests of these nodes.

use crate::scan::guard::Held;
use crate::scan::watch_state::WatchState;
use abreast_core::NOTE_BYTES_MAX;
use abreast_webtypes::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most bytes of a text in a note.
const TEXT_BYTES_MAX: usize = 1_000;

/// The status of a watch that a node publishes for other nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct WatchNote {
    /// Whether the watch starts, reads, waits or fails.
    pub state: WatchState,
    /// Deletions that wait for a confirmation.
    pub held: Option<Held>,
    /// Keys of some of the resources whose deletion is held.
    pub held_names: Vec<String>,
    /// Number of the judgement by which the deletions are held. A process uses each number once.
    pub(crate) judgement: u64,
    /// Whether the held deletions are confirmed and not yet recorded.
    pub(crate) is_confirming: bool,
    /// End of the last full scan, in microseconds since 1970.
    pub(crate) last_scan: Option<i64>,
    /// Number of files and folders that the last full scan could not read.
    pub problems: u64,
    /// Texts of some of these problems.
    pub problem_texts: Vec<String>,
    /// In sets of entities: numbers of blank nodes that belong to several entities, and that do not
    /// belong to any entity.
    pub(crate) blank_nodes: Option<(u64, u64)>,
}

impl WatchNote {
    /// Reads a note, which a program of another version may have written.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// End of the last full scan; `None` before the first scan ends.
    pub fn last_scan(&self) -> Option<Timestamp> {
        self.last_scan.map(Timestamp::from_micros)
    }

    /// The text of the note. Long texts are cut, and keys are left out, until the note is short enough.
    pub(crate) fn text(mut self) -> String {
        if let WatchState::Vanished(reason) | WatchState::Failed(reason) = &mut self.state {
            cut(reason);
        }
        self.problem_texts.iter_mut().for_each(cut);
        loop {
            // JSON can express all of these values.
            let text = serde_json::to_string(&self).unwrap_or_default();
            if text.len() <= NOTE_BYTES_MAX {
                return text;
            }
            if self.held_names.pop().is_none() && self.problem_texts.pop().is_none() {
                return String::new();
            }
        }
    }
}

/// Shortens a text to the limit, at the end of a character.
fn cut(text: &mut String) {
    if text.len() > TEXT_BYTES_MAX {
        let end = (0..=TEXT_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
        text.push('…');
    }
}

/// The number of the next judgement of held deletions in this process.
pub(crate) fn next_judgement() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// A request of another node to the node that watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchRequest {
    /// Read the folder, the files or the endpoint now.
    Scan,
    /// Record the deletions that this judgement holds.
    Confirm(u64),
}

impl WatchRequest {
    /// Reads a request, which a program of another version may have written.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text.split_once(' ') {
            None => (text == "scan").then_some(Self::Scan),
            Some(("confirm", judgement)) => judgement.parse().ok().map(Self::Confirm),
            Some(_) => None,
        }
    }
}

impl fmt::Display for WatchRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scan => f.write_str("scan"),
            Self::Confirm(judgement) => write!(f, "confirm {judgement}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_as_they_were_written() {
        for state in [
            WatchState::Starting,
            WatchState::Watching,
            WatchState::Vanished("\u{0}gone \"\u{e4}\"".to_owned()),
        ] {
            let note = WatchNote {
                state,
                held: Some(Held { missing: 28, left_out: 1, of: 30, before: 2 }),
                held_names: vec!["a".to_owned(), "\u{7}\n".to_owned()],
                judgement: u64::MAX,
                is_confirming: true,
                last_scan: Some(1),
                problems: 3,
                problem_texts: vec!["b".to_owned()],
                blank_nodes: Some((1, 2)),
            };
            assert_eq!(WatchNote::parse(&note.clone().text()), Some(note));
        }
        assert_eq!(WatchNote::parse("{\"state\":\"later\"}"), None);
    }

    #[test]
    fn long_notes_are_cut() {
        let long = "\u{e4}\u{0}".repeat(2_000);
        let note = WatchNote {
            state: WatchState::Failed(long.clone()),
            held: Some(Held { missing: 28, left_out: 0, of: 30, before: 0 }),
            held_names: vec![long.clone(); 20],
            problem_texts: vec![long; 10],
            ..WatchNote::default()
        };
        let text = note.text();
        assert!(text.len() <= NOTE_BYTES_MAX && !text.contains('\u{0}'), "{}", text.len());
        let read = WatchNote::parse(&text).unwrap();
        assert_eq!(read.held.map(|held| held.missing), Some(28));
        assert!(matches!(read.state, WatchState::Failed(reason) if reason.len() < 1_010));
    }

    #[test]
    fn requests_are_read_as_they_were_written() {
        for request in [WatchRequest::Scan, WatchRequest::Confirm(u64::MAX)] {
            assert_eq!(WatchRequest::parse(&request.to_string()), Some(request));
        }
        for other in ["", "scan 1", "confirm", "confirm x", "confirm -1", "drop"] {
            assert_eq!(WatchRequest::parse(other), None, "{other}");
        }
    }
}
