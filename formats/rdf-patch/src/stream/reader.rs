//! The reader: rows one after the other, in bounded memory.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read};

use memchr::{memchr_iter, memrchr};

use crate::stream::read_error::{Finding, ReadError};
use crate::syntax::header::Header;
use crate::syntax::row::{Change, Row};
use crate::syntax::row_parser::{Noted, RowParser, Stop};

/// Bytes read at once.
const PIECE: usize = 64 << 10;

/// Most findings that the reader stores.
pub const MAX_FINDINGS: usize = 100;

/// How a patch is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Accepts what many patches have although it is not RDF Patch: see the codes of [`Finding`].
    pub lenient: bool,
    /// Limits of sizes in the patch.
    pub limits: ReadLimits,
}

/// Limits of one patch, with their defaults in parentheses. Terms do not nest, so depth needs no
/// limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadLimits {
    /// Bytes of a row (16 MiB). A row is held in memory.
    pub row_length: usize,
    /// Rows of a patch (1,000,000,000).
    pub rows: u64,
    /// Changes of a transaction that [`Reader::next_transaction`] holds in memory (1,000,000).
    pub transaction_rows: usize,
    /// Most headers, and most prefixes in use at once (1,000 each).
    pub headers: usize,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self {
            row_length: 16 << 20,
            rows: 1_000_000_000,
            transaction_rows: 1_000_000,
            headers: 1_000,
        }
    }
}

impl ReadOptions {
    /// Options of the lenient reader.
    pub fn lenient() -> Self {
        Self { lenient: true, ..Self::default() }
    }

    /// Replaces the default limits of the reader.
    #[must_use]
    pub fn with_limits(mut self, limits: ReadLimits) -> Self {
        self.limits = limits;
        self
    }
}

/// Reads rows, and checks that they are where they may be. An iterator that ends after an error.
///
/// Changes are returned as they are read: they apply only when [`Row::Commit`] follows. A patch
/// that ends within a transaction is an error. [`Reader::next_transaction`] returns whole
/// transactions instead.
///
/// The lenient reader takes prefixes before the first `TX` for its first changes, and rows without `TX` and `TC` for one transaction, which is committed when
/// the input ends: an input that was cut off between two rows is not detected then.
pub struct Reader<R> {
    input: R,
    options: ReadOptions,
    buffer: Vec<u8>,
    /// Where the next row is in the buffer.
    from: usize,
    /// All of the input is in the buffer.
    is_end: bool,
    place: Place,
    state: State,
    rows: u64,
    /// Changes after the start of their transaction.
    waiting: VecDeque<Row>,
    /// Prefixes that are declared before the first transaction, as its first changes.
    early: VecDeque<Row>,
    header: Header,
    prefixes: BTreeMap<String, String>,
    findings: Vec<Finding>,
    finding_count: u64,
}

#[derive(Clone, Copy)]
struct Place {
    line: u64,
    column: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// At the first byte.
    Start,
    /// Before the first transaction.
    Header,
    Inside,
    /// In the one transaction of a patch without `TX`.
    Implicit,
    Outside,
    /// After the end or an error.
    Done,
}

impl<R: Read> Reader<R> {
    /// Reads from here. The input needs no buffer.
    pub fn new(input: R, options: ReadOptions) -> Self {
        Self {
            input,
            options,
            buffer: Vec::new(),
            from: 0,
            is_end: false,
            place: Place { line: 1, column: 1 },
            state: State::Start,
            rows: 0,
            waiting: VecDeque::new(),
            early: VecDeque::new(),
            header: Header::default(),
            prefixes: BTreeMap::new(),
            findings: Vec::new(),
            finding_count: 0,
        }
    }

    /// The header rows that were read so far.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Faults that the lenient reader accepted, at most [`MAX_FINDINGS`].
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// How many findings there are.
    pub fn finding_count(&self) -> u64 {
        self.finding_count
    }

    /// The findings, at most [`MAX_FINDINGS`].
    pub fn into_findings(self) -> Vec<Finding> {
        self.findings
    }

    /// The changes of the next committed transaction; `None` at the end. Aborted ones are skipped.
    ///
    /// # Errors
    /// As the iterator, and when the transaction has more changes than
    /// [`ReadLimits::transaction_rows`].
    pub fn next_transaction(&mut self) -> Result<Option<Vec<Change>>, ReadError> {
        let mut changes = Vec::new();
        while let Some(row) = self.next() {
            match row? {
                Row::Header { .. } => {}
                Row::Begin | Row::Abort => changes.clear(),
                Row::Commit => return Ok(Some(changes)),
                Row::Change(_) if changes.len() >= self.options.limits.transaction_rows => {
                    let most = self.options.limits.transaction_rows;
                    let message = format!("a transaction has more than {most} changes");
                    return Err(self.failed("patch.size", message, None));
                }
                Row::Change(change) => changes.push(change),
            }
        }
        Ok(None)
    }

    fn read_row(&mut self) -> Result<Option<Row>, ReadError> {
        if let Some(row) = self.waiting.pop_front() {
            return Ok(Some(row));
        }
        loop {
            if !self.skip_blank()? {
                return self.at_end();
            }
            if let Some(row) = self.parse()? {
                return Ok(Some(row));
            }
        }
    }

    fn at_end(&mut self) -> Result<Option<Row>, ReadError> {
        match self.state {
            State::Inside => {
                let help = "the patch is cut off: fetch it again";
                let message = "the input ends within a transaction: it is not committed".to_owned();
                Err(self.failed("patch.commit", message, Some(help)))
            }
            State::Implicit => {
                self.state = State::Done;
                Ok(Some(Row::Commit))
            }
            State::Header if !self.early.is_empty() => {
                self.state = State::Implicit;
                self.waiting.append(&mut self.early);
                Ok(Some(Row::Begin))
            }
            _ => {
                self.state = State::Done;
                Ok(None)
            }
        }
    }

    /// Skips empty lines and comments; `false` at the end of the input.
    fn skip_blank(&mut self) -> Result<bool, ReadError> {
        if self.state == State::Start {
            self.fill()?;
            if self.buffer.starts_with(b"\xEF\xBB\xBF") {
                self.from = 3;
            }
            self.state = State::Header;
        }
        let mut is_comment = false;
        loop {
            let rest = &self.buffer[self.from..];
            let skipped = rest.iter().position(|byte| {
                is_comment = *byte == b'#' || (is_comment && *byte != b'\n');
                !is_comment && !matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
            });
            let length = skipped.unwrap_or(rest.len());
            self.place.advance(&self.buffer[self.from..self.from + length]);
            self.from += length;
            if skipped.is_some() {
                return Ok(true);
            }
            if self.is_end {
                return Ok(false);
            }
            self.fill()?;
        }
    }

    /// Parses the next row, with more input until it is whole.
    fn parse(&mut self) -> Result<Option<Row>, ReadError> {
        let limit = self.options.limits.row_length;
        loop {
            let mut parser = RowParser {
                text: &self.buffer[self.from..],
                at: 0,
                is_end: self.is_end,
                is_lenient: self.options.lenient,
                prefixes: &self.prefixes,
                findings: Vec::new(),
                is_over_lines: false,
            };
            let parsed = parser.row();
            let (length, findings) = (parser.at, std::mem::take(&mut parser.findings));
            let is_long = match &parsed {
                Err(Stop::More) => self.buffer.len() - self.from > limit,
                _ => length > limit,
            };
            if is_long {
                let message = format!("a row is longer than {limit} bytes");
                return Err(self.failed("patch.size", message, None));
            }
            match parsed {
                Err(Stop::More) => self.fill()?,
                Err(Stop::Fault(noted)) => return Err(self.refused(noted)),
                Ok(parsed) => {
                    for noted in findings {
                        self.note(noted);
                    }
                    let row = match parsed {
                        Some(row) => self.checked(row)?,
                        None => None,
                    };
                    self.place.advance(&self.buffer[self.from..self.from + length]);
                    self.from += length;
                    return Ok(row);
                }
            }
        }
    }

    /// Checks that a row may occur here; the first change of a patch without `TX` starts its
    /// transaction.
    fn checked(&mut self, row: Row) -> Result<Option<Row>, ReadError> {
        let is_inside = matches!(self.state, State::Inside | State::Implicit);
        self.rows += 1;
        if self.rows > self.options.limits.rows {
            let message = format!("the patch has more than {} rows", self.options.limits.rows);
            return Err(self.failed("patch.size", message, None));
        }
        let limit = self.options.limits.headers;
        match &row {
            Row::Header { word, value } => {
                if self.state != State::Header {
                    let message = "a header after the first transaction".into();
                    let help = Some("write headers first");
                    let noted = Noted { at: 0, code: "patch.header", message, help };
                    if !self.options.lenient || is_inside {
                        return Err(self.refused(noted));
                    }
                    self.note(noted);
                }
                if self.header.rows().len() >= limit {
                    let message = format!("the patch has more than {limit} headers");
                    return Err(self.failed("patch.size", message, None));
                }
                self.header.push(word.clone(), value.clone());
            }
            Row::Begin if is_inside => {
                let message = "a transaction begins within another one".to_owned();
                return Err(self.failed("patch.transaction", message, None));
            }
            Row::Begin => {
                self.state = State::Inside;
                self.waiting.append(&mut self.early);
            }
            Row::Commit | Row::Abort if self.state != State::Inside => {
                let message = "a transaction ends that did not begin".to_owned();
                return Err(self.failed("patch.transaction", message, None));
            }
            Row::Commit | Row::Abort => self.state = State::Outside,
            Row::Change(change) => {
                if let Change::AddPrefix { prefix, iri } = change
                    && self.options.lenient
                    && self.prefixes.len() < limit
                {
                    self.prefixes.insert(prefix.clone(), iri.clone());
                }
                if !is_inside {
                    let message = "a change outside of a transaction".into();
                    let help = Some("write `TX .` before the changes and `TC .` after them");
                    let noted = Noted { at: 0, code: "patch.transaction", message, help };
                    if !self.options.lenient || self.state != State::Header {
                        return Err(self.refused(noted));
                    }
                    if self.early.is_empty() {
                        self.note(noted);
                    }
                    let is_prefix =
                        matches!(change, Change::AddPrefix { .. } | Change::RemovePrefix { .. });
                    self.early.push_back(row);
                    if is_prefix && self.early.len() <= limit {
                        return Ok(None);
                    }
                    self.state = State::Implicit;
                    self.waiting.append(&mut self.early);
                    return Ok(Some(Row::Begin));
                }
            }
        }
        Ok(Some(row))
    }

    /// Reads at least one piece, and as many bytes as the buffer still has. A row that is parsed
    /// again and again therefore takes linear time.
    fn fill(&mut self) -> Result<(), ReadError> {
        self.buffer.drain(..self.from);
        self.from = 0;
        let piece = self.buffer.len().max(PIECE);
        let read = self.input.by_ref().take(piece as u64).read_to_end(&mut self.buffer);
        match read {
            Ok(length) => self.is_end = length < piece,
            Err(error) => return Err(self.broken(error)),
        }
        Ok(())
    }

    fn broken(&mut self, error: io::Error) -> ReadError {
        self.state = State::Done;
        error.into()
    }

    fn failed(
        &mut self,
        code: &'static str,
        message: String,
        help: Option<&'static str>,
    ) -> ReadError {
        self.refused(Noted { at: 0, code, message: message.into(), help })
    }

    fn refused(&mut self, noted: Noted) -> ReadError {
        self.state = State::Done;
        self.waiting.clear();
        self.finding(noted).into()
    }

    fn note(&mut self, noted: Noted) {
        self.finding_count += 1;
        if self.findings.len() < MAX_FINDINGS {
            let finding = self.finding(noted);
            self.findings.push(finding);
        }
    }

    fn finding(&self, noted: Noted) -> Finding {
        let mut place = self.place;
        place.advance(&self.buffer[self.from..self.from + noted.at]);
        Finding {
            code: noted.code,
            line: place.line,
            column: place.column,
            message: noted.message.into_owned(),
            help: noted.help,
        }
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Row, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.state == State::Done {
            return None;
        }
        self.read_row().transpose()
    }
}

impl Place {
    /// Moves behind this text. Columns count characters.
    fn advance(&mut self, text: &[u8]) {
        let last = match memrchr(b'\n', text) {
            Some(last) => {
                self.line += memchr_iter(b'\n', &text[..=last]).count() as u64;
                self.column = 1;
                &text[last + 1..]
            }
            None => text,
        };
        self.column += last.iter().filter(|byte| !matches!(byte, 0x80..=0xBF)).count() as u64;
    }
}
