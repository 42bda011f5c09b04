//! Times of providers, and how documents state them.

use std::fmt::Write as _;

/// Microseconds of a second, and of a day.
pub(super) const SECOND: i64 = 1_000_000;
pub(super) const DAY: i64 = 86_400 * SECOND;
/// 2026-01-01.
pub(super) const EPOCH: i64 = 1_767_225_600 * SECOND;

/// How exact the times of activities are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Days.
    Day,
    /// Seconds.
    Second,
    /// Microseconds.
    Micro,
}

impl Precision {
    pub(super) fn round(self, time: i64) -> i64 {
        match self {
            Self::Day => time / DAY * DAY,
            Self::Second => time / SECOND * SECOND,
            Self::Micro => time,
        }
    }

    /// The shortest time between two that differ.
    pub(super) const fn step(self) -> i64 {
        match self {
            Self::Day => DAY,
            Self::Second => SECOND,
            Self::Micro => 1,
        }
    }
}

/// Year, month and day.
fn date_of(time: i64) -> (i64, i64, i64) {
    // Days since 0000-03-01, in eras of 400 years.
    let days = time.div_euclid(DAY) + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

fn clock_of(time: i64) -> (i64, i64, i64) {
    let seconds = time.rem_euclid(DAY) / SECOND;
    (seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// A time as ISO 8601 has it.
pub(super) fn text(time: i64, precision: Precision) -> String {
    let (year, month, day) = date_of(time);
    let mut text = format!("{year:04}-{month:02}-{day:02}");
    if precision != Precision::Day {
        let (hour, minute, second) = clock_of(time);
        let _ = write!(text, "T{hour:02}:{minute:02}:{second:02}");
        if precision == Precision::Micro {
            let _ = write!(text, ".{:06}", time.rem_euclid(SECOND));
        }
        text.push('Z');
    }
    text
}

/// A time as HTTP has it.
pub(super) fn http_date(time: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (year, month, day) = date_of(time);
    let (hour, minute, second) = clock_of(time);
    let (name, month) =
        (DAYS[time.div_euclid(DAY).rem_euclid(7) as usize], MONTHS[month as usize - 1]);
    format!("{name}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}
