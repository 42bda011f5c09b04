//! Deltas: statements that are added to a set or removed. Only the entities in these statements are
//! read and recorded.

use super::comparison::fingerprint_of;
use super::plan::{Fingerprint, PlanWriter};
use super::{RdfBytes, RdfInput, record};
use crate::origin::rdf::error::RdfError;
use crate::origin::rdf::report::RdfReport;
use crate::origin::rdf::target::RdfTarget;
use abreast_rdf::{DescriptionLimits, Naming, ReadOptions, TooLarge};
use abreast_statements::{
    BlankNodes, Describer, Error, GraphFilter, Group, LineSorter, SortOptions, SortedStatements,
};
use abreast_webtypes::{SyntaxError, Timestamp};
use oxrdf::{BlankNode, NamedOrBlankNode, QuadRef, Term, Triple, TripleRef};
use rdf_patch::{Change, Row};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read, Write as _};
use std::ops::{ControlFlow, Range};

/// An input of a delta.
pub enum Delta {
    /// Statements to add to the set.
    Add(RdfInput),
    /// Statements to remove from the set.
    Remove(RdfInput),
    /// RDF Patch with both kinds of rows, applied in their order. The syntax of the input is
    /// ignored.
    Patch(RdfInput),
}

/// Applies a delta as a whole. If a removed statement does not exist, nothing is recorded, except
/// that `lenient` skips such statements.
///
/// # Errors
/// If an input is invalid or does not apply, nothing is recorded. The log, the contents or the disk
/// can fail after some changes were recorded.
pub fn apply(
    target: RdfTarget<'_>,
    inputs: impl IntoIterator<Item = Result<Delta, Error>>,
    lenient: bool,
    modified: Timestamp,
) -> Result<RdfReport, RdfError> {
    super::in_folder(target.options, || applied(target, inputs, lenient, modified))
}

fn applied(
    target: RdfTarget<'_>,
    inputs: impl IntoIterator<Item = Result<Delta, Error>>,
    lenient: bool,
    modified: Timestamp,
) -> Result<RdfReport, RdfError> {
    let sort = &target.options.sort;
    let sorter = LineSorter::new(&sort.temporary, sort.memory);
    let mut rows = Rows { sorter, count: 0, line: Vec::new(), aborted: Vec::new() };
    let mut graphs = GraphFilter::new(sort);
    for (number, input) in inputs.into_iter().enumerate() {
        rows.read(input?, number as u64, sort, &mut graphs)?;
        sort.check_stop()?;
    }
    graphs.check()?;
    let Net { added, removed, dropped } = rows.finish(target)?;
    let (added, removed) =
        (SortedStatements::new(added, true)?, SortedStatements::new(removed, true)?);
    let mut blanks = added.blank_nodes()?;
    let (mut adding, mut removing) = (added.entities()?, removed.entities()?);
    let mut application = Application {
        target,
        lenient,
        dropped,
        describer: Describer::new(&added),
        plan: PlanWriter::new(&sort.temporary)?,
        report: RdfReport::default(),
    };
    adding.advance()?;
    removing.advance()?;
    loop {
        let (new, old) = (adding.current(), removing.current());
        let order = match (new, old) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(new), Some(old)) => abreast_statements::compare(new.iri, old.iri),
        };
        let new = new.filter(|_| order != Ordering::Greater);
        let old = old.filter(|_| order != Ordering::Less);
        application.entity(new, old, &mut blanks)?;
        if order != Ordering::Greater {
            adding.advance()?;
        }
        if order != Ordering::Less {
            removing.advance()?;
        }
        sort.check_stop()?;
    }
    let Application { plan, mut report, .. } = application;
    let (shared, unreached) = blanks.shared_and_unreached();
    if unreached > 0 {
        return Err(RdfError::Delta(format!(
            "blank nodes that belong to no entity in the delta: {unreached}\n  help: add them with the statements that lead to them"
        )));
    }
    report.shared_blank_nodes = shared;
    report.deleted = plan.deletions;
    record::record(target, plan.finish()?, false, modified)?;
    Ok(report)
}

/// Rows of all inputs, sorted by statement.
struct Rows {
    sorter: LineSorter,
    count: u64,
    line: Vec<u8>,
    /// Numbers of rows in aborted transactions, which do not apply.
    aborted: Vec<Range<u64>>,
}

/// Whether the number at the end of a row is in one of the ranges.
fn is_aborted(aborted: &[Range<u64>], number: &[u8]) -> bool {
    let number = str::from_utf8(number).ok().and_then(|text| u64::from_str_radix(text, 16).ok());
    number.is_some_and(|number| {
        let range = aborted.partition_point(|range| range.end <= number);
        aborted.get(range).is_some_and(|range| range.contains(&number))
    })
}

/// A row of an input. Statements are lines without a line feed.
#[derive(Clone, Copy, Debug)]
pub enum DeltaRow<'a> {
    /// A statement that is added.
    Add(&'a [u8]),
    /// A statement that is removed.
    Remove(&'a [u8]),
    /// Start of a transaction of RDF Patch.
    Begin,
    /// Abort of a transaction: its rows do not apply.
    Abort,
}

/// Visits the rows of an input in the selected graphs. `document` is the number of the input.
///
/// # Errors
/// The input is invalid, or removes a statement with a blank node; and errors of `visit`.
pub fn each_row(
    delta: Delta,
    document: u64,
    sort: &SortOptions,
    graphs: &mut GraphFilter<'_>,
    visit: &mut dyn FnMut(DeltaRow<'_>) -> io::Result<()>,
) -> Result<(), RdfError> {
    let (input, is_removal) = match delta {
        Delta::Add(input) => (input, false),
        Delta::Remove(input) => (input, true),
        Delta::Patch(input) => return each_patch_row(input, document, graphs, visit),
    };
    let (mut failed, mut line) = (None, Vec::new());
    let mut take = |quad: QuadRef<'_>| {
        if !graphs.counts(quad.graph_name) {
            return ControlFlow::Continue(());
        }
        let visited = write_line(is_removal, quad, document, &mut line).and_then(|()| {
            let row = if is_removal { DeltaRow::Remove(&line) } else { DeltaRow::Add(&line) };
            Ok(visit(row)?)
        });
        match visited {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    };
    let mut options = ReadOptions::default().with_contexts(sort.contexts.clone());
    options.base = input.base;
    abreast_rdf::read(input.syntax, reader(input.bytes), &options, &mut take)
        .map_err(|cause| Error::Input { name: input.name, cause })?;
    failed.map_or(Ok(()), Err)
}

fn reader(bytes: RdfBytes) -> Box<dyn Read> {
    match bytes {
        RdfBytes::File(file) => Box::new(file),
        RdfBytes::Stream(bytes) => bytes,
    }
}

/// Runs [`each_row`] for RDF Patch. Logs a warning for the first deviation from the format.
fn each_patch_row(
    input: RdfInput,
    document: u64,
    graphs: &mut GraphFilter<'_>,
    visit: &mut dyn FnMut(DeltaRow<'_>) -> io::Result<()>,
) -> Result<(), RdfError> {
    let mut rows = rdf_patch::Reader::new(reader(input.bytes), rdf_patch::ReadOptions::lenient());
    let mut line = Vec::new();
    for row in rows.by_ref() {
        let row = row.map_err(|error| {
            let cause = match error {
                rdf_patch::ReadError::Syntax(found) => syntax_error(&found).into(),
                rdf_patch::ReadError::Io(error) => error.into(),
                error => io::Error::other(error).into(),
            };
            Error::Input { name: input.name.clone(), cause }
        })?;
        match row {
            Row::Begin => visit(DeltaRow::Begin)?,
            Row::Abort => visit(DeltaRow::Abort)?,
            Row::Change(Change::Add(quad)) if graphs.counts(quad.graph_name.as_ref()) => {
                write_line(false, quad.as_ref(), document, &mut line)?;
                visit(DeltaRow::Add(&line))?;
            }
            Row::Change(Change::Remove(quad)) if graphs.counts(quad.graph_name.as_ref()) => {
                write_line(true, quad.as_ref(), document, &mut line)?;
                visit(DeltaRow::Remove(&line))?;
            }
            Row::Header { .. } | Row::Commit | Row::Change(_) => {}
        }
    }
    if let Some(first) = rows.findings().first() {
        let places = abreast_webtypes::count(rows.finding_count(), "place");
        tracing::warn!("{}: not strict RDF Patch in {places}, the first: {first}", input.name);
    }
    Ok(())
}

fn syntax_error(found: &rdf_patch::Finding) -> SyntaxError {
    let error = SyntaxError::new(found.code(), (found.line(), found.column()), found.message());
    match found.help() {
        Some(help) => error.with_help(help),
        None => error,
    }
}

fn write_line(
    is_removal: bool,
    quad: QuadRef<'_>,
    document: u64,
    line: &mut Vec<u8>,
) -> Result<(), RdfError> {
    line.clear();
    let mut triple = Triple::from(TripleRef::from(quad));
    let has_blank = triple.subject.is_blank_node() || triple.object.is_blank_node();
    if is_removal && has_blank {
        return Err(RdfError::Delta(format!(
            "`{triple}` cannot be removed: a blank node has no name that lasts\n  help: PUT the description of the \
             entity, or import the complete state"
        )));
    }
    // Labels of blank nodes are local to a document, and must differ from the labels in the log.
    let name = |node: &BlankNode| {
        let label = node.as_str();
        BlankNode::new(format!("d{document}_{label}")).unwrap_or_else(|_| {
            // RDF Patch allows any characters in labels.
            let codes: Vec<String> = label.bytes().map(|byte| byte.to_string()).collect();
            BlankNode::new_unchecked(format!("d{document}-{}", codes.join("-")))
        })
    };
    if let NamedOrBlankNode::BlankNode(node) = &mut triple.subject {
        *node = name(node);
    }
    if let Term::BlankNode(node) = &mut triple.object {
        *node = name(node);
    }
    abreast_rdf::write_statement(triple.as_ref(), line);
    line.pop();
    Ok(())
}

impl Rows {
    fn read(
        &mut self,
        delta: Delta,
        number: u64,
        sort: &SortOptions,
        graphs: &mut GraphFilter<'_>,
    ) -> Result<(), RdfError> {
        let mut begin = self.count;
        each_row(delta, number, sort, graphs, &mut |row| {
            let (statement, sign) = match row {
                DeltaRow::Add(statement) => (statement, 'A'),
                DeltaRow::Remove(statement) => (statement, 'D'),
                DeltaRow::Begin => {
                    begin = self.count;
                    return Ok(());
                }
                DeltaRow::Abort => {
                    self.aborted.push(begin..self.count);
                    return Ok(());
                }
            };
            // Numbers of rows have a fixed length, so that they can be split off.
            self.line.clear();
            self.line.extend_from_slice(statement);
            write!(self.line, "\t{:016x}{sign}", self.count)?;
            self.count += 1;
            self.sorter.push(&self.line)
        })
    }

    /// Combines the rows of each statement into the effective change.
    fn finish(self, target: RdfTarget<'_>) -> Result<Net, RdfError> {
        let temporary = &target.options.sort.temporary;
        let file = || tempfile::tempfile_in(temporary).map(BufWriter::new);
        let (mut added, mut removed, mut dropped) = (file()?, file()?, HashSet::new());
        let rows = BufReader::new(self.sorter.finish()?);
        // Statement, first operation and last operation.
        let mut last: Option<(Vec<u8>, u8, u8)> = None;
        let mut take = |row: Option<(Vec<u8>, u8, u8)>| {
            let Some((mut statement, first, last)) = row else { return Ok(()) };
            if first == b'A' && last == b'D' {
                dropped.insert(fingerprint_of(&statement));
            }
            statement.push(b'\n');
            if last == b'A' { added.write_all(&statement) } else { removed.write_all(&statement) }
        };
        for row in rows.split(b'\n') {
            let mut row = row?;
            let sign = row.pop().unwrap_or_default();
            let end = memchr::memchr(b'\t', &row).unwrap_or(row.len());
            if !self.aborted.is_empty() && is_aborted(&self.aborted, &row[end + 1..]) {
                continue;
            }
            row.truncate(end);
            match &mut last {
                Some((statement, _, last)) if *statement == row => *last = sign,
                last => take(last.replace((row, sign, sign)))?,
            }
        }
        take(last)?;
        let whole =
            |file: BufWriter<File>| file.into_inner().map_err(io::IntoInnerError::into_error);
        Ok(Net { added: whole(added)?, removed: whole(removed)?, dropped })
    }
}

/// Effective changes of all rows, sorted by statement.
struct Net {
    added: File,
    removed: File,
    /// Fingerprints of statements that were added first and removed later, and that may be missing
    /// in the log.
    dropped: HashSet<Fingerprint>,
}

struct Application<'a> {
    target: RdfTarget<'a>,
    lenient: bool,
    dropped: HashSet<Fingerprint>,
    describer: Describer,
    plan: PlanWriter,
    report: RdfReport,
}

impl Application<'_> {
    /// Plans the new description of an entity.
    fn entity(
        &mut self,
        added: Option<Group<'_>>,
        removed: Option<Group<'_>>,
        blanks: &mut BlankNodes<'_>,
    ) -> Result<(), RdfError> {
        let Some(iri) = added.or(removed).map(|group| group.iri.to_owned()) else { return Ok(()) };
        abreast_core::check_key(&iri).map_err(|error| RdfError::Delta(error.to_string()))?;
        self.report.entities += 1;
        let known = self.target.log.resource(self.target.set, &iri)?;
        let content = known.as_ref().and_then(|known| known.state.content);
        let mut old = Vec::new();
        match content {
            Some(id) => {
                let kept = match self.target.kept {
                    Some(open) => open(&id)
                        .map_err(|error| abreast_core::contents::Error::of_read(&id, error))?,
                    None => self.target.contents.open_read(&id)?,
                };
                { kept }.read_to_end(&mut old)?;
            }
            None if known.is_some() => {
                return Err(RdfError::Delta(format!(
                    "the description of <{iri}> is lost\n  help: import the complete state"
                )));
            }
            None => {}
        }
        let mut lines: BTreeSet<&[u8]> = split(&old).collect();
        for line in removed.iter().flat_map(|group| split(group.lines)) {
            if !remove(&mut lines, line)
                && !self.lenient
                && !self.dropped.contains(&fingerprint_of(line))
            {
                return Err(RdfError::Delta(format!(
                    "`{}` is to be removed, and is not there\n  help: the delta is for another state; --lenient (in the API: &lenient=true) skips such \
                     statements",
                    String::from_utf8_lossy(line)
                )));
            }
        }
        let new = match &added {
            Some(group) => self.describer.gather(group, blanks)?,
            None => Cow::default(),
        };
        lines.extend(split(&new));
        let mut text = Vec::new();
        for line in lines {
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        if text.is_empty() {
            if known.is_some() {
                self.plan.delete(&iri)?;
            }
            return Ok(());
        }
        let most = DescriptionLimits::default().bytes;
        if text.len() > most {
            let root = format!("<{iri}>");
            return Err(Error::from(TooLarge { root, limit: format!("{most} bytes") }).into());
        }
        let canonical =
            abreast_rdf::canonical_lines(&text).map_err(|_| Error::NotSorted { line: 0 })?;
        self.report.unstable += u64::from(canonical.naming == Naming::Arbitrary);
        self.report.statements += added.map_or(0, |group| group.statements);
        if canonical.lines == old {
            self.report.unchanged += 1;
            return Ok(());
        }
        match known {
            Some(_) => self.report.updated += 1,
            None => self.report.created += 1,
        }
        // The fingerprint is empty, so that the next complete state is compared by content.
        Ok(self.plan.put(&iri, &canonical.lines, Fingerprint::default())?)
    }
}

/// Removes a statement. If the exact statement is missing, removes a statement that differs only in
/// the case of its language tag, because some programs write tags in lower case
/// [rdf11-concepts §3.3].
fn remove(lines: &mut BTreeSet<&[u8]>, line: &[u8]) -> bool {
    if lines.remove(line) {
        return true;
    }
    let Some(at) = memchr::memmem::rfind(line, b"\"@") else { return false };
    let (before, tag) = line.split_at(at + 2);
    let mut same = lines.range(before..).take_while(|other| other.starts_with(before));
    let same = same.find(|other| other[before.len()..].eq_ignore_ascii_case(tag)).copied();
    same.is_some_and(|same| lines.remove(same))
}

fn split(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}
