//! Blank nodes that other programs wrote as IRIs [rdf11-concepts §3.5]: parts of the descriptions
//! that lead to them, as if they had been written as blank nodes.
//!
//! Such an IRI remains the IRI of an entity if it is not an object, or if this program created it.
//! This program creates such IRIs for nodes that belong to several entities or to none, which
//! therefore have separate descriptions. So all such IRIs of a server are entities if all have the
//! form of this program, and each is the object of none or several subjects.

use crate::nodes::skolem::{Line, each_line};
use crate::{Error, LineSorter, SortOptions, SortedStatements};
use abreast_rdf::{is_own_skolem_iri, is_skolem_iri, skolem_label, split_skolem};
use memchr::{memchr, memmem, memrchr};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;

/// The path of every such IRI.
const PATH: &[u8] = b"/.well-known/genid/";
/// Bytes searched at a time.
const READ: usize = 1 << 20;
/// Most servers whose IRIs are classified together; the IRIs of other servers are parts.
const SERVERS_MAX: usize = 10_000;
/// Follows the IRI of a subject in the sorted lines; sorts before all terms.
const DESCRIBED: &[u8] = b" !";

/// The same statements with blank nodes in place of these IRIs, and the number of replaced IRIs.
///
/// # Errors
/// A line is not a statement, it was stopped, or the disk failed.
pub fn with_parts(
    options: &SortOptions,
    sorted: SortedStatements,
) -> Result<(SortedStatements, u64), Error> {
    if !has_described(&sorted.file()?)? {
        return Ok((sorted, 0));
    }
    let sorter = || LineSorter::new(&options.temporary, options.memory / 2);
    let (mut by_object, mut by_subject) = (sorter(), sorter());
    let mut pair = Vec::new();
    each_line(&sorted, options, |line| {
        let Line { subject, predicate, object } = Line::split(line)?;
        if is_skolem(subject) {
            pair.clear();
            pair.extend_from_slice(subject);
            pair.extend_from_slice(DESCRIBED);
            by_object.push(&pair)?;
        }
        if !is_skolem(object) {
            return Ok(by_subject.push(line)?);
        }
        pair.clear();
        for part in [object, b" ", subject, predicate] {
            pair.extend_from_slice(part);
        }
        Ok(by_object.push(&pair)?)
    })?;
    let mut by_object = by_object.finish()?;
    let servers = Servers::judge(&mut by_object)?;
    let count = servers.name_objects(&mut by_object, &mut by_subject)?;
    options.check_stop()?;
    let file = name_subjects(by_subject.finish()?, sorter(), sorter())?;
    Ok((SortedStatements::new(file, sorted.canonical_lines())?, count))
}

/// Whether such an IRI is the subject of a statement.
fn has_described(file: &File) -> io::Result<bool> {
    let (mut buffer, mut kept, mut at) = (vec![0; READ], 0, 0);
    loop {
        let read = file.read_at(&mut buffer[kept..], at)?;
        at += read as u64;
        let lines = if read == 0 {
            kept
        } else {
            memrchr(b'\n', &buffer[..kept + read]).map_or(0, |end| end + 1)
        };
        let mut found = memmem::find_iter(&buffer[..lines], PATH);
        let is_subject = |place: usize| {
            let start = memrchr(b'\n', &buffer[..place]).map_or(0, |end| end + 1);
            let end = memchr(b' ', &buffer[start..lines]).map_or(lines, |end| start + end);
            place < end && is_skolem(&buffer[start..end])
        };
        if found.any(is_subject) {
            return Ok(true);
        }
        if read == 0 {
            return Ok(false);
        }
        let filled = kept + read;
        buffer.copy_within(lines..filled, 0);
        kept = filled - lines;
        if kept == buffer.len() {
            buffer.resize(2 * kept, 0);
        }
    }
}

/// The IRI of a term, if it is one.
fn iri_of(term: &[u8]) -> Option<&str> {
    std::str::from_utf8(term.strip_prefix(b"<")?.strip_suffix(b">")?).ok()
}

fn is_skolem(term: &[u8]) -> bool {
    iri_of(term).is_some_and(is_skolem_iri)
}

/// The servers whose IRIs are entities.
#[derive(Default)]
struct Servers(BTreeMap<String, bool>);

impl Servers {
    /// Classifies servers by lines in the order of these IRIs. The lines contain whether an IRI is
    /// a subject, and the subjects that it is an object of.
    fn judge(lines: &mut File) -> Result<Self, Error> {
        let mut servers = Self::default();
        each_term(lines, &mut |of_it| {
            let parents = of_it.parents()?;
            let iri = iri_of(of_it.term).unwrap_or_default();
            let Some((server, _)) = split_skolem(iri).filter(|_| of_it.is_described) else {
                return Ok(());
            };
            let is_entity = is_own_skolem_iri(iri) && parents != 1;
            if let Some(known) = servers.0.get_mut(server) {
                *known &= is_entity;
            } else if servers.0.len() < SERVERS_MAX {
                servers.0.insert(server.to_owned(), is_entity);
            }
            Ok(())
        })?;
        Ok(servers)
    }

    /// Adds the statements with such an object, and a line for each such subject that is a part;
    /// returns the number of these subjects.
    fn name_objects(&self, lines: &mut File, to: &mut LineSorter) -> Result<u64, Error> {
        let (mut count, mut line) = (0, Vec::new());
        each_term(lines, &mut |of_it| {
            let term = of_it.term;
            let server = iri_of(term).and_then(split_skolem).map_or("", |(server, _)| server);
            let is_entity = self.0.get(server).is_some_and(|is_entity| *is_entity);
            let is_part = of_it.is_described && !is_entity && of_it.parents()? > 0;
            let label = skolem_label(term);
            if is_part {
                count += 1;
                line.clear();
                line.extend_from_slice(term);
                line.extend_from_slice(DESCRIBED);
                to.push(&line)?;
            }
            of_it.each(&mut |statement| {
                line.clear();
                let object = if is_part { &label } else { term };
                for part in [statement, object, b" ."] {
                    line.extend_from_slice(part);
                }
                Ok(to.push(&line)?)
            })
        })?;
        Ok(count)
    }
}

/// The content of the lines about one IRI.
struct OfTerm<'l> {
    is_described: bool,
    term: &'l [u8],
    /// The file, and the range with the subjects and predicates of the statements with this object.
    file: &'l File,
    range: (u64, u64),
}

impl OfTerm<'_> {
    /// Visits subject and predicate of each statement with this object.
    fn each(&self, visit: &mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let (mut at, end) = self.range;
        let (mut buffer, mut used) = (Vec::new(), 0);
        while let Some(length) =
            crate::sort::sorted::read_line(self.file, &mut buffer, &mut used, &mut at, end)?
        {
            let line = &buffer[used..used + length];
            visit(line.get(self.term.len() + 1..).unwrap_or_default())?;
            used += length + 1;
        }
        Ok(())
    }

    /// Number of other subjects with this object; 2 means two or more.
    fn parents(&self) -> Result<u8, Error> {
        let (mut count, mut last) = (0, Vec::new());
        self.each(&mut |statement| {
            let subject = &statement[..memchr(b' ', statement).unwrap_or(statement.len())];
            if count < 2 && subject != self.term && subject != last.as_slice() {
                count += 1;
                last = subject.to_vec();
            }
            Ok(())
        })?;
        Ok(count)
    }
}

/// Visits each IRI with the lines about it.
fn each_term(
    file: &mut File,
    visit: &mut dyn FnMut(&OfTerm<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    file.rewind()?;
    let mut input = BufReader::with_capacity(READ, file.try_clone()?);
    let (mut line, mut term, mut is_described) = (Vec::new(), Vec::new(), false);
    let (mut at, mut start) = (0, 0);
    loop {
        line.clear();
        let read = input.read_until(b'\n', &mut line)?;
        let of_line = &line[..memchr(b' ', &line).unwrap_or(line.len())];
        if of_line != term.as_slice() {
            if !term.is_empty() {
                visit(&OfTerm { is_described, term: &term, file, range: (start, at) })?;
            }
            term = of_line.to_vec();
            (start, is_described) = (at, false);
        }
        if read == 0 {
            return Ok(());
        }
        at += read as u64;
        if line[term.len()..].trim_ascii_end() == DESCRIBED {
            (start, is_described) = (at, true);
        }
    }
}

/// Gives blank node labels to subjects that are parts: a line for each is sorted before its
/// statements. Returns all statements, in order.
fn name_subjects(
    mut lines: File,
    mut entities: LineSorter,
    mut blank: LineSorter,
) -> Result<File, Error> {
    lines.rewind()?;
    let (mut input, mut line) = (BufReader::with_capacity(READ, lines), Vec::new());
    let (mut part, mut label, mut renamed) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        line.pop();
        let end = memchr(b' ', &line).unwrap_or(line.len());
        if line[end..] == *DESCRIBED {
            part = line[..end].to_vec();
            label = skolem_label(&part);
        } else if !part.is_empty() && line[..end] == *part {
            renamed.clear();
            renamed.extend_from_slice(&label);
            renamed.extend_from_slice(&line[end..]);
            blank.push(&renamed)?;
        } else if line.starts_with(b"_:") {
            blank.push(&line)?;
        } else {
            entities.push(&line)?;
        }
    }
    let mut out = entities.finish()?;
    out.seek(SeekFrom::End(0))?;
    io::copy(&mut blank.finish()?, &mut BufWriter::new(&out))?;
    out.flush()?;
    out.rewind()?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn iri(name: &str) -> String {
        format!("<https://d/.well-known/genid/{name}>")
    }

    fn label(name: &str) -> String {
        String::from_utf8(skolem_label(iri(name).as_bytes())).unwrap()
    }

    /// The statements of `lines`, `$name` standing for an IRI in place of a blank node.
    fn parted(mut lines: Vec<String>) -> (Vec<String>, u64) {
        let folder = tempfile::tempdir().unwrap();
        let mut options = SortOptions::new(folder.path());
        options.memory = 1 << 16;
        for line in &mut lines {
            let terms = line.split(' ').map(|term| match term.strip_prefix('$') {
                Some(name) => iri(name),
                None => term.to_owned(),
            });
            *line = format!("{} .\n", terms.collect::<Vec<_>>().join(" "));
        }
        lines.sort();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(lines.concat().as_bytes()).unwrap();
        let sorted = SortedStatements::new(file, true).unwrap();
        let (sorted, count) = with_parts(&options, sorted).unwrap();
        let (mut text, mut file) = (String::new(), sorted.file().unwrap());
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        (text.lines().map(str::to_owned).collect(), count)
    }

    fn check(lines: &[&str], parts: &[&str]) {
        let (found, count) = parted(lines.iter().map(|line| (*line).to_owned()).collect());
        assert_eq!(count, parts.len() as u64, "{found:#?}");
        assert!(found.is_sorted(), "{found:#?}");
        let mut expected: Vec<String> = Vec::new();
        for line in lines {
            let term = |term: &str| match term.strip_prefix('$') {
                Some(name) if parts.contains(&name) => label(name),
                Some(name) => iri(name),
                None => term.to_owned(),
            };
            let terms: Vec<_> = line.split(' ').map(term).collect();
            expected.push(terms.join(" ") + " .");
        }
        expected.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn iris_that_entities_lead_to_are_parts() {
        let lines = [
            "<http://a/1> <http://p> $x",
            "$x <http://p> $y",
            "$y <http://p> \"$y\"",
            "$y <http://p> _:b",
            "_:b <http://p> $z",
            "$z <http://p> $z",
            // Of two entities.
            "<http://a/1> <http://p> $s",
            "<http://a/2> <http://p> $s",
            "$s <http://p> <http://a/1>",
            // Nothing is stated of it, nothing leads to it, only it itself does.
            "<http://a/1> <http://p> $empty",
            "$root <http://p> $leaf",
            "$leaf <http://p> \"leaf\"",
            "$self <http://p> $self",
            "<http://a/1> <http://p> <https://d/well-known/genid/x>",
        ];
        check(&lines, &["x", "y", "z", "s", "leaf"]);
        check(&lines[9..10], &[]);
        check(&["<http://a/1> <http://p> <http://a/2>", "_:b <http://p> \"x\""], &[]);
    }

    #[test]
    fn iris_that_this_program_made_are_entities() {
        let (one, two) = (format!("${:032x}", 1), format!("${:032x}-1", 2));
        let shared = [
            format!("<http://a/1> <http://p> {one}"),
            format!("<http://a/2> <http://p> {one}"),
            format!("{one} <http://p> \"one\""),
            format!("{two} <http://p> {two}"),
        ];
        let lines: Vec<&str> = shared.iter().map(String::as_str).collect();
        check(&lines, &[]);
        // It would not have made one of these.
        let (name, single) = (&one[1..], format!("{two} <http://p> $x"));
        check(&[&lines[..], &[&single, "$x <http://p> 1"]].concat(), &[name, "x"]);
        let single = format!("<http://a/1> <http://p> {two}");
        check(&[&lines[..], &[&single]].concat(), &[name, &two[1..]]);
    }

    #[test]
    fn many_parts_need_little_memory() {
        let mut lines = Vec::new();
        for number in 0..20_000_u64 {
            let name = format!("$n{:x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            lines.push(format!("<http://a/{number}> <http://p> {name}"));
            lines.push(format!("{name} <http://p> \"{}\"", "x".repeat(60)));
        }
        lines.push(format!("<http://a/0> <http://q> \"{}\"", "y".repeat(3 * READ)));
        let (found, count) = parted(lines.clone());
        assert_eq!((found.len(), count), (lines.len(), 20_000));
        assert!(found.is_sorted() && found.iter().all(|line| !line.contains("genid/")));
    }
}
