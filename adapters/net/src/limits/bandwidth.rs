//! The bandwidth limit: bytes received per second over all connections, by time of the week.

pub(crate) mod fuzz_property;

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::address::error::{Error, ErrorKind};
use crate::limits::size::parse_size;

/// Minutes of a week.
const WEEK: u32 = 7 * 24 * 60;
/// Most entries of a timetable. An entry without a day counts seven times.
const MAX_ENTRIES: usize = 1_000;
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
/// Part of a second whose bytes may be received at once.
const BURST: f64 = 0.125;
/// How often the timetable is checked.
const LOOK: Duration = Duration::from_secs(1);
/// Least and most bytes received at a time.
const PIECE: (f64, f64) = (1_024.0, 65_536.0);

/// A limit of bytes per second, constant or by a weekly timetable.
///
/// Written as a rate (`512K`, `2.5M`, `off`) or as entries `[DAY-]HH:MM,RATE` separated by spaces,
/// each in force until the time of the next one: `08:00,512K 18:00,off` or
/// `Mon-09:00,1M Fri-17:00,off`.
#[derive(Clone, Debug)]
pub struct Bandwidth {
    /// Start of each entry as minute of the week, from Monday 00:00, in order, with its bytes per
    /// second, `None` for no limit. Never empty.
    entries: Vec<(u32, Option<u64>)>,
    clock: fn() -> u32,
}

impl Bandwidth {
    /// Reads a rate or a timetable. Times are UTC unless [`with_clock`](Self::with_clock) sets
    /// another clock.
    ///
    /// # Examples
    /// ```
    /// use abreast_net::Bandwidth;
    ///
    /// // Half a mebibyte per second while the reading room is open.
    /// assert!(Bandwidth::parse("08:00,512K 18:00,off").is_ok());
    /// let error = Bandwidth::parse("fast").unwrap_err();
    /// assert!(error.to_string().starts_with("`fast` is not a rate"));
    /// ```
    ///
    /// # Errors
    /// The expected form.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |message: String| {
            Error::new(ErrorKind::Header, "", message)
                .with_help("write a rate such as `512K`, `2M` or `off`, or a timetable such as `08:00,512K 18:00,off`")
        };
        let mut entries = Vec::new();
        for word in text.split_whitespace() {
            let Some((when, rate)) = word.split_once(',') else {
                if text.trim() != word {
                    return Err(wrong(format!(
                        "`{word}` is not an entry of a timetable, as it has no comma"
                    )));
                }
                let rate =
                    parse_rate(word).map_err(|()| wrong(format!("`{word}` is not a rate")))?;
                entries.push((0, rate));
                break;
            };
            let rate = parse_rate(rate)
                .map_err(|()| wrong(format!("`{rate}` in `{word}` is not a rate")))?;
            let (days, time) = match when.split_once('-') {
                None => (0..7, when),
                Some((day, time)) => {
                    let day = day.to_ascii_lowercase();
                    let day = DAYS.iter().position(|known| *known == day);
                    let day = day.ok_or_else(|| {
                        wrong(format!("`{word}` does not begin with Mon, Tue … Sun"))
                    })? as u32;
                    (day..day + 1, time)
                }
            };
            let minute = minute_of_day(time)
                .ok_or_else(|| wrong(format!("`{time}` in `{word}` is not a time HH:MM")))?;
            entries.extend(days.map(|day| (day * 24 * 60 + minute, rate)));
            if entries.len() > MAX_ENTRIES {
                return Err(wrong(format!("the timetable has more than {MAX_ENTRIES} entries")));
            }
        }
        if entries.is_empty() {
            return Err(wrong("there is no rate".into()));
        }
        entries.sort_by_key(|(minute, _)| *minute);
        Ok(Self { entries, clock: utc_minute })
    }

    /// Sets the clock, which returns the minute of the week: 0 is Monday 00:00. The default is UTC.
    #[must_use]
    pub fn with_clock(mut self, clock: fn() -> u32) -> Self {
        self.clock = clock;
        self
    }

    /// Bytes per second in force at a minute of the week.
    fn at(&self, minute: u32) -> Option<u64> {
        let minute = minute % WEEK;
        let current = self.entries.iter().rev().find(|(from, _)| *from <= minute);
        // Before the first entry of the week, the last entry is in force.
        current.or(self.entries.last()).and_then(|(_, rate)| *rate)
    }
}

/// Bytes per second, `None` for no limit. A rate of 0 is refused, because nothing could be received, and so is a number
/// alone, because other programs read it as KiB.
fn parse_rate(text: &str) -> Result<Option<u64>, ()> {
    if text.eq_ignore_ascii_case("off") {
        return Ok(None);
    }
    let has_unit = text.ends_with(|last: char| last.is_ascii_alphabetic());
    parse_size(text).filter(|rate| has_unit && *rate > 0).map(Some).ok_or(())
}

fn minute_of_day(text: &str) -> Option<u32> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |text: &str, limit: u32| {
        let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten().filter(|number: &u32| *number < limit)
    };
    Some(number(hours, 24)? * 60 + number(minutes, 60)?)
}

fn utc_minute() -> u32 {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    // 1 January 1970 was a Thursday.
    ((seconds / 60 + 3 * 24 * 60) % u64::from(WEEK)) as u32
}

/// Bytes that may be read now.
#[derive(Debug, PartialEq)]
pub(crate) enum Allowance {
    /// No limit is in force.
    Unlimited,
    /// At most this many bytes may be read.
    Bytes(usize),
    /// The time to wait before reading.
    Wait(Duration),
}

/// A token bucket that all connections draw from.
#[derive(Debug)]
pub(crate) struct Throttle {
    bandwidth: Bandwidth,
    bucket: Mutex<Bucket>,
}

#[derive(Debug)]
struct Bucket {
    rate: Option<f64>,
    /// Bytes that may be received now; below 0 after more were received than allowed.
    available: f64,
    filled: Instant,
    checked_at: Option<Instant>,
}

impl Throttle {
    pub(crate) fn new(bandwidth: Bandwidth) -> Self {
        let bucket =
            Bucket { rate: None, available: 0.0, filled: Instant::now(), checked_at: None };
        Self { bandwidth, bucket: Mutex::new(bucket) }
    }

    pub(crate) fn allowance(&self) -> Allowance {
        self.allowance_at(Instant::now())
    }

    fn allowance_at(&self, now: Instant) -> Allowance {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        if bucket
            .checked_at
            .is_none_or(|checked_at| now.saturating_duration_since(checked_at) >= LOOK)
        {
            bucket.checked_at = Some(now);
            bucket.rate = self.bandwidth.at((self.bandwidth.clock)()).map(|rate| rate as f64);
        }
        let Some(rate) = bucket.rate else {
            (bucket.available, bucket.filled) = (0.0, now);
            return Allowance::Unlimited;
        };
        let gained = now.saturating_duration_since(bucket.filled).as_secs_f64() * rate;
        bucket.available = (bucket.available + gained).min((rate * BURST).max(1.0));
        bucket.filled = now;
        if bucket.available >= 1.0 {
            return Allowance::Bytes((rate * BURST).clamp(PIECE.0, PIECE.1) as usize);
        }
        Allowance::Wait(Duration::from_secs_f64(
            ((1.0 - bucket.available) / rate).clamp(0.001, 1.0),
        ))
    }

    /// Subtracts received bytes.
    pub(crate) fn spend(&self, bytes: usize) {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        if bucket.rate.is_some() {
            bucket.available -= bytes as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timetable_is_in_force_from_entry_to_entry_around_the_week() {
        let table = Bandwidth::parse("08:00,512K 18:00,off Sun-10:00,2M").unwrap();
        let at = |day: u32, hour: u32| table.at((day * 24 + hour) * 60);
        assert_eq!(at(0, 8), Some(512 << 10));
        assert_eq!(at(0, 17), Some(512 << 10));
        assert_eq!(at(0, 18), None);
        assert_eq!(at(0, 0), None, "Sunday evening goes on");
        assert_eq!((at(6, 9), at(6, 11), at(6, 20)), (Some(512 << 10), Some(2 << 20), None));
        assert_eq!(Bandwidth::parse(" 1.5M ").unwrap().at(77), Some(3 << 19));
        assert_eq!(Bandwidth::parse("off").unwrap().at(77), None);
    }

    #[test]
    fn invalid_timetables_are_refused() {
        for text in [
            "",
            "10",
            "0K",
            "-1K",
            "1X",
            "fast",
            "infM",
            "8:00,1M",
            "25:00,1M",
            "+8:00,1M",
            "Xyz-08:00,1M",
            "08:00,1M 2M",
            "é",
        ] {
            assert!(Bandwidth::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn average_throughput_equals_the_rate() {
        let throttle = Throttle::new(Bandwidth::parse("100K").unwrap());
        let begin = Instant::now();
        let (mut now, mut bytes) = (begin, 0);
        while bytes < 1 << 20 {
            match throttle.allowance_at(now) {
                Allowance::Bytes(most) => {
                    bytes += most;
                    throttle.spend(most);
                }
                Allowance::Wait(pause) => now += pause,
                Allowance::Unlimited => panic!("there is a limit"),
            }
        }
        let seconds = now.duration_since(begin).as_secs_f64();
        assert!((9.8..10.6).contains(&seconds), "{seconds}");
    }
}
