//! Inspection of an address, which may be a document, a page, a package or missing.

use crate::fetch::archive::{self, Got, TOO_LARGE};
use crate::fetch::{self, Failure, Go, ResponseFacts, html, is_url, values};
use crate::report::{MAKING, Unreachable, rules as r};
use crate::walk::node::{FoundBy, Outcome, Record};
use crate::walk::protocol::{Begin, Inspected, Inspection, Protocol, Visit};
use std::cell::{Cell, RefCell};

/// Bytes that determine the version of a document. Copies use the same number.
pub(crate) const BEGIN_MAX: usize = 4 << 10;
/// Bytes of a web page or robots.txt that are checked.
const PAGE_MAX: usize = 256 << 10;

/// Locations of the metadata of a site (RFC 6415).
pub(crate) const HOST_META: [&str; 2] = ["/.well-known/host-meta", "/.well-known/host-meta.json"];

/// Whether the document is host-meta, of which only the links are read.
pub(crate) fn is_host_meta(url: &str, found_by: FoundBy) -> bool {
    let is_given = || is_url(url) && HOST_META.iter().any(|place| url.ends_with(place));
    found_by == FoundBy::HostMeta || found_by == FoundBy::Start && is_given()
}

/// Whether the path of an address has an ending of JSON files.
fn is_named_json(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    [".json", ".jsonld"].iter().any(|ending| path.ends_with(ending))
}

/// Offers the answer to each protocol. The first protocol that recognises the answer reads the
/// document after the walk.
fn recognised(
    protocols: &[Box<dyn Protocol>],
    by: impl Fn(&dyn Protocol) -> Option<Box<dyn Record>>,
) -> Option<Inspected> {
    let mut all = protocols.iter().enumerate();
    all.find_map(|(number, protocol)| Some(Inspected::Later(number, by(&**protocol)?)))
}

/// Fetches and checks one address.
pub(crate) async fn inspect(visit: &Visit<'_>) -> Inspection {
    let (url, client, found_by) = (&*visit.url, visit.client, visit.found_by);
    let (run, is_start) = (visit.run, visit.is_start());
    let leads_anywhere =
        |facts: &ResponseFacts| run.protocols.iter().any(|protocol| protocol.leads_on(facts));
    if is_start
        && run.options.walk
        && is_url(url)
        && archive::is_given(url)
        && let Ok(facts) = fetch::head(client, url, run.budget).await
        && leads_anywhere(&facts)
    {
        return Inspected::Resource(Box::new(facts)).into();
    }
    if found_by == FoundBy::Package || is_start && archive::is_given(url) {
        return package(visit).await;
    }
    let is_links = is_host_meta(url, found_by);
    let is_package = Cell::new(false);
    let new_reader = || run.protocols.iter().find_map(|protocol| protocol.reader(visit));
    let reader = RefCell::new(new_reader());
    // Number of bytes that the reader received.
    let read = Cell::new(0);
    let page = RefCell::new(None::<Vec<u8>>);
    let later = RefCell::new(None::<Inspected>);
    let begin = RefCell::new(Vec::new());
    // By name or media type. Text that starts like XML is read as XML.
    let is_json = Cell::new(is_start && is_named_json(url));
    // A given resource of any type can link to its Source.
    let leads_on = Cell::new(false);
    let is_resource = Cell::new(false);
    let recognise = |bytes: &[u8], is_links| {
        let begin = Begin { bytes, found_by, is_links, is_json: is_json.get() };
        recognised(run.protocols, |protocol| protocol.recognise(&begin))
    };
    let piece = |bytes: &[u8]| {
        let mut page = page.borrow_mut();
        if let Some(page) = page.as_mut() {
            page.extend_from_slice(bytes);
            return if page.len() >= PAGE_MAX { Go::Enough } else { Go::On };
        }
        if read.get() == 0 {
            let is_document = || run.protocols.iter().any(|protocol| protocol.has_mark(bytes));
            is_resource.set(leads_on.get() && !is_document() && !html::is_page(bytes));
            is_package.set(
                matches!(found_by, FoundBy::Start | FoundBy::Site)
                    && bytes.starts_with(archive::ZIP),
            );
            if is_resource.get() || is_package.get() {
                return Go::Enough;
            }
            if let Some(found) = recognise(bytes, is_links) {
                *later.borrow_mut() = Some(found);
                return Go::Enough;
            }
        }
        if found_by == FoundBy::Robots
            || is_links
            || read.get() == 0
                && !matches!(found_by, FoundBy::Down | FoundBy::Topic)
                && html::is_page(bytes)
        {
            *page = Some(bytes.to_vec());
            return Go::On;
        }
        let mut begin = begin.borrow_mut();
        if begin.len() < BEGIN_MAX {
            begin.extend_from_slice(bytes);
        }
        read.set(read.get() + bytes.len());
        reader.borrow_mut().as_mut().map_or(Go::Enough, |reader| reader.feed(bytes))
    };
    let is_making = Cell::new(false);
    let restart = |facts: &ResponseFacts| {
        let media_type = facts.content_type.as_deref().map(values::essence);
        if is_start && media_type.is_some_and(|kind| kind.ends_with("json")) {
            is_json.set(true);
        }
        let mut new = new_reader();
        if let Some(reader) = &mut new {
            reader.answered(facts);
        }
        *reader.borrow_mut() = new;
        read.set(0);
        *page.borrow_mut() = None;
        begin.borrow_mut().clear();
        leads_on.set(is_start && run.options.walk && leads_anywhere(facts));
        is_making.set(is_start && facts.status == 202);
        if is_making.get() { Go::Enough } else { Go::On }
    };
    let result = if is_url(url) {
        fetch::url(client, url, false, run.budget, restart, piece).await
    } else {
        fetch::file(url, run.budget, piece).map(|()| ResponseFacts::default())
    };
    let facts = match result {
        Ok(facts) => facts,
        Err(failure) => return failure.into(),
    };
    if is_making.get() {
        return making(visit);
    }
    if is_resource.get() {
        return Inspected::Resource(Box::new(facts)).into();
    }
    if is_package.get() {
        return package(visit).await;
    }
    if let Some(found) = later.into_inner() {
        return found.into();
    }
    if let Some(page) = page.into_inner() {
        return Inspected::Page(page, Box::new(facts)).into();
    }
    if read.get() == 0 && facts.hubs.is_empty() {
        if leads_on.get() {
            return Inspected::Resource(Box::new(facts)).into();
        }
        if let Some(found) = recognise(b"", false) {
            return found.into();
        }
    }
    let begin = begin.into_inner();
    for (number, protocol) in run.protocols.iter().enumerate() {
        match protocol.recognise_below(visit, &begin).await {
            Ok(Some(record)) => return Inspected::Later(number, record).into(),
            // The walk reports the limit; this document was read.
            Ok(None) | Err(Failure::Limit(_)) => {}
            Err(failure) => return failure.into(),
        }
    }
    match reader.into_inner() {
        Some(reader) => reader.finish(facts).await,
        None => Inspected::Done(Outcome::Plain).into(),
    }
}

/// Result for a given document that the server still makes on demand.
fn making(visit: &Visit<'_>) -> Inspection {
    visit.run.budget.cannot_ask(Unreachable::Making);
    Inspected::Done(Outcome::Left(MAKING)).into()
}

async fn package(visit: &Visit<'_>) -> Inspection {
    let (run, is_linked) = (visit.run, visit.note.is_some());
    let most = run.options.max_file_bytes;
    let got = match archive::get(visit.client, &visit.url, run.budget, most).await {
        Ok(got) => got,
        Err(Failure::Missing(message)) if message == MAKING && !is_linked => return making(visit),
        Err(failure) => return failure.into(),
    };
    match &got {
        Got::TooLarge(_) if !is_linked => {
            let mut found = visit.findings();
            found.add(&r::LIMIT, (0, 0), || format!("it was not checked: {TOO_LARGE}"));
            return Inspection {
                found: Inspected::Done(Outcome::Left(TOO_LARGE)),
                findings: found.into_list(),
            };
        }
        // The manifest of a given package determines the version.
        Got::File(file) if !is_linked => {
            let by = |protocol: &dyn Protocol| protocol.recognise_package(&visit.url, file);
            if let Some(found) = recognised(run.protocols, by) {
                return found.into();
            }
        }
        _ => {}
    }
    let mut got = got;
    for protocol in run.protocols {
        match protocol.package(visit, got) {
            Ok(inspection) => return inspection,
            Err(other) => got = other,
        }
    }
    Inspected::Done(Outcome::Plain).into()
}
