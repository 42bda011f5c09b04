//! Inspection of one address: a document, a page, a package or nothing.

use crate::emm;
use crate::fetch::MAKING;
use crate::fetch::manners::is_host_meta;
use crate::fetch::manners::{GZIP_BYTES, manners};
use crate::fetch::place::is_url;
use crate::fetch::{self, Failure, Go, ResponseFacts};
use crate::report::facts::Unreachable;
use crate::report::finding::{Finding, Findings};
use crate::report::rules as r;
use crate::resourcesync::checker::Checker;
use crate::resourcesync::collect::{Collector, Origin};
use crate::resourcesync::discover;
use crate::resourcesync::kind;
use crate::resourcesync::package::{self, Got, TOO_LARGE};
use crate::resourcesync::topic;
use crate::resourcesync_0_1;
use crate::sdshare;
use crate::walk::Walk;
use crate::walk::inspected::{Inspected, Inspection};
use crate::walk::node::{Doc, FoundBy};
use abreast_net::Client;
use abreast_resourcesync::v0_1::{INDEXES_MAX, first_of_plain_index, has_marks};

/// Bytes that show the version of a document, as for copies.
const BEGIN_MAX: usize = 4 << 10;
/// Bytes of a web page or robots.txt that are checked.
const PAGE_MAX: usize = 256 << 10;
/// Whether an address ends as those of JSON do.
fn is_named_json(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    [".json", ".jsonld"].iter().any(|ending| path.ends_with(ending))
}

impl Walk<'_> {
    /// Checks one address.
    pub(crate) async fn inspect(
        &self,
        client: &Client,
        number: usize,
        url: &str,
        found_by: FoundBy,
        origin: Origin,
    ) -> Inspection {
        let is_start = found_by == FoundBy::Start;
        if is_start
            && self.options.walk
            && is_url(url)
            && package::is_given(url)
            && let Ok(facts) = fetch::head(client, url, self.budget).await
            && facts.leads_on()
        {
            let found = Inspected::Resource(Box::new(facts));
            return Inspection { found, ..Inspection::default() };
        }
        if found_by == FoundBy::Package || is_start && package::is_given(url) {
            let (findings, found) = self.package(client, number, url).await;
            return Inspection { found, findings, ..Inspection::default() };
        }
        let is_package = std::cell::Cell::new(false);
        let new_checker = || {
            let collector = Collector::new(&self.context, number as u32, url, origin.clone());
            let found = Findings::new(url, self.options.mode, self.most_each());
            Checker::new(found, collector, self.options.max_document_bytes)
        };
        let checker = std::cell::RefCell::new(new_checker());
        let page = std::cell::RefCell::new(None::<Vec<u8>>);
        let feed = std::cell::Cell::new(None::<Inspected>);
        let may_be_plain = matches!(found_by, FoundBy::Start | FoundBy::Sitemap | FoundBy::Site);
        let begin = std::cell::RefCell::new(Vec::new());
        // By its name or media type. What begins as XML is taken for that.
        let is_json = std::cell::Cell::new(found_by == FoundBy::Start && is_named_json(url));
        let is_named = matches!(found_by, FoundBy::Sitemap | FoundBy::Site);
        // A resource leads to its Source, whatever it is.
        let leads_on = std::cell::Cell::new(false);
        let is_resource = std::cell::Cell::new(false);
        let piece = |bytes: &[u8]| {
            let mut page = page.borrow_mut();
            if let Some(page) = page.as_mut() {
                page.extend_from_slice(bytes);
                return if page.len() >= PAGE_MAX { Go::Enough } else { Go::On };
            }
            let mut checker = checker.borrow_mut();
            if leads_on.get()
                && checker.bytes == 0
                && !discover::is_document(bytes)
                && !crate::fetch::html::is_page(bytes)
            {
                is_resource.set(true);
                return Go::Enough;
            }
            if matches!(found_by, FoundBy::Start | FoundBy::Site) && checker.bytes == 0 {
                if bytes.starts_with(package::ZIP) {
                    is_package.set(true);
                    return Go::Enough;
                }
                if bytes.starts_with(b"WARC/") {
                    feed.set(Some(Inspected::AlphaDump));
                    return Go::Enough;
                }
            }
            let is_links = is_host_meta(url, found_by);
            if found_by == FoundBy::Start && checker.bytes == 0 && !is_links {
                if sdshare::is_feed(bytes) {
                    feed.set(Some(Inspected::Feed));
                    return Go::Enough;
                }
                let is_text = || !bytes.trim_ascii_start().starts_with(b"<");
                if emm::is_document(bytes) || is_json.get() && is_text() {
                    feed.set(Some(Inspected::ChangeFeed));
                    return Go::Enough;
                }
            }
            if may_be_plain && checker.bytes == 0 && resourcesync_0_1::is_document(bytes) {
                feed.set(Some(Inspected::Alpha));
                return Go::Enough;
            }
            if found_by == FoundBy::Robots
                || is_links
                || checker.bytes == 0
                    && !matches!(found_by, FoundBy::Down | FoundBy::Topic)
                    && crate::fetch::html::is_page(bytes)
            {
                *page = Some(bytes.to_vec());
                return Go::On;
            }
            let mut begin = begin.borrow_mut();
            if may_be_plain && begin.len() < BEGIN_MAX {
                begin.extend_from_slice(bytes);
            }
            checker.feed(bytes);
            let plain = is_named && checker.entries > 0 && checker.head.md.is_none();
            if plain || checker.is_broken() { Go::Enough } else { Go::On }
        };
        let is_making = std::cell::Cell::new(false);
        let restart = |facts: &ResponseFacts| {
            let media_type = facts.content_type.as_deref().map(crate::fetch::values::essence);
            if found_by == FoundBy::Start && media_type.is_some_and(|kind| kind.ends_with("json")) {
                is_json.set(true);
            }
            *checker.borrow_mut() = new_checker();
            checker.borrow_mut().answered(facts);
            *page.borrow_mut() = None;
            begin.borrow_mut().clear();
            leads_on.set(is_start && self.options.walk && facts.leads_on());
            is_making.set(found_by == FoundBy::Start && facts.status == 202);
            if is_making.get() { Go::Enough } else { Go::On }
        };
        let result = if is_url(url) {
            fetch::url(client, url, false, self.budget, restart, piece).await
        } else {
            fetch::file(url, self.budget, piece).map(|()| ResponseFacts::default())
        };
        let facts = match result {
            Ok(facts) => facts,
            Err(failure) => return Inspection::from(failure),
        };
        if is_making.get() {
            return Inspection { found: self.making(), ..Inspection::default() };
        }
        if is_resource.get() {
            let found = Inspected::Resource(Box::new(facts));
            return Inspection { found, ..Inspection::default() };
        }
        if is_package.get() {
            let (findings, found) = self.package(client, number, url).await;
            return Inspection { found, findings, ..Inspection::default() };
        }
        if let Some(found) = feed.into_inner() {
            return Inspection { found, ..Inspection::default() };
        }
        if let Some(page) = page.into_inner() {
            return Inspection {
                found: Inspected::Page(page, Box::new(facts)),
                ..Inspection::default()
            };
        }
        let mut checker = checker.into_inner();
        if leads_on.get() && checker.bytes == 0 && facts.hubs.is_empty() {
            let found = Inspected::Resource(Box::new(facts));
            return Inspection { found, ..Inspection::default() };
        }
        if is_json.get() && checker.bytes == 0 && facts.hubs.is_empty() {
            return Inspection { found: Inspected::ChangeFeed, ..Inspection::default() };
        }
        match self.leads_to_0_1(client, url, &begin.into_inner()).await {
            Ok(true) => return Inspection { found: Inspected::Alpha, ..Inspection::default() },
            // The walk reports a limit; this document was read.
            Ok(false) | Err(Failure::Limit(_)) => {}
            Err(failure) => return Inspection::from(failure),
        }
        if is_named && checker.head.md.is_none() {
            return Inspection { found: Inspected::Plain, ..Inspection::default() };
        }
        let silent = checker.bytes == 0
            && is_url(url)
            && (found_by == FoundBy::Topic || !facts.hubs.is_empty());
        if !silent {
            checker.finish();
        }
        let capability = checker.head.md.as_ref().and_then(|md| md.capability);
        if is_url(url)
            && (found_by == FoundBy::Topic
                || silent
                || capability.is_some_and(kind::is_notification))
        {
            match topic::answers(client, url, &facts, silent, self.budget, &mut checker.found).await
            {
                Err(Failure::Limit(limit)) => {
                    return Inspection { found: Inspected::Limit(limit), ..Inspection::default() };
                }
                Err(_) => {
                    return Inspection { found: Inspected::Cancelled, ..Inspection::default() };
                }
                Ok(()) => {}
            }
        } else if is_url(url) {
            // Who has a package has its manifest: a copy of that is rarely asked for.
            let packed =
                facts.content_encoding.is_some() || capability.is_some_and(kind::is_manifest);
            if !packed && checker.bytes > GZIP_BYTES {
                let bytes = checker.bytes;
                checker.found.add(&r::GZIP, (0, 0), || {
                    format!("the server sent {bytes} bytes uncompressed")
                });
            }
            let is_xml = facts.content_type.as_deref().is_some_and(|content_type| {
                let essence = crate::fetch::values::essence(content_type);
                essence.ends_with("/xml") || essence.ends_with("+xml") || essence.contains("gzip")
            });
            if !is_xml {
                let content_type = facts.content_type.as_deref().unwrap_or("missing");
                checker
                    .found
                    .add(&r::CONTENT_TYPE, (0, 0), || format!("Content-Type is {content_type}"));
            }
            manners(client, url, &facts, &self.conditions, &mut checker.found).await;
        }
        let Checker { observer, head, entries, bytes, complete, found, refusal, .. } = checker;
        let refusal = refusal.as_ref().map(resourcesync_0_1::first_line);
        let fingerprint = observer.fingerprint();
        let Collector { children, listed, changed, again, .. } = observer;
        let doc = Doc {
            head,
            entries,
            bytes,
            complete,
            refusal,
            children,
            fingerprint,
            facts,
            again,
            silent,
        };
        Inspection {
            found: Inspected::Document(Box::new(doc)),
            findings: found.into_list(),
            listed: Some((listed, changed)),
        }
    }

    /// Whether the first Sitemap below a plain index is of 0.1. A failed request shows no version.
    pub(crate) async fn leads_to_0_1(
        &self,
        client: &Client,
        index: &str,
        begin: &[u8],
    ) -> Result<bool, Failure> {
        if !self.options.walk || !is_url(index) {
            return Ok(false);
        }
        let mut next = first_of_plain_index(begin);
        for _ in 0..INDEXES_MAX {
            let Some(url) = next.take().filter(|url| self.is_allowed(url)) else { break };
            match self.begin_of(client, &url).await {
                Ok(begin) if has_marks(&begin) => return Ok(true),
                Ok(begin) => next = first_of_plain_index(&begin),
                Err(Failure::Missing(_)) => break,
                Err(other) => return Err(other),
            }
        }
        Ok(false)
    }

    async fn begin_of(&self, client: &Client, url: &str) -> Result<Vec<u8>, Failure> {
        let begin = std::cell::RefCell::new(Vec::new());
        let restart = |_: &ResponseFacts| {
            begin.borrow_mut().clear();
            Go::On
        };
        let piece = |bytes: &[u8]| {
            let mut begin = begin.borrow_mut();
            begin.extend_from_slice(bytes);
            if begin.len() < BEGIN_MAX { Go::On } else { Go::Enough }
        };
        fetch::url(client, url, false, self.budget, restart, piece).await?;
        Ok(begin.into_inner())
    }

    /// What was given is still being made.
    fn making(&self) -> Inspected {
        self.budget.cannot_ask(Unreachable::Making);
        Inspected::Left(MAKING)
    }

    async fn package(
        &self,
        client: &Client,
        number: usize,
        url: &str,
    ) -> (Vec<Finding>, Inspected) {
        let entry = self.entry_of(number);
        let mut found = Findings::new(url, self.options.mode, self.most_each());
        let got = package::get(client, url, self.budget, self.options.max_file_bytes).await;
        let file = match got {
            Ok(Got::File(file)) => file,
            Ok(Got::TooLarge(length)) => {
                if let Some((child, _)) = &entry {
                    package::compare_length(child, length, &mut found);
                } else {
                    found.add(&r::LIMIT, (0, 0), || format!("it was not checked: {TOO_LARGE}"));
                }
                return (found.into_list(), Inspected::Left(TOO_LARGE));
            }
            Err(Failure::Missing(message)) if message == MAKING && entry.is_none() => {
                return (Vec::new(), self.making());
            }
            Err(Failure::Missing(message)) => return (Vec::new(), Inspected::Nothing(message)),
            Err(Failure::Limit(limit)) => return (Vec::new(), Inspected::Limit(limit)),
            Err(Failure::Cancelled) => return (Vec::new(), Inspected::Cancelled),
        };
        // Which version a package is of that nothing leads to, its manifest shows; 1.1 has no WARC files.
        let is_of_0_1 = package::is_named_warc(url) || resourcesync_0_1::is_dump(&file);
        if entry.is_none() && is_of_0_1 {
            return (Vec::new(), Inspected::AlphaDump);
        }
        let of_manifest = package::PackageOrigin {
            url,
            number: number as u32,
            context: &self.context,
            mode: self.options.mode,
            most_each: self.most_each(),
            dump: entry.as_ref().and_then(|(_, capability)| *capability),
        };
        match package::check(
            file,
            entry.as_ref().map(|(child, _)| child),
            &of_manifest,
            self.budget,
            &mut found,
        ) {
            Ok((package, mut findings)) => {
                let mut all = found.into_list();
                all.append(&mut findings);
                (all, Inspected::Package(Box::new(package)))
            }
            Err(Failure::Limit(limit)) => (Vec::new(), Inspected::Limit(limit)),
            Err(_) => (Vec::new(), Inspected::Cancelled),
        }
    }
}
