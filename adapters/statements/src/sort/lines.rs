//! Sorts any number of lines in byte order, without duplicates: runs are sorted in memory and
//! merged from disk.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Seek as _, Write as _};
use std::path::PathBuf;

/// Runs that are merged at a time, each with a reader.
const FAN_IN: usize = 64;
/// Bytes read at a time of each run.
const READ: usize = 128 * 1024;

/// Sorts lines with bounded memory. Lines that arrive in order are written only once.
pub struct LineSorter {
    folder: PathBuf,
    /// Most bytes of lines in memory.
    memory: usize,
    /// Lines, each with its newline.
    bytes: Vec<u8>,
    /// Start and end of each line in `bytes`, without its newline.
    lines: Vec<(u32, u32)>,
    /// Whether the lines in memory arrived in order, without duplicates.
    in_order: bool,
    /// The newest run, which the next lines continue if they sort after it.
    newest: Option<Distinct>,
    /// Sorted runs, by the number of their merges.
    levels: Vec<Vec<File>>,
}

impl LineSorter {
    /// A sorter with at most about `memory` bytes in memory, and the rest in unnamed files in a
    /// folder.
    pub fn new(folder: impl Into<PathBuf>, memory: usize) -> Self {
        Self {
            folder: folder.into(),
            memory: memory.clamp(1 << 16, 1 << 30),
            bytes: Vec::new(),
            lines: Vec::new(),
            in_order: true,
            newest: None,
            levels: Vec::new(),
        }
    }

    /// Adds a line without its newline.
    ///
    /// # Errors
    /// The disk is full or failed.
    pub fn push(&mut self, line: &[u8]) -> io::Result<()> {
        let entry = size_of::<(u32, u32)>() + 1;
        let used = self.bytes.len() + self.lines.len() * entry;
        if used + line.len() + entry > self.memory && !self.lines.is_empty() {
            self.spill()?;
        }
        if let Some(last) = self.lines.last() {
            self.in_order &= line_at(&self.bytes, *last) < line;
        }
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(line);
        self.lines.push((start, self.bytes.len() as u32));
        self.bytes.push(b'\n');
        Ok(())
    }

    /// Writes all lines to one unnamed file, in order, without duplicates, each with its newline.
    ///
    /// # Errors
    /// The disk is full or failed.
    pub fn finish(mut self) -> io::Result<File> {
        self.spill()?;
        (self.bytes, self.lines) = (Vec::new(), Vec::new());
        let newest = self.newest.take().map(Distinct::finish).transpose()?;
        let all = std::mem::take(&mut self.levels).into_iter().flatten().chain(newest);
        let mut runs: Vec<File> = all.collect();
        while runs.len() > 1 {
            let rest = runs.split_off(runs.len().min(FAN_IN));
            let merged = self.merge(runs)?;
            runs = rest;
            runs.push(merged);
        }
        runs.pop().map_or_else(|| tempfile::tempfile_in(&self.folder), Ok)
    }

    /// Writes the lines in memory as a run, or as part of the newest; merges runs when there are
    /// many.
    fn spill(&mut self) -> io::Result<()> {
        let bytes = &self.bytes;
        if !self.in_order {
            self.lines.sort_unstable_by(|a, b| line_at(bytes, *a).cmp(line_at(bytes, *b)));
        }
        let Some(first) = self.lines.first() else { return Ok(()) };
        let first = line_at(bytes, *first);
        let mut out = match self.newest.take() {
            Some(newest) if newest.last.as_deref() < Some(first) => newest,
            newest => {
                if let Some(newest) = newest {
                    self.put(newest.finish()?)?;
                }
                Distinct::new(tempfile::tempfile_in(&self.folder)?)
            }
        };
        if self.in_order {
            out.write_all(&self.bytes, self.lines.last().copied())?;
        } else {
            for place in &self.lines {
                out.write(line_at(&self.bytes, *place))?;
            }
        }
        self.newest = Some(out);
        self.bytes.clear();
        self.lines.clear();
        self.in_order = true;
        Ok(())
    }

    fn put(&mut self, mut run: File) -> io::Result<()> {
        for level in 0.. {
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            self.levels[level].push(run);
            if self.levels[level].len() < FAN_IN {
                break;
            }
            let full = std::mem::take(&mut self.levels[level]);
            run = self.merge(full)?;
        }
        Ok(())
    }

    fn merge(&self, runs: Vec<File>) -> io::Result<File> {
        let mut out = Distinct::new(tempfile::tempfile_in(&self.folder)?);
        let mut heap = BinaryHeap::with_capacity(runs.len());
        for run in runs {
            let mut cursor =
                Cursor { line: Vec::new(), reader: BufReader::with_capacity(READ, run) };
            if cursor.advance()? {
                heap.push(Reverse(cursor));
            }
        }
        while let Some(mut least) = heap.peek_mut() {
            out.write(&least.0.line)?;
            if !least.0.advance()? {
                std::collections::binary_heap::PeekMut::pop(least);
            }
        }
        out.finish()
    }
}

/// Writes ordered lines, skipping duplicates.
struct Distinct {
    out: BufWriter<File>,
    last: Option<Vec<u8>>,
}

impl Distinct {
    fn new(file: File) -> Self {
        Self { out: BufWriter::with_capacity(READ, file), last: None }
    }

    /// Writes lines that follow all lines written before, each with its newline; `last` is the
    /// range of the last line.
    fn write_all(&mut self, lines: &[u8], last: Option<(u32, u32)>) -> io::Result<()> {
        self.last = last.map(|place| line_at(lines, place).to_vec());
        self.out.write_all(lines)
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let last = match &mut self.last {
            Some(last) if last == line => return Ok(()),
            Some(last) => last,
            empty => empty.insert(Vec::new()),
        };
        last.clear();
        last.extend_from_slice(line);
        self.out.write_all(line)?;
        self.out.write_all(b"\n")
    }

    fn finish(self) -> io::Result<File> {
        let mut file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        Ok(file)
    }
}

fn line_at(bytes: &[u8], (start, end): (u32, u32)) -> &[u8] {
    &bytes[start as usize..end as usize]
}

/// A run and its current line; ordered by the line.
struct Cursor {
    line: Vec<u8>,
    reader: BufReader<File>,
}

impl Cursor {
    /// Reads the next line; false at the end.
    fn advance(&mut self) -> io::Result<bool> {
        self.line.clear();
        if self.reader.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(false);
        }
        self.line.pop();
        Ok(true)
    }
}

impl Ord for Cursor {
    fn cmp(&self, other: &Self) -> Ordering {
        self.line.cmp(&other.line)
    }
}

impl PartialOrd for Cursor {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Cursor {}

impl PartialEq for Cursor {
    fn eq(&self, other: &Self) -> bool {
        self.line == other.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn sorted(lines: &[String], memory: usize) -> (String, usize) {
        let folder = tempfile::tempdir().unwrap();
        let mut sorter = LineSorter::new(folder.path(), memory);
        for line in lines {
            sorter.push(line.as_bytes()).unwrap();
        }
        let depth = sorter.levels.len();
        let mut text = String::new();
        sorter.finish().unwrap().read_to_string(&mut text).unwrap();
        (text, depth)
    }

    #[test]
    fn lines_are_sorted_and_each_is_there_once() {
        let lines: Vec<_> = ["b", "a", "", "b", "a\u{e9}"].map(str::to_owned).into();
        assert_eq!(sorted(&lines, 1 << 20).0, "\na\na\u{e9}\nb\n");
        assert_eq!(sorted(&[], 1 << 20).0, "");
    }

    #[test]
    fn more_lines_than_memory_are_merged_from_disk() {
        let lines: Vec<_> = (0..200_000_u64)
            .map(|n| {
                format!("{:x} {}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 150_000, "x".repeat(30))
            })
            .collect();
        let (text, depth) = sorted(&lines, 1 << 16);
        assert!(depth > 1, "runs were merged while lines came");
        let mut expected = lines;
        expected.sort();
        expected.dedup();
        assert!(text.lines().eq(expected.iter().map(String::as_str)));
    }

    #[test]
    fn lines_in_order_are_one_run() {
        let mut lines: Vec<_> = (0..50_000).map(|n| format!("{n:08} {}", "x".repeat(30))).collect();
        let expected = lines.join("\n") + "\n";
        let (text, depth) = sorted(&lines, 1 << 16);
        assert!(text == expected && depth == 0);
        // Neither in order nor each once: some runs begin before the end of the one before.
        lines.chunks_mut(10).for_each(<[String]>::reverse);
        let again = [0, 49_999, 49_999].map(|place| lines[place].clone());
        lines.extend(again);
        let (text, depth) = sorted(&lines, 1 << 16);
        assert!(text == expected && depth > 0);
    }
}
