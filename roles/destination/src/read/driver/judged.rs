//! The conclusions from a walk through changes and the copy's position, and the next position.

use crate::read::marks::Marks;
use crate::read::position::{Due, Of, Position, Span};
use crate::read::walk::Walked;
use crate::report::clock::now;
use crate::report::error::Error;
use abreast_store::mirror::{Document, Mirror};
use abreast_webtypes::{Moment, Timestamp};

/// What changes show.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Judged {
    /// The changes continue from the position.
    Continued,
    /// The documents lack pushed changes; the text describes the gap if these changes remain
    /// missing.
    Late(String),
    /// Some changes since the position cannot be known; with the reason.
    Gap(Due),
}

impl Judged {
    /// Replaces the result if `is_older`: the list of all resources is older than a list that was
    /// read before, and no listed change explains the newer version in the copy.
    pub(super) fn or_older_list(
        self,
        is_older: bool,
        position: &Position,
        walked: &Walked,
    ) -> Self {
        let begin = position.until().filter(|_| is_older && self == Self::Continued);
        let is_reached = |begin: Moment| {
            walked.from.is_some_and(|from| from.first() <= begin.first())
                || walked.oldest.is_some_and(|oldest| oldest <= begin.first())
        };
        let is_moving = walked.is_unstable || walked.has_grown || walked.left_out;
        if is_moving || !begin.is_some_and(is_reached) {
            return self;
        }
        let why = "the list of all resources is older than the one that was read before, and neither the list nor the changes since \
                   then account for what the copy has: the Source went back";
        Self::Gap(Due::new(why, true))
    }
}

/// Judges a walk by the position before the walk.
///
/// If changes are missing, and all remaining changes are later, the Source has removed old changes;
/// otherwise the Source was restored to an earlier version. Documents that changed while they were
/// read are not evidence of missing changes.
pub(super) fn judge_walk(position: &Position, walked: &Walked, marks: &Marks) -> Judged {
    let is_newer_cut = walked.cut.as_ref().is_some_and(|cut| cut.is_newer);
    let is_moving = walked.is_unstable || walked.has_grown;
    let lost = marks
        .newest_lost(walked.end.or(walked.from.map(Moment::first)))
        .or(marks.ahead.newest_lost(walked.from).filter(|_| walked.cut.is_none()))
        .filter(|_| !is_newer_cut && !is_moving && (walked.dated > 0 || walked.entries == 0));
    // Documents that cover the time of the change and do not list it belong to another history.
    let is_removed = lost.is_some_and(|lost| {
        walked.oldest.is_some_and(|oldest| lost < oldest)
            && walked.from.is_none_or(|from| lost < from.first())
    });
    let went_back = |time: Timestamp| {
        format!(
            "the changes of {time}, which were applied, are not listed any more: the Source went back"
        )
    };
    let Some(until) = position.until() else {
        // A walk that was cut saw changes, and the position did not move.
        return match lost.filter(|_| walked.cut.is_none() && !is_removed) {
            Some(lost) => Judged::Gap(Due::new(went_back(lost), true)),
            None => Judged::Continued,
        };
    };
    let (why, is_uncertain) = if walked.is_ahead {
        let why = format!(
            "the copy is known up to {}, which the Source's clock has not reached: its clock was wrong then, or is now",
            until.first()
        );
        (why, true)
    } else if let Some(why) = &walked.went_back {
        (why.clone(), true)
    } else if let Some(why) = &walked.hole {
        // The remaining changes end before the missing one.
        let newest = walked.newest.map(Moment::last);
        (why.clone(), lost.zip(newest).is_some_and(|(lost, newest)| newest < lost))
    } else if let Some(from) = walked.from.filter(|from| !position.is_touched_by(*from)) {
        let (from, until) = (from.first(), until.first());
        let why = format!(
            "the changes that are listed begin at {from}, after {until}, up to which the copy is known"
        );
        (why, false)
    } else if let Some(seen) = position.newest_seen().filter(|seen| {
        let newest = walked
            .newest
            .filter(|_| walked.from.is_none() && walked.end.is_none() && !is_newer_cut);
        newest.is_some_and(|newest| newest.last() < *seen)
    }) {
        let newest = walked.newest.map(|newest| newest.first().to_string()).unwrap_or_default();
        let why = format!("the changes end at {newest}, and changes of {seen} were seen already");
        (why, true)
    } else {
        let is_unchanged_end =
            walked.entries == 0 && walked.from.is_some_and(|from| from.contains(until.first()));
        match lost.filter(|_| !is_unchanged_end) {
            Some(lost) if is_removed => {
                let why = format!(
                    "the changes of {lost}, up to which the copy is known, were removed from those listed"
                );
                (why, false)
            }
            Some(lost) => (went_back(lost), true),
            None => return Judged::Continued,
        }
    };
    // Documents with later changes must contain the pushed changes.
    let has_later = walked.newest.is_some_and(|newest| newest.first() > until.last());
    if position.of() == Of::Pushed && !has_later {
        Judged::Late(why)
    } else {
        Judged::Gap(Due::new(why, is_uncertain))
    }
}

/// The reason why changes between a snapshot and the listed changes after a gap are unknown: the
/// copy knew later changes before the gap, or the documents do not specify the start of their
/// changes. The snapshot may lack changes of the copy since `open_since`.
pub(super) fn unknown_between(
    position: &Position,
    walked: &Walked,
    known_before: Option<Timestamp>,
    open_since: Option<Timestamp>,
) -> Option<String> {
    let snapshot = position.snapshot()?;
    if open_since.is_none()
        && known_before.is_none_or(|known| known <= snapshot && !walked.is_apart)
    {
        return None;
    }
    let begin = open_since.unwrap_or(snapshot);
    let is_reached = walked.from.is_some_and(|from| from.first() <= begin)
        || walked.oldest.is_some_and(|oldest| oldest <= begin);
    let why = || {
        format!(
            "the list of all resources is of {snapshot}, and the changes since then are not all listed"
        )
    };
    (!is_reached).then(|| walked.recheck.clone().unwrap_or_else(why))
}

/// The position after a walk; `is_first` after a snapshot, or if all changes were read.
pub(super) fn moved(
    mut after: Position,
    walked: Walked,
    mut marks: Marks,
    is_first: bool,
    mirror: &Mirror,
) -> Result<Position, Error> {
    after.late_since = None;
    after.gives_end = walked.gives_end;
    after.see(walked.newest.map(Moment::first));
    after.note_recent(&walked.recent);
    // If the walk missed older changes, they are recorded as unknown. If it missed newer changes,
    // or changes since the position, they are read again.
    let is_cut_short = walked.cut.as_ref().is_some_and(|cut| cut.is_newer || !is_first);
    // Changes that were not reached may be before the newest change, unless documents lead on from
    // the oldest change.
    let leads_on = walked.cut.as_ref().is_some_and(|cut| cut.is_newer) && !walked.is_back;
    if !walked.left_out && !walked.is_unstable && (!is_cut_short || leads_on) {
        after.settle(walked.newest.map(Moment::first));
    }
    if walked.left_out || walked.is_unstable || is_cut_short {
        // An omitted entry may be any change, so the next run reads all documents again.
        after.bookmark = None;
        for (url, _) in &walked.documents {
            mirror.set_document(url, &Document::default())?;
        }
        after.glimpse(marks);
        return Ok(after);
    }
    after.due = None;
    let newest = walked.newest.map(|newest| newest.widened(walked.widen));
    let until = match (newest, walked.limit) {
        (Some(newest), Some(limit)) if limit < newest.first() => Some(Moment::exact(limit)),
        (newest, _) => newest,
    };
    let is_cut = walked.cut.is_some();
    if after.until().is_none() && !is_cut && walked.from.is_none() {
        after.note_begin();
    }
    // The span was judged: it continues from the position, or what lies between is noted as unknown.
    let span = Span { from: walked.from, until, is_joined: true };
    let ahead = std::mem::take(&mut marks.ahead);
    let advanced = after.advance(&span, Of::Change, marks.into_newest(is_cut));
    debug_assert!(advanced.is_ok(), "a joined span is never apart");
    after.note_ahead(ahead);
    after.confirm();
    after.note_future(&walked.future, now());
    after.bookmark = walked.bookmark;
    for (url, document) in &walked.documents {
        mirror.set_document(url, document)?;
    }
    Ok(after)
}
