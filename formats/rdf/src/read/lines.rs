//! Reading N-Triples and N-Quads in pieces of whole lines.

use crate::canonical::plain::Plain;
use crate::notation::statement::write_statement;
use crate::notation::syntax::Syntax;
use crate::read::error::ReadError;
use crate::read::input::{fill, renamed, without_mark};
use crate::read::language_tags::LanguageTags;
use crate::read::left_out::LeftOut;
use crate::read::nesting::Brackets;
use crate::read::options::{ReadLimits, ReadOptions, Visit};
use abreast_webtypes::excerpt;
use memchr::{memchr, memchr_iter, memrchr};
use oxrdf::{GraphNameRef, QuadRef};
use oxttl::{NQuadsParser, NTriplesParser, TurtleSyntaxError};
use std::cell::{Cell, RefCell};
use std::io::Read;
use std::ops::ControlFlow;

/// Bytes read at once.
const PIECE: usize = 64 << 10;

pub(crate) fn read(
    syntax: Syntax,
    input: &mut dyn Read,
    options: &ReadOptions,
    visit: &mut Visit<'_>,
) -> Result<(), ReadError> {
    let reading = Reading::new(syntax, options);
    let mut visit = |quad: QuadRef<'_>| {
        reading.used.set(reading.used.get() + 1);
        visit(quad)
    };
    pieces(input, options, &mut |lines, before| reading.parse(lines, before, &mut visit))?;
    reading.check()
}

/// Reads N-Triples and visits its statements as [`write_statement`] writes them, without their
/// ends. Lines in this form are not parsed, which is many times faster.
///
/// # Examples
/// ```
/// use abreast_rdf::{ReadOptions, read_lines};
/// use std::ops::ControlFlow;
///
/// let dump = "# Maps\n<http://h/7>   <http://h/title> 'Atlas' .\n".replace('\'', "\"");
/// let mut lines = Vec::new();
/// read_lines(dump.as_bytes(), &ReadOptions::default(), &mut |line| {
///     lines.push(String::from_utf8_lossy(line).into_owned());
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!(lines, ["<http://h/7> <http://h/title> \"Atlas\" ."]);
/// # Ok::<(), abreast_rdf::ReadError>(())
/// ```
///
/// # Errors
/// As [`read`](crate::read::any::read).
pub fn read_lines(
    mut input: impl Read,
    options: &ReadOptions,
    visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<(), ReadError> {
    let prefix = options.document.map(|number| format!("d{number}_").into_bytes());
    let reading = Reading::new(Syntax::NTriples, options);
    let visit = &mut |line: &[u8]| {
        reading.used.set(reading.used.get() + 1);
        visit(line)
    };
    let mut line = Vec::new();
    let parsed = |lines: &[u8], before, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>| {
        let mut written = Vec::new();
        let mut each = |quad: QuadRef<'_>| {
            written.clear();
            write_statement(quad.into(), &mut written);
            visit(&written[..written.len() - 1])
        };
        match options.document {
            None => reading.parse(lines, before, &mut each),
            Some(number) => {
                let mut each = |quad: QuadRef<'_>| renamed(quad, number, &mut each);
                reading.parse(lines, before, &mut each)
            }
        }
    };
    pieces(&mut without_mark(&mut input)?, options, &mut |lines, mut before| {
        // Lines from `odd` to `at` must be parsed.
        let (mut odd, mut at, mut subject): (usize, usize, &[u8]) = (0, 0, &[]);
        while at < lines.len() {
            let end = memchr(b'\n', &lines[at..]).map_or(lines.len(), |end| at + end);
            let text = &lines[at..end];
            let next = (end + 1).min(lines.len());
            if let Some(plain) = Plain::of(text, subject) {
                if odd < at {
                    if parsed(&lines[odd..at], before, visit)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                    before += count_lines(&lines[odd..at]);
                }
                subject = &text[..plain.subject];
                let shown = match &prefix {
                    Some(prefix) if plain.has_blank() => {
                        line.clear();
                        plain.renamed(text, prefix, &mut line);
                        &line
                    }
                    _ => text,
                };
                if visit(shown).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                before += 1;
                odd = next;
            }
            at = next;
        }
        parsed(&lines[odd..], before, visit)
    })?;
    reading.check()
}

type EachPiece<'a> = dyn FnMut(&[u8], u64) -> Result<ControlFlow<()>, ReadError> + 'a;

/// Passes on whole lines, as many as fit into a buffer, with the number of lines before them.
fn pieces(
    input: &mut dyn Read,
    options: &ReadOptions,
    each: &mut EachPiece<'_>,
) -> Result<(), ReadError> {
    let limit = options.limits.token_length;
    let mut buffer = vec![0; PIECE];
    let mut kept = 0;
    let mut line = 0;
    loop {
        let filled = kept + fill(input, &mut buffer[kept..])?;
        let complete = if filled < buffer.len() { filled } else { end_of_lines(&buffer) };
        if complete == 0 && filled == buffer.len() {
            if buffer.len() >= limit.max(PIECE) {
                let message = format!("a line is longer than {} bytes", limit.max(PIECE));
                return Err(ReadError::new("rdf.size", (line + 1, 1), message, None));
            }
            kept = filled;
            buffer.resize((buffer.len() * 2).min(limit.max(PIECE)), 0);
            continue;
        }
        let lines = &buffer[..complete];
        if each(lines, line)?.is_break() || filled < buffer.len() {
            return Ok(());
        }
        line += count_lines(lines);
        buffer.copy_within(complete..filled, 0);
        kept = filled - complete;
    }
}

/// The end of the last whole line in a full buffer.
fn end_of_lines(buffer: &[u8]) -> usize {
    if let Some(last) = memrchr(b'\n', buffer) {
        return last + 1;
    }
    // Lines may end with `\r` alone; a `\r` at the very end may be half of `\r\n`.
    memrchr(b'\r', &buffer[..buffer.len() - 1]).map_or(0, |last| last + 1)
}

fn count_lines(lines: &[u8]) -> u64 {
    if memchr(b'\r', lines).is_none() {
        return memchr_iter(b'\n', lines).count() as u64;
    }
    let lone = |at: &usize| lines.get(at + 1) != Some(&b'\n');
    let lone = memchr_iter(b'\r', lines).filter(lone).count();
    (memchr_iter(b'\n', lines).count() + lone) as u64
}

/// A document while it is read.
struct Reading<'o> {
    syntax: Syntax,
    options: &'o ReadOptions,
    /// Statements that were visited.
    used: Cell<u64>,
    /// Number of invalid lines.
    broken: Cell<u64>,
    first_broken: RefCell<Option<ReadError>>,
}

impl<'o> Reading<'o> {
    fn new(syntax: Syntax, options: &'o ReadOptions) -> Self {
        let (used, broken, first_broken) = (Cell::new(0), Cell::new(0), RefCell::new(None));
        Self { syntax, options, used, broken, first_broken }
    }

    fn parse(
        &self,
        lines: &[u8],
        before: u64,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, ReadError> {
        match &self.options.left_out {
            None => parse(self.syntax, lines, self.options.lenient, before, visit),
            Some(left_out) => self.parse_each(lines, left_out, before, visit),
        }
    }

    /// Parses line by line, and leaves out invalid statements.
    fn parse_each(
        &self,
        lines: &[u8],
        left_out: &LeftOut,
        mut before: u64,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, ReadError> {
        let Self { syntax, options, .. } = *self;
        let mut was_carriage_return = false;
        for line in lines.split_inclusive(|byte| matches!(byte, b'\r' | b'\n')) {
            if was_carriage_return && line == b"\n" {
                was_carriage_return = false;
                continue;
            }
            let text = line.trim_ascii_end();
            match parse(syntax, text, options.lenient, before, visit) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return Ok(ControlFlow::Break(())),
                Err(error) if is_statement(syntax, text) => left_out.line(&error),
                // The document may be truncated there.
                Err(error)
                    if left_out.are_lines_statements
                        || !line.ends_with(b"\n") && !line.ends_with(b"\r") =>
                {
                    return Err(error);
                }
                Err(error) => {
                    left_out.line(&error);
                    self.broken.set(self.broken.get() + 1);
                    self.first_broken.borrow_mut().get_or_insert(error);
                }
            }
            was_carriage_return = line.ends_with(b"\r");
            before += 1;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Refuses a document with more invalid lines than statements: it has another syntax, for
    /// example a page with an error message.
    fn check(self) -> Result<(), ReadError> {
        let error = self.first_broken.into_inner();
        error.filter(|_| self.broken.get() > self.used.get()).map_or(Ok(()), Err)
    }
}

/// Whether an invalid line is a statement, except for its IRIs and language tags.
fn is_statement(syntax: Syntax, line: &[u8]) -> bool {
    let mut is_statement = false;
    let mut hidden = line.to_vec();
    take_down(&mut hidden, &LanguageTags::new(true));
    let parsed = parse(syntax, &hidden, true, 0, &mut |_| {
        is_statement = true;
        ControlFlow::Continue(())
    });
    parsed.is_ok() && is_statement
}

/// Records the language tags of some lines.
fn take_down(lines: &mut [u8], tags: &LanguageTags) {
    // The length of lines was checked already, and N-Triples does not have brackets.
    let limits =
        ReadLimits { token_length: usize::MAX, depth: usize::MAX, ..ReadLimits::default() };
    let _ = Brackets::turtle(limits).with_tags(tags.clone()).feed(lines);
}

/// Whether there may be a language tag that the parser does not return as written.
fn may_have_upper_case_tag(lines: &[u8]) -> bool {
    memchr_iter(b'@', lines).any(|at| {
        let tag = lines[at + 1..]
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-');
        at > 0
            && matches!(lines[at - 1], b'"' | b' ' | b'\t')
            && tag.clone().any(u8::is_ascii_uppercase)
    })
}

/// Parses whole lines, after `before` earlier ones; language tags do not change.
pub(crate) fn parse(
    syntax: Syntax,
    lines: &[u8],
    is_lenient: bool,
    before: u64,
    visit: &mut Visit<'_>,
) -> Result<ControlFlow<()>, ReadError> {
    let fault = |error: TurtleSyntaxError| {
        let tags = LanguageTags::new(false);
        take_down(&mut lines.to_vec(), &tags);
        syntax_error(&error, before, &tags)
    };
    let tags = may_have_upper_case_tag(lines).then(|| {
        let tags = LanguageTags::new(false);
        take_down(&mut lines.to_vec(), &tags);
        tags
    });
    let visit = &mut |quad: QuadRef<'_>| match &tags {
        Some(tags) => tags.visit(quad, visit),
        None => visit(quad),
    };
    if syntax == Syntax::NQuads {
        let parser = NQuadsParser::new();
        let parser = if is_lenient { parser.lenient() } else { parser };
        for quad in parser.for_slice(lines) {
            if visit(quad.map_err(fault)?.as_ref()).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    } else {
        let parser = NTriplesParser::new();
        let parser = if is_lenient { parser.lenient() } else { parser };
        for triple in parser.for_slice(lines) {
            let triple = triple.map_err(fault)?;
            let quad = QuadRef::new(
                triple.subject.as_ref(),
                triple.predicate.as_ref(),
                triple.object.as_ref(),
                GraphNameRef::DefaultGraph,
            );
            if visit(quad).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Converts a syntax error of the Turtle parsers in a text with these tags, after `lines_before`
/// earlier lines.
pub(crate) fn syntax_error(
    error: &TurtleSyntaxError,
    lines_before: u64,
    tags: &LanguageTags,
) -> ReadError {
    let place = error.location().start;
    // The parser ends a tag at the first invalid character, and then fails at that character.
    if let Some(tag) = tags.wrong_at(place.line + 1, place.column + 1) {
        let message = format!("`{}` is not a language tag", excerpt(&tag));
        let place = (lines_before + place.line + 1, place.column + 1);
        return ReadError::new("rdf.language", place, message, None);
    }
    let message = error.message();
    let (code, help) = if message.contains("IRI") {
        ("rdf.iri", Some("IRIs are absolute here, with other characters percent-encoded"))
    } else if message.contains("anguage tag") {
        ("rdf.language", None)
    } else {
        ("rdf.syntax", None)
    };
    let place = (lines_before + place.line + 1, place.column + 1);
    // Messages quote the document, so they are shortened.
    let message = abreast_webtypes::visible(message).chars().take(300).collect::<String>();
    ReadError::new(code, place, message, help)
}
