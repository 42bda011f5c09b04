//! Instants and their notation: W3C Datetime [rs-core §7, w3c-datetime].

use std::fmt;
use thiserror::Error;

/// An instant: UTC, microseconds since 1970-01-01T00:00:00Z.
///
/// Displays as a complete W3C Datetime; the fraction is written only when it is not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The first instant a four-digit year can write.
    pub const MIN: Self = Self(-62_167_219_200_000_000);
    /// The last instant a four-digit year can write.
    pub const MAX: Self = Self(253_402_300_799_999_999);

    /// From microseconds since 1970, held inside the years 0000 to 9999.
    pub const fn from_micros(micros: i64) -> Self {
        if micros < Self::MIN.0 {
            Self::MIN
        } else if micros > Self::MAX.0 {
            Self::MAX
        } else {
            Self(micros)
        }
    }

    /// From whole seconds since 1970.
    pub const fn from_seconds(seconds: i64) -> Self {
        Self::from_micros(seconds.saturating_mul(1_000_000))
    }

    /// The instant in microseconds since 1970.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Whole seconds since 1970, rounded down.
    pub const fn as_seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// The next instant that this type can represent.
    #[must_use]
    pub const fn next(self) -> Self {
        Self::from_micros(self.0 + 1)
    }

    /// Later by that many microseconds (earlier when negative).
    ///
    /// # Examples
    /// ```
    /// use abreast_webtypes::W3cDatetime;
    ///
    /// let published = W3cDatetime::parse(b"2026-03-01T00:00:00Z")?.instant;
    /// let day_before = published.plus_micros(-86_400_000_000);
    /// assert_eq!(day_before.to_string(), "2026-02-28T00:00:00Z");
    /// # Ok::<(), abreast_webtypes::ParseDatetimeError>(())
    /// ```
    #[must_use]
    pub const fn plus_micros(self, micros: i64) -> Self {
        Self::from_micros(self.0.saturating_add(micros))
    }

    /// Appends the W3C Datetime to `out`; the same text as `Display`, faster.
    pub fn write_to(self, out: &mut Vec<u8>) {
        let seconds = self.as_seconds();
        let fraction = self.0.rem_euclid(1_000_000);
        let (days, second_of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = civil_from_days(days);
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        put(&mut text[0..4], year);
        put(&mut text[5..7], month);
        put(&mut text[8..10], day);
        put(&mut text[11..13], second_of_day / 3_600);
        put(&mut text[14..16], second_of_day / 60 % 60);
        put(&mut text[17..19], second_of_day % 60);
        if fraction == 0 {
            out.extend_from_slice(&text[..19]);
            out.push(b'Z');
        } else {
            put(&mut text[20..26], fraction);
            out.extend_from_slice(&text);
        }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(27);
        self.write_to(&mut text);
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

fn put(out: &mut [u8], mut value: i64) {
    for digit in out.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// How much of a W3C Datetime was written; the rest is taken as its first instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Precision {
    /// A year in the form `YYYY`
    Year,
    /// A month in the form `YYYY-MM`
    Month,
    /// A day in the form `YYYY-MM-DD`
    Day,
    /// A minute, `YYYY-MM-DDThh:mm` with offset
    Minute,
    /// A second, `YYYY-MM-DDThh:mm:ss` with offset
    Second,
    /// A fraction, `YYYY-MM-DDThh:mm:ss.s` with offset; digits after microseconds are dropped
    Fraction,
}

/// A W3C Datetime as read: its first instant, and how precisely it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct W3cDatetime {
    /// The first instant that the text covers.
    pub instant: Timestamp,
    /// The smallest unit that was written.
    pub precision: Precision,
}

/// Why a text is not a W3C Datetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParseDatetimeError {
    /// Not one of the six forms.
    #[error("not a W3C Datetime such as `2026-01-31T09:00:00Z`")]
    Form,
    /// A time without `Z` or `+hh:mm`; guessing the zone would misplace changes.
    #[error("a time needs a zone: `Z` or an offset such as `+01:00`")]
    Zone,
    /// A field is out of its range.
    #[error("no such date or time")]
    Range,
}

/// A time as precisely as it was written: every instant from `first` to `last` may be meant.
///
/// `2026-01-31` is a whole day, `09:00:05Z` a second. Two overlapping moments have no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Moment {
    first: Timestamp,
    last: Timestamp,
}

impl Moment {
    /// The moment of a single instant.
    pub const fn exact(at: Timestamp) -> Self {
        Self { first: at, last: at }
    }

    /// From one instant to another, in either order.
    pub fn between(one: Timestamp, two: Timestamp) -> Self {
        Self { first: one.min(two), last: one.max(two) }
    }

    /// The earliest instant that may be meant.
    pub const fn first(self) -> Timestamp {
        self.first
    }

    /// The latest instant that may be meant.
    pub const fn last(self) -> Timestamp {
        self.last
    }

    /// Whether only one instant may be meant.
    pub fn is_exact(self) -> bool {
        self.first == self.last
    }

    /// Whether each instant that may be meant is earlier than all of `other`.
    ///
    /// # Examples
    /// ```
    /// use abreast_webtypes::W3cDatetime;
    ///
    /// let day = W3cDatetime::parse(b"2026-03-01")?.moment();
    /// let noon = W3cDatetime::parse(b"2026-03-01T12:00:00Z")?.moment();
    /// let next_day = W3cDatetime::parse(b"2026-03-02")?.moment();
    /// assert!(day.is_before(next_day));
    /// // The time may be in any part of the day.
    /// assert!(!day.is_before(noon) && !noon.is_before(day));
    /// # Ok::<(), abreast_webtypes::ParseDatetimeError>(())
    /// ```
    pub fn is_before(self, other: Self) -> bool {
        self.last < other.first
    }

    /// Whether the moment may mean this instant.
    pub fn contains(self, at: Timestamp) -> bool {
        (self.first..=self.last).contains(&at)
    }

    /// The moment with that many microseconds more at both ends, as for a time without a zone.
    ///
    /// # Examples
    /// ```
    /// use abreast_webtypes::W3cDatetime;
    ///
    /// // A time without a zone may be that of any zone from -14 to +14 hours.
    /// const HOUR: i64 = 3_600_000_000;
    /// let read = W3cDatetime::parse(b"2026-03-01T12:00:00Z")?.moment().widened(14 * HOUR);
    /// let in_tokyo = W3cDatetime::parse(b"2026-03-01T12:00:00+09:00")?.instant;
    /// assert!(read.contains(in_tokyo));
    /// # Ok::<(), abreast_webtypes::ParseDatetimeError>(())
    /// ```
    #[must_use]
    pub const fn widened(self, micros: i64) -> Self {
        Self { first: self.first.plus_micros(-micros), last: self.last.plus_micros(micros) }
    }
}

impl From<Timestamp> for Moment {
    fn from(at: Timestamp) -> Self {
        Self::exact(at)
    }
}

impl From<W3cDatetime> for Moment {
    fn from(read: W3cDatetime) -> Self {
        read.moment()
    }
}

impl W3cDatetime {
    /// All instants that the text covers. A fraction counts as precise as its digits, without zeros at its end.
    pub fn moment(self) -> Moment {
        const DAY: i64 = 86_400 * SECOND;
        const SECOND: i64 = 1_000_000;
        let (year, month, _) = civil_from_days(self.instant.as_seconds().div_euclid(86_400));
        let days = |year, month| days_from_civil(year, month, 1).unwrap_or_default();
        let micros = match self.precision {
            Precision::Year => (days(year + 1, 1) - days(year, 1)) * DAY,
            Precision::Month if month == 12 => 31 * DAY,
            Precision::Month => (days(year, month + 1) - days(year, month)) * DAY,
            Precision::Day => DAY,
            Precision::Minute => 60 * SECOND,
            Precision::Second => SECOND,
            Precision::Fraction => {
                let fraction = self.instant.as_micros().rem_euclid(SECOND);
                let steps = [100_000, 10_000, 1_000];
                steps.into_iter().find(|step| fraction != 0 && fraction % step == 0).unwrap_or(1)
            }
        };
        Moment { first: self.instant, last: self.instant.plus_micros(micros - 1) }
    }

    /// Reads one of the six forms of W3C Datetime.
    ///
    /// Lenient where nothing is guessed: lower-case `t` and `z`, and second 60 (a leap second) read
    /// as 59.
    ///
    /// # Examples
    /// ```
    /// use abreast_webtypes::{ParseDatetimeError, Precision, W3cDatetime};
    ///
    /// let read = W3cDatetime::parse(b"1843-06")?;
    /// assert_eq!(read.precision, Precision::Month);
    /// assert_eq!(read.instant.to_string(), "1843-06-01T00:00:00Z");
    /// assert_eq!(W3cDatetime::parse(b"2026-03-01T12:00:00"), Err(ParseDatetimeError::Zone));
    /// # Ok::<(), ParseDatetimeError>(())
    /// ```
    ///
    /// # Errors
    /// See [`ParseDatetimeError`].
    pub fn parse(text: &[u8]) -> Result<Self, ParseDatetimeError> {
        use ParseDatetimeError::{Form, Range, Zone};
        let field = |from: usize, to: usize| digits(text.get(from..to).ok_or(Form)?);
        let sign = |at: usize, allowed: &[u8]| match text.get(at) {
            Some(byte) if allowed.contains(byte) => Ok(()),
            _ => Err(Form),
        };
        let year = field(0, 4)?;
        let at_midnight = |year, month, day, precision| {
            let days = days_from_civil(year, month, day).ok_or(Range)?;
            Ok(Self { instant: Timestamp::from_seconds(days * 86_400), precision })
        };
        if text.len() == 4 {
            return at_midnight(year, 1, 1, Precision::Year);
        }
        sign(4, b"-")?;
        let month = field(5, 7)?;
        if text.len() == 7 {
            return at_midnight(year, month, 1, Precision::Month);
        }
        sign(7, b"-")?;
        let day = field(8, 10)?;
        if text.len() == 10 {
            return at_midnight(year, month, day, Precision::Day);
        }
        sign(10, b"Tt")?;
        let hour = field(11, 13)?;
        sign(13, b":")?;
        let minute = field(14, 16)?;
        let (mut at, mut second, mut micros, mut precision) = (16, 0, 0, Precision::Minute);
        if text.get(at) == Some(&b':') {
            second = field(17, 19)?;
            (at, precision) = (19, Precision::Second);
            if text.get(at) == Some(&b'.') {
                at += 1;
                let mut weight = 100_000;
                let start = at;
                while let Some(digit) = text.get(at).filter(|byte| byte.is_ascii_digit()) {
                    micros += i64::from(digit - b'0') * weight;
                    weight /= 10;
                    at += 1;
                }
                if at == start {
                    return Err(Form);
                }
                precision = Precision::Fraction;
            }
        }
        let offset_minutes = match &text[at.min(text.len())..] {
            [] => return Err(Zone),
            b"Z" | b"z" => 0,
            [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
                let (hours, minutes) = (digits(&[*h1, *h2])?, digits(&[*m1, *m2])?);
                if hours > 23 || minutes > 59 {
                    return Err(Range);
                }
                (hours * 60 + minutes) * if *sign == b'-' { -1 } else { 1 }
            }
            _ => return Err(Form),
        };
        if hour > 23 || minute > 59 || second > 60 {
            return Err(Range);
        }
        let days = days_from_civil(year, month, day).ok_or(Range)?;
        let seconds =
            days * 86_400 + hour * 3_600 + (minute - offset_minutes) * 60 + second.min(59);
        Ok(Self { instant: Timestamp::from_micros(seconds * 1_000_000 + micros), precision })
    }
}

fn digits(text: &[u8]) -> Result<i64, ParseDatetimeError> {
    text.iter().try_fold(0, |value, byte| match byte {
        b'0'..=b'9' => Ok(value * 10 + i64::from(byte - b'0')),
        _ => Err(ParseDatetimeError::Form),
    })
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar; `None` for a day that does not exist.
fn days_from_civil(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(leap),
        _ => return None,
    };
    if day < 1 || day > last {
        return None;
    }
    // Years counted from March, so that the leap day ends a year.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

/// The inverse of [`days_from_civil`].
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_moment_has_every_instant_that_may_be_meant() {
        for (text, last) in [
            ("2024", "2024-12-31T23:59:59.999999Z"),
            ("2024-02", "2024-02-29T23:59:59.999999Z"),
            ("2024-12", "2024-12-31T23:59:59.999999Z"),
            ("2024-02-29", "2024-02-29T23:59:59.999999Z"),
            ("2024-01-01T10:30Z", "2024-01-01T10:30:59.999999Z"),
            ("2024-01-01T10:30:07Z", "2024-01-01T10:30:07.999999Z"),
            ("2024-01-01T10:30:07.5Z", "2024-01-01T10:30:07.599999Z"),
            ("2024-01-01T10:30:07.25Z", "2024-01-01T10:30:07.259999Z"),
            ("2024-01-01T10:30:07.123Z", "2024-01-01T10:30:07.123999Z"),
            ("2024-01-01T10:30:07.123456Z", "2024-01-01T10:30:07.123456Z"),
        ] {
            let read = W3cDatetime::parse(text.as_bytes()).unwrap();
            let moment = read.moment();
            assert_eq!(moment.first(), read.instant, "{text}");
            assert_eq!(moment.last().to_string(), last, "{text}");
        }
    }

    fn read(text: &str) -> Result<(String, Precision), ParseDatetimeError> {
        W3cDatetime::parse(text.as_bytes()).map(|read| (read.instant.to_string(), read.precision))
    }

    #[test]
    fn reads_the_six_forms() {
        for (text, instant, precision) in [
            ("2013", "2013-01-01T00:00:00Z", Precision::Year),
            ("2013-02", "2013-02-01T00:00:00Z", Precision::Month),
            ("2013-02-03", "2013-02-03T00:00:00Z", Precision::Day),
            ("2013-02-03T09:08Z", "2013-02-03T09:08:00Z", Precision::Minute),
            ("2013-02-03T09:08:07+01:00", "2013-02-03T08:08:07Z", Precision::Second),
            ("2013-02-03T09:08:07.5-00:30", "2013-02-03T09:38:07.500000Z", Precision::Fraction),
            ("2016-12-31t23:59:60z", "2016-12-31T23:59:59Z", Precision::Second),
            ("2026-01-01T00:00:00.123456789Z", "2026-01-01T00:00:00.123456Z", Precision::Fraction),
        ] {
            assert_eq!(read(text), Ok((instant.to_owned(), precision)), "{text}");
        }
    }

    #[test]
    fn refuses_what_would_need_a_guess() {
        use ParseDatetimeError::{Form, Range, Zone};
        for (text, error) in [
            ("", Form),
            ("13", Form),
            ("2013-2-3", Form),
            ("2013-02-03T09:08:07", Zone),
            ("2013-02-03T09:08", Zone),
            ("2013-02-30", Range),
            ("2013-02-03T24:00Z", Range),
            ("2013-02-03T09:08:07.Z", Form),
            ("2013-02-03T09:08:07+25:00", Range),
            ("2013-02-03T09:08:07 Z", Form),
            ("yesterday", Form),
        ] {
            assert_eq!(read(text), Err(error), "{text}");
        }
    }

    proptest! {
        #[test]
        fn written_instants_read_back_equal(micros in Timestamp::MIN.as_micros()..=Timestamp::MAX.as_micros()) {
            let instant = Timestamp::from_micros(micros);
            prop_assert_eq!(W3cDatetime::parse(instant.to_string().as_bytes()).map(|read| read.instant), Ok(instant));
        }

        #[test]
        fn no_bytes_panic(text: Vec<u8>) {
            let _ = W3cDatetime::parse(&text);
        }
    }
}
