//! N-Triples with ASCII characters only.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::rc::Rc;

/// Escapes lines of N-Triples to ASCII, because `text/plain` in SDShare has no other characters.
pub(super) fn to_ascii(lines: &[u8]) -> io::Result<Cow<'_, [u8]>> {
    if lines.is_ascii() {
        return Ok(Cow::Borrowed(lines));
    }
    let text = std::str::from_utf8(lines).map_err(io::Error::other)?;
    let mut out = String::with_capacity(lines.len() * 2);
    for character in text.chars() {
        // Writing to a string cannot fail.
        let _ = match u32::from(character) {
            0..=0x7f => {
                out.push(character);
                Ok(())
            }
            code @ 0x80..=0xffff => write!(out, "\\u{code:04X}"),
            code => write!(out, "\\U{code:08X}"),
        };
    }
    Ok(Cow::Owned(out.into_bytes()))
}

/// Writer that escapes whole lines to ASCII, and counts the bytes.
pub(super) struct Ascii<W> {
    out: W,
    written: Rc<Cell<u64>>,
}

impl<W: Write> Ascii<W> {
    /// Writer that adds the number of bytes to `written`; the caller reads this counter meanwhile.
    pub(super) fn new(out: W, written: Rc<Cell<u64>>) -> Self {
        Self { out, written }
    }

    pub(super) fn into_inner(self) -> W {
        self.out
    }
}

impl<W: Write> Write for Ascii<W> {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let ascii = to_ascii(lines)?;
        self.out.write_all(&ascii)?;
        self.written.set(self.written.get() + ascii.len() as u64);
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_characters_are_escaped() {
        let lines = "<http://e/\u{e9}> <http://e/p> \"\u{20ac}\u{1f600}\\n\"@en .\n";
        let ascii = to_ascii(lines.as_bytes()).unwrap();
        assert_eq!(&*ascii, b"<http://e/\\u00E9> <http://e/p> \"\\u20AC\\U0001F600\\n\"@en .\n");
    }
}
