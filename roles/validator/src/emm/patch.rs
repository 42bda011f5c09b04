//! Checks of Entity Patches [emm-0.1 §4.2] and the RDF Patch in them [rdf-patch §Structure].

use crate::emm::item::{Item, PatchFacts, is_activity};
use crate::emm::judge::Judge;
use crate::emm::object::{Object, id, text_of, types};
use crate::fetch::is_url;
use crate::report::rules as r;
use abreast_rdf::{apply_entity_patch, is_skolem_iri};
use abreast_webtypes::excerpt;
use oxrdf::NamedOrBlankNode;
use rdf_patch::{AFTER, BEFORE, Change, ENTITY_PREV, Patch, ReadError, ReadOptions, SKOLEM};

/// Deviations that are reported for a patch.
const LENIENT_MAX: usize = 5;
/// Checks the document of a patch. `item` is the activity with the changes, if it is known.
pub(super) fn document(
    judge: &mut Judge<'_>,
    map: &Object,
    item: Option<&Item>,
) -> Option<PatchFacts> {
    let is_wrong = |found: Option<&str>| !found.is_some_and(is_url);
    if text_of(map, "type") != Some("rdf_patch") {
        judge.add(&r::EMM01_PATCH, "/type", || "it is not the string rdf_patch");
    }
    if is_wrong(id(map)) {
        judge.add(&r::EMM01_PATCH, "/id", || "it is not an HTTP(S) URI");
    }
    let part = map.get("partOf").and_then(serde_json::Value::as_object);
    let is_part = part.is_some_and(|part| {
        types(part).iter().any(|name| is_activity(name)) && !is_wrong(id(part))
    });
    if !is_part {
        judge.add(&r::EMM01_PATCH, "/partOf", || "it is not the `id` and `type` of an activity");
    }
    let Some(text) = text_of(map, "content") else {
        judge.add(&r::EMM01_PATCH, "/content", || "it is not a string with the patch");
        return None;
    };
    check(judge, text.as_bytes(), item, "/content")
}

/// Checks the text of an RDF Patch, and returns the facts in its header.
pub(super) fn check(
    judge: &mut Judge<'_>,
    text: &[u8],
    item: Option<&Item>,
    at: &str,
) -> Option<PatchFacts> {
    let place = |fault: &rdf_patch::Finding| {
        let text: String = fault.message().chars().take(200).collect();
        format!("line {} of the patch, column {}: {text}", fault.line(), fault.column())
    };
    let syntax = |error: &ReadError| match error.syntax() {
        Some(fault) => place(fault),
        None => error.to_string(),
    };
    let patch = match Patch::from_slice(text) {
        Ok(patch) => patch,
        Err(_) => match Patch::read(text, &ReadOptions::lenient()) {
            Ok((patch, found)) => {
                for fault in found.iter().take(LENIENT_MAX) {
                    judge.add(&r::PATCH_STRICT, at, || place(fault));
                }
                patch
            }
            Err(error) => {
                judge.add(&r::PATCH_SYNTAX, at, || syntax(&error));
                return None;
            }
        },
    };
    if let Some(entity) = item.and_then(|item| item.object.as_deref()) {
        if let Some(other) = stranger(&patch, entity) {
            let message = || format!("it changes {}, which is not the entity", excerpt(&other));
            judge.add(&r::PATCH_SUBJECT, at, message);
        } else if item.is_some_and(|item| matches!(&*item.kind, "Create" | "Add"))
            && patch.header.text(BEFORE).is_some()
            && let Err(error) = apply_entity_patch(entity, b"", &patch)
        {
            let error: String = error.to_string().chars().take(200).collect();
            judge.add(&r::PATCH_DIGEST, at, || format!("applied to nothing: {error}"));
        }
    }
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Some(PatchFacts {
        id: owned(patch.header.id()),
        prev: owned(patch.header.prev()),
        entity_prev: owned(patch.header.iri(ENTITY_PREV)),
        before: owned(patch.header.text(BEFORE)),
        after: owned(patch.header.text(AFTER)),
    })
}

/// The first subject in a patch that is neither the entity nor a blank node.
fn stranger(patch: &Patch, entity: &str) -> Option<String> {
    let skolem = patch.header.iri(SKOLEM);
    let is_own = |iri: &str| {
        iri == entity
            || iri.starts_with("_:")
            || is_skolem_iri(iri)
            || skolem.is_some_and(|skolem| iri.starts_with(skolem))
    };
    patch.transactions.iter().flatten().find_map(|change| match change {
        Change::Add(quad) | Change::Remove(quad) => match &quad.subject {
            NamedOrBlankNode::NamedNode(node) if !is_own(node.as_str()) => {
                Some(node.as_str().to_owned())
            }
            _ => None,
        },
        _ => None,
    })
}
