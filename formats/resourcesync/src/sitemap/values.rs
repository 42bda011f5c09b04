//! Values of attributes and texts, and the faults in them.

use super::Notes;
use abreast_webtypes::{Digests, ParseDatetimeError, Precision, W3cDatetime, excerpt};

/// Most bytes of a media type, a content coding, a datetime, or a number.
pub(crate) const MAX_VALUE_LENGTH: usize = 1_024;
/// Links of an entry, or of the document.
pub(crate) const MAX_LINKS: usize = 1_000;
/// Most bytes of a datetime that is repaired.
const MAX_DATETIME_LENGTH: usize = 64;

/// A fault of the current element.
pub struct Fault {
    /// A stable code, such as `rs.loc`.
    pub code: &'static str,
    /// Description of the fault, without its position.
    pub message: String,
    /// Help text, if there is one.
    pub help: Option<&'static str>,
}

impl Fault {
    /// A fault with a code and a message, without help.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), help: None }
    }

    /// Adds a help text to the fault.
    #[must_use]
    pub const fn with_help(mut self, help: &'static str) -> Self {
        self.help = Some(help);
        self
    }
}

/// Strings for reuse, so that reading entries does not allocate in the long run.
#[derive(Default)]
pub struct StringPool(Vec<String>);

impl StringPool {
    const MOST: usize = 64;

    /// A string with this text, from the pool if possible.
    pub fn string(&mut self, text: &str) -> String {
        let mut string = self.0.pop().unwrap_or_default();
        string.clear();
        string.push_str(text);
        string
    }

    /// Stores a string for reuse, unless it is large.
    pub fn keep(&mut self, string: Option<String>) {
        if let Some(string) = string
            && self.0.len() < Self::MOST
            && (1..=MAX_VALUE_LENGTH).contains(&string.capacity())
        {
            self.0.push(string);
        }
    }
}

/// A value without white space around it. Editors add no-break spaces and byte order marks, which cannot
/// belong to any value.
///
/// # Examples
/// ```
/// use abreast_resourcesync::sitemap::trimmed;
///
/// assert_eq!(trimmed("\n  https://repo.example/item/1\u{feff} "), "https://repo.example/item/1");
/// ```
pub fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '\u{feff}' | '\u{200b}'))
}

/// The message for a `loc` with white space around it, which is ignored.
pub fn space_around_loc(loc: &str) -> String {
    format!("`loc` has white space around it: \"{}\"", excerpt(loc))
}

/// The message for a `lastmod` without a date, which counts as absent; `None` for any other text.
///
/// Texts without a date are: texts without digits, an offset or a time alone, the year 0000 that
/// databases write, and the words of programming languages for an absent value.
///
/// # Examples
/// ```
/// use abreast_resourcesync::sitemap::without_date;
///
/// let message = without_date("0000-00-00 00:00:00").expect("a date that databases write for none");
/// assert_eq!(message, "`lastmod` is \"0000-00-00 00:00:00\", without a date; ignored");
/// assert_eq!(without_date("2026-03-01"), None);
/// ```
pub fn without_date(text: &str) -> Option<String> {
    const NOTHING: [&str; 6] = ["null", "none", "nil", "n/a", "nan", "undefined"];
    let value = trimmed(text);
    let is_time = value
        .strip_prefix(['+', '-', 'T'])
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let is_nothing = value.chars().all(|c| matches!(c, '-' | '/' | 'Z' | 'z'))
        || NOTHING.iter().any(|word| value.eq_ignore_ascii_case(word));
    (is_nothing || is_time || value.starts_with("0000"))
        .then(|| format!("`lastmod` is \"{}\", without a date; ignored", excerpt(value)))
}

/// Reads the time of a resource's last modification; `None` if the text does not contain a date.
pub(crate) fn parse_lastmod(text: &str, notes: &mut Notes) -> Result<Option<W3cDatetime>, Fault> {
    if let Some(message) = without_date(text) {
        notes.add("rs.no-date", message);
        return Ok(None);
    }
    parse_datetime("lastmod", text, notes).map(Some)
}

/// Reads a datetime, ignoring white space around it.
///
/// Lenient: a blank for the `T`, and an offset without colon or minutes, are unambiguous. A time
/// without zone is read as UTC, so conclusions from it must allow for all zones.
pub(crate) fn parse_datetime(
    name: &str,
    text: &str,
    notes: &mut Notes,
) -> Result<W3cDatetime, Fault> {
    let text = trimmed(text);
    let cause = match W3cDatetime::parse(text.as_bytes()) {
        Ok(read) => return Ok(read),
        Err(cause) => cause,
    };
    let fault =
        |cause| Fault::new("rs.datetime", format!("`{name}` is \"{}\": {cause}", excerpt(text)));
    let mut repaired = text.as_bytes().to_vec();
    if repaired.len() > MAX_DATETIME_LENGTH {
        return Err(fault(cause));
    }
    if repaired.get(10) == Some(&b' ') {
        repaired[10] = b'T';
    }
    if let [.., b'+' | b'-', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9'] = repaired[..]
        && repaired.contains(&b':')
    {
        repaired.insert(repaired.len() - 2, b':');
    } else if let [.., b':', _, _, b'+' | b'-', b'0'..=b'9', b'0'..=b'9'] = repaired[..] {
        repaired.extend(b":00");
    }
    match W3cDatetime::parse(&repaired) {
        Ok(read) => {
            notes.add("rs.datetime-form", format!("`{name}` is \"{}\": {cause}", excerpt(text)));
            return Ok(read);
        }
        Err(ParseDatetimeError::Zone) => repaired.push(b'Z'),
        Err(_) => return Err(fault(cause)),
    }
    let read = W3cDatetime::parse(&repaired).map_err(fault)?;
    notes.add(
        "rs.zone",
        format!("`{name}` is \"{}\", without a zone; taken for UTC", excerpt(text)),
    );
    Ok(read)
}

/// Reads a number of bytes.
pub(crate) fn length(name: &str, text: &str) -> Result<u64, Fault> {
    let digits = text.trim_ascii();
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    match digits.parse::<u64>() {
        // No resource is longer, and sums of lengths do not overflow.
        Ok(number) if is_number && i64::try_from(number).is_ok() => Ok(number),
        _ => {
            let what =
                if is_number { "more bytes than there are" } else { "not a number of bytes" };
            let message = format!("`{name}` is \"{}\", {what}", excerpt(text));
            Err(Fault::new("rs.length", message))
        }
    }
}

/// Notes white space around a value that must be one of a few words.
pub(crate) fn note_space(name: &str, value: &str, notes: &mut Notes) {
    if value.trim_ascii().len() != value.len() {
        let message = format!("`{name}` has white space around it: \"{}\"", excerpt(value));
        notes.add("rs.space", message);
    }
}

/// Reads a short text, ignoring white space around it.
pub(crate) fn checked(
    name: &str,
    text: &str,
    most: usize,
    spare: &mut StringPool,
) -> Result<String, Fault> {
    let text = trimmed(text);
    if text.len() > most {
        return Err(Fault::new("rs.value", format!("`{name}` is longer than {most} bytes")));
    }
    if has_control_or_less(text, b' ' - 1) {
        let message = format!("`{name}` has control characters in it: \"{}\"", excerpt(text));
        return Err(Fault::new("rs.value", message));
    }
    Ok(spare.string(text))
}

/// Whether a text has a byte up to `most`, or DEL. The loop does not exit early, so that many bytes
/// are tested at once.
pub(crate) fn has_control_or_less(text: &str, most: u8) -> bool {
    text.bytes().fold(0, |found, byte| found | u8::from(byte <= most) | u8::from(byte == 0x7f)) != 0
}

/// The fault of too many links in one place.
pub(crate) fn too_many_links(element: &str) -> Fault {
    Fault::new("rs.links", format!("more than {MAX_LINKS} `{element}` in one place"))
}

/// Whether the whole period of `one` is before `other`: `2013` is not before `2013-05`.
pub(crate) fn is_before(one: W3cDatetime, other: W3cDatetime) -> bool {
    if one.instant >= other.instant {
        return false;
    }
    let written = match one.precision {
        Precision::Year => 4,
        Precision::Month => 7,
        Precision::Day => 10,
        Precision::Minute => 16,
        Precision::Second => 19,
        Precision::Fraction => return true,
    };
    one.instant.to_string()[..written] != other.instant.to_string()[..written]
}

/// Stores a digest that cannot be used, for reports.
pub(crate) fn note_unknown(digests: &mut Digests, text: &str) {
    if digests.unknown.len() < Digests::MAX_UNKNOWN {
        digests.unknown.push(excerpt(text));
    }
}
