//! A file of sorted N-Triples: the statements of each entity, one entity after the other, and
//! statements about blank nodes by their label.

use crate::Error;
use crate::sort::read_ahead::{READ, ReadAhead};
use abreast_rdf::{BlankStatements, LeftOut};
use memchr::{memchr, memchr_iter};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

/// Bytes of statements about blank nodes between two entries of their index.
const BLOCK: usize = 4096;
/// Most bytes of an entity's statements, without the statements about blank nodes.
pub const MAX_GROUP: usize = 16 << 20;

/// An open file of sorted N-Triples.
pub struct SortedStatements {
    file: File,
    /// Offset of the statements about blank nodes, which are after all others.
    blank: u64,
    length: u64,
    canonical: bool,
    pub(crate) left_out: LeftOut,
}

impl SortedStatements {
    /// Takes a file whose lines are in byte order. The order is checked while the file is read.
    /// With `canonical`, this program wrote the lines, without duplicates.
    ///
    /// # Errors
    /// The disk failed.
    pub fn new(file: File, canonical: bool) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let left_out = LeftOut::default();
        let mut sorted = Self { file, blank: length, length, canonical, left_out };
        sorted.blank = sorted.first_at_least(b"_:")?;
        Ok(sorted)
    }

    /// Whether the lines are canonical, except for labels of blank nodes.
    pub fn canonical_lines(&self) -> bool {
        self.canonical
    }

    /// Invalid statements of the input.
    pub fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    /// Length of all statements in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The file. Its position is shared.
    pub(crate) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Number of lines.
    ///
    /// # Errors
    /// The disk failed.
    pub fn count(&self) -> io::Result<u64> {
        let (mut count, mut at, mut buffer) = (0, 0, vec![0; READ]);
        loop {
            match self.file.read_at(&mut buffer, at)? {
                0 => return Ok(count),
                read => {
                    count += memchr_iter(b'\n', &buffer[..read]).count() as u64;
                    at += read as u64;
                }
            }
        }
    }

    /// The statements about entities, grouped.
    ///
    /// # Errors
    /// The system cannot create a thread or open another file.
    pub fn entities(&self) -> Result<Groups, Error> {
        Ok(Groups {
            parts: ReadAhead::new(&self.file, self.blank)?,
            buffer: Vec::new(),
            group: None,
            iri: String::new(),
            used: 0,
            last: Vec::new(),
            line: 0,
        })
    }

    /// The statements about blank nodes.
    ///
    /// # Errors
    /// They are not sorted, a line is not a statement, or the disk failed.
    pub fn blank_nodes(&self) -> Result<BlankNodes<'_>, Error> {
        BlankNodes::index(&self.file, self.blank, self.length)
    }

    /// Offset of the first line that does not sort before `prefix`.
    fn first_at_least(&self, prefix: &[u8]) -> io::Result<u64> {
        let (mut low, mut high) = (0, self.length);
        let mut head = [0; 2];
        // Lines that start before `low` sort before the prefix; lines from `high` on do not.
        while low < high {
            let middle = self.line_start(low + (high - low) / 2, low)?;
            let read = self.file.read_at(&mut head, middle)?;
            if &head[..read] < prefix {
                low = self.next_line(middle)?.min(self.length);
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Start of the line that contains the byte at `place`, at least `low`.
    fn line_start(&self, place: u64, low: u64) -> io::Result<u64> {
        let mut end = place;
        let mut buffer = vec![0; BLOCK];
        while end > low {
            let start = end.saturating_sub(BLOCK as u64).max(low);
            let part = &mut buffer[..(end - start) as usize];
            self.file.read_exact_at(part, start)?;
            if let Some(newline) = memchr::memrchr(b'\n', part) {
                return Ok(start + newline as u64 + 1);
            }
            end = start;
        }
        Ok(low)
    }

    fn next_line(&self, place: u64) -> io::Result<u64> {
        let (mut at, mut buffer) = (place, vec![0; BLOCK]);
        loop {
            let read = self.file.read_at(&mut buffer, at)?;
            if read == 0 {
                return Ok(self.length);
            }
            if let Some(newline) = memchr(b'\n', &buffer[..read]) {
                return Ok(at + newline as u64 + 1);
            }
            at += read as u64;
        }
    }
}

/// The statements of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group<'g> {
    /// The IRI, as it is written in the lines.
    pub iri: &'g str,
    /// The entity's lines, each with its newline.
    pub lines: &'g [u8],
    /// Number of statements in `lines`.
    pub statements: u64,
    /// Whether the statements are more than [`MAX_GROUP`] bytes, and are not in `lines`.
    pub(crate) is_too_large: bool,
}

/// Reads one entity after the other.
pub struct Groups {
    parts: ReadAhead,
    buffer: Vec<u8>,
    /// Range of the current group in the buffer, its number of statements, and whether they are too
    /// many.
    group: Option<(Range<usize>, u64, bool)>,
    iri: String,
    /// Bytes of the buffer that were read.
    used: usize,
    /// The last line of the previous group, to check the order.
    last: Vec<u8>,
    line: u64,
}

impl Groups {
    /// The current entity; `None` before the first and at the end.
    pub fn current(&self) -> Option<Group<'_>> {
        let (range, statements, is_too_large) = self.group.clone()?;
        Some(Group { iri: &self.iri, lines: &self.buffer[range], statements, is_too_large })
    }

    /// Moves to the next entity; returns whether there is one.
    ///
    /// # Errors
    /// The lines are not sorted, one is not a statement about an IRI, or the disk failed.
    pub fn advance(&mut self) -> Result<bool, Error> {
        self.group = None;
        let Some(first) = self.line_end(0)? else { return Ok(false) };
        let iri = iri_of(&self.buffer[self.used..self.used + first])
            // With escapes, the IRI of an entity could be written in two ways.
            .filter(|iri| !iri.contains('\\'))
            .ok_or_else(|| Error::Line {
                line: self.line + 1,
                problem: "it does not begin with the IRI of an entity".to_owned(),
            })?;
        self.iri.clear();
        self.iri.push_str(iri);
        let subject = iri.len() + 2;
        // Range of the last line, from the start of the group.
        let (mut last, mut statements, mut is_too_large) = (0..first, 1, false);
        if self.buffer[self.used..self.used + first] < *self.last {
            return Err(Error::NotSorted { line: self.line + 1 });
        }
        while let Some(length) = self.line_end(last.end + 1)? {
            let group = &self.buffer[self.used..];
            let next = last.end + 1..last.end + 1 + length;
            let line = &group[next.clone()];
            // The subject, and the space after it.
            if line.get(..=subject) != group.get(..=subject) {
                break;
            }
            statements += 1;
            if line[subject..] < group[last][subject..] {
                return Err(Error::NotSorted { line: self.line + statements });
            }
            last = next;
            if last.end >= MAX_GROUP {
                // Only the last line remains in the buffer.
                is_too_large = true;
                self.used += last.start;
                last = 0..last.end - last.start;
            }
        }
        let mut range = self.used..self.used + last.end + 1;
        self.last.clear();
        self.last.extend_from_slice(&self.buffer[self.used + last.start..range.end - 1]);
        self.used = range.end;
        if is_too_large {
            range.start = range.end;
        }
        self.group = Some((range, statements, is_too_large));
        self.line += statements;
        Ok(true)
    }

    /// The length of the line `offset` bytes after the returned groups, without its newline; `None`
    /// at the end.
    fn line_end(&mut self, offset: usize) -> Result<Option<usize>, Error> {
        let mut searched = offset;
        loop {
            let rest = self.buffer.get(self.used + searched..).unwrap_or_default();
            if let Some(newline) = memchr(b'\n', rest) {
                return Ok(Some(searched - offset + newline));
            }
            searched += rest.len();
            if searched > MAX_GROUP {
                return Err(Error::Line {
                    line: self.line + 1,
                    problem: format!("it is longer than {MAX_GROUP} bytes"),
                });
            }
            if self.parts.read(&mut self.buffer, &mut self.used)? {
                continue;
            }
            if searched == offset {
                return Ok(None);
            }
            // The last line does not end with a newline.
            self.buffer.push(b'\n');
        }
    }
}

/// The subject of a line, if its first term is an IRI that a space follows.
fn iri_of(line: &[u8]) -> Option<&str> {
    let end = line.starts_with(b"<").then(|| memchr(b'>', line)).flatten()?;
    let is_whole = line.get(end + 1) == Some(&b' ');
    std::str::from_utf8(&line[1..end]).ok().filter(|_| is_whole)
}

/// The statements about blank nodes, which are found by label.
pub struct BlankNodes<'f> {
    file: &'f File,
    end: u64,
    /// Labels of the first statement of each block, one after the other.
    labels: Vec<u8>,
    /// For each block: offset of its label, its offset in the file, and the number of its label.
    blocks: Vec<Block>,
    /// For each number of a label.
    reached: Bits,
    shared: Bits,
    count: u64,
    searches: u64,
    block: Vec<u8>,
}

struct Block {
    label: u32,
    place: u64,
    number: u64,
}

impl<'f> BlankNodes<'f> {
    fn index(file: &'f File, start: u64, end: u64) -> Result<Self, Error> {
        let mut nodes = Self {
            file,
            end,
            labels: Vec::new(),
            blocks: Vec::new(),
            reached: Bits::default(),
            shared: Bits::default(),
            count: 0,
            searches: 0,
            block: Vec::new(),
        };
        let (mut at, mut next_block) = (start, start);
        let (mut buffer, mut last) = (Vec::new(), Vec::<u8>::new());
        let (mut used, mut line) = (0, 0);
        while let Some(length) = read_line(file, &mut buffer, &mut used, &mut at, end)? {
            let text = &buffer[used..used + length];
            line += 1;
            let label = blank_label(text).ok_or_else(|| Error::Line {
                line,
                problem:
                    "it is not a statement of N-Triples (counted from the first about a blank node)"
                        .into(),
            })?;
            let same = last.starts_with(label) && last.get(label.len()) == Some(&b' ');
            if last.as_slice() > text {
                return Err(Error::NotSorted { line });
            }
            if !same {
                let place = at - (buffer.len() - used) as u64;
                if place >= next_block {
                    nodes.blocks.push(Block {
                        label: nodes.labels.len() as u32,
                        place,
                        number: nodes.count,
                    });
                    nodes.labels.extend_from_slice(label);
                    next_block = place + BLOCK as u64;
                }
                nodes.count += 1;
            }
            last.clear();
            last.extend_from_slice(text);
            used += length + 1;
        }
        nodes.reached.resize(nodes.count);
        nodes.shared.resize(nodes.count);
        Ok(nodes)
    }

    fn label_at(&self, block: usize) -> &[u8] {
        let end = self.blocks.get(block + 1).map_or(self.labels.len(), |next| next.label as usize);
        &self.labels[self.blocks[block].label as usize..end]
    }

    /// Appends the lines about a blank node, whose label includes `_:`, to `out`; returns its
    /// number, or `None` if it is not the subject of a statement.
    pub(crate) fn lines_of(&mut self, label: &[u8], out: &mut Vec<u8>) -> io::Result<Option<u64>> {
        self.searches += 1;
        // The lines are in the order of `label` and a space.
        let key = |label: &[u8]| [label, b" "].concat();
        let wanted = key(label);
        let (mut low, mut high) = (0, self.blocks.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if key(self.label_at(middle)) <= wanted { low = middle + 1 } else { high = middle }
        }
        let Some(block) = low.checked_sub(1) else { return Ok(None) };
        let (mut place, mut number) = (self.blocks[block].place, self.blocks[block].number);
        let mut buffer = std::mem::take(&mut self.block);
        buffer.clear();
        let (mut used, mut found, mut last) = (0, None, Vec::<u8>::new());
        while let Some(length) = read_line(self.file, &mut buffer, &mut used, &mut place, self.end)?
        {
            let line = &buffer[used..used + length];
            let Some(current) = blank_label(line) else { break };
            if !last.is_empty() && last != current {
                number += 1;
            }
            if current == label {
                out.extend_from_slice(line);
                out.push(b'\n');
                found = Some(number);
            } else if line >= wanted.as_slice() {
                break;
            }
            last.clear();
            last.extend_from_slice(current);
            used += length + 1;
        }
        self.block = buffer;
        Ok(found)
    }

    /// Number of lookups of blank nodes, in all descriptions together.
    pub(crate) fn searches(&self) -> u64 {
        self.searches
    }

    /// Marks a blank node as part of an additional entity.
    fn mark(&mut self, number: u64) {
        if self.reached.set(number) {
            self.shared.set(number);
        }
    }

    /// Number of blank nodes that belong to several entities, and number of blank nodes that belong
    /// to none.
    pub fn shared_and_unreached(&self) -> (u64, u64) {
        (self.shared.count(), self.count - self.reached.count())
    }
}

impl BlankStatements for BlankNodes<'_> {
    fn append(&mut self, label: &[u8], lines: &mut Vec<u8>) -> io::Result<()> {
        let found = self.lines_of(&[b"_:", label].concat(), lines)?;
        if let Some(number) = found {
            self.mark(number);
        }
        Ok(())
    }
}

/// The label of the blank node at the start of a line, with its `_:`.
fn blank_label(line: &[u8]) -> Option<&[u8]> {
    let end = line.starts_with(b"_:").then(|| memchr(b' ', line)).flatten()?;
    Some(&line[..end])
}

/// Reads until `buffer[*used..]` starts with a whole line; returns its length without the newline,
/// `None` at the end.
pub(crate) fn read_line(
    file: &File,
    buffer: &mut Vec<u8>,
    used: &mut usize,
    at: &mut u64,
    end: u64,
) -> io::Result<Option<usize>> {
    loop {
        if let Some(newline) = memchr(b'\n', &buffer[*used..]) {
            return Ok(Some(newline));
        }
        if *at == end {
            if *used == buffer.len() {
                return Ok(None);
            }
            buffer.push(b'\n');
            continue;
        }
        if buffer.len() - *used > MAX_GROUP {
            let problem =
                format!("a statement about a blank node is longer than {MAX_GROUP} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        buffer.drain(..*used);
        *used = 0;
        let had = buffer.len();
        // A lookup usually reads at most two blocks; building the index reads the whole file.
        let wanted = (2 * BLOCK).max(had).min((end - *at) as usize);
        buffer.resize(had + wanted, 0);
        file.read_exact_at(&mut buffer[had..], *at)?;
        *at += wanted as u64;
    }
}

/// A set of small numbers.
#[derive(Default)]
struct Bits {
    words: Vec<u64>,
}

impl Bits {
    fn resize(&mut self, count: u64) {
        self.words.resize(count.div_ceil(64) as usize, 0);
    }

    /// Adds a number; returns whether the set contained it.
    fn set(&mut self, number: u64) -> bool {
        let word = &mut self.words[(number / 64) as usize];
        let bit = 1 << (number % 64);
        let was = *word & bit != 0;
        *word |= bit;
        was
    }

    fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn statements(text: &str) -> SortedStatements {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        SortedStatements::new(file, true).unwrap()
    }

    fn groups(text: &str) -> Result<Vec<(String, u64)>, Error> {
        let sorted = statements(text);
        let (mut groups, mut found) = (sorted.entities()?, Vec::new());
        while groups.advance()? {
            let group = groups.current().unwrap();
            let lines = std::str::from_utf8(group.lines).unwrap();
            assert!(lines.lines().all(|line| line.starts_with(&format!("<{}> ", group.iri))));
            found.push((group.iri.to_owned(), group.statements));
        }
        Ok(found)
    }

    #[test]
    fn statements_are_grouped_by_subject() {
        let text = "<a#x> <p> <b> .\n<a> <p> <b> .\n<a> <p> <c> .\n<b> <p> _:x .\n_:x <p> <a> .";
        let expected = [("a#x", 1), ("a", 2), ("b", 1)].map(|(iri, count)| (iri.to_owned(), count));
        assert_eq!(groups(text).unwrap(), expected);
        assert_eq!(groups("").unwrap(), []);
        assert_eq!(groups("_:x <p> <a> .\n").unwrap(), []);
        assert_eq!(groups("<a> <p> <b> .").unwrap(), [("a".to_owned(), 1)]);
    }

    #[test]
    fn long_files_are_read_in_parts() {
        let statements = |n: u64| if n == 30_000 { 50_000 } else { 3 };
        let text: String = (10_000..60_000)
            .flat_map(|n| {
                (10_000..10_000 + statements(n)).map(move |m| {
                    format!("<http://a/{n}> <http://p> \"{m} {}\" .\n", "x".repeat(20))
                })
            })
            .collect();
        assert!(text.len() > 10 * READ, "and one entity has more than a part");
        let expected = (10_000..60_000).map(|n| (format!("http://a/{n}"), statements(n)));
        assert!(groups(&text).unwrap().into_iter().eq(expected));
    }

    #[test]
    fn unsorted_lines_are_noticed() {
        for text in [
            "<b> <p> <a> .\n<a> <p> <a> .\n",
            "<a> <p> <b> .\n<a> <p> <a> .\n",
            "<a> <p> <a> .\n<a#b> <p> <a> .\n",
        ] {
            assert!(matches!(groups(text), Err(Error::NotSorted { line: 2 })), "{text}");
        }
        let sorted = statements("_:b <p> <a> .\n_:a <p> <a> .\n");
        assert!(matches!(sorted.blank_nodes(), Err(Error::NotSorted { .. })));
    }

    #[test]
    fn blank_nodes_are_found_by_label() {
        let mut lines: Vec<String> = (0..5_000)
            .flat_map(|n| (0..n % 4).map(move |m| format!("_:b{n} <http://p> \"{m}\" .\n")))
            .collect();
        lines.push("<http://a> <http://p> _:b1 .\n".to_owned());
        lines.sort();
        let sorted = statements(&lines.concat());
        let mut nodes = sorted.blank_nodes().unwrap();
        assert!(nodes.blocks.len() > 20);
        let mut numbers = std::collections::HashSet::new();
        for n in 0..5_000 {
            let mut out = Vec::new();
            let number = nodes.lines_of(format!("_:b{n}").as_bytes(), &mut out).unwrap();
            let expected: Vec<_> =
                (0..n % 4).map(|m| format!("_:b{n} <http://p> \"{m}\" .\n")).collect();
            assert_eq!(String::from_utf8(out).unwrap(), expected.concat());
            assert_eq!(number.is_some(), n % 4 > 0);
            assert!(number.is_none_or(|number| numbers.insert(number) && number < nodes.count));
        }
        assert_eq!(numbers.len() as u64, nodes.count);
        for number in [0, 1, 1, 2, 2, 2] {
            nodes.mark(number);
        }
        assert_eq!(nodes.shared_and_unreached(), (2, nodes.count - 3));
        assert_eq!(nodes.lines_of(b"_:a", &mut Vec::new()).unwrap(), None);
        assert_eq!(nodes.lines_of(b"_:c", &mut Vec::new()).unwrap(), None);
    }
}
