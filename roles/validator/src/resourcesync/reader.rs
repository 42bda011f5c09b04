//! Reads a document of the walk while it is downloaded.

use crate::fetch::manners::manners;
use crate::fetch::{Go, ResponseFacts, is_url, values};
use crate::report::rules as r;
use crate::resourcesync::checker::Checker;
use crate::resourcesync::collect::{Collector, Context};
use crate::resourcesync::doc::Doc;
use crate::resourcesync::{kind, topic};
use crate::walk::node::{FoundBy, Outcome};
use crate::walk::protocol::{Inspected, Inspection, Pending, Reader, Visit};

/// A document that is being read.
pub(super) struct Reading<'v> {
    visit: &'v Visit<'v>,
    checker: Checker<Collector<'v>>,
    /// Whether a page or robots.txt links to the document as a Sitemap.
    is_named: bool,
}

impl<'v> Reading<'v> {
    pub(super) fn new(context: &'v Context, visit: &'v Visit<'v>) -> Self {
        let (number, origin) = (visit.number as u32, visit.origin.clone());
        let collector = Collector::new(context, number, &visit.url, origin);
        let most = visit.run.options.max_document_bytes;
        let checker = Checker::new(visit.findings(), collector, most);
        let is_named = matches!(visit.found_by, FoundBy::Sitemap | FoundBy::Site);
        Self { visit, checker, is_named }
    }

    async fn end(self, facts: ResponseFacts) -> Inspection {
        let Self { visit, mut checker, is_named } = self;
        let (url, client) = (&*visit.url, visit.client);
        if is_named && checker.head.md.is_none() {
            return Inspected::Done(Outcome::Plain).into();
        }
        let is_topic = visit.found_by == FoundBy::Topic;
        let silent = checker.bytes == 0 && is_url(url) && (is_topic || !facts.hubs.is_empty());
        if !silent {
            checker.finish();
        }
        let capability = checker.head.md.as_ref().and_then(|md| md.capability);
        let found = &mut checker.found;
        if is_url(url) && (is_topic || silent || capability.is_some_and(kind::is_notification)) {
            let budget = visit.run.budget;
            if let Err(failure) = topic::answers(client, url, &facts, silent, budget, found).await {
                return failure.into();
            }
        } else if is_url(url) {
            let essence = facts.content_type.as_deref().map(values::essence).unwrap_or_default();
            if !values::is_xml_or_packed(&essence) {
                let content_type = facts.content_type.as_deref().unwrap_or("missing");
                found.add(&r::CONTENT_TYPE, (0, 0), || format!("Content-Type is {content_type}"));
            }
            // A client with a package already has the manifest, so copies of manifests are rarely
            // requested.
            let is_manifest = capability.is_some_and(kind::is_manifest);
            let bytes = if is_manifest { 0 } else { checker.bytes };
            manners(client, url, &facts, bytes, &visit.run.conditions, found).await;
        }
        let Checker { observer, head, entries, bytes, complete, found, refusal, .. } = checker;
        let fingerprint = observer.fingerprint();
        let Collector { children, listed, changed, again, .. } = observer;
        let doc = Doc {
            head,
            entries,
            bytes,
            complete,
            refusal: refusal.as_ref().map(values::first_line),
            children,
            fingerprint,
            facts,
            again,
            silent,
            sketches: Some((listed, changed)),
        };
        Inspection { found: Inspected::Done(Outcome::read(doc)), findings: found.into_list() }
    }
}

impl Reader for Reading<'_> {
    fn answered(&mut self, facts: &ResponseFacts) {
        self.checker.answered(facts);
    }

    fn feed(&mut self, bytes: &[u8]) -> Go {
        let checker = &mut self.checker;
        checker.feed(bytes);
        let is_plain = self.is_named && checker.entries > 0 && checker.head.md.is_none();
        if is_plain || checker.is_broken() { Go::Enough } else { Go::On }
    }

    fn finish<'f>(self: Box<Self>, facts: ResponseFacts) -> Pending<'f, Inspection>
    where
        Self: 'f,
    {
        Box::pin(self.end(facts))
    }
}
