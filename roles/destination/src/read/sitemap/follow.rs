//! What results from the changes that were read.

use crate::clock::now_seconds;
use crate::error::{Error, ExitCode};
use crate::events::Mode;
use crate::plan::changes::Followed;
use crate::plan::planner::PlanContext;
use std::time::Duration;

/// How long documents may lack what was pushed.
const LATE_MAX: Duration = Duration::from_secs(15 * 60);

/// Whether the changes show all there is to do. If not, and all can be compared, that is reported.
///
/// Since when the documents lack what was pushed is kept under `late_key`, seconds. `only_changes`
/// is the help where there is nothing to compare with.
pub(crate) fn is_followed(
    run: &mut PlanContext<'_, '_>,
    followed: Followed,
    changes: &str,
    late_key: &str,
    only_changes: Option<&'static str>,
) -> Result<bool, Error> {
    let followed = match followed {
        Followed::Late(why) => wait(run, why, late_key)?,
        other => {
            forget_late(run, late_key)?;
            other
        }
    };
    match (followed, only_changes) {
        (Followed::Unchanged | Followed::Late(_), _) => Ok(true),
        (Followed::Planned, _) => {
            run.report.summary.mode = Mode::Incremental;
            Ok(true)
        }
        (Followed::Gap(why), Some(help)) => {
            Err(Error::new("gap", ExitCode::Gap, why).with_help(help))
        }
        (Followed::Gap(why), None) => {
            let message = format!("{why}; comparing with all that the Source has now");
            run.report.notice("gap", changes, &message);
            Ok(false)
        }
    }
}

/// Documents may come later than what is pushed, through caches for example. When they take too
/// long, the Source went back.
fn wait(run: &PlanContext<'_, '_>, why: String, late_key: &str) -> Result<Followed, Error> {
    let (mirror, now) = (run.planner.mirror, now_seconds());
    let since = mirror.meta(late_key)?.and_then(|text| text.parse::<u64>().ok());
    let Some(since) = since.filter(|since| *since <= now) else {
        mirror.set_meta(late_key, Some(&now.to_string()))?;
        return Ok(Followed::Unchanged);
    };
    if now - since < LATE_MAX.as_secs() {
        return Ok(Followed::Unchanged);
    }
    mirror.set_meta(late_key, None)?;
    Ok(Followed::Gap(why))
}

fn forget_late(run: &PlanContext<'_, '_>, late_key: &str) -> Result<(), Error> {
    let mirror = run.planner.mirror;
    if mirror.meta(late_key)?.is_some() {
        mirror.set_meta(late_key, None)?;
    }
    Ok(())
}
