//! The progress bar of a run, in bytes if the lists contain lengths, otherwise in resources.

use abreast_destination::Status;
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use std::cell::Cell;
use std::time::Duration;

/// Shortest time over which a rate is meaningful.
const RATE_AFTER: f64 = 0.5;

/// A bar on standard error; hidden where that is not a terminal.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    begun: Cell<PhaseStart>,
}

/// The phase that is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct PhaseStart {
    /// Last reported number of seconds since the start of the phase. A smaller number means that a new
    /// phase has started.
    seconds: f64,
    /// Bytes received before the phase started.
    bytes: u64,
}

impl Progress {
    /// `shown`: if there is a terminal.
    pub(crate) fn new(shown: bool) -> Self {
        let bar = (shown && crate::program::terminal::error_is_terminal()).then(|| {
            let bar = crate::program::terminal::draw(ProgressBar::no_length());
            if let Ok(style) = ProgressStyle::with_template("{msg:10} {wide_bar} {prefix}") {
                bar.set_style(style);
            }
            bar
        });
        Self { bar, begun: Cell::default() }
    }

    /// Shows how far a run is.
    pub(crate) fn show(&self, status: &Status<'_>) {
        let Some(bar) = &self.bar else { return };
        let (received, text) = self.state(status);
        if bar.is_finished() {
            bar.reset();
        }
        let (done, total) = if status.total_bytes > 0 {
            (received.min(status.total_bytes), status.total_bytes)
        } else {
            (status.done, status.total)
        };
        if total > 0 {
            bar.set_length(total);
        } else {
            bar.unset_length();
        }
        bar.set_position(done);
        bar.set_message(status.phase.to_owned());
        bar.set_prefix(text);
    }

    /// Bytes received in this phase, and the text next to the bar.
    fn state(&self, status: &Status<'_>) -> (u64, String) {
        let mut begun = self.begun.get();
        if status.seconds < begun.seconds
            || begun == PhaseStart::default()
            || status.bytes < begun.bytes
        {
            begun.bytes = status.bytes;
        }
        begun.seconds = status.seconds;
        self.begun.set(begun);
        let received = status.bytes - begun.bytes;
        (received, text(status, received))
    }

    /// Removes the bar until there is something to show again.
    pub(crate) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
            self.begun.set(PhaseStart::default());
        }
    }
}

/// How much is done, how fast, and how long it will take.
fn text(status: &Status<'_>, received: u64) -> String {
    let mut parts = Vec::new();
    let (done, total, seconds) = (status.done, status.total, status.seconds);
    parts.push(match total {
        0 => HumanCount(done).to_string(),
        _ => format!("{}/{}", HumanCount(done), HumanCount(total)),
    });
    let by_bytes = status.total_bytes > 0;
    if by_bytes {
        parts.push(format!(
            "{}/{}",
            HumanBytes(received.min(status.total_bytes)),
            HumanBytes(status.total_bytes)
        ));
    }
    if seconds >= RATE_AFTER {
        if by_bytes && received > 0 {
            parts.push(format!("{}/s", HumanBytes((received as f64 / seconds) as u64)));
        } else if !by_bytes && done > 0 {
            parts.push(format!("{}/s", HumanCount((done as f64 / seconds).round() as u64)));
        }
        let (done, total) = if by_bytes { (received, status.total_bytes) } else { (done, total) };
        if done > 0 && total > done {
            let left = seconds * (total - done) as f64 / done as f64;
            parts.push(format!(
                "{} left",
                humantime::format_duration(Duration::from_secs(left.ceil() as u64))
            ));
        }
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(
        done: u64,
        total: u64,
        bytes: u64,
        total_bytes: u64,
        seconds: f64,
    ) -> Status<'static> {
        Status { phase: "fetching", done, total, bytes, total_bytes, seconds }
    }

    #[test]
    fn large_files_are_counted_in_bytes() {
        let text = |done, bytes| text(&status(done, 3, 0, 3 << 30, 10.0), bytes);
        assert_eq!(text(0, 0), "0/3, 0 B/3.00 GiB");
        assert_eq!(text(0, 1 << 30), "0/3, 1.00 GiB/3.00 GiB, 102.40 MiB/s, 20s left");
        assert_eq!(text(3, 4 << 30), "3/3, 3.00 GiB/3.00 GiB, 409.60 MiB/s");
    }

    #[test]
    fn rates_are_whole_numbers_and_appear_when_they_are_known() {
        let text = |done, total, seconds| text(&status(done, total, 0, 0, seconds), 0);
        assert_eq!(text(624_637, 1_000_000, 3.0), "624,637/1,000,000, 208,212/s, 2s left");
        assert_eq!(text(0, 3, 30.0), "0/3");
        assert_eq!(text(1_234, 0, 0.1), "1,234");
    }

    #[test]
    fn bytes_of_earlier_phases_do_not_count() {
        let progress = Progress { bar: None, begun: Cell::default() };
        assert_eq!(progress.state(&status(0, 0, 5_000, 0, 1.0)).0, 0);
        assert_eq!(progress.state(&status(0, 2, 6_000, 9_000, 0.1)).0, 0);
        assert_eq!(progress.state(&status(1, 2, 8_000, 9_000, 0.2)).0, 2_000);
    }
}
