//! A sample of fragments: their statements, forms and types [sdshare §Fragments Feed].

use super::graph::{self, Descriptions};
use super::read::Reading;
use super::{Feeds, From};
use crate::fetch::Failure;
use crate::rules as r;
use abreast_rdf::Entities;
use abreast_sdshare::{Entry, Link, Relation};
use abreast_webtypes::{Timestamp, excerpt};
use oxrdf::Triple;

/// Bytes of a fragment that is checked.
const FRAGMENT_BYTES: u64 = 10 << 20;
/// Times that the forms of a fragment are compared: the resource may change in between.
const ATTEMPTS: u32 = 3;

/// A fragment that was read.
pub(super) struct Sampled {
    pub(super) resource: String,
    pub(super) updated: Timestamp,
    pub(super) line: u64,
    pub(super) described: Descriptions,
}

impl Feeds<'_> {
    /// Checks the answers of a fragments feed, and a sample of what it links to.
    pub(super) async fn fragments(
        &mut self,
        number: usize,
        reading: &Reading,
    ) -> Result<Vec<Sampled>, Failure> {
        let mut sampled = Vec::new();
        if !self.samples() {
            return Ok(sampled);
        }
        self.since(number, reading).await?;
        for (_, entry) in reading.sample.iter() {
            let mut forms = Forms::default();
            for _ in 0..ATTEMPTS {
                forms = self.forms(number, entry).await?;
                if forms.differing.is_none() {
                    break;
                }
            }
            if entry.is_deleted && forms.described.as_ref().is_some_and(|all| !all.is_empty()) {
                let message =
                    || "the entry is of a deleted resource, and it has statements".to_owned();
                self.add(number, &r::SDS_DELETED, entry.line, message);
            }
            for (rule, message) in forms.faults.into_iter().chain(forms.differing) {
                self.add(number, rule, entry.line, || message);
            }
            if let (Some(described), Some(updated), [resource]) =
                (forms.described, entry.updated, &entry.resources[..])
            {
                let (resource, line) = (resource.clone(), entry.line);
                sampled.push(Sampled { resource, updated, line, described });
            }
        }
        Ok(sampled)
    }

    /// Reads every form of a fragment.
    async fn forms(&mut self, number: usize, entry: &Entry) -> Result<Forms, Failure> {
        let mut forms = Forms::default();
        let from = (number, entry.line);
        for (link, syntax) in graph::forms(entry, &Relation::Fragment) {
            if !self.hosts.may(&link.href) {
                let message = || format!("{} was not checked", excerpt(&link.href));
                self.add(number, &r::OTHER_HOST, entry.line, message);
                continue;
            }
            let Some(bytes) = self.fragment(from, link).await? else { continue };
            let Some(syntax) = syntax else { continue };
            let triples = match graph::triples(syntax, &bytes, &link.href, 0) {
                Ok(triples) => triples,
                Err(message) => {
                    let message = format!("{}: {message}", excerpt(&link.href));
                    forms.faults.push((&r::SDS_SYNTAX, message));
                    continue;
                }
            };
            if forms.described.is_none() {
                if let Some((count, subject)) = graph::strangers(&triples, &entry.resources) {
                    let message = format!(
                        "{}: {count} statements are not of the resource, for example of {}",
                        excerpt(&link.href),
                        excerpt(&subject)
                    );
                    forms.faults.push((&r::SDS_CLOSURE, message));
                }
                self.refuses(from, &link.href).await?;
            }
            let described = graph::descriptions(&Entities::new(triples.iter().map(Triple::as_ref)));
            match &forms.described {
                None => forms.described = Some(described),
                Some(first) => {
                    if let Some(iri) = graph::difference(first, &described) {
                        let message = format!(
                            "{}: the description of {} differs from that of the first link",
                            excerpt(&link.href),
                            excerpt(&iri)
                        );
                        forms.differing = Some((&r::SDS_SAME, message));
                    }
                }
            }
        }
        Ok(forms)
    }

    /// The bytes of a fragment; `None` when there are none to judge, which is a finding.
    async fn fragment(&mut self, from: From, link: &Link) -> Result<Option<Vec<u8>>, Failure> {
        let due = link.essence();
        let accept = Some(due.as_str()).filter(|due| !due.is_empty());
        let most = FRAGMENT_BYTES.min(self.options.max_file_bytes);
        self.sampled += 1;
        let answer = match self.ask(&link.href, accept, false, most).await? {
            Ok(answer) => answer,
            Err(message) => {
                let message = || format!("{}: {message}", excerpt(&link.href));
                self.add(from.0, &r::SDS_REACHABLE, from.1, message);
                return Ok(None);
            }
        };
        match answer.facts.status {
            200 => {
                self.delivered(from, &link.href, &due, &answer.facts);
                return Ok(Some(answer.body).filter(|_| answer.is_whole));
            }
            202 => {
                self.accepted(from, &link.href, false, answer.facts.retry_after.as_deref());
            }
            status @ (404 | 410) => {
                let message = || format!("{} is answered {status}", excerpt(&link.href));
                self.add(from.0, &r::SDS_DELETED, from.1, message);
            }
            status => {
                let message = || format!("{} is answered {status}", excerpt(&link.href));
                self.add(from.0, &r::SDS_REACHABLE, from.1, message);
            }
        }
        Ok(None)
    }
}

/// The forms of one fragment.
#[derive(Default)]
struct Forms {
    /// As the first form of RDF has it.
    described: Option<Descriptions>,
    faults: Vec<(&'static crate::Rule, String)>,
    differing: Option<(&'static crate::Rule, String)>,
}
