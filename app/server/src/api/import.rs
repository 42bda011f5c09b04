//! Reads records one at a time, from lines of JSON and from tables in the format of
//! `abreast import`.
//!
//! `csv-core` parses quoted fields. Lines are counted here, so that an error has the line number
//! that an editor shows, with any line ending and including empty lines.

use super::model::{ChangeWord, RecordRequest};
use abreast_source::links::{explain, nearest};
use abreast_webtypes::excerpt;
use csv_core::ReadRecordResult;
use std::io::{self, BufRead, BufReader, Chain, Cursor, ErrorKind, Read};

/// Bytes of a JSON line, or of all fields in a table row.
pub const MAX_LINE: usize = 1 << 20;
/// Most fields of a row.
const MAX_FIELDS: usize = 64;
/// Most characters of a message, which may quote the input.
const MAX_MESSAGE: usize = 200;
/// Columns that a table may have.
const COLUMNS: [&str; 7] = ["uri", "change", "lastmod", "length", "type", "encoding", "hash"];
/// The byte order mark, which some programs write.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The reason why a record could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The input has an invalid record: its line, and the fault.
    #[error("{0}")]
    Wrong(String),
    /// The input could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

fn wrong(place: &str, message: &str) -> ReadError {
    let mut shown = String::new();
    for character in message.chars().take(MAX_MESSAGE + 1) {
        if matches!(character, '"' | '\'' | '\\') {
            shown.push(character);
        } else {
            shown.extend(character.escape_debug());
        }
    }
    // Escapes make the text longer, so it is limited again.
    if let Some((end, _)) = shown.char_indices().nth(MAX_MESSAGE) {
        shown.truncate(end);
        shown.push('…');
    }
    ReadError::Wrong(format!("{place}: {shown}"))
}

fn too_long(line: u64) -> ReadError {
    wrong(&format!("line {line}"), &format!("longer than {MAX_LINE} bytes"))
}

/// The input without the byte order mark.
type WithoutBom<R> = BufReader<Chain<Cursor<Vec<u8>>, R>>;

fn without_bom<R: Read>(mut input: R) -> io::Result<WithoutBom<R>> {
    let mut first = Vec::new();
    input.by_ref().take(BYTE_ORDER_MARK.len() as u64).read_to_end(&mut first)?;
    if first == BYTE_ORDER_MARK {
        first.clear();
    }
    Ok(BufReader::new(Cursor::new(first).chain(input)))
}

/// Records as lines with one JSON object each.
#[derive(Debug)]
pub struct JsonLines<R> {
    input: WithoutBom<R>,
    line: Vec<u8>,
    number: u64,
}

impl<R: Read> JsonLines<R> {
    /// Reads the lines of an input.
    ///
    /// # Errors
    /// The input could not be read.
    pub fn new(input: R) -> io::Result<Self> {
        Ok(Self { input: without_bom(input)?, line: Vec::new(), number: 0 })
    }

    /// The next record and its line, `None` at the end. Do not call this after an error.
    ///
    /// # Errors
    /// The line is not a record, or is longer than [`MAX_LINE`]; the input could not be read.
    pub fn read(&mut self) -> Result<Option<(u64, RecordRequest)>, ReadError> {
        loop {
            self.line.clear();
            self.number += 1;
            let number = self.number;
            let read =
                self.input.by_ref().take(MAX_LINE as u64 + 1).read_until(b'\n', &mut self.line)?;
            if read == 0 {
                return Ok(None);
            }
            let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
            if line.len() > MAX_LINE {
                return Err(too_long(number));
            }
            match line.trim_ascii().first() {
                None => continue,
                Some(b'{') => {}
                Some(_) => {
                    let message =
                        "no JSON object: one stands on each line, without an array around them";
                    return Err(wrong(&format!("line {number}"), message));
                }
            }
            let record =
                serde_json::from_slice(line).map_err(|error| wrong_json(number, &error))?;
            return Ok(Some((number, record)));
        }
    }
}

/// Replaces the line number in the error, which is always 1, by the line of the input.
fn wrong_json(number: u64, error: &serde_json::Error) -> ReadError {
    let own = format!("line {} column {}", error.line(), error.column());
    let message = explain(error);
    let message = message.strip_prefix(&format!("{own}: ")).unwrap_or(&message);
    let message = message.strip_suffix(&format!(" at {own}")).unwrap_or(message);
    wrong(&format!("line {number}, column {}", error.column().max(1)), message)
}

/// A CSV table: the first row contains the columns, commas separate the fields.
pub struct Table<R> {
    input: WithoutBom<R>,
    parser: csv_core::Reader,
    /// Line of the next byte that is read, counted from 1.
    line: u64,
    fields: Vec<u8>,
    /// The end of each field. This and `fields` have space for one more than a row may have: if
    /// they are full, the row is too long.
    ends: [usize; MAX_FIELDS + 1],
    /// `None` until the columns were read.
    columns: Option<Vec<&'static str>>,
}

impl<R: Read> Table<R> {
    /// Reads the table of an input.
    ///
    /// # Errors
    /// The input could not be read.
    pub fn new(input: R) -> io::Result<Self> {
        let mut parser = csv_core::Reader::new();
        // Remove the byte order mark here: the parser removes it only if all three bytes arrive at
        // once.
        parser.read_record(b"\n", &mut [0], &mut [0]);
        let input = without_bom(input)?;
        Ok(Self {
            input,
            parser,
            line: 1,
            fields: vec![0; 1 << 10],
            ends: [0; MAX_FIELDS + 1],
            columns: None,
        })
    }

    /// The next record and the first line of its row, `None` at the end. Do not call this after an
    /// error.
    ///
    /// # Errors
    /// A column name is unknown; the row is not a record, or is longer than [`MAX_LINE`]; the input
    /// could not be read.
    pub fn read(&mut self) -> Result<Option<(u64, RecordRequest)>, ReadError> {
        let columns = if let Some(columns) = self.columns.take() {
            columns
        } else {
            let Some((line, count)) = self.row()? else { return Ok(None) };
            columns_of(line, &self.texts(line, count)?)?
        };
        let Some((line, count)) = self.row()? else { return Ok(None) };
        let texts = self.texts(line, count)?;
        if texts.len() != columns.len() {
            let message = format!("{} fields, where the names are {}", texts.len(), columns.len());
            return Err(wrong(&format!("line {line}"), &message));
        }
        let record = record_of(line, columns.iter().copied().zip(texts))?;
        self.columns = Some(columns);
        Ok(Some((line, record)))
    }

    /// Reads a row. Returns its first line, and its number of fields.
    fn row(&mut self) -> Result<Option<(u64, usize)>, ReadError> {
        let (mut begun, mut length, mut count) = (None, 0, 0);
        loop {
            let input = match self.input.fill_buf() {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                input => input?,
            };
            if begun.is_none() && input.first().is_some_and(|byte| matches!(byte, b'\r' | b'\n')) {
                self.line += u64::from(input[0] == b'\n');
                self.input.consume(1);
                continue;
            }
            let begun = *begun.get_or_insert(self.line);
            let (result, read, written, ended) =
                self.parser.read_record(input, &mut self.fields[length..], &mut self.ends[count..]);
            self.line += memchr::memchr_iter(b'\n', &input[..read]).count() as u64;
            self.input.consume(read);
            length += written;
            count += ended;
            if length > MAX_LINE {
                return Err(too_long(begun));
            }
            if count > MAX_FIELDS {
                return Err(wrong(
                    &format!("line {begun}"),
                    &format!("more than {MAX_FIELDS} fields"),
                ));
            }
            match result {
                ReadRecordResult::InputEmpty | ReadRecordResult::OutputEndsFull => {}
                ReadRecordResult::OutputFull => {
                    self.fields.resize((self.fields.len() * 2).min(MAX_LINE + 1), 0);
                }
                ReadRecordResult::Record => return Ok(Some((begun, count))),
                ReadRecordResult::End => return Ok(None),
            }
        }
    }

    /// The fields of the row that was read last.
    fn texts(&self, line: u64, count: usize) -> Result<Vec<&str>, ReadError> {
        let mut from = 0;
        let field = |end: &usize| {
            let field = std::str::from_utf8(&self.fields[from..*end]);
            from = *end;
            field.map(str::trim).map_err(|_| wrong(&format!("line {line}"), "not in UTF-8"))
        };
        self.ends[..count].iter().map(field).collect()
    }
}

fn columns_of(line: u64, names: &[&str]) -> Result<Vec<&'static str>, ReadError> {
    let place = format!("line {line}");
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let Some(column) = COLUMNS.iter().find(|column| *column == name) else {
            if name.is_empty() {
                return Err(wrong(&place, "a column has no name"));
            }
            let nearest = nearest(name, &COLUMNS);
            return Err(wrong(
                &place,
                &format!("unknown column `{}`; did you mean `{nearest}`?", excerpt(name)),
            ));
        };
        if columns.contains(column) {
            return Err(wrong(&place, &format!("the column `{column}` is there twice")));
        }
        columns.push(*column);
    }
    if columns.contains(&"uri") {
        Ok(columns)
    } else {
        Err(wrong(&place, "no column is named `uri`"))
    }
}

fn record_of<'r>(
    line: u64,
    fields: impl Iterator<Item = (&'static str, &'r str)>,
) -> Result<RecordRequest, ReadError> {
    let place = format!("line {line}");
    let mut record = RecordRequest::default();
    for (column, value) in fields.filter(|(_, value)| !value.is_empty()) {
        let text = Some(value.to_owned());
        match column {
            "uri" => record.uri = text,
            "change" => {
                record.change = Some(match value {
                    "created" => ChangeWord::Created,
                    "updated" => ChangeWord::Updated,
                    "deleted" => ChangeWord::Deleted,
                    _ => {
                        let message = format!(
                            "`change`: `{}` is none of created, updated, deleted",
                            excerpt(value)
                        );
                        return Err(wrong(&place, &message));
                    }
                });
            }
            "lastmod" => record.lastmod = text,
            "length" => {
                let digits = value.bytes().all(|byte| byte.is_ascii_digit());
                let length = digits.then(|| value.parse().ok()).flatten();
                let message = || format!("`length`: `{}` is not a number of bytes", excerpt(value));
                record.length = Some(length.ok_or_else(|| wrong(&place, &message()))?);
            }
            "type" => record.media_type = text,
            "encoding" => record.encoding = text,
            _ => record.hash = text,
        }
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records as JSON with the lines they are from, or what is wrong.
    fn table(text: &[u8]) -> Result<Vec<(u64, String)>, String> {
        let mut table = Table::new(text).unwrap();
        let mut records = Vec::new();
        loop {
            match table.read() {
                Ok(Some((line, record))) => {
                    records.push((line, serde_json::to_string(&record).unwrap()));
                }
                Ok(None) => return Ok(records),
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    fn lines(text: &[u8]) -> Result<Vec<u64>, String> {
        let mut lines = JsonLines::new(text).unwrap();
        let mut numbers = Vec::new();
        loop {
            match lines.read() {
                Ok(Some((number, _))) => numbers.push(number),
                Ok(None) => return Ok(numbers),
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    #[test]
    fn a_row_is_on_the_line_that_an_editor_shows() {
        let uris = |numbers: &[u64]| {
            numbers.iter().map(|number| (*number, "{\"uri\":\"a\"}".to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(table(b"uri,type\na,\na,"), Ok(uris(&[2, 3])));
        assert_eq!(
            table(b"uri,type\r\na,\r\na,\r\n"),
            Ok(uris(&[2, 3])),
            "not a line less for each carriage return"
        );
        assert_eq!(table(b"\n\nuri,type\n\n\na,\n"), Ok(uris(&[6])), "empty lines are lines");
        assert_eq!(
            table(b"type,uri\n\"\n\n\",a\n,a"),
            Ok(uris(&[2, 5])),
            "a field of several lines"
        );
        assert_eq!(table(b"\xef\xbb\xbf\"uri\" , type \na,\n"), Ok(uris(&[2])));
        assert_eq!(table(b""), Ok(Vec::new()));
        let full = [b"uri\n".as_slice(), &vec![b'a'; MAX_LINE], b"\n"].concat();
        assert_eq!(table(&full).map(|records| records.len()), Ok(1));
    }

    #[test]
    fn table_without_records_is_refused_with_its_line() {
        let unclosed = [b"uri\n\"".as_slice(), &vec![b'\n'; MAX_LINE + 1]].concat();
        let many = [b"uri".as_slice(), &[b','; MAX_FIELDS]].concat();
        let long = [b"uri\n\n".as_slice(), &vec![b'a'; MAX_LINE + 1]].concat();
        for (text, told) in [
            (b"uri,uri\na,b\n".as_slice(), "line 1: the column `uri` is there twice"),
            (b"type\na\n", "line 1: no column is named `uri`"),
            (b"url\na\n", "line 1: unknown column `url`; did you mean `uri`?"),
            (b"uri,length\r\na,1\r\nb,one\r\n", "line 3: `length`: `one` is not a number of bytes"),
            (b"uri,length\na,+1\n", "line 2: `length`: `+1` is not a number of bytes"),
            (
                b"uri,length\na,\"\x1b[31m\"\n",
                "line 2: `length`: `\\u{1b}[31m` is not a number of bytes",
            ),
            (
                b"uri,change\na,gone\n",
                "line 2: `change`: `gone` is none of created, updated, deleted",
            ),
            (b"uri,type\n\na\n", "line 3: 1 fields, where the names are 2"),
            (b"uri\n\xff\n", "line 2: not in UTF-8"),
            (&unclosed, "line 2: longer than 1048576 bytes"),
            (&long, "line 3: longer than 1048576 bytes"),
            (&many, "line 1: more than 64 fields"),
            (&many[..many.len() - 1], "line 1: a column has no name"),
        ] {
            assert_eq!(table(text).err().as_deref(), Some(told));
        }
    }

    #[test]
    fn json_lines_are_read_and_refused_with_line_and_column() {
        assert_eq!(lines(b"\xef\xbb\xbf{\"uri\":\"a\"}\r\n\n \t\n{\"uri\":\"b\"}"), Ok(vec![1, 4]));
        let full = [b"{}".as_slice(), &vec![b' '; MAX_LINE - 2], b"\n{}"].concat();
        assert_eq!(lines(&full), Ok(vec![1, 2]));
        let long = [b"\n{}".as_slice(), &vec![b' '; MAX_LINE - 1], b"\n"].concat();
        let name = format!("{{\"{}\":1}}", "a".repeat(1_000));
        for (text, told) in [
            (b"\n{\n".as_slice(), "line 2, column 1: EOF while parsing an object"),
            (b"{}\n[{}]\n", "line 2: no JSON object"),
            (b"{\"ury\":1}", "line 1, column 6: unknown field `ury`; did you mean `uri`?"),
            (b"{\"u`x`y\":1}", "line 1, column 8: unknown field `u`x`y`; did you mean `uri`?"),
            (b"{\"change\":\"\\u001b\"}", "line 1, column 18: unknown variant `\\u{1b}`"),
            (&long, "line 2: longer than 1048576 bytes"),
        ] {
            let error = lines(text).unwrap_err();
            assert!(error.starts_with(told), "{error}");
        }
        assert!(lines(name.as_bytes()).unwrap_err().len() < 300);
        let unseen = format!("{{\"{}\":1}}", "\u{7f}".repeat(150));
        assert!(lines(unseen.as_bytes()).unwrap_err().len() < 300, "escapes count");
    }
}
