//! The lines that show progress, in the columns that there are.

use abreast_core::{MeterState, Retry};
use abreast_webtypes::{visible, without_logins};
use indicatif::{HumanBytes, HumanCount};
use std::time::{Duration, Instant};
use unicode_width::UnicodeWidthChar as _;

/// Replaces the middle of a long name.
const GAP: &str = "...";
/// Fewest columns of a name with a gap.
const NAME_MIN: usize = 8;

/// A phase with its speed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown<'a> {
    /// The job or set, if several run.
    pub(crate) job: Option<&'a str>,
    pub(crate) state: MeterState,
    pub(crate) speed: Speed,
}

/// Items and bytes in a second; `None` while they are not known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Speed {
    pub(crate) items: Option<f64>,
    pub(crate) bytes: Option<f64>,
}

/// The columns that a text needs at most.
trait Columns {
    /// The sum of the widths of all characters: not every terminal joins a sequence of emoji.
    fn width(&self) -> usize;
}

impl Columns for str {
    fn width(&self) -> usize {
        self.chars().map(|char| char.width().unwrap_or(0)).sum()
    }
}

/// The fields of a line after the phase, in order. In too few columns, the last ones are left out.
const FIELDS: [fn(&Shown<'_>) -> Option<String>; 4] = [items, bytes, speed, left];

fn phase(shown: &Shown<'_>) -> String {
    match shown.job {
        Some(job) => format!("{}: {}", printable(job), shown.state.phase),
        None => shown.state.phase.to_owned(),
    }
}

fn items(shown: &Shown<'_>) -> Option<String> {
    let MeterState { done, total, .. } = shown.state;
    Some(match (done, total) {
        (0, 0) => return None,
        (_, 0) => HumanCount(done).to_string(),
        _ => format!("{}/{}", HumanCount(done), HumanCount(total)),
    })
}

fn bytes(shown: &Shown<'_>) -> Option<String> {
    let MeterState { bytes, total_bytes, .. } = shown.state;
    match (bytes, total_bytes) {
        (0, 0) => None,
        (_, 0) => Some(HumanBytes(bytes).to_string()),
        // Bytes that are received again are not in the total.
        _ => Some(format!("{}/{}", HumanBytes(bytes.min(total_bytes)), HumanBytes(total_bytes))),
    }
}

fn speed(shown: &Shown<'_>) -> Option<String> {
    if shown.state.bytes > 0 {
        return shown.speed.bytes.map(|speed| format!("{}/s", HumanBytes(speed as u64)));
    }
    let speed = shown.speed.items.filter(|_| shown.state.done > 0)?;
    Some(format!("{}/s", HumanCount(speed.round() as u64)))
}

fn left(shown: &Shown<'_>) -> Option<String> {
    let MeterState { done, total, bytes, total_bytes, .. } = shown.state;
    let (rest, speed) = if total_bytes > 0 {
        (total_bytes.saturating_sub(bytes), shown.speed.bytes?)
    } else {
        (total.saturating_sub(done), shown.speed.items?)
    };
    let seconds = rest as f64 / speed;
    // Less than one hundredth of an item a second: nobody knows.
    if rest == 0 || !seconds.is_finite() || seconds > 1e9 {
        return None;
    }
    Some(format!("{} left", short_time(Duration::from_secs_f64(seconds.ceil()))))
}

/// A time in its two largest units.
fn short_time(time: Duration) -> String {
    let seconds = time.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {}s", seconds % 60),
        (0, _, _) => format!("{hours}h {}m", minutes % 60),
        _ => format!("{days}d {}h", hours % 24),
    }
}

/// A phase in one line of at most `columns`.
pub(crate) fn phase_line(shown: &Shown<'_>, columns: usize) -> String {
    let mut fields = vec![phase(shown)];
    fields.extend(FIELDS.iter().filter_map(|field| field(shown)));
    joined(fields, ", ", columns)
}

/// The first parts that fit into `columns`; if none does, the first one shortened.
fn joined(parts: Vec<String>, between: &str, columns: usize) -> String {
    let mut line = String::new();
    for part in parts {
        if line.is_empty() {
            line = shortened(&part, columns);
        } else if line.width() + between.len() + part.width() <= columns {
            line.push_str(between);
            line.push_str(&part);
        } else {
            break;
        }
    }
    line
}

/// A repeated request in one line of at most `columns`.
pub(crate) fn retry_line(retry: &Retry, now: Instant, columns: usize) -> String {
    let seconds = retry.due.saturating_duration_since(now).as_secs_f64().ceil();
    let host = printable(&retry.host);
    let what = format!("retrying {host} in {seconds} s");
    let count = format!("{what} ({} of {})", retry.attempt, retry.attempts);
    let whole = format!("{count}: {}", printable(&retry.cause));
    match [whole, count, what].into_iter().find(|text| text.width() <= columns) {
        Some(text) => text,
        None => shortened(&format!("retrying {host}"), columns),
    }
}

/// A follower that waits, in one line of at most `columns`.
pub(crate) fn idle_line(
    job: Option<&str>,
    last_change: Option<Duration>,
    behind: Duration,
    columns: usize,
) -> String {
    let job = job.map(|job| format!("{}: ", printable(job))).unwrap_or_default();
    let change = match last_change {
        Some(age) => format!("last change {} ago", spaced_time(age)),
        None => "no change yet".to_owned(),
    };
    let following = shortened(&format!("{job}following"), columns);
    let behind = format!("{} behind", spaced_time(behind));
    let rest = columns.saturating_sub(following.width() + 2);
    match joined(vec![change, behind], ", ", usize::MAX) {
        whole if whole.width() <= rest => format!("{following}; {whole}"),
        whole => match whole.split(", ").next().filter(|change| change.width() <= rest) {
            Some(change) => format!("{following}; {change}"),
            None => following,
        },
    }
}

/// A time for a sentence, such as `3 s`.
fn spaced_time(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds @ 3_600..86_400 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// The lines of a phase on a terminal: at most `rows`, each of at most `columns`.
pub(crate) fn block(shown: &Shown<'_>, now: Instant, columns: usize, rows: usize) -> Vec<String> {
    let mut lines = vec![phase_line(shown, columns)];
    lines.extend(shown.state.retry.iter().map(|retry| retry_line(retry, now, columns)));
    let names = columns.saturating_sub(2);
    if names >= NAME_MIN {
        let names = shown
            .state
            .names
            .iter()
            .map(|name| format!("  {}", shortened(&printable(name), names)));
        lines.extend(names);
    }
    lines.truncate(rows.max(1));
    lines
}

/// A phase in a line for a log: with the repeated request and the names, as far as they fit.
pub(crate) fn log_line(shown: &Shown<'_>, now: Instant, columns: usize) -> String {
    let mut parts = vec![phase_line(shown, columns)];
    parts.extend(shown.state.retry.iter().map(|retry| retry_line(retry, now, columns)));
    parts.extend(shown.state.names.iter().map(|name| shortened(&printable(name), columns / 4)));
    joined(parts, "; ", columns)
}

/// An ended phase in a line for a log, with its mean speed.
pub(crate) fn end_line(job: Option<&str>, ended: &MeterState, columns: usize) -> String {
    let seconds = ended.elapsed.as_secs_f64();
    let mean = |count: u64| (seconds > 0.0).then(|| count as f64 / seconds);
    let speed = Speed { items: mean(ended.done), bytes: mean(ended.bytes) };
    let shown =
        Shown { job, state: MeterState { total: 0, total_bytes: 0, ..ended.clone() }, speed };
    let parts = vec![phase_line(&shown, columns), format!("done in {}", short_time(ended.elapsed))];
    joined(parts, "; ", columns)
}

/// A name with escaped control characters, and without logins.
fn printable(name: &str) -> String {
    visible(&without_logins(name)).into_owned()
}

/// The text in at most `columns`, with a gap in the middle if it is longer.
pub(crate) fn shortened(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(GAP.len());
    if room == 0 {
        return GAP[..columns.min(GAP.len())].to_owned();
    }
    // The end of a name is more specific than its start.
    let (start, end) = (room / 2, room - room / 2);
    let mut head = String::new();
    for char in text.chars() {
        if head.width() + char.width().unwrap_or(0) > start {
            break;
        }
        head.push(char);
    }
    let mut tail = Vec::new();
    let mut width = 0;
    for char in text.chars().rev() {
        width += char.width().unwrap_or(0);
        if width > end {
            break;
        }
        tail.push(char);
    }
    head + GAP + &tail.into_iter().rev().collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(done: u64, total: u64, bytes: u64, total_bytes: u64) -> Shown<'static> {
        let state = MeterState {
            phase: "fetching",
            done,
            total,
            bytes,
            total_bytes,
            ..MeterState::default()
        };
        let speed = Speed { items: Some(4.0), bytes: Some(1_048_576.0) };
        Shown { job: None, state, speed }
    }

    #[test]
    fn fields_are_left_out_from_the_right() {
        let shown = shown(1_234, 5_678, 1 << 30, 3 << 30);
        for (columns, line) in [
            (200, "fetching, 1,234/5,678, 1.00 GiB/3.00 GiB, 1.00 MiB/s, 34m 8s left"),
            (80, "fetching, 1,234/5,678, 1.00 GiB/3.00 GiB, 1.00 MiB/s, 34m 8s left"),
            (60, "fetching, 1,234/5,678, 1.00 GiB/3.00 GiB, 1.00 MiB/s"),
            (40, "fetching, 1,234/5,678, 1.00 GiB/3.00 GiB"),
            (39, "fetching, 1,234/5,678"),
            (20, "fetching"),
            (7, "fe...ng"),
            (2, ".."),
        ] {
            assert_eq!(phase_line(&shown, columns), line);
            let named = Shown { job: Some("papers"), ..shown.clone() };
            assert!(phase_line(&named, columns).width() <= columns);
        }
    }

    #[test]
    fn speed_and_time_left_are_of_bytes_or_of_items() {
        let line = |shown: &Shown<'_>| phase_line(shown, 200);
        assert_eq!(line(&shown(8, 20, 0, 0)), "fetching, 8/20, 4/s, 3s left");
        assert_eq!(line(&shown(8, 0, 0, 0)), "fetching, 8, 4/s");
        assert_eq!(line(&shown(8, 20, 100, 0)), "fetching, 8/20, 100 B, 1.00 MiB/s, 3s left");
        assert_eq!(line(&shown(1, 1, 9, 5)), "fetching, 1/1, 5 B/5 B, 1.00 MiB/s");
        let stalled = Speed { items: Some(0.0), bytes: Some(0.0) };
        let stalled = Shown { speed: stalled, ..shown(1, 2, 3, 4) };
        assert_eq!(line(&stalled), "fetching, 1/2, 3 B/4 B, 0 B/s");
        let unknown = Shown { speed: Speed::default(), ..shown(0, 2, 0, 0) };
        assert_eq!(line(&unknown), "fetching, 0/2");
    }

    /// Long and odd names, each with its text in 40 columns.
    const NAMES: [(&str, &str); 8] = [
        ("a.pdf", "a.pdf"),
        (
            "2024/reports/a-very-long-name-of-a-report-with-figures.pdf",
            "2024/reports/a-ver...rt-with-figures.pdf",
        ),
        (
            "日本語の長い名前のファイル/日本語の長い名前のファイル.pdf",
            "日本語の長い名前の...名前のファイル.pdf",
        ),
        ("e\u{301}e\u{301}e\u{301}.txt", "e\u{301}e\u{301}e\u{301}.txt"),
        ("line\nbreak\ttab\u{1b}[2J", "line\\nbreak\\ttab\\u001b[2J"),
        ("\u{202e}fdp.exe", "\\u202efdp.exe"),
        ("http://me:hush@h/secret.txt", "http://h/secret.txt"),
        ("👩‍👩‍👧‍👦.png", "👩‍👩‍👧‍👦.png"),
    ];

    #[test]
    fn names_are_escaped_and_shortened_in_the_middle() {
        for (name, text) in NAMES {
            let mut shown = shown(1, 2, 3, 4);
            shown.state.names = vec![name.to_owned()];
            assert_eq!(block(&shown, Instant::now(), 42, 9)[1], format!("  {text}"), "{name:?}");
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let now = Instant::now();
        let retry = Retry {
            host: "a-host-with-a-long-name.of-a-domain.example.org".to_owned(),
            due: now + Duration::from_millis(11_500),
            attempt: 2,
            attempts: 5,
            cause: "connection refused\u{7}".to_owned(),
        };
        let long = "x/".repeat(3_000);
        let mut names: Vec<String> = NAMES.iter().map(|(name, _)| (*name).to_owned()).collect();
        names.extend([long, "語".repeat(500), "\u{1b}".repeat(300)]);
        for columns in [1, 5, 20, 40, 60, 80, 200] {
            for (done, bytes) in [(0, 0), (u64::MAX, u64::MAX), (12_345, 678)] {
                let mut shown = shown(done, u64::MAX, bytes, u64::MAX);
                shown.state.names.clone_from(&names);
                shown.state.retry = Some(retry.clone());
                let mut lines = block(&shown, now, columns, 100);
                lines.push(log_line(&shown, now, columns));
                lines.push(idle_line(
                    Some("j"),
                    Some(Duration::from_secs(3)),
                    Duration::ZERO,
                    columns,
                ));
                for line in lines {
                    assert!(line.width() <= columns, "{} of {columns}: {line}", line.width());
                    assert_eq!(visible(&line), line, "control characters");
                }
            }
            assert_eq!(block(&shown(0, 0, 0, 0), now, columns, 0).len(), 1);
        }
    }

    #[test]
    fn a_retry_is_told_with_its_time_and_cause() {
        let now = Instant::now();
        let (host, cause) = ("example.org".to_owned(), "connection refused".to_owned());
        let due = now + Duration::from_millis(11_500);
        let retry = Retry { host, due, attempt: 2, attempts: 5, cause };
        for (columns, line) in [
            (200, "retrying example.org in 12 s (2 of 5): connection refused"),
            (60, "retrying example.org in 12 s (2 of 5): connection refused"),
            (40, "retrying example.org in 12 s (2 of 5)"),
            (30, "retrying example.org in 12 s"),
            (20, "retrying example.org"),
        ] {
            assert_eq!(retry_line(&retry, now, columns), line);
        }
    }

    #[test]
    fn a_follower_tells_its_last_change_and_how_far_it_is_behind() {
        let seconds = Duration::from_secs;
        let line = |columns| idle_line(None, Some(seconds(3)), seconds(2), columns);
        assert_eq!(line(80), "following; last change 3 s ago, 2 s behind");
        assert_eq!(line(40), "following; last change 3 s ago");
        assert_eq!(line(20), "following");
        assert_eq!(
            idle_line(Some("papers"), None, seconds(7_200), 80),
            "papers: following; no change yet, 2 h behind"
        );
    }

    #[test]
    fn the_end_of_a_phase_has_its_mean_speed() {
        let ended = MeterState { elapsed: Duration::from_secs(2), ..shown(8, 9, 4_096, 0).state };
        let line = end_line(Some("papers"), &ended, 200);
        assert_eq!(line, "papers: fetching, 8, 4.00 KiB, 2.00 KiB/s; done in 2s");
    }

    #[test]
    fn a_line_of_a_log_has_the_names_that_fit() {
        let mut shown = shown(1, 2, 3, 4);
        shown.state.names = vec!["a b".to_owned(), "c\nd".to_owned(), "e".repeat(300)];
        let line = log_line(&shown, Instant::now(), 120);
        let all = "fetching, 1/2, 3 B/4 B, 1.00 MiB/s, 1s left; a b; c\\nd; ";
        assert!(line.starts_with(all) && line.contains("eee...eee"), "{line}");
    }
}
