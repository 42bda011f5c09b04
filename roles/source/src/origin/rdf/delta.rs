//! Statements that are added to a set, and removed from it: only the entities that they are about
//! are read and recorded.

use super::comparison::fingerprint_of;
use super::plan::{Fingerprint, PlanWriter};
use super::{RdfBytes, RdfError, RdfInput, RdfReport, RdfTarget, record};
use abreast_rdf::{DescriptionLimits, Naming, PatchRow, ReadOptions, TooLarge};
use abreast_statements::{
    BlankNodes, Describer, Error, Group, LineSorter, SortOptions, SortedStatements,
};
use abreast_webtypes::Timestamp;
use oxrdf::{BlankNode, NamedOrBlankNode, QuadRef, Term, Triple, TripleRef};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read, Write as _};
use std::ops::ControlFlow;

/// One input.
pub enum Delta {
    /// Statements that are added.
    Add(RdfInput),
    /// Statements that are removed.
    Remove(RdfInput),
    /// RDF Patch: both, in the order in which they apply. Its syntax does not matter.
    Patch(RdfInput),
}

/// Applies a delta: all of it, or nothing when a statement that is to be removed is not there.
/// `lenient`: such statements are skipped.
///
/// # Errors
/// An input is wrong or does not apply: nothing is recorded then. Or the log, the contents or the
/// disk fail.
pub fn apply(
    target: RdfTarget<'_>,
    inputs: impl IntoIterator<Item = io::Result<Delta>>,
    lenient: bool,
    modified: Timestamp,
) -> Result<RdfReport, RdfError> {
    let sort = &target.options.sort;
    let mut rows =
        Rows { sorter: LineSorter::new(&sort.temporary, sort.memory), count: 0, line: Vec::new() };
    for (number, input) in inputs.into_iter().enumerate() {
        rows.read(input?, number as u64, sort)?;
        sort.check_stop()?;
    }
    let Net { added, removed, dropped } = rows.finish(target)?;
    let (added, removed) =
        (SortedStatements::new(added, true)?, SortedStatements::new(removed, true)?);
    let mut blanks = added.blank_nodes()?;
    let (mut adding, mut removing) = (added.entities()?, removed.entities()?);
    let mut application = Application {
        target,
        lenient,
        dropped,
        describer: Describer::new(true),
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
            "{unreached} blank nodes belong to no entity in the delta\n  help: add them with the statements that lead to them"
        )));
    }
    report.shared_blank_nodes = shared;
    report.deleted = plan.deletions;
    record::record(target, plan.finish()?, modified)?;
    Ok(report)
}

/// The rows of all inputs, sorted by statement.
struct Rows {
    sorter: LineSorter,
    count: u64,
    line: Vec<u8>,
}

/// Visits the rows of an input, whose number is `document`: each with its statement as a line,
/// without a newline.
///
/// # Errors
/// The input is wrong, or removes a statement with a blank node; or those of `visit`.
pub fn each_row(
    delta: Delta,
    document: u64,
    sort: &SortOptions,
    visit: &mut dyn FnMut(PatchRow, &[u8]) -> io::Result<()>,
) -> Result<(), RdfError> {
    let (input, row) = match delta {
        Delta::Add(input) => (input, Some(PatchRow::Add)),
        Delta::Remove(input) => (input, Some(PatchRow::Remove)),
        Delta::Patch(input) => (input, None),
    };
    let bytes: Box<dyn Read> = match input.bytes {
        RdfBytes::File(file) => Box::new(file),
        RdfBytes::Stream(bytes) => bytes,
    };
    let (mut failed, mut line) = (None, Vec::new());
    let mut take = |row, quad: QuadRef<'_>| {
        if !sort.counts(quad.graph_name) {
            return ControlFlow::Continue(());
        }
        line.clear();
        let visited =
            write_row(row, quad, document, &mut line).and_then(|()| Ok(visit(row, &line)?));
        match visited {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    };
    let mut options = ReadOptions::default();
    options.base = input.base;
    let read = match row {
        Some(row) => abreast_rdf::read(input.syntax, bytes, &options, &mut |quad| take(row, quad)),
        None => abreast_rdf::read_patch(BufReader::new(bytes), &options, &mut take),
    };
    read.map_err(|cause| Error::Input { name: input.name, cause })?;
    failed.map_or(Ok(()), Err)
}

fn write_row(
    row: PatchRow,
    quad: QuadRef<'_>,
    document: u64,
    line: &mut Vec<u8>,
) -> Result<(), RdfError> {
    let mut triple = Triple::from(TripleRef::from(quad));
    let has_blank = triple.subject.is_blank_node() || triple.object.is_blank_node();
    if row == PatchRow::Remove && has_blank {
        return Err(RdfError::Delta(format!(
            "`{triple}` cannot be removed: a blank node has no name that lasts\n  help: PUT the description of the \
             entity, or import the complete state"
        )));
    }
    // Labels belong to their document, and are none of those in the log.
    let name =
        |node: &BlankNode| BlankNode::new_unchecked(format!("d{document}_{}", node.as_str()));
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
    fn read(&mut self, delta: Delta, number: u64, sort: &SortOptions) -> Result<(), RdfError> {
        each_row(delta, number, sort, &mut |row, statement| {
            // The number of the row is as long in all of them.
            self.line.clear();
            self.line.extend_from_slice(statement);
            let sign = if row == PatchRow::Add { 'A' } else { 'D' };
            write!(self.line, "\t{:016x}{sign}", self.count)?;
            self.count += 1;
            self.sorter.push(&self.line)
        })
    }

    /// What the rows of each statement come to.
    fn finish(self, target: RdfTarget<'_>) -> Result<Net, RdfError> {
        let temporary = &target.options.sort.temporary;
        let file = || tempfile::tempfile_in(temporary).map(BufWriter::new);
        let (mut added, mut removed, mut dropped) = (file()?, file()?, HashSet::new());
        let rows = BufReader::new(self.sorter.finish()?);
        // Statement, first sign, last sign.
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

/// What the rows come to, in the order of statements.
struct Net {
    added: File,
    removed: File,
    /// Fingerprints of those that were added first and removed later: they need not have been there.
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
        self.report.entities += 1;
        let known = self.target.log.resource(self.target.set, &iri)?;
        let content = known.as_ref().and_then(|known| known.state.content);
        let mut old = Vec::new();
        match content {
            Some(id) => {
                self.target.contents.open_read(&id)?.read_to_end(&mut old)?;
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
            if !lines.remove(line) && !self.lenient && !self.dropped.contains(&fingerprint_of(line))
            {
                return Err(RdfError::Delta(format!(
                    "`{}` is to be removed, and is not there\n  help: the delta is for another state; --lenient skips such \
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
        // The next complete state is compared by content.
        Ok(self.plan.put(&iri, &canonical.lines, Fingerprint::default())?)
    }
}

fn split(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}
