//! The header of a record: WARC 1.1 (ISO 28500:2017), sections 4 to 6.

use abreast_webtypes::Timestamp;

/// The bytes after the block of every record.
pub const END: &[u8] = b"\r\n\r\n";

/// The kinds of records that this crate supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Information about the WARC file itself.
    Warcinfo,
    /// An answer of a server, head and body.
    Response,
    /// Bytes that arrived without an HTTP answer.
    Resource,
    /// An answer whose body equals the body of an earlier record.
    Revisit,
    /// Metadata that describes a resource.
    Metadata,
}

impl Kind {
    /// The kind as value of `WARC-Type`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warcinfo => "warcinfo",
            Self::Response => "response",
            Self::Resource => "resource",
            Self::Revisit => "revisit",
            Self::Metadata => "metadata",
        }
    }

    /// Reads the value of `WARC-Type`; `None` for an unsupported kind.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Warcinfo, Self::Response, Self::Resource, Self::Revisit, Self::Metadata]
            .into_iter()
            .find(|kind| kind.name().eq_ignore_ascii_case(name))
    }
}

/// The record that a revisit refers to.
///
/// # Examples
/// ```
/// use abreast_warc::{Kind, Original, Record};
/// use abreast_webtypes::Timestamp;
///
/// // The logo at another address has the same bytes as one fetched before.
/// let first = Original {
///     target: "https://museum.example/logo.png",
///     date: Timestamp::from_seconds(1_772_355_600),
/// };
/// let record = Record {
///     target: Some("https://museum.example/en/logo.png"),
///     original: Some(first),
///     ..Record::new(Kind::Revisit, [7; 16], Timestamp::from_seconds(1_772_355_700))
/// };
/// let mut head = Vec::new();
/// record.write_head(&mut head, 0);
/// let text = String::from_utf8(head)?;
/// assert!(text.contains("WARC-Refers-To-Target-URI: https://museum.example/logo.png\r\n"));
/// # Ok::<(), std::string::FromUtf8Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Original<'a> {
    /// Value of `WARC-Target-URI` in that record.
    pub target: &'a str,
    /// Value of `WARC-Date` in that record.
    pub date: Timestamp,
}

/// A record without its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Kind, which decides the other fields.
    pub kind: Kind,
    /// A number that no other record has, written as a UUID.
    pub id: [u8; 16],
    /// Time at which the content was fetched or made.
    pub date: Timestamp,
    /// The URI it is about.
    pub target: Option<&'a str>,
    /// The media type of the block.
    pub content_type: &'a str,
    /// `algorithm:value` of the payload, in the spelling that archives use.
    pub payload_digest: Option<&'a str>,
    /// Digest of the block, as `algorithm:value`.
    pub block_digest: Option<&'a str>,
    /// For a revisit: where the same payload is.
    pub original: Option<Original<'a>>,
    /// For a warcinfo: the name of its file.
    pub filename: Option<&'a str>,
}

impl Record<'_> {
    /// A record of which only the necessary is known.
    pub const fn new(kind: Kind, id: [u8; 16], date: Timestamp) -> Self {
        Self {
            kind,
            id,
            date,
            target: None,
            content_type: "application/octet-stream",
            payload_digest: None,
            block_digest: None,
            original: None,
            filename: None,
        }
    }

    /// Appends the version line and the fields of a record with a block of `block_length` bytes.
    pub fn write_head(&self, out: &mut Vec<u8>, block_length: u64) {
        out.extend_from_slice(b"WARC/1.1\r\nWARC-Type: ");
        out.extend_from_slice(self.kind.name().as_bytes());
        out.extend_from_slice(b"\r\nWARC-Record-ID: ");
        write_id(out, self.id);
        out.extend_from_slice(b"\r\nWARC-Date: ");
        self.date.write_to(out);
        out.extend_from_slice(b"\r\n");
        if let Some(target) = self.target {
            write_uri_field(out, "WARC-Target-URI", target);
        }
        if let Some(original) = self.original {
            out.extend_from_slice(
                b"WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n",
            );
            write_uri_field(out, "WARC-Refers-To-Target-URI", original.target);
            out.extend_from_slice(b"WARC-Refers-To-Date: ");
            original.date.write_to(out);
            out.extend_from_slice(b"\r\n");
        }
        let fields = [
            ("WARC-Payload-Digest", self.payload_digest),
            ("WARC-Block-Digest", self.block_digest),
            ("WARC-Filename", self.filename),
            ("Content-Type", Some(self.content_type)),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(b": ");
                // No value of ours has line ends; one out of a list must not make new fields.
                let from = out.len();
                out.extend_from_slice(value.as_bytes());
                out[from..]
                    .iter_mut()
                    .filter(|byte| byte.is_ascii_control())
                    .for_each(|byte| *byte = b' ');
                out.extend_from_slice(b"\r\n");
            }
        }
        out.extend_from_slice(b"Content-Length: ");
        write_number(out, block_length);
        out.extend_from_slice(END);
    }
}

fn write_id(out: &mut Vec<u8>, mut id: [u8; 16]) {
    // The version bits of a random UUID.
    id[6] = (id[6] & 0x0f) | 0x40;
    id[8] = (id[8] & 0x3f) | 0x80;
    out.extend_from_slice(b"<urn:uuid:");
    for (at, byte) in id.into_iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.push(hex_digit(byte >> 4));
        out.push(hex_digit(byte & 15));
    }
    out.push(b'>');
}

fn write_uri_field(out: &mut Vec<u8>, name: &str, uri: &str) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    if uri.bytes().all(|byte| byte > b' ' && byte != 0x7f) {
        out.extend_from_slice(uri.as_bytes());
        out.extend_from_slice(b"\r\n");
        return;
    }
    for byte in uri.bytes() {
        if byte <= b' ' || byte == 0x7f {
            out.extend_from_slice(&[
                b'%',
                hex_digit(byte >> 4).to_ascii_uppercase(),
                hex_digit(byte & 15).to_ascii_uppercase(),
            ]);
        } else {
            out.push(byte);
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends a number in decimal.
pub(crate) fn write_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

const fn hex_digit(nibble: u8) -> u8 {
    if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 }
}

/// An instant as archives' indexes write it: `YYYYMMDDhhmmss`.
///
/// # Examples
/// ```
/// use abreast_warc::timestamp14;
/// use abreast_webtypes::W3cDatetime;
///
/// let fetched = W3cDatetime::parse(b"2026-03-01T09:30:00.25Z")?.instant;
/// assert_eq!(timestamp14(fetched), "20260301093000");
/// # Ok::<(), abreast_webtypes::ParseDatetimeError>(())
/// ```
pub fn timestamp14(date: Timestamp) -> String {
    let mut out = Vec::new();
    write_timestamp14(&mut out, date);
    String::from_utf8_lossy(&out).into_owned()
}

pub(crate) fn write_timestamp14(out: &mut Vec<u8>, date: Timestamp) {
    let begin = out.len();
    date.write_to(out);
    let mut end = begin;
    for at in begin..out.len() {
        match out[at] {
            b'.' | b'Z' => break,
            digit if digit.is_ascii_digit() => {
                out[end] = digit;
                end += 1;
            }
            _ => {}
        }
    }
    out.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_names_everything_that_is_known() {
        let record = Record {
            target: Some("http://h/a b\r\nX: y"),
            content_type: "text/plain\r\nX: y",
            payload_digest: Some("md5:00"),
            original: Some(Original { target: "http://h/o", date: Timestamp::from_seconds(1) }),
            ..Record::new(Kind::Revisit, [0xab; 16], Timestamp::from_micros(1_500_000))
        };
        let mut out = Vec::new();
        record.write_head(&mut out, 7);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "WARC/1.1\r\nWARC-Type: revisit\r\nWARC-Record-ID: <urn:uuid:abababab-abab-4bab-abab-abababababab>\r\n\
             WARC-Date: 1970-01-01T00:00:01.500000Z\r\nWARC-Target-URI: http://h/a%20b%0D%0AX:%20y\r\n\
             WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n\
             WARC-Refers-To-Target-URI: http://h/o\r\nWARC-Refers-To-Date: 1970-01-01T00:00:01Z\r\n\
             WARC-Payload-Digest: md5:00\r\nContent-Type: text/plain  X: y\r\nContent-Length: 7\r\n\r\n"
        );
    }

    #[test]
    fn numbers_are_written_in_decimal() {
        for number in [0, 9, 10, 4_096, u64::MAX] {
            let mut out = Vec::new();
            write_number(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), number.to_string());
        }
    }

    #[test]
    fn instants_have_fourteen_digits() {
        assert_eq!(timestamp14(Timestamp::from_micros(1_767_225_600_123_456)), "20260101000000");
    }
}
