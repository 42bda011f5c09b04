//! Messages about documents that a walk could not read or use.

use crate::plan::planner::PlanContext;
use crate::read::walk::Walked;
use crate::report::clock::now;

/// Reports documents and entries that a walk could not read or use. A copy that lacks resources is
/// never reported as up to date.
pub(super) fn report(
    run: &mut PlanContext<'_, '_>,
    url: &str,
    walked: &Walked,
    uncategorised: u64,
    has_reported: &mut bool,
) {
    if std::mem::replace(has_reported, true) {
        return;
    }
    let report = &mut *run.report;
    for (is_lacking, code, url, message) in remarks(url, walked) {
        if is_lacking {
            report.lacking(code, url, &message);
        } else {
            report.notice(code, url, &message);
        }
    }
    if uncategorised > 0 {
        let message = format!(
            "new resources without categories: {uncategorised}; they are left out until the Sitemap states their categories"
        );
        report.notice("filter.category", url, &message);
    }
}

/// Documents and entries that a walk could not read or use: whether the copy may lack resources,
/// code, document and message.
pub(super) fn remarks<'w>(
    url: &'w str,
    walked: &'w Walked,
) -> impl Iterator<Item = (bool, &'static str, &'w str, String)> {
    let cut = walked.cut.as_ref().map(|cut| {
        let which = if cut.is_newer && !walked.is_back { "newer" } else { "older" };
        let message = format!(
            "{}; {which} changes behind it are not known\n  help: `--baseline` compares with all that the Source lists",
            cut.why
        );
        (true, cut.code, cut.url.as_str(), message)
    });
    let unstable = walked.is_unstable.then(|| {
        let message = "its pages changed each time they were read: changes may be missing\n  \
                       help: they are read again by the next run";
        (true, "list.unstable", url, message.to_owned())
    });
    let unusable = (walked.unusable > 0).then(|| {
        let first = walked.first_unusable.as_deref().unwrap_or_default();
        let message = format!(
            "entries that cannot be used: {}; {first}\n  help: they are read again by every run; \
             `--baseline` compares with a snapshot",
            walked.unusable
        );
        (true, "list.unusable", url, message)
    });
    let future = walked.first_future.map(|future| {
        let date = walked.date.map_or_else(
            || format!("this machine's clock shows {}", now()),
            |date| format!("the server's clock shows {date}"),
        );
        (false, "time.future", url, format!("a change is of {future}, but {date}"))
    });
    [cut, unstable, unusable, future].into_iter().flatten()
}
