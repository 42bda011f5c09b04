//! Notifications that continue from the cursor of the copy: their changes are applied like those of
//! a Change List, and none is requested [rs-change-notification §3].
//!
//! Each notification states the time since which it has all changes. One that begins after what the
//! copy knows was preceded by others that are missing: then, and whenever anything is odd, the
//! lists are asked. What ends before is old, and changes nothing however often it comes.

use super::cursor as kept;
use super::notification::{Notification, read_notification};
use crate::error::Error;
use crate::events::Mode;
use crate::plan::changes::Seen;
use crate::plan::planner::PlanContext;
use crate::read::sitemap::pushed::{Place, plan_pushed};
use abreast_webtypes::Timestamp;

/// The cursor, when a notification moved it and no list has confirmed it yet, microseconds.
pub(crate) const PUSHED: &str = "pushed";
/// Since when lists lack what notifications announced, seconds.
pub(crate) const LISTS_LATE: &str = "lists-late";
/// Up to when the last notification that was applied knew all changes, microseconds.
const ANNOUNCED_UNTIL: &str = "told-until";

/// Plans what was announced; `false` when the lists have to be requested. `announced` is the time
/// up to which changes are known to be missing.
pub(crate) fn plan_announced(
    run: &mut PlanContext<'_, '_>,
    change_list: &str,
    cursor: Timestamp,
    announced: &mut Option<Timestamp>,
) -> Result<bool, Error> {
    let read = |bytes: &[u8]| read_notification(bytes).map(|one| (one.until, one));
    plan_pushed(run, change_list, announced, &read, &|run, mut read| {
        // Whatever order they came in.
        read.sort_by_key(|notification| (notification.from, notification.until));
        plan_notifications(run, change_list, cursor, &read)
    })
}

fn plan_notifications(
    run: &mut PlanContext<'_, '_>,
    change_list: &str,
    known: Timestamp,
    notifications: &[Notification],
) -> Result<bool, Error> {
    let time =
        |text: Option<String>| text.and_then(|text| text.parse().ok()).map(Timestamp::from_micros);
    let mut announced = time(run.planner.mirror.meta(ANNOUNCED_UNTIL)?);
    let announced_before = announced;
    let mut cursor = known;
    let mut seen = Seen::default();
    for notification in notifications {
        match place(notification.from, notification.until, cursor, announced) {
            Place::Old => continue,
            Place::Apart => return Ok(false),
            Place::Next => {}
        }
        let mut reading = run.reading_changes(change_list);
        seen.next_list();
        for change in notification.changes(change_list) {
            run.note_change(&change, known, &mut seen, &mut reading)?;
        }
        cursor = cursor.max(reading.newest.unwrap_or(cursor));
        announced = Some(notification.until);
    }
    if announced == announced_before {
        return Ok(true);
    }
    run.planner.since.get_or_insert(known);
    run.plan_coming()?;
    run.report.summary.mode = Mode::Incremental;
    let text = |time: Timestamp| time.as_micros().to_string();
    run.planner.mirror.set_meta(ANNOUNCED_UNTIL, announced.map(text).as_deref())?;
    if cursor > known {
        kept::set_to_change(run.planner.mirror, cursor)?;
        run.planner.mirror.set_meta(PUSHED, Some(&text(cursor)))?;
    }
    Ok(true)
}

/// Whether a notification moved the cursor to where it is, and no list has confirmed that yet.
pub(crate) fn is_pushed(run: &PlanContext<'_, '_>, cursor: Timestamp) -> Result<bool, Error> {
    Ok(run.planner.mirror.meta(PUSHED)?.is_some_and(|text| text == cursor.as_micros().to_string()))
}

/// Where a notification of that span stands beside a copy.
fn place(
    from: Timestamp,
    until: Timestamp,
    cursor: Timestamp,
    announced: Option<Timestamp>,
) -> Place {
    // Of changes within one second of a coarse clock some may have come before others.
    let is_fine = cursor.as_micros() % 1_000_000 != 0;
    if until < cursor || until == cursor && is_fine {
        return Place::Old;
    }
    // A notification that repeats the last one repeats what was done, unless another change
    // followed within that second.
    if until == cursor || announced.is_some_and(|announced| until <= announced) {
        return Place::Apart;
    }
    if from < cursor || Some(from) == announced || from == cursor && is_fine {
        Place::Next
    } else {
        Place::Apart
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    fn place(from: i64, until: i64, cursor: i64, announced: Option<i64>) -> Place {
        super::place(at(from), at(until), at(cursor), announced.map(at))
    }

    #[test]
    fn only_what_goes_on_from_what_is_known_is_applied() {
        let begin = 1_000 * SECOND + 1;
        for (from, until, announced, expected) in [
            // What ends where the copy stands, or before, is old.
            (begin - 9, begin - 5, None, Place::Old),
            (begin - 9, begin, None, Place::Old),
            // One that begins there, or before, continues.
            (begin, begin + 5, None, Place::Next),
            (begin - 9, begin + 5, None, Place::Next),
            // What begins later does not, unless it was stated that nothing was between.
            (begin + 1, begin + 5, None, Place::Apart),
            (begin + 1, begin + 5, Some(begin + 1), Place::Next),
            (begin + 2, begin + 5, Some(begin + 1), Place::Apart),
            (begin + 1, begin + 5, Some(begin + 9), Place::Apart),
        ] {
            assert_eq!(
                place(from, until, begin, announced),
                expected,
                "{from} {until} {announced:?}"
            );
        }
    }

    #[test]
    fn a_clock_of_whole_seconds_is_ambiguous_within_a_second() {
        let begin = 1_000 * SECOND;
        assert_eq!(
            place(begin - SECOND, begin, begin, Some(begin)),
            Place::Apart,
            "it may be the same change, or another one"
        );
        assert_eq!(
            place(begin, begin + SECOND, begin, None),
            Place::Apart,
            "others of that second may be missing"
        );
        assert_eq!(
            place(begin, begin + SECOND, begin, Some(begin)),
            Place::Next,
            "it goes on from the one before"
        );
        assert_eq!(
            place(begin - SECOND, begin + SECOND, begin, None),
            Place::Next,
            "it has all of that second"
        );
        assert_eq!(place(begin - 2 * SECOND, begin - SECOND, begin, None), Place::Old);
    }
}
