//! Decoding of bytes to characters, with line numbers, before any markup is parsed.

use super::encoding::{declared, is_windows_1252, utf_16_without_mark, windows_1252};
use crate::SyntaxError;
use memchr::{memchr, memchr_iter, memmem, memrchr};

pub(super) const EOF_HELP: &str = "the transfer may have been cut; fetch it again";

/// The decoded characters not yet consumed, and how to decode more.
pub(super) struct Input {
    /// Decoded characters; the text before `at` was consumed and is removed at the next push.
    text: String,
    /// Start of the next token.
    pub(super) at: usize,
    encoding: Encoding,
    /// From the first byte on that is not UTF-8, it is windows-1252.
    falls_back: bool,
    /// Whether the document may declare any encoding, since only its start is read.
    is_guessed: bool,
    /// Whether the answer declares UTF-16, so that the document needs no byte order mark.
    is_utf_16: bool,
    /// Whether a character of several bytes in UTF-8 or a byte order mark was found: the whole
    /// document is then UTF-8.
    is_utf_8: bool,
    /// Bytes of an unfinished character, or the first ones before the encoding is known.
    carry: Vec<u8>,
    taken: u64,
    limit: u64,
    /// A fault behind the last character of `text`: everything before is delivered first, so that
    /// the outcome does not depend on how the input was cut.
    stop: Option<EncodingFault>,
    finished: bool,
    /// Line that contains `text[counted]`, the start of this line in `text`, and the number of
    /// characters in the line before `counted`.
    line: u64,
    line_start: usize,
    before: u64,
    counted: usize,
    carriage_returns: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Unknown,
    Utf8,
    Utf16 {
        big_endian: bool,
    },
    /// ISO-8859-1 as well.
    Windows1252,
}

/// Most bytes of an XML declaration with an encoding.
const DECLARATION_MAX: usize = 1 << 10;

#[derive(Clone)]
struct EncodingFault {
    code: &'static str,
    message: String,
    help: Option<&'static str>,
}

/// The end of the input after the decoded characters.
pub(super) enum InputEnd {
    /// More, if the caller pushes it.
    Unknown,
    /// Nothing: the input is complete.
    End,
}

const UTF_8_HELP: &str = "save the document as UTF-8";

impl Input {
    pub(super) fn new(limit: u64) -> Self {
        Self {
            text: String::new(),
            at: 0,
            encoding: Encoding::Unknown,
            falls_back: false,
            is_guessed: false,
            is_utf_16: false,
            is_utf_8: false,
            carry: Vec::new(),
            taken: 0,
            limit,
            stop: None,
            finished: false,
            line: 1,
            line_start: 0,
            before: 0,
            counted: 0,
            carriage_returns: false,
        }
    }

    /// The characters not yet consumed.
    pub(super) fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// How many bytes were pushed.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Characters by their place in the buffer.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether all bytes read until now are UTF-8.
    pub(super) fn is_utf_8(&self) -> bool {
        matches!(self.encoding, Encoding::Unknown | Encoding::Utf8)
    }

    /// Whether an XML declaration may give this encoding.
    pub(super) fn may_be(&self, label: &str) -> bool {
        let is = |names: &[&str]| names.iter().any(|name| label.eq_ignore_ascii_case(name));
        if self.is_guessed {
            return true;
        }
        let is_utf_8 = || is(&["utf-8", "utf8", "us-ascii", "ascii"]);
        match self.encoding {
            Encoding::Utf16 { .. } => is(&["utf-16", "utf-16le", "utf-16be"]),
            // The input may have fallen back to this encoding after the declaration.
            Encoding::Windows1252 => is_windows_1252(label) || self.falls_back && is_utf_8(),
            _ => is_utf_8(),
        }
    }

    /// From the first byte on that is not UTF-8, it is windows-1252.
    pub(super) fn fall_back(&mut self) {
        self.falls_back = true;
    }

    /// Reads the input as windows-1252 from the first byte on that is not UTF-8, and ignores the
    /// declaration.
    pub(super) fn guess(&mut self) {
        (self.falls_back, self.is_guessed) = (true, true);
    }

    /// It may be in UTF-16 without a byte order mark.
    pub(super) fn expect_utf_16(&mut self) {
        self.is_utf_16 = true;
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.stop.is_some() || self.finished {
            return;
        }
        self.line_at(self.at);
        self.before += self.text[self.line_start..self.at].chars().count() as u64;
        self.text.drain(..self.at);
        (self.at, self.counted, self.line_start) = (0, 0, 0);
        let allowed =
            usize::try_from(self.limit - self.taken).unwrap_or(usize::MAX).min(bytes.len());
        self.taken += allowed as u64;
        self.decode(&bytes[..allowed]);
        if allowed < bytes.len() {
            let message = format!("the document is longer than {} bytes", self.limit);
            self.stop("xml.size", message, None);
        }
    }

    pub(super) fn finish(&mut self) {
        if self.finished {
            return;
        }
        if self.encoding == Encoding::Unknown && self.stop.is_none() {
            self.detect();
        }
        if !self.carry.is_empty()
            && self.encoding == Encoding::Utf8
            && self.falls_back
            && !self.is_utf_8
        {
            let rest = std::mem::take(&mut self.carry);
            self.append(&windows_1252(&rest));
        }
        if !self.carry.is_empty() {
            self.stop("xml.eof", "the document ends inside a character".to_owned(), Some(EOF_HELP));
        }
        self.finished = true;
    }

    /// The end of the input after the decoded characters, or the fault that was found there.
    pub(super) fn behind(&self) -> Result<InputEnd, SyntaxError> {
        if let Some(EncodingFault { code, message, help }) = &self.stop {
            let error = SyntaxError::new(code, self.locate(self.text.len()), message.clone());
            return Err(match help {
                Some(help) => error.with_help(help),
                None => error,
            });
        }
        Ok(if self.finished { InputEnd::End } else { InputEnd::Unknown })
    }

    /// Line and column of a place in the buffer that is not before the last one passed to
    /// [`Input::line_at`].
    pub(super) fn locate(&self, at: usize) -> (u64, u64) {
        let span = &self.text.as_bytes()[self.counted..at.max(self.counted)];
        match memrchr(b'\n', span) {
            None => {
                (self.line, self.before + self.text[self.line_start..at].chars().count() as u64 + 1)
            }
            Some(last) => {
                let start = self.counted + last + 1;
                (
                    self.line + memchr_iter(b'\n', span).count() as u64,
                    self.text[start..at].chars().count() as u64 + 1,
                )
            }
        }
    }

    /// The line of a place not before the last one asked for, so that each byte is counted once.
    pub(super) fn line_at(&mut self, at: usize) -> u64 {
        let span = &self.text.as_bytes()[self.counted..at.max(self.counted)];
        if let Some(last) = memrchr(b'\n', span) {
            self.line += memchr_iter(b'\n', span).count() as u64;
            (self.line_start, self.before) = (self.counted + last + 1, 0);
        }
        self.counted = self.counted.max(at);
        self.line
    }

    /// Whether there was any `\r` yet.
    pub(super) fn has_carriage_returns(&self) -> bool {
        self.carriage_returns
    }

    fn stop(&mut self, code: &'static str, message: String, help: Option<&'static str>) {
        if self.stop.is_none() {
            self.stop = Some(EncodingFault { code, message, help });
        }
    }

    fn decode(&mut self, mut bytes: &[u8]) {
        if self.encoding == Encoding::Unknown {
            while let ([byte, more @ ..], false) = (bytes, self.is_detectable()) {
                self.carry.push(*byte);
                bytes = more;
            }
            if !self.is_detectable() {
                return;
            }
            self.detect();
        }
        if matches!(self.encoding, Encoding::Utf16 { .. }) {
            return self.utf16(bytes);
        }
        while let ([byte, more @ ..], false, true) =
            (bytes, self.carry.is_empty(), self.stop.is_none())
        {
            bytes = more;
            let mut piece = std::mem::take(&mut self.carry);
            piece.push(*byte);
            self.utf8(&piece);
        }
        if self.stop.is_none() {
            match self.encoding {
                Encoding::Windows1252 => self.append(&windows_1252(bytes)),
                _ => self.utf8(bytes),
            }
        }
    }

    /// Whether enough is there: four bytes, or the whole XML declaration.
    fn is_detectable(&self) -> bool {
        let first = &self.carry;
        first.len() >= 4
            && (!first.starts_with(b"<?xm")
                || first.ends_with(b"?>")
                || first.len() >= DECLARATION_MAX)
    }

    /// Detects the encoding from the first bytes. A document without a byte order mark is UTF-8,
    /// unless the XML declaration gives another encoding [xml §4.3.3].
    fn detect(&mut self) {
        let first = std::mem::take(&mut self.carry);
        let utf16 = |big_endian| (Encoding::Utf16 { big_endian }, 2);
        let (encoding, mark) = match first.as_slice() {
            [0xff, 0xfe, 0, 0] | [0, 0, 0xfe, 0xff] => {
                self.stop("xml.encoding", "the document is UTF-32".to_owned(), Some(UTF_8_HELP));
                return;
            }
            first if let Some(big_endian) = utf_16_without_mark(first) => {
                if self.is_utf_16 || self.is_guessed {
                    self.encoding = Encoding::Utf16 { big_endian };
                    return self.utf16(first);
                }
                let message =
                    "the document looks like UTF-16 but has no byte order mark".to_owned();
                self.stop("xml.encoding", message, Some(UTF_8_HELP));
                return;
            }
            [0xef, 0xbb, 0xbf, ..] => {
                self.is_utf_8 = true;
                (Encoding::Utf8, 3)
            }
            [0xfe, 0xff, ..] => utf16(true),
            [0xff, 0xfe, ..] => utf16(false),
            _ if declared(&first).is_some_and(is_windows_1252) => (Encoding::Windows1252, 0),
            _ => (Encoding::Utf8, 0),
        };
        self.encoding = encoding;
        match encoding {
            Encoding::Utf16 { .. } => self.utf16(&first[mark..]),
            Encoding::Windows1252 => self.append(&windows_1252(&first)),
            _ => self.utf8(&first[mark..]),
        }
    }

    fn utf8(&mut self, bytes: &[u8]) {
        match std::str::from_utf8(bytes) {
            Ok(text) => {
                self.is_utf_8 |= self.falls_back && !text.is_ascii();
                self.append(text);
            }
            Err(error) => {
                let (good, bad) = bytes.split_at(error.valid_up_to());
                self.is_utf_8 |= !good.is_ascii();
                self.append(std::str::from_utf8(good).unwrap_or_default());
                if error.error_len().is_none() {
                    self.carry.extend_from_slice(bad);
                } else if self.falls_back && !self.is_utf_8 {
                    self.encoding = Encoding::Windows1252;
                    self.append(&windows_1252(bad));
                } else {
                    let message = format!("byte 0x{:02x} is not UTF-8 here", bad[0]);
                    self.stop("xml.encoding", message, Some(UTF_8_HELP));
                }
            }
        }
    }

    fn utf16(&mut self, bytes: &[u8]) {
        let Encoding::Utf16 { big_endian } = self.encoding else { return };
        let mut piece = std::mem::take(&mut self.carry);
        piece.extend_from_slice(bytes);
        let unit = |pair: &[u8]| if big_endian { [pair[0], pair[1]] } else { [pair[1], pair[0]] };
        let units = piece.chunks_exact(2).map(|pair| u16::from_be_bytes(unit(pair)));
        let count = piece.len() / 2;
        let mut text = String::with_capacity(piece.len());
        let mut done = 0;
        for character in char::decode_utf16(units) {
            match character {
                Ok(character) => {
                    done += character.len_utf16();
                    text.push(character);
                }
                Err(lone)
                    if done + 1 == count
                        && (0xd800..0xdc00).contains(&lone.unpaired_surrogate()) =>
                {
                    break;
                }
                Err(lone) => {
                    self.append(&text);
                    let message =
                        format!("unit 0x{:04x} is not UTF-16 here", lone.unpaired_surrogate());
                    self.stop("xml.encoding", message, Some(UTF_8_HELP));
                    return;
                }
            }
        }
        self.append(&text);
        self.carry.extend_from_slice(&piece[done * 2..]);
    }

    /// Appends characters up to the first that XML forbids [xml §2.2].
    fn append(&mut self, text: &str) {
        if self.stop.is_some() {
            return;
        }
        self.carriage_returns |= memchr(b'\r', text.as_bytes()).is_some();
        let Some(at) = first_forbidden(text) else { return self.text.push_str(text) };
        self.text.push_str(&text[..at]);
        let character = text[at..].chars().next().unwrap_or_default();
        let message = format!("character U+{:04X} is not allowed in XML", u32::from(character));
        self.stop("xml.syntax", message, None);
    }
}

/// The place of the first character that XML 1.0 does not allow [xml §2.2].
pub fn first_forbidden(text: &str) -> Option<usize> {
    const BLOCK: usize = 256;
    let bytes = text.as_bytes();
    let is_control = |byte: u8| byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r');
    // A block without an early exit lets the compiler test many bytes at once.
    let control = bytes.chunks(BLOCK).enumerate().find_map(|(number, block)| {
        if block.iter().fold(false, |found, byte| found | is_control(*byte)) {
            block.iter().position(|byte| is_control(*byte)).map(|at| number * BLOCK + at)
        } else {
            None
        }
    });
    let before = control.unwrap_or(bytes.len());
    let noncharacter = memmem::find_iter(&bytes[..before], b"\xef\xbf")
        .find(|at| matches!(bytes.get(at + 2), Some(0xbe | 0xbf)));
    noncharacter.or(control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_first_forbidden_character() {
        assert_eq!(first_forbidden("plain\ttext\r\n"), None);
        assert_eq!(first_forbidden("a\u{fffd}b\u{ffff}c\u{1}"), Some(5));
        assert_eq!(first_forbidden(&format!("{}\u{7f}\u{b}", "é".repeat(1_000))), Some(2_001));
    }

    #[test]
    fn counts_lines_and_characters_from_one() {
        let mut input = Input::new(100);
        input.push("aé\nbc".as_bytes());
        input.push("d".as_bytes());
        assert_eq!(input.locate(0), (1, 1));
        assert_eq!(input.locate(4), (2, 1));
        assert_eq!(input.locate(7), (2, 4));
        input.at = 5;
        input.push("\ne".as_bytes());
        assert_eq!(input.locate(3), (3, 1));
    }
}
