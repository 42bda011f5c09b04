//! Standard output and standard error. All output of the program passes through this module, which
//! escapes control characters.
//!
//! Names and texts may come from untrusted servers. Characters that control a terminal or change the
//! direction of text are never printed unescaped ([`abreast_webtypes::is_control`]). `clippy.toml`
//! refuses the streams of `std` elsewhere. Progress is drawn here too, so that no line is written
//! across it.

#![expect(clippy::disallowed_methods, reason = "the one place that writes to the standard streams")]

use abreast_webtypes::{visible, visible_lines, without_logins, without_logins_of_urls};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Seek as _, SeekFrom, Write};
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The lines of progress that are on the terminal now.
static SHOWN: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// Columns and rows of a terminal without a known size.
const SIZE: (usize, usize) = (80, 24);

/// Prints one line on standard output, for people or as JSON, without logins of URLs. A closed pipe is not an error.
pub(crate) fn line(text: &str) {
    let shown =
        if is_json(text) { json_without_logins(text) } else { without_logins_of_urls(text) };
    print(&visible(&shown));
}

/// Prints a value as one line of JSON on standard output.
pub(crate) fn json(value: &impl serde::Serialize) {
    // Reports contain texts and numbers only, for which this does not fail.
    line(&serde_json::to_string(value).unwrap_or_default());
}

/// Prints the lines of a report, which contains URLs and not paths, on standard output, without logins.
pub(crate) fn report(text: &str) {
    let shown = |line| if is_json(line) { json_without_logins(line) } else { without_logins(line) };
    let lines: Vec<Cow<'_, str>> = text.split('\n').map(shown).collect();
    print(&visible_lines(&lines.join("\n")));
}

/// Prints several lines on standard output unchanged: a page, a script.
pub(crate) fn page(text: &str) {
    print(&visible_lines(text));
}

fn is_json(text: &str) -> bool {
    text.starts_with("{\"") || text.starts_with("[{\"")
}

fn print(text: &str) {
    beside_progress(|| {
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{text}");
        let _ = out.flush();
    });
}

/// Prints a message on standard error, without logins of URLs; its further lines are indented, so that none can pass
/// for another message.
pub(crate) fn warning(text: &str) {
    print_lines(&printable(text));
}

/// A text without logins and without unprintable characters.
fn printable(text: &str) -> String {
    let text = if is_json(text) { json_without_logins(text) } else { without_logins(text) };
    indented(&text).into_owned()
}

fn print_lines(text: &str) {
    beside_progress(|| drop(writeln!(io::stderr().lock(), "{text}")));
}

/// JSON without the logins of the URLs in its strings. A login without a scheme looks like a file name: it is left
/// out of texts for people and URIs only. A path in a copy stays as it is.
fn json_without_logins(json: &str) -> Cow<'_, str> {
    if !json.contains('@') {
        return json.into();
    }
    let (mut out, mut rest, mut key) = (String::with_capacity(json.len()), json, String::new());
    while let Some(begin) = rest.find('"') {
        let end = end_of_string(&rest[begin..]);
        let literal = &rest[begin..begin + end];
        out.push_str(&rest[..begin]);
        rest = &rest[begin + end..];
        let Ok(text) = serde_json::from_str::<String>(literal) else {
            out.push_str(literal);
            continue;
        };
        if rest.trim_start().starts_with(':') {
            key = text;
            out.push_str(literal);
            continue;
        }
        let shown = match key.as_str() {
            "path" => Cow::Borrowed(&*text),
            "message" | "help" | "causes" | "uri" | "url" | "href" | "parent" => {
                without_logins(&text)
            }
            _ => without_logins_of_urls(&text),
        };
        if shown == text {
            out.push_str(literal);
        } else {
            out.push_str(&serde_json::Value::from(shown).to_string());
        }
    }
    out.push_str(rest);
    out.into()
}

/// The length, in bytes, of the string at the start of `json`, including its quotes.
fn end_of_string(json: &str) -> usize {
    let mut is_escaped = false;
    let end = json.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    end.map_or(json.len(), |at| at + 2)
}

/// The exit code of an error in the arguments. A file of theirs that may not be read is not an error of usage.
pub(crate) fn usage_code(error: &clap::Error) -> u8 {
    match error.kind() {
        clap::error::ErrorKind::Io => crate::program::exit::DISK,
        _ => error.exit_code() as u8,
    }
}

/// Prints help, the version, or an error in the arguments; returns the exit code.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    if error.use_stderr() && (visible_lines(&text) != text || without_logins(&text) != text) {
        warning(text.trim_end());
    } else {
        // In colour, with nothing in it that others wrote.
        let _ = error.print();
    }
    ExitCode::from(usage_code(error))
}

/// Standard output for many records: data for programs, with every URI exactly as it was published. In a file whose last
/// line was cut short, by a full disk or a kill, they start on a new line.
pub(crate) fn output() -> EscapedLines<io::Stdout> {
    if ends_within_a_line().unwrap_or(false) {
        // Where this fails, the first line does.
        let _ = io::stdout().write_all(b"\n");
    }
    EscapedLines { inner: io::stdout(), begun: Vec::new() }
}

/// Whether standard output is a file that does not end with a line break.
fn ends_within_a_line() -> io::Result<bool> {
    const OUTPUT: &str = "/dev/stdout";
    if !std::fs::metadata(OUTPUT)?.is_file() {
        return Ok(false);
    }
    let (mut file, mut last) = (File::open(OUTPUT)?, [0]);
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// Clears the terminal, if standard output is one.
pub(crate) fn clear() {
    if output_is_terminal() {
        let mut out = io::stdout().lock();
        let _ = out.write_all(b"\x1b[2J\x1b[H");
    }
}

/// Whether standard output is a terminal.
pub(crate) fn output_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether standard error is a terminal.
pub(crate) fn error_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Columns and rows of the terminal at standard error. The variables COLUMNS and LINES replace
/// unknown values.
pub(crate) fn error_size() -> (usize, usize) {
    let of = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let told = rustix::termios::tcgetwinsize(io::stderr()).ok();
    let (columns, rows) = told.map_or((0, 0), |size| (size.ws_col.into(), size.ws_row.into()));
    let or = |told: usize, name, usual| if told > 0 { told } else { of(name).unwrap_or(usual) };
    (or(columns, "COLUMNS", SIZE.0), or(rows, "LINES", SIZE.1))
}

/// Draws lines of progress on the terminal at standard error, in place of the earlier lines. The
/// lines fit into its columns.
pub(crate) fn show(lines: &[String]) {
    let mut shown = shown();
    if *shown != lines {
        let text = [erasing(&shown), drawn(lines)].concat();
        shown.clear();
        shown.extend_from_slice(lines);
        write_error(&text);
    }
}

/// Writes while no line of progress is on the terminal, and draws them again below.
fn beside_progress(write: impl FnOnce()) {
    let shown = shown();
    if shown.is_empty() {
        return write();
    }
    write_error(&erasing(&shown));
    write();
    write_error(&drawn(&shown));
}

fn shown() -> MutexGuard<'static, Vec<String>> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write_error(text: &str) {
    let mut out = io::stderr().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

/// Moves the cursor, which is in the last line, to the first one, and erases all.
fn erasing(lines: &[String]) -> String {
    match lines.len() {
        0 => String::new(),
        1 => "\r\x1b[J".to_owned(),
        many => format!("\r\x1b[{}A\x1b[J", many - 1),
    }
}

fn drawn(lines: &[String]) -> String {
    let lines: Vec<_> = lines.iter().map(|line| visible(line)).collect();
    lines.join("\n")
}

fn indented(text: &str) -> Cow<'_, str> {
    let text = visible_lines(text);
    if !text.contains('\n') {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            out.push_str(if line.starts_with("  ") { "\n" } else { "\n  " });
        }
        out.push_str(line);
    }
    out.into()
}

/// One entry of the log: the formatter writes it in one piece.
pub(crate) struct LogEntry;

impl Write for LogEntry {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let line = printable(text.trim_end_matches('\n'));
        crate::program::recent_log::add(&line);
        print_lines(&line);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A stream of lines that escapes unprintable characters.
pub(crate) struct EscapedLines<W> {
    inner: W,
    /// The first bytes of an incomplete character.
    begun: Vec<u8>,
}

impl<W: Write> Write for EscapedLines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let all = [self.begun.as_slice(), bytes].concat();
        let end = match std::str::from_utf8(&all) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => all.len(),
        };
        let text = String::from_utf8_lossy(&all[..end]);
        self.inner.write_all(visible_lines(&text).as_bytes())?;
        self.begun = all[end..].to_vec();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_lines_of_a_message_are_indented() {
        assert_eq!(indented("a\n  help: b"), "a\n  help: b");
        assert_eq!(
            indented("a\nabreast: all is well\r\u{1b}[2J"),
            "a\n  abreast: all is well\\r\\u001b[2J"
        );
    }

    #[test]
    fn logins_are_left_out_of_every_string_of_json() {
        for (json, shown) in [
            (
                r#"{"uri":"http://me:my hush@h/a","bytes":1,"path":"http:/me:a@b"}"#,
                r#"{"uri":"http://h/a","bytes":1,"path":"http:/me:a@b"}"#,
            ),
            (r#"{"uri":"http://me:a\"b\\@h/","x":"é@"}"#, r#"{"uri":"http://h/","x":"é@"}"#),
            (
                r#"{"causes":["`me:hush@h` is none","b"],"link":"a:b@c.txt"}"#,
                r#"{"causes":["`h` is none","b"],"link":"a:b@c.txt"}"#,
            ),
            (r#"{"a":"b@"#, r#"{"a":"b@"#),
            (r#"["http://me:hush@h/"]"#, r#"["http://h/"]"#),
        ] {
            assert_eq!(json_without_logins(json), shown);
        }
    }

    #[test]
    fn characters_in_pieces_are_escaped_as_whole_ones() {
        let text = "{\"a\":\"é\u{202e}\u{9b}\u{7f}\"}\n";
        for size in 1..text.len() {
            let mut out = EscapedLines { inner: Vec::new(), begun: Vec::new() };
            for piece in text.as_bytes().chunks(size) {
                out.write_all(piece).unwrap();
            }
            assert_eq!(
                String::from_utf8(out.inner).unwrap(),
                "{\"a\":\"é\\u202e\\u009b\\u007f\"}\n"
            );
        }
    }
}
