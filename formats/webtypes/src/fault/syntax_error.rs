//! Syntax errors: a fault of a document, and its place.

/// A fault in a document: a stable code, the place counted from 1, the fault and, if known, its
/// remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{}{message}{}",
    if *line > 0 { format!("line {line}, column {column}: ") } else { String::new() },
    help_line(*help)
)]
pub struct SyntaxError {
    code: &'static str,
    line: u64,
    column: u64,
    message: String,
    help: Option<&'static str>,
}

impl SyntaxError {
    /// A fault at a line and column, both counted from 1.
    pub fn new(code: &'static str, (line, column): (u64, u64), message: impl Into<String>) -> Self {
        Self { code, line, column, message: message.into(), help: None }
    }

    /// Adds advice for the reader of the message.
    ///
    /// # Examples
    /// ```
    /// use abreast_webtypes::SyntaxError;
    ///
    /// let error = SyntaxError::new("rs.loc", (7, 3), "an entry without `loc`")
    ///     .with_help("each `url` needs the URI of its resource");
    /// assert_eq!(
    ///     error.to_string(),
    ///     "line 7, column 3: an entry without `loc`\n  help: each `url` needs the URI of its resource",
    /// );
    /// ```
    #[must_use]
    pub fn with_help(mut self, help: &'static str) -> Self {
        self.help = Some(help);
        self
    }

    /// A stable code such as `xml.depth`: programs match on it, wording may change.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The line, from 1; 0 when the place is not known.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The column in characters, from 1.
    pub fn column(&self) -> u64 {
        self.column
    }

    /// The message, without the place.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The way out, when known.
    pub fn help(&self) -> Option<&'static str> {
        self.help
    }
}

/// The line with the help that the text of an error ends with; empty for an error without help.
pub fn help_line(help: Option<&str>) -> String {
    help.map(|help| format!("\n  help: {help}")).unwrap_or_default()
}

/// At most 60 characters of a text, with control characters and the like made visible. The logins of URLs are left out
/// before: a URL whose host is cut off shows nothing else.
///
/// # Examples
/// ```
/// use abreast_webtypes::excerpt;
///
/// assert_eq!(excerpt("https://me:hush@repo.example/"), "https://repo.example/");
/// assert_eq!(excerpt(&"x".repeat(1_000)).chars().count(), 61);
/// ```
pub fn excerpt(text: &str) -> String {
    const LENGTH: usize = 60;
    /// Bytes of a text in which an excerpt searches for logins.
    const URL_BYTES_MAX: usize = 16 << 10;
    let mut ends = (0..=text.len().min(URL_BYTES_MAX)).rev();
    let end = ends.find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let text = crate::without_logins(&text[..end]);
    let mut out = String::new();
    for (number, character) in text.chars().enumerate() {
        if number == LENGTH {
            out.push('…');
            break;
        }
        if character == '"' || character == '\'' {
            out.push(character);
        } else {
            out.extend(character.escape_debug());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_place_fault_and_help() {
        let error = SyntaxError::new("rs.loc", (3, 9), "no `loc`").with_help("add it");
        assert_eq!(error.to_string(), "line 3, column 9: no `loc`\n  help: add it");
        assert_eq!(SyntaxError::new("xml", (0, 0), "no root").to_string(), "no root");
    }

    #[test]
    fn excerpts_are_short_and_harmless() {
        assert_eq!(excerpt("a\u{1b}[31m\n\"b\""), "a\\u{1b}[31m\\n\"b\"");
        assert_eq!(excerpt(&"x".repeat(1_000)).chars().count(), 61);
        assert_eq!(excerpt(&format!("http://me:{}@h/x", "x".repeat(1_000))), "http://h/x");
    }
}
