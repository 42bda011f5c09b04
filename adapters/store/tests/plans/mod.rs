//! Plans of the statements that a server ran, from its log.

/// Settings of a server that logs the plan of each statement. Sequential scans of small tables would
/// hide missing indexes.
pub(crate) const SETTINGS: [&str; 4] = [
    "shared_preload_libraries=auto_explain",
    "auto_explain.log_min_duration=0",
    "auto_explain.log_analyze=on",
    "enable_seqscan=off",
];

/// Checks that the statements in a log read few rows, and by an index but for some small tables.
pub(crate) fn check(log: &str, least: usize, small: &[&str]) {
    let plans: Vec<&str> =
        log.split("Query Text: ").skip(1).filter(|plan| plan.contains("abreast.")).collect();
    assert!(plans.len() > least, "{} plans", plans.len());
    let bad: Vec<&&str> = plans.iter().filter(|plan| reads_too_much(plan, small)).collect();
    assert!(bad.is_empty(), "{bad:#?}");
}

/// A plan that reads many rows: without an index, or most of an index.
fn reads_too_much(plan: &str, small: &[&str]) -> bool {
    let read = plan.lines().filter_map(|line| {
        let (number, _) = line.split_once("(actual ")?.1.split_once(" rows=")?.1.split_once(' ')?;
        number.parse::<u64>().ok()
    });
    let removed = plan.lines().filter_map(|line| {
        let number = line.trim().strip_prefix("Rows Removed by Filter: ")?;
        number.parse::<u64>().ok()
    });
    let is_scan = |line: &str| {
        line.split_once("Seq Scan on ").is_some_and(|(_, table)| {
            !small.iter().any(|small| table.starts_with(&format!("{small} ")))
        })
    };
    removed.max().is_some_and(|removed| removed > 100)
        || read.max().is_some_and(|read| read > 1_500)
        || plan.lines().any(is_scan)
}
