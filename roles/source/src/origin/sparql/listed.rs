//! Method that lists entities with versions, and fetches descriptions in small batches.

use super::endpoint::{Endpoint, Failure};
use super::query::{self, EntityPattern};
use crate::origin::rdf::RdfError;
use crate::origin::rdf::RdfReport;
use crate::origin::rdf::RdfTarget;
use crate::origin::rdf::comparison::{Known, each_known, fingerprint_of};
use crate::origin::rdf::plan::{Fingerprint, PlanWriter};
use crate::origin::rdf::record_state;
use crate::origin::sparql::options::SparqlOptions;
use abreast_rdf::{
    DescriptionLimits, Entities, LeftOut, Naming, ReadLimits, ReadOptions, statements,
};
use abreast_statements::LineSorter;
use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Seek as _, Write as _};
use std::ops::ControlFlow;

/// Most bytes in a response with descriptions.
const ANSWER_BYTES: u64 = 16 << 20;
/// Most listed entities in addition to twice the number that the endpoint reports.
const MORE_LISTED: u64 = 10_000;
/// Depths of blank nodes in requests. The next depth is used if statements are missing.
const DEPTHS: [usize; 2] = [3, 12];
/// Attempts to fetch a description that changes during the request.
const ATTEMPTS: u32 = 3;
const REST: &[u8] = b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#rest>";

/// Lists the entities, and fetches descriptions with a changed version. With `all`, versions are
/// ignored and all descriptions are fetched.
pub(super) async fn read(
    target: RdfTarget<'_>,
    sparql: &SparqlOptions,
    pattern: &EntityPattern,
    endpoint: &Endpoint,
    all: bool,
) -> Result<RdfReport, RdfError> {
    let mut report = RdfReport::default();
    let list = list(target, sparql, pattern, endpoint, &mut report).await?;
    let mut poll = Poll {
        target,
        sparql,
        endpoint,
        plan: PlanWriter::new(&target.options.sort.temporary)?,
        report,
    };
    let (wanted, known) = poll.compare(BufReader::new(list), all && pattern.has_version())?;
    let mut batch = Vec::new();
    for line in BufReader::new(wanted).lines() {
        let line = line?;
        let Some((iri, version)) = line.split_once(' ') else { continue };
        batch.push((iri.to_owned(), fingerprint(version)));
        if batch.len() >= sparql.batch {
            poll.describe(std::mem::take(&mut batch)).await?;
        }
    }
    poll.describe(batch).await?;
    let Poll { plan, mut report, .. } = poll;
    report.judge(plan.deletions(), known, target.options)?;
    record_state(target, plan.finish()?, &report, target.log.now())?;
    Ok(report)
}

/// Writes the entities of the endpoint to a file, sorted by line. A line contains an IRI and its
/// version.
async fn list(
    target: RdfTarget<'_>,
    sparql: &SparqlOptions,
    pattern: &EntityPattern,
    endpoint: &Endpoint,
    report: &mut RdfReport,
) -> Result<File, RdfError> {
    let SparqlOptions { graph, page, .. } = sparql;
    let count = || pattern.count(graph).map_err(|error| endpoint.failed(error));
    let before = endpoint.count(count()?).await?;
    let sort = &target.options.sort;
    let mut sorter = LineSorter::new(&sort.temporary, sort.memory);
    let (mut last, mut listed): (Option<String>, u64) = (None, 0);
    loop {
        let query =
            pattern.page(graph, last.as_deref(), *page).map_err(|error| endpoint.failed(error))?;
        let solutions = endpoint.select(query).await?.into_iter();
        let mut found =
            solutions.filter_map(|solution| Some((solution.entity?, solution.latest))).peekable();
        // An endpoint may return fewer entities than requested, so only an empty page ends the
        // list. For an empty page some endpoints return a solution without an entity.
        if found.peek().is_none() {
            break;
        }
        let first = last.clone();
        for (entity, latest) in found {
            if last.as_deref() == Some(&entity.value) {
                continue;
            }
            // A valid IRI does not contain characters that end a line.
            abreast_rdf::sparql::iri(&entity.value).map_err(|error| endpoint.failed(error))?;
            let version = latest.map_or_else(|| "-".to_owned(), |latest| version_of(&latest.value));
            match abreast_core::check_key(&entity.value) {
                Ok(()) => sorter.push(format!("<{}> {version}", entity.value).as_bytes())?,
                Err(why) => report.leave_out(&why),
            }
            listed += 1;
            if listed > before.saturating_mul(2).saturating_add(MORE_LISTED) {
                return Err(endpoint.failed(format!(
                    "the list of entities does not end: the endpoint counts {before} and lists more than {}",
                    listed - 1
                )));
            }
            last = Some(entity.value);
        }
        if last == first {
            return Err(endpoint.failed(
                "the list of entities does not end: the endpoint ignores the filter of a page",
            ));
        }
    }
    if listed < before && listed < endpoint.count(count()?).await? {
        return Err(endpoint.failed(format!("the list has {listed} of {before} entities")));
    }
    Ok(sorter.finish()?)
}

/// Returns the version for the list: a hexadecimal digest.
fn version_of(version: &str) -> String {
    format!("{:032x}", u128::from_be_bytes(fingerprint_of(version.as_bytes())))
}

/// Returns the version for the log: bytes of the digest, or zeros without a version.
fn fingerprint(version: &str) -> Fingerprint {
    u128::from_str_radix(version, 16).unwrap_or_default().to_be_bytes()
}

struct Poll<'p> {
    target: RdfTarget<'p>,
    sparql: &'p SparqlOptions,
    endpoint: &'p Endpoint,
    plan: PlanWriter,
    report: RdfReport,
}

impl Poll<'_> {
    /// Plans deletions, and writes the list of entities to fetch. Also returns the number of
    /// entities in the log.
    fn compare(&mut self, list: BufReader<File>, all: bool) -> Result<(File, u64), RdfError> {
        let mut wanted =
            BufWriter::new(tempfile::tempfile_in(&self.target.options.sort.temporary)?);
        let mut lines = list.lines();
        let mut next = || -> Result<Option<(String, String)>, RdfError> {
            let Some(line) = lines.next().transpose()? else { return Ok(None) };
            let parts = line.strip_prefix('<').and_then(|line| line.rsplit_once("> "));
            let wrong = || io::Error::other("a list of entities was altered");
            let (iri, version) = parts.ok_or_else(wrong)?;
            Ok(Some((iri.to_owned(), version.to_owned())))
        };
        let mut current = next()?;
        let (report, plan, stop) = (&mut self.report, &mut self.plan, &self.target.options.sort);
        let mut up_to = |key: &str, known: &Known| -> Result<(), RdfError> {
            while let Some((iri, version)) = &current {
                match abreast_statements::compare(iri, key) {
                    Ordering::Greater => break,
                    order => {
                        report.entities += 1;
                        let same = order == Ordering::Equal
                            && !all
                            && version != "-"
                            && known.content.is_some()
                            && known.witness == fingerprint(version);
                        if same {
                            report.unchanged += 1;
                        } else {
                            writeln!(wanted, "{iri} {version}")?;
                        }
                        current = next()?;
                        if order == Ordering::Equal {
                            return Ok(());
                        }
                    }
                }
            }
            Ok(plan.delete(key)?)
        };
        let known_count = each_known(self.target, |key, known| {
            stop.check_stop()?;
            up_to(key, known)
        })?;
        while let Some((iri, version)) = current {
            report.entities += 1;
            writeln!(wanted, "{iri} {version}")?;
            current = next()?;
        }
        let mut wanted = wanted.into_inner().map_err(io::IntoInnerError::into_error)?;
        wanted.rewind()?;
        Ok((wanted, known_count))
    }

    /// Fetches the descriptions of these entities, and plans the changed ones.
    async fn describe(&mut self, batch: Vec<(String, Fingerprint)>) -> Result<(), RdfError> {
        let mut parts = VecDeque::from([(batch, 0)]);
        while let Some((part, depth)) = parts.pop_front() {
            if part.is_empty() {
                continue;
            }
            let iris: Vec<String> = part.iter().map(|(iri, _)| iri.clone()).collect();
            match self.fetch(&iris, DEPTHS[depth]).await? {
                Fetched::All(entities, left_out) => {
                    self.report.leave_out_statements(&left_out);
                    let Taken { deeper, singly } = self.take(&part, &entities, DEPTHS[depth])?;
                    parts.extend(singly.into_iter().map(|entity| (vec![entity], depth)));
                    for deeper in deeper {
                        if depth + 1 == DEPTHS.len() {
                            let most = DEPTHS[depth];
                            self.report.leave_out(&format!(
                                "the description of <{}> is more than {most} blank nodes deep\n  help: leave `entities` \
                                 out, to fetch all statements at once",
                                deeper.0
                            ));
                            continue;
                        }
                        parts.push_back((vec![deeper], depth + 1));
                    }
                }
                Fetched::TooLarge(why) if part.len() == 1 => self.report.leave_out(&why),
                Fetched::Part(what) | Fetched::TooLarge(what) => {
                    if let [(iri, _)] = part.as_slice() {
                        return Err(self.endpoint.failed(format!(
                            "the description of <{iri}> is not complete: {what}"
                        )));
                    }
                    let mut first = part;
                    let second = first.split_off(first.len() / 2);
                    parts.push_front((second, depth));
                    parts.push_front((first, depth));
                }
            }
        }
        Ok(())
    }

    async fn fetch(&self, iris: &[String], depth: usize) -> Result<Fetched, RdfError> {
        let pattern = self
            .sparql
            .graph
            .descriptions(iris, depth)
            .map_err(|error| self.endpoint.failed(error))?;
        let mut what = String::new();
        for _ in 0..ATTEMPTS {
            let mut file = tempfile::tempfile_in(&self.target.options.sort.temporary)?;
            let syntax = match self
                .endpoint
                .construct(query::construct(&pattern), &mut file, ANSWER_BYTES)
                .await
            {
                Ok(syntax) => syntax,
                Err(Failure::TooLong) => {
                    return Ok(Fetched::TooLarge(format!(
                        "the description of {} has more than {ANSWER_BYTES} bytes",
                        named(iris)
                    )));
                }
                Err(Failure::Other(error)) => return Err(error),
            };
            let mut entities = Entities::default();
            let mut options = ReadOptions::default().with_limits(ReadLimits::in_memory());
            let left_out = LeftOut::default().of(&self.sparql.url).of_statements();
            let leaves_out = self.target.options.sort.leave_out_invalid;
            options.left_out = leaves_out.then(|| left_out.clone());
            let read = abreast_rdf::read(syntax, BufReader::new(file), &options, &mut |quad| {
                entities.add(quad.into());
                ControlFlow::Continue(())
            });
            match read {
                Ok(()) => {}
                Err(error) if error.syntax().is_some_and(|fault| fault.code() == "rdf.size") => {
                    return Ok(Fetched::TooLarge(format!(
                        "the description of {} is too large: {error}",
                        named(iris)
                    )));
                }
                Err(error) => {
                    return Err(self
                        .endpoint
                        .failed(format!("the answer cannot be read: {error}")));
                }
            }
            let received = entities.statements() as u64 + left_out.count();
            let all = self.endpoint.count(query::count(&pattern, true)).await?;
            if received >= all {
                return Ok(Fetched::All(entities, left_out));
            }
            // The data may have changed between the two requests.
            what = format!("the answer has {received} of {all} statements");
        }
        Ok(Fetched::Part(what))
    }

    /// Plans the descriptions in a response. Returns the entities that must be requested again.
    fn take(
        &mut self,
        part: &[(String, Fingerprint)],
        entities: &Entities,
        depth: usize,
    ) -> Result<Taken, RdfError> {
        let target = self.target;
        let (mut found, mut too_large) = (HashMap::new(), HashMap::new());
        for description in entities.descriptions(DescriptionLimits::default()) {
            match description {
                Ok(description) => {
                    found.insert(description.entity, description.canonical);
                }
                Err(why) => {
                    too_large.insert(why.root.clone(), why);
                }
            }
        }
        self.report.shared_blank_nodes += entities.findings().shared_count as u64;
        let (mut deeper, mut singly) = (Vec::new(), Vec::new());
        for (iri, version) in part {
            if let Some(why) = too_large.get(&format!("<{iri}>")) {
                // The entity may only be too large together with the other entities.
                if part.len() > 1 {
                    singly.push((iri.clone(), *version));
                } else {
                    self.report.leave_out(why);
                }
                continue;
            }
            let known = target.log.resource(target.set, iri)?;
            let content = known.as_ref().and_then(|known| known.state.content);
            // The endpoint does not have statements about this entity any more.
            let Some(canonical) = found.get(iri) else {
                self.report.entities -= 1;
                if known.is_some() {
                    self.plan.delete(iri)?;
                }
                continue;
            };
            if reach(&canonical.lines, iri) > depth {
                deeper.push((iri.clone(), *version));
                continue;
            }
            self.report.statements += memchr::memchr_iter(b'\n', &canonical.lines).count() as u64;
            self.report.unstable += u64::from(canonical.naming == Naming::Arbitrary);
            match known {
                Some(known)
                    if content == Some(abreast_core::contents::address_of(&canonical.lines)) =>
                {
                    self.report.unchanged += 1;
                    if known.witness != *version {
                        self.plan.refresh(iri, *version)?;
                    }
                    continue;
                }
                Some(_) => self.report.updated += 1,
                None => self.report.created += 1,
            }
            self.plan.put(iri, &canonical.lines, *version)?;
        }
        Ok(Taken { deeper, singly })
    }
}

/// Entities in a response that must be requested again.
struct Taken {
    /// Entities with blank nodes beyond the current depth.
    deeper: Vec<(String, Fingerprint)>,
    /// Entities whose descriptions are too large, at least together with the others.
    singly: Vec<(String, Fingerprint)>,
}

/// Formats the IRIs of entities for messages.
fn named(iris: &[String]) -> String {
    iris.iter().map(|iri| format!("<{iri}>")).collect::<Vec<_>>().join(", ")
}

/// Result of a request for descriptions.
enum Fetched {
    /// A complete response, with the invalid statements that were skipped.
    All(Entities, LeftOut),
    /// An incomplete response, with the reason.
    Part(String),
    /// A response that exceeds the limit, with the reason.
    TooLarge(String),
}

/// Returns the distance in steps to the farthest blank node of the entity, in which the items of a
/// list count as one step, as in the queries.
fn reach(lines: &[u8], iri: &str) -> usize {
    let mut objects: HashMap<&[u8], Vec<(&[u8], usize)>> = HashMap::new();
    for statement in statements(lines).map_while(Result::ok) {
        if statement.object.starts_with(b"_:") {
            let is_rest = statement.predicate == REST && statement.subject.starts_with(b"_:");
            let step = usize::from(!is_rest);
            objects.entry(statement.subject).or_default().push((statement.object, step));
        }
    }
    let root = format!("<{iri}>");
    let mut distances: HashMap<&[u8], usize> = HashMap::new();
    let mut waiting = VecDeque::from([(root.as_bytes(), 0)]);
    while let Some((node, distance)) = waiting.pop_front() {
        if distances.contains_key(node) {
            continue;
        }
        distances.insert(node, distance);
        for (object, step) in objects.get(node).into_iter().flatten() {
            if *step == 0 {
                waiting.push_front((object, distance));
            } else {
                waiting.push_back((object, distance + 1));
            }
        }
    }
    distances.into_values().max().unwrap_or(0)
}
