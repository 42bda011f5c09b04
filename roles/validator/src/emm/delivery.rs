//! Requests for documents, and checks of their delivery [as-core §2] [iiif-discovery §4.1].

use super::document::read;
use crate::emm::doc::{Doc, Kind};
use crate::emm::item::Item;
use crate::fetch::manners::manners;
use crate::fetch::{self, Failure, Go, ResponseFacts, is_url, values};
use crate::report::{Findings, rules as r};
use crate::walk::feeds::Feeds;
use abreast_emm::Profile;
use abreast_webtypes::{excerpt, resolve, without_fragment};
use std::cell::{Cell, RefCell};

/// Most bytes of a document, the same as for copies.
const BYTES_MAX: u64 = 64 << 20;
/// Most objects of a document; each uses at least 600 bytes of memory.
const OBJECTS_MAX: usize = 2_000_000;
/// Most values of a document, including arrays.
const VALUES_MAX: usize = 10_000_000;

/// `Accept` for an `id` whose server may also deliver a web page.
const ACCEPT: &str = "application/activity+json, application/ld+json, application/json;q=0.9";

/// A document with the headers of its answer and its findings.
type Got = (Option<Doc>, ResponseFacts, Findings);

impl Feeds<'_> {
    /// Reads and checks one document. The findings have the URL of the document.
    pub(super) async fn document(&mut self, url: &str) -> Result<Got, Failure> {
        self.document_of(url, None).await
    }

    /// Reads a document. For a patch, `item` is the activity with the changes.
    pub(super) async fn document_of(
        &mut self,
        url: &str,
        item: Option<&Item>,
    ) -> Result<Got, Failure> {
        let (bytes, now) = (RefCell::new(Vec::new()), Cell::new(None));
        let most = self.options.max_document_bytes.min(BYTES_MAX);
        let is_cut = Cell::new(false);
        let begin = |facts: &ResponseFacts| {
            bytes.borrow_mut().clear();
            now.set(facts.time());
            Go::On
        };
        let piece = |piece: &[u8]| {
            let mut bytes = bytes.borrow_mut();
            is_cut.set((bytes.len() + piece.len()) as u64 > most);
            if is_cut.get() {
                return Go::Enough;
            }
            bytes.extend_from_slice(piece);
            Go::On
        };
        let facts = if is_url(url) {
            fetch::url(&self.client, url, false, self.budget, begin, piece).await?
        } else {
            fetch::file(url, self.budget, piece)?;
            ResponseFacts::default()
        };
        if is_cut.get() {
            let message = format!("it has more than {most} bytes, and was not checked");
            return Err(Failure::Missing(message));
        }
        let bytes = bytes.into_inner();
        if is_crowded(&bytes) {
            let message = format!(
                "it has more than {OBJECTS_MAX} objects or {VALUES_MAX} values, and was not checked"
            );
            return Err(Failure::Missing(message));
        }
        let mut found = Findings::new(url, self.options.mode, self.options.most_each);
        let base = if facts.url.is_empty() { "file:///" } else { &facts.url };
        let doc = read(&bytes, base, now.get(), item, &mut found);
        Ok((doc, facts, found))
    }

    /// Checks the delivery of a document. `topics` are the topics of the feed that contains the
    /// page.
    pub(super) async fn delivery(
        &self,
        url: &str,
        doc: &Doc,
        facts: &ResponseFacts,
        topics: &[&str],
        found: &mut Findings,
    ) {
        let is_iiif = doc.profile == Profile::Iiif1;
        let kind = facts.content_type.as_deref().unwrap_or_default();
        let essence = values::essence(kind);
        let is_good = match &*essence {
            "application/json" => true,
            "application/activity+json" => !is_iiif,
            "application/ld+json" => {
                !is_iiif || kind.contains("iiif.io/api/discovery/1/context.json")
            }
            _ => false,
        };
        if !is_good {
            let rule = if is_iiif { &r::IIIF_MEDIA_TYPE } else { &r::AS_MEDIA_TYPE };
            let kind = if kind.is_empty() { "missing".to_owned() } else { excerpt(kind) };
            found.add(rule, (0, 0), || format!("Content-Type is {kind}"));
        }
        if !facts.is_shared {
            let rule = if is_iiif { &r::IIIF_CORS } else { &r::CF_CORS };
            found.add(rule, (0, 0), || "there is no Access-Control-Allow-Origin");
        }
        if !facts.hubs.is_empty() {
            let own = [Some(url), Some(&*facts.url), doc.part_of.as_deref(), doc.id.as_deref()];
            let target = |link: &String| resolve(&facts.url, link).unwrap_or_default();
            match &facts.selves[..] {
                [one] if own.contains(&Some(&target(one))) || topics.contains(&&*target(one)) => {}
                [one] => found.add(&r::FEED_SELF, (0, 0), || format!("`self` is {}", excerpt(one))),
                all => {
                    let count = all.len();
                    found.add(&r::FEED_SELF, (0, 0), || format!("there are {count} links `self`"));
                }
            }
        }
        manners(&self.client, url, facts, doc.bytes, &self.conditions, found).await;
    }

    /// Checks that the `id` of a document also leads to the document; returns whether this took a
    /// request.
    pub(super) async fn served(
        &mut self,
        number: usize,
        url: &str,
        address: &str,
        doc: &Doc,
    ) -> Result<bool, Failure> {
        let rule = match (doc.kind, doc.profile) {
            (Kind::EntryPoint | Kind::Page, _) => &r::CF_ID_SERVED,
            (Kind::Activity, Profile::Emm01) => &r::EMM01_ID_SERVED,
            (Kind::Activity, Profile::Iiif1) => &r::IIIF_ID_SERVED,
            _ => return Ok(false),
        };
        let Some(id) = doc.id.clone().filter(|id| is_url(id)) else { return Ok(false) };
        let id = without_fragment(&id);
        if id == without_fragment(url) || id == without_fragment(address) {
            return Ok(false);
        }
        if let Some(why) = self.differs(id).await? {
            self.fault(number, url, rule, format!("`id` {}: {why}", excerpt(id)));
        }
        Ok(true)
    }

    /// Why an `id` does not lead to the document, or the part of a document, with this `id`.
    pub(super) async fn differs(&mut self, id: &str) -> Result<Option<String>, Failure> {
        if !self.hosts.may(id) {
            return Ok(Some("it is on a host that was not given".to_owned()));
        }
        let place = without_fragment(id);
        let answer = match self.ask(place, Some(ACCEPT), false, BYTES_MAX).await? {
            Ok(answer) if answer.facts.is_success() => answer,
            Ok(answer) => return Ok(Some(format!("it is answered {}", answer.facts.status))),
            Err(message) => return Ok(Some(message)),
        };
        // Other faults of the document are found through the links to it.
        let mut found = Findings::new(place, self.options.mode, 1);
        let doc = read(&answer.body, &answer.facts.url, None, None, &mut found);
        let Some(doc) = doc else { return Ok(Some("there is no JSON".to_owned())) };
        if place != id {
            // A fragment identifies a part of the document [rfc3986 §3.5], such as an activity on
            // its page.
            let mut parts = doc.items.iter().map(|item| &item.id).chain([&doc.id]);
            let is_there = parts.any(|part| part.as_deref() == Some(id));
            return Ok((!is_there).then(|| "nothing in the document there has it".to_owned()));
        }
        let own = doc.id.as_deref().map(without_fragment);
        Ok((own != Some(id)).then(|| {
            format!(
                "the `id` of the document there is {}",
                own.map_or("missing".to_owned(), excerpt)
            )
        }))
    }
}

/// Whether a JSON text exceeds the limits on objects and values.
fn is_crowded(text: &[u8]) -> bool {
    let (mut objects, mut values) = (0, 0);
    let (mut is_string, mut is_escaped) = (false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            b'{' if !is_string => objects += 1,
            b',' | b'[' if !is_string => values += 1,
            _ => {}
        }
    }
    objects > OBJECTS_MAX || values > VALUES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_strings_does_not_count() {
        let with = |part: &str, count: usize| format!("[{}]", part.repeat(count));
        assert!(!is_crowded(with("{},", OBJECTS_MAX).as_bytes()));
        assert!(is_crowded(with("{},", OBJECTS_MAX + 1).as_bytes()));
        assert!(is_crowded(with("0,", VALUES_MAX + 1).as_bytes()));
        let text = with("{", OBJECTS_MAX + 1);
        assert!(!is_crowded(format!(r#"["\\\"{text}\\"]"#).as_bytes()));
        assert!(is_crowded(format!(r#"["\\"{text}"#).as_bytes()));
    }
}
