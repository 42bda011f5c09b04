//! Checks of a sample of fragments: statements, forms and media types
//! [sdshare §Fragments Feed].

use super::graph::{self, Descriptions};
use super::read::Reading;
use super::{accepted, delivered, refusal};
use crate::fetch::hosts::Hosts;
use crate::fetch::{self, Budget, Failure};
use crate::report::rules as r;
use crate::walk::feeds::{Fault, Feeds, ask};
use abreast_core::spawn_scoped;
use abreast_net::{Client, Shared};
use abreast_rdf::Entities;
use abreast_sdshare::{Entry, Link, Relation};
use abreast_webtypes::{Timestamp, excerpt};
use oxrdf::Triple;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Most bytes of a fragment that is checked.
const FRAGMENT_BYTES: u64 = 10 << 20;
/// Attempts to compare the forms of a fragment, because the resource may change in between.
const ATTEMPTS: u32 = 3;

/// A fragment that was read and can be compared with a snapshot.
pub(super) struct Sampled {
    pub(super) resource: String,
    pub(super) updated: Timestamp,
    pub(super) line: u64,
    pub(super) described: Descriptions,
}

impl Feeds<'_> {
    /// Checks the answers of a fragments feed to `since`, and a sample of its fragments.
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
        let entries: Vec<&Entry> = reading.sample.iter().map(|(_, entry)| entry).collect();
        let sampler = Sampler {
            shared: self.shared,
            budget: self.budget,
            hosts: self.hosts,
            most: FRAGMENT_BYTES.min(self.options.max_file_bytes),
            accepts: &self.accepts,
            has_files: reading.has_files,
            fetched: AtomicU64::new(0),
        };
        let read = sampler.all(&entries, self.options.connections);
        self.sampled += sampler.fetched.into_inner();
        for (entry, forms) in entries.into_iter().zip(read?) {
            self.report((number, entry.line), forms.faults.into_iter().chain(forms.differing));
            if let (Some(described), Some(updated), [resource]) =
                (forms.described, entry.updated, &entry.resources[..])
            {
                let (resource, line) = (resource.clone(), entry.line);
                sampled.push(Sampled { resource, updated, line, described });
            }
        }
        Ok(sampled)
    }
}

/// The forms of a fragment, with their faults.
#[derive(Default)]
struct Forms {
    /// Descriptions in the first form with RDF.
    described: Option<Descriptions>,
    faults: Vec<Fault>,
    differing: Option<Fault>,
}

/// Reads several fragments at a time.
struct Sampler<'a> {
    shared: &'a Arc<Shared>,
    budget: &'a Budget<'a>,
    hosts: &'a Hosts,
    most: u64,
    accepts: &'a AtomicU64,
    /// Whether the fragments are files, which are not checked as descriptions.
    has_files: bool,
    fetched: AtomicU64,
}

impl Sampler<'_> {
    /// Reads the forms of each entry; the results have the order of the entries.
    fn all(&self, entries: &[&Entry], connections: usize) -> Result<Vec<Forms>, Failure> {
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::new());
        let failed = Mutex::new(None);
        let work = || {
            let Some(runtime) = fetch::runtime() else { return };
            let client = Client::new(Arc::clone(self.shared));
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(entry) = entries.get(number) else { return };
                match runtime.block_on(self.entry(&client, entry)) {
                    Ok(forms) => lock(&done).push((number, forms)),
                    Err(failure) => {
                        next.store(entries.len(), Ordering::Relaxed);
                        *lock(&failed) = Some(failure);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..connections.clamp(1, 64).min(entries.len()) {
                spawn_scoped(scope, work);
            }
        });
        if let Some(failure) = lock(&failed).take() {
            return Err(failure);
        }
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|(number, _)| *number);
        Ok(done.into_iter().map(|(_, forms)| forms).collect())
    }

    async fn entry(&self, client: &Client, entry: &Entry) -> Result<Forms, Failure> {
        let mut forms = Forms::default();
        for _ in 0..ATTEMPTS {
            forms = self.forms(client, entry).await?;
            if forms.differing.is_none() {
                break;
            }
        }
        if entry.is_deleted && forms.described.as_ref().is_some_and(|all| !all.is_empty()) {
            let message = "the entry is of a deleted resource, and it has statements".to_owned();
            forms.faults.push((&r::SDS_DELETED, message));
        }
        Ok(forms)
    }

    /// Reads and compares all forms of a fragment.
    async fn forms(&self, client: &Client, entry: &Entry) -> Result<Forms, Failure> {
        let mut forms = Forms::default();
        for (link, syntax) in graph::forms(entry, &Relation::Fragment) {
            if !self.hosts.may(&link.href) {
                let message = format!("{} was not checked", excerpt(&link.href));
                forms.faults.push((&r::OTHER_HOST, message));
                continue;
            }
            let Some(bytes) = self.fragment(client, link, &mut forms.faults).await? else {
                continue;
            };
            let Some(syntax) = syntax.filter(|_| !self.has_files) else { continue };
            let triples = match graph::triples(syntax, &bytes, &link.href, 0) {
                Ok(triples) => triples,
                Err((rule, message)) => {
                    let message = format!("{}: {message}", excerpt(&link.href));
                    forms.faults.push((rule, message));
                    continue;
                }
            };
            let described = graph::descriptions(&Entities::new(triples.iter().map(Triple::as_ref)));
            if let Some(first) = &forms.described {
                if let Some(iri) = graph::difference(first, &described) {
                    let message = format!(
                        "{}: the description of {} differs from that of the first link",
                        excerpt(&link.href),
                        excerpt(&iri)
                    );
                    forms.differing = Some((&r::SDS_SAME, message));
                }
                continue;
            }
            if let Some((count, subject)) = graph::strangers(&triples, &entry.resources) {
                let message = format!(
                    "{}: statements that are not of the resource: {count}, for example of {}",
                    excerpt(&link.href),
                    excerpt(&subject)
                );
                forms.faults.push((&r::SDS_CLOSURE, message));
            }
            forms.faults.extend(refusal(client, self.budget, self.accepts, &link.href).await?);
            forms.described = Some(described);
        }
        Ok(forms)
    }

    /// Content of a fragment. `None` after a fault, or if the fragment is too large.
    async fn fragment(
        &self,
        client: &Client,
        link: &Link,
        faults: &mut Vec<Fault>,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let (url, due) = (&link.href, link.essence());
        let accept = Some(due.as_str()).filter(|due| !due.is_empty());
        self.fetched.fetch_add(1, Ordering::Relaxed);
        let answer = match ask(client, self.budget, url, (accept, false), self.most).await? {
            Ok(answer) => answer,
            Err(message) => {
                faults.push((&r::SDS_REACHABLE, format!("{}: {message}", excerpt(url))));
                return Ok(None);
            }
        };
        match answer.facts.status {
            200 => {
                faults.extend(delivered(url, &due, &answer.facts));
                return Ok(Some(answer.body).filter(|_| answer.is_whole));
            }
            202 => faults.extend(accepted(url, false, answer.facts.retry_after.as_deref())),
            status => {
                let is_gone = matches!(status, 404 | 410);
                let rule = if is_gone { &r::SDS_DELETED } else { &r::SDS_REACHABLE };
                faults.push((rule, format!("{} is answered {status}", excerpt(url))));
            }
        }
        Ok(None)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
