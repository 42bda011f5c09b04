//! Numbers and times for people.

use abreast_maintenance::SetStatus;
use abreast_source::projection::pages::{Count, Size};

/// A time of a report for people.
#[expect(clippy::ref_option, reason = "templates pass fields by reference")]
pub(crate) fn moment(time: &Option<String>) -> String {
    let Some((day, rest)) = time.as_deref().and_then(|time| time.split_once('T')) else {
        return String::new();
    };
    format!("{day} {} UTC", rest.get(..5).unwrap_or(rest))
}

/// A time for people, to the second.
pub(crate) fn second(time: &str) -> String {
    match time.split_once('T') {
        Some((day, rest)) => format!("{day} {} UTC", rest.get(..8).unwrap_or(rest)),
        None => time.to_owned(),
    }
}

/// A number for people.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "templates pass fields by reference")]
pub(crate) const fn count(number: &u64) -> Count {
    Count(*number)
}

/// A number of bytes for people.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "templates pass fields by reference")]
pub(crate) const fn size(bytes: &u64) -> Size {
    Size(*bytes)
}

/// A time span for people.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        0.0 => "0 s".to_owned(),
        ..1.0 => format!("{:.0} ms", seconds * 1_000.0),
        ..100.0 => format!("{seconds:.1} s"),
        ..6_000.0 => format!("{:.0} min", seconds / 60.0),
        ..360_000.0 => format!("{:.0} h", seconds / 3_600.0),
        _ => format!("{:.0} days", seconds / 86_400.0),
    }
}

/// A whole number for people.
pub(crate) fn number(value: f64) -> String {
    Count(value.round() as u64).to_string()
}

/// How far the slowest subscriber of a set is behind.
pub(crate) fn lag(set: &SetStatus) -> String {
    match (set.subscribers_lag, set.subscribers_lag_seconds) {
        (Some(lag @ 1..), Some(seconds)) => {
            let noun = if lag == 1 { "notification" } else { "notifications" };
            format!("; {lag} {noun}, {} behind", duration(seconds as f64))
        }
        (Some(lag @ 1..), None) => format!("; {lag} behind"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_to_the_minute() {
        let of = |time: &str| moment(&Some(time.to_owned()));
        assert_eq!(of("2026-02-01T10:03:04.5Z"), "2026-02-01 10:03 UTC");
        assert_eq!((of("x"), moment(&None)), (String::new(), String::new()));
    }

    #[test]
    fn times_of_the_log_have_seconds() {
        assert_eq!(second("2026-02-01T10:03:04.5Z"), "2026-02-01 10:03:04 UTC");
        assert_eq!([second(""), second("x")], ["", "x"]);
    }

    #[test]
    fn durations_have_one_unit() {
        let shown = [0.0, 0.0042, 1.25, 99.9, 150.0, 7_200.0, 400_000.0].map(duration);
        assert_eq!(shown, ["0 s", "4 ms", "1.2 s", "99.9 s", "2 min", "2 h", "5 days"]);
    }
}
