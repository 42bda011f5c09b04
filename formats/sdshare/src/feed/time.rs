//! Times of Atom: written with a fixed width, read in every unambiguous form.

use abreast_webtypes::{ParseDatetimeError, Precision, Timestamp, W3cDatetime};

/// Number of bytes in a written time.
pub const STAMP_LENGTH: usize = 27;

/// Most bytes of a time; longer texts are refused.
const MAX_TIME_LENGTH: usize = 64;

/// Appends `YYYY-MM-DDThh:mm:ss.ffffffZ`.
///
/// Always six digits: some servers and clients compare times as text, others read the fraction as a
/// number of milliseconds.
pub fn write_stamp(out: &mut Vec<u8>, time: Timestamp) {
    let start = out.len();
    time.write_to(out);
    if out.len() - start < STAMP_LENGTH {
        out.pop();
        out.extend_from_slice(b".000000Z");
    }
}

/// The time as text with a fixed width, as [`write_stamp`] appends it.
///
/// # Examples
/// ```
/// use abreast_sdshare::stamp;
/// use abreast_webtypes::Timestamp;
///
/// // As texts, the times are in the same order as the instants.
/// let first = stamp(Timestamp::from_seconds(1_772_355_600));
/// let second = stamp(Timestamp::from_micros(1_772_355_600_250_000));
/// assert_eq!(first, "2026-03-01T09:00:00.000000Z");
/// assert!(first < second);
/// ```
pub fn stamp(time: Timestamp) -> String {
    let mut out = Vec::with_capacity(STAMP_LENGTH);
    write_stamp(&mut out, time);
    String::from_utf8_lossy(&out).into_owned()
}

/// A time that was read, with its deviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadTime {
    pub(crate) time: Timestamp,
    /// Deviation of the text from RFC 3339 as Atom uses it.
    pub(crate) deviation: Option<&'static str>,
}

/// Reads a time [rfc4287 §3.3].
///
/// Lenient: lower-case letters, a blank for the `T` or for the `+` of the offset (a `+` in a query
/// is decoded so), an offset without colon, a date alone. A time without zone is read as UTC, which
/// servers without zones use.
pub(crate) fn read_time(text: &str) -> Result<ReadTime, ParseDatetimeError> {
    let text = text.trim_ascii().as_bytes();
    if text.len() > MAX_TIME_LENGTH {
        return Err(ParseDatetimeError::Form);
    }
    let mut repaired = text.to_vec();
    let mut deviation = None;
    if repaired.get(10) == Some(&b' ') {
        repaired[10] = b'T';
        deviation = Some("`T` is missing between date and time");
    }
    // ` 01:00` and ` 0100` after the seconds.
    if let Some(at) = repaired.iter().rposition(|byte| *byte == b' ')
        && at > 10
    {
        repaired[at] = b'+';
        deviation = Some("the `+` of the offset is missing");
    }
    if let [.., b'+' | b'-', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9'] = repaired[..]
        && repaired.contains(&b':')
    {
        repaired.insert(repaired.len() - 2, b':');
        deviation = Some("the colon of the offset is missing");
    }
    let read = match W3cDatetime::parse(&repaired) {
        Err(ParseDatetimeError::Zone) => {
            repaired.push(b'Z');
            deviation = Some("it has no zone, and is taken for UTC");
            W3cDatetime::parse(&repaired)?
        }
        read => read?,
    };
    if read.precision < Precision::Second {
        deviation = Some("it is not written to the second");
    } else if text.iter().any(u8::is_ascii_lowercase) {
        deviation = deviation.or(Some("`T` and `Z` are capital letters"));
    }
    Ok(ReadTime { time: read.instant, deviation })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_one_width() {
        assert_eq!(stamp(Timestamp::from_seconds(0)), "1970-01-01T00:00:00.000000Z");
        assert_eq!(stamp(Timestamp::from_micros(1_205_299)), "1970-01-01T00:00:01.205299Z");
        assert_eq!(stamp(Timestamp::MAX).len(), STAMP_LENGTH);
    }

    #[test]
    fn times_are_read_in_every_form_that_means_one_instant() {
        for (text, expected, deviates) in [
            ("2008-12-13T18:30:02Z", "2008-12-13T18:30:02.000000Z", false),
            ("2008-09-26T11:13:40-01:00", "2008-09-26T12:13:40.000000Z", false),
            ("2008-07-17T12:15:07.020071Z", "2008-07-17T12:15:07.020071Z", false),
            ("2008-07-17T12:15:07.1234567+02:00", "2008-07-17T10:15:07.123456Z", false),
            ("2008-07-17T12:15:07.2Z", "2008-07-17T12:15:07.200000Z", false),
            ("2008-07-17t12:15:07z", "2008-07-17T12:15:07.000000Z", true),
            ("2008-07-17T12:15:07", "2008-07-17T12:15:07.000000Z", true),
            ("2008-07-17 12:15:07.5", "2008-07-17T12:15:07.500000Z", true),
            ("2008-07-17T12:15:07 01:00", "2008-07-17T11:15:07.000000Z", true),
            ("2008-07-17T12:15:07 0100", "2008-07-17T11:15:07.000000Z", true),
            ("2008-07-17T12:15:07-0130", "2008-07-17T13:45:07.000000Z", true),
            (" 2008-07-17T12:15Z\n", "2008-07-17T12:15:00.000000Z", true),
            ("2008-07-17", "2008-07-17T00:00:00.000000Z", true),
            ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59.000000Z", false),
        ] {
            let read = read_time(text).unwrap();
            assert_eq!(
                (stamp(read.time).as_str(), read.deviation.is_some()),
                (expected, deviates),
                "{text}"
            );
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "now",
            "1216296907",
            "Thu, 17 Jul 2008 12:15:07 GMT",
            "2008-02-30T00:00:00Z",
            "2008-07-17T12:15:07  01:00",
        ] {
            assert!(read_time(text).is_err(), "{text}");
        }
        assert!(read_time(&"2".repeat(100_000)).is_err());
    }
}
