//! `/{set}/r/…` of a set of entities: the description of an entity, in the requested syntax.
//!
//! `Accept` chooses the syntax [rfc9110 §12.5.1], and so does `?syntax=ttl` in the address. The
//! default is canonical N-Triples, whose length and digest are in the lists.

use crate::message::conditional::{Precondition, judge};
use crate::message::negotiate::{accept_of, languages};
use crate::message::present::policy_of;
use crate::message::respond::{Answer, Content, Dated, Representation, problem, try_later};
use crate::site::served::{ServedSet, Site};
use abreast_source::entities::{Entity, Form};
use abreast_source::publish::{Body, Reader, tag_of_bytes};
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, LINK, VARY};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use std::io;
use std::sync::Arc;

/// Descriptions with at least this many bytes are rendered within the memory for requests, and the
/// factor from their bytes to that memory.
const LARGE: u64 = 64 << 10;
const MEMORY: u64 = 8;

pub(crate) async fn answer(
    site: &Arc<Site>,
    set: &Arc<ServedSet>,
    path: &str,
    query: Option<&str>,
    method: &Method,
    headers: &HeaderMap,
) -> io::Result<Answer> {
    let Some(iri) = set.published.urls.naming().key_at(path) else { return Ok(nothing()) };
    let mut reader = Reader::of_browser(languages(headers));
    let mut named = None;
    for (field, value) in url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        match &*field {
            "syntax" => match form_of(&value) {
                Some(form) => named = Some(form),
                None => return Ok(nothing()),
            },
            "lang" if value.is_empty() => {}
            "lang" => match Reader::of_address(&value) {
                Some(asked) => reader = asked,
                None => return Ok(nothing()),
            },
            _ => return Ok(nothing()),
        }
    }
    let accept = accept_of(headers);
    let (log, id, key) = (Arc::clone(site.publisher.log()), set.published.id, iri.clone());
    let find = move || log.resource(id, &key).map_err(io::Error::other);
    let Some(row) = blocking(find).await? else { return Ok(nothing()) };
    let length = row.state.length.unwrap_or_default();
    let memory = if length >= LARGE { site.memory.take(length * MEMORY).await } else { None };
    let (site_read, served) = (Arc::clone(site), Arc::clone(set));
    let conditions = headers.clone();
    let read = move || -> io::Result<Result<Found, Answer>> {
        let _memory = memory;
        let (set, publisher) = (&served.published, &site_read.publisher);
        let Some(entity) = Entity::read(&**publisher.log(), set, &iri)? else {
            return Ok(Err(nothing()));
        };
        let forms = entity.forms();
        let form = if let Some(form) = named {
            forms.contains(&form).then_some(form)
        } else {
            let offered: Vec<_> = forms.iter().map(|form| form.media_type()).collect();
            abreast_rdf::choose(accept.as_deref(), &offered).map(|chosen| forms[chosen])
        };
        let Some(form) = form else { return Ok(Err(not_acceptable(&forms))) };
        let (iri, state) = (entity.iri.clone(), entity.state.clone());
        let bytes = entity.render(publisher, set, form, &reader)?;
        let tag = format!("\"{}\"", tag_of_bytes(form.media_type(), &bytes));
        let length = bytes.len() as u64;
        let is_sent = matches!(judge(&conditions, &tag, None, true), Precondition::Send);
        let body = if is_sent { publisher.body(bytes)? } else { Body::Memory(bytes::Bytes::new()) };
        Ok(Ok(Found { iri, state, form, tag, length, body, forms }))
    };
    let found = match blocking(read).await {
        Ok(Ok(found)) => found,
        Ok(Err(refusal)) => return Ok(refusal),
        Err(error) if error.kind() == io::ErrorKind::QuotaExceeded => {
            return Ok(try_later(&error.to_string(), 5));
        }
        Err(error) => return Err(error),
    };
    Ok(represent(site, set, found)?.answer(method, headers))
}

/// URL of an entity whose IRI is this address of the server, for a redirect to its description.
pub(crate) async fn at_its_iri(site: &Arc<Site>, path: &str) -> io::Result<Option<String>> {
    let base = site.publisher.urls().base();
    let Some((_, rest)) = base.split_once("://") else { return Ok(None) };
    // A server behind TLS often has entities whose IRIs are older.
    let iris = ["https", "http"].map(|scheme| format!("{scheme}://{rest}{path}"));
    let site = Arc::clone(site);
    blocking(move || {
        let log = site.publisher.log();
        for set in site.publisher.sets() {
            let is_here = |iri: &&String| {
                set.urls.namespace().is_some_and(|namespace| iri.starts_with(namespace))
            };
            for iri in iris.iter().filter(is_here) {
                if log.resource(set.id, iri).map_err(io::Error::other)?.is_some() {
                    return Ok(Some(set.urls.naming().uri(iri)));
                }
            }
        }
        Ok(None)
    })
    .await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

/// A found entity in one form.
struct Found {
    iri: String,
    state: abreast_core::State,
    form: Form,
    tag: String,
    length: u64,
    /// Empty if the body is not sent.
    body: Body,
    forms: Vec<Form>,
}

fn represent(site: &Site, set: &ServedSet, found: Found) -> io::Result<Representation> {
    let Found { iri, state, form, tag, length, body, forms } = found;
    let address = set.published.urls.naming().uri(&iri);
    let mut more = vec![(LINK, set.link()), (CACHE_CONTROL, HeaderValue::from_static("no-cache"))];
    // Descriptions come from other authors: isolate them from this origin.
    if form == Form::Page {
        more.push((VARY, HeaderValue::from_static("accept, accept-language")));
        more.extend(policy_of(&site.publisher));
    } else {
        more.push((VARY, HeaderValue::from_static("accept")));
        more.push((
            CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("default-src 'none'; sandbox"),
        ));
    }
    let mut links: Vec<String> =
        state.links.iter().map(|link| format!("<{}>; rel=\"{}\"", link.target, link.rel)).collect();
    links.extend(forms.iter().filter(|other| **other != form).map(|other| {
        format!(
            "<{address}?syntax={}>; rel=\"alternate\"; type=\"{}\"",
            other.name(),
            other.media_type()
        )
    }));
    more.extend(links.iter().filter_map(|link| Some((LINK, HeaderValue::from_str(link).ok()?))));
    Ok(Representation {
        length,
        content: Content::of(&body)?,
        tag,
        modified: Some(state.modified.as_seconds()),
        content_type: HeaderValue::from_static(form.content_type()),
        dated: Dated::Coarse,
        more,
    })
}

fn form_of(name: &str) -> Option<Form> {
    Form::ALL.into_iter().find(|form| form.name() == name)
}

fn nothing() -> Answer {
    problem(StatusCode::NOT_FOUND, "there is no such entity")
}

fn not_acceptable(forms: &[Form]) -> Answer {
    let offered: Vec<_> = forms.iter().map(|form| form.media_type()).collect();
    let mut answer = problem(
        StatusCode::NOT_ACCEPTABLE,
        &format!("the entity is offered as {} only", offered.join(", ")),
    );
    answer.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    answer
}
