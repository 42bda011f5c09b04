//! Text written by others, made harmless for terminals, logs and pages.
//!
//! A control character can steer a terminal; a bidirectional control or a line separator can make a
//! text read as another. Each is written as JSON writes it, `\u001b`: a JSON document stays the
//! same document, and people can read it too.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character steers a terminal or the direction of text instead of being shown.
///
/// These are the control characters (C0, DEL, C1), the bidirectional controls, the separators of
/// lines and paragraphs, the deprecated format characters, the marks of interlinear annotation and
/// the tags.
pub const fn is_control(character: char) -> bool {
    matches!(character,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The text on one line, each character of [`is_control`] escaped.
///
/// # Examples
/// ```
/// assert_eq!(abreast_webtypes::visible("a\u{1b}[2J\n\u{202e}b"), "a\\u001b[2J\\n\\u202eb");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, &[])
}

/// Most bytes of a line from [`short_lines`]: a message with a URI of any accepted length.
const LINE_BYTES_MAX: usize = crate::MAX_URI_LENGTH + 1_024;

/// The text with each line cut that is longer than any message has a reason to be.
///
/// # Examples
/// ```
/// let long = format!("a\nb {}", "c".repeat(10_000));
/// assert!(abreast_webtypes::short_lines(&long).ends_with("ccc… (786 more bytes)"));
/// ```
pub fn short_lines(text: &str) -> Cow<'_, str> {
    if text.len() <= LINE_BYTES_MAX || text.lines().all(|line| line.len() <= LINE_BYTES_MAX) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let (content, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let is_boundary = |at: &usize| content.is_char_boundary(*at);
        let end_of_kept = (0..=LINE_BYTES_MAX.min(content.len())).rev().find(is_boundary);
        let kept = &content[..end_of_kept.unwrap_or(0)];
        out.push_str(kept);
        if kept.len() < content.len() {
            let _ = write!(out, "… ({} more bytes)", content.len() - kept.len());
        }
        out.push_str(end);
    }
    out.into()
}

/// The text with its lines and tabs, every other character of [`is_control`] escaped.
///
/// # Examples
/// ```
/// use abreast_webtypes::visible_lines;
///
/// let title = "Letters\n\u{202e}fdp.exe";
/// assert_eq!(visible_lines(title), "Letters\n\\u202efdp.exe");
/// ```
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    escaped(text, &['\n', '\t'])
}

fn escaped<'a>(text: &'a str, kept: &[char]) -> Cow<'a, str> {
    let is_bad = |character: char| is_control(character) && !kept.contains(&character);
    // Nearly all text is plain ASCII.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    let Some(first) = text.find(is_bad) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    for character in text[first..].chars() {
        match character {
            _ if !is_bad(character) => out.push(character),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_borrowed() {
        for text in ["", "plain", "ein Täßchen 茶", "می\u{200c}خواهم"] {
            assert!(matches!(visible(text), Cow::Borrowed(_)), "{text}");
        }
    }

    #[test]
    fn terminal_control_characters_are_escaped_as_in_json() {
        let text: String = ('\0'..=char::MAX).filter(|c| is_control(*c)).collect();
        let shown = visible(&text);
        assert!(!shown.contains(is_control), "{shown}");
        let read: String = shown
            .split("\\u")
            .filter_map(|unit| u16::from_str_radix(unit.get(..4)?, 16).ok())
            .map(|unit| char::from_u32(u32::from(unit)).unwrap_or('\u{fffd}'))
            .collect();
        assert!(
            read.contains(['\u{1b}', '\u{7}', '\u{7f}', '\u{9b}', '\u{202e}', '\u{2066}']),
            "{shown}"
        );
        assert_eq!(visible("\u{e0041}"), "\\udb40\\udc41");
    }

    #[test]
    fn lines_may_be_kept() {
        assert_eq!(visible("a\r\n\tb"), "a\\r\\n\\tb");
        assert_eq!(visible_lines("a\r\n\tb"), "a\\r\n\tb");
    }
}
