//! JSON-LD, with the contexts that were given and no others.

use crate::contexts::Contexts;
use crate::json_ld_dropped::NO_BASE;
use crate::nesting::Brackets;
use crate::read_error::ReadError;
use crate::read_options::{ReadLimits, ReadOptions, Visit};
use crate::term_chains::{self, Terms};
use crate::{json_ld_dropped, json_memory};
use abreast_webtypes::{SyntaxError, excerpt};
use memchr::{memchr_iter, memmem, memrchr};
use oxjsonld::{JsonLdParser, JsonLdRemoteDocument, JsonLdSyntaxError};
use oxrdf::{GraphNameRef, NamedNodeRef, NamedOrBlankNodeRef, QuadRef, TermRef};
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

/// Brackets inside each other, whatever the options allow.
const MAX_DEPTH: usize = 128;

/// Bytes of all keys and values if each was as long as the longest term of the contexts: the parser
/// holds those of an object in full.
const MAX_EXPANDED: usize = 64 << 20;
const SIZE_HELP: &str = "split it, write it as an array of nodes at the top, or publish N-Triples";

const BASE_HELP: &str = "write it in full, or state `@base` in `@context`";

const CONTEXT_HELP: &str = "store the context in a file, and name it: `--context URL=FILE`; or copy its terms into `@context` of the document";

const TYPE_LATE: &str = "@type must be the first key";
const TYPE_MAP_HELP: &str = "maps of types (`\"@container\": \"@type\"`) are read only if their nodes have no `@id`; state `@type` in each node";

pub(crate) fn read(
    input: &mut dyn Read,
    options: &ReadOptions,
    visit: &mut Visit<'_>,
) -> Result<(), ReadError> {
    let limit = options.limits.json_ld_length;
    let mut document = Vec::new();
    input.take(limit as u64 + 1).read_to_end(&mut document)?;
    if document.len() > limit {
        let message = format!("the JSON-LD document is longer than {limit} bytes");
        return Err(ReadError::new("rdf.size", (1, 1), message, Some(SIZE_HELP)));
    }
    let needed = json_memory::needed(&document);
    if needed > options.limits.json_ld_memory {
        let message = format!(
            "the JSON-LD document would take about {} MiB of memory, more than {}",
            needed >> 20,
            options.limits.json_ld_memory >> 20
        );
        return Err(ReadError::new("rdf.size", (1, 1), message, Some(SIZE_HELP)));
    }
    // The parser follows nesting and chains of terms by recursion.
    let depth = options.limits.depth.min(MAX_DEPTH);
    Brackets::json(ReadLimits { depth, ..options.limits }).feed(&mut document)?;
    let base = options.base_iri()?;
    let mut context = Terms::default();
    let mut unknown = false;
    let mut add = |iri: &str| {
        // Once is enough for all that are not known.
        if options.contexts.get(iri).is_some() || !std::mem::replace(&mut unknown, true) {
            context = context.max(options.contexts.terms(iri));
        }
    };
    let terms = term_chains::check(&document, &mut add)?;
    let base_length = base.as_ref().map_or(0, |base| base.as_str().len());
    if terms.expanded(context, base_length) > MAX_EXPANDED {
        let message = format!("its terms may have more than {MAX_EXPANDED} bytes in full");
        return Err(ReadError::new("rdf.size", (0, 0), message, Some(SIZE_HELP)));
    }
    let has_base = base.is_some();
    let base = base.map_or_else(|| NO_BASE.to_owned(), oxiri::Iri::into_inner);
    let unusable = Unusable::default();
    let parse = |is_lenient: bool| {
        let parser = JsonLdParser::new().with_base_iri(base.clone());
        let parser =
            parser.map_err(|error| ReadError::new("rdf.iri", (0, 0), error.to_string(), None))?;
        let parser = if is_lenient { parser.lenient() } else { parser };
        let (contexts, unusable) = (options.contexts.clone(), Arc::clone(&unusable));
        Ok::<_, ReadError>(
            parser
                .for_slice(&document)
                .with_load_document_callback(move |iri, _| load(iri, &contexts, &unusable)),
        )
    };
    let allowed = options.limits.expansion.allowed(document.len() as u64);
    let mut tags = json_ld_dropped::examine(parse(true)?, allowed, options.left_out.as_ref())?;
    for quad in parse(false)? {
        let quad = quad.map_err(|error| {
            let unusable = unusable.lock().unwrap_or_else(PoisonError::into_inner).take();
            fault(&error, unusable.as_ref(), &document)
        })?;
        if !has_base && let Some(iri) = relative(quad.as_ref()) {
            let place = memmem::find(&document, format!("\"{iri}\"").as_bytes())
                .map_or((0, 0), |at| place(&document[..at]));
            let message = format!("the IRI `{}` is relative, and there is no base", excerpt(iri));
            return Err(ReadError::new("rdf.iri", place, message, Some(BASE_HELP)));
        }
        if tags.visit(quad.as_ref(), visit).is_break() {
            break;
        }
    }
    Ok(())
}

/// A context that a document names and that cannot be used, with what is wrong with it, or nothing where it was not
/// given.
type Unusable = Arc<Mutex<Option<(String, Option<SyntaxError>)>>>;

fn load(
    iri: &str,
    contexts: &Contexts,
    unusable: &Unusable,
) -> Result<JsonLdRemoteDocument, Box<dyn std::error::Error + Send + Sync>> {
    let fault = contexts.fault(iri);
    let Some(context) = contexts.get(iri).filter(|_| fault.is_none()) else {
        let found = (iri.to_owned(), fault.cloned());
        *unusable.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        return Err("the context cannot be used".into());
    };
    Ok(JsonLdRemoteDocument { document: context.as_bytes().to_vec(), document_url: iri.to_owned() })
}

/// An IRI of a statement that was relative, as it was written in most cases.
fn relative(quad: QuadRef<'_>) -> Option<&str> {
    let subject = match quad.subject {
        NamedOrBlankNodeRef::NamedNode(node) => without_base(node),
        NamedOrBlankNodeRef::BlankNode(_) => None,
    };
    let object = match quad.object {
        TermRef::NamedNode(node) => without_base(node),
        TermRef::Literal(literal) => without_base(literal.datatype()),
        TermRef::BlankNode(_) => None,
    };
    let graph = match quad.graph_name {
        GraphNameRef::NamedNode(node) => without_base(node),
        _ => None,
    };
    subject.or_else(|| without_base(quad.predicate)).or(object).or(graph)
}

fn without_base(node: NamedNodeRef<'_>) -> Option<&str> {
    let rest = node.as_str().strip_prefix("abreast-no-base:")?;
    Some(rest.strip_prefix("//document/").unwrap_or(rest))
}

/// `unusable` is a context and what is wrong with it, or nothing where it was not given.
fn fault(
    error: &JsonLdSyntaxError,
    unusable: Option<&(String, Option<SyntaxError>)>,
    document: &[u8],
) -> ReadError {
    if let Some((iri, Some(fault))) = unusable {
        let message = format!("the context `{}` cannot be used: {}", excerpt(iri), fault.message());
        return ReadError::new(fault.code(), (0, 0), message, Some("correct the context"));
    }
    if let Some((iri, None)) = unusable {
        let shown: String = abreast_webtypes::visible(iri).chars().take(300).collect();
        let message = format!("the context `{shown}` was not given, and none is ever fetched");
        let place =
            memmem::find(document, iri.as_bytes()).map_or((0, 0), |at| place(&document[..at]));
        return ReadError::new("jsonld.context", place, message, Some(CONTEXT_HELP));
    }
    let place = error
        .location()
        .map_or((0, 0), |location| (location.start.line + 1, location.start.column + 1));
    let message: String = abreast_webtypes::visible(&error.to_string()).chars().take(300).collect();
    // Keys of an object are put in order, but the key of a type map comes after the `@id` of its node.
    let is_type_map = message.starts_with(TYPE_LATE);
    ReadError::new("rdf.syntax", place, message, is_type_map.then_some(TYPE_MAP_HELP))
}

fn place(before: &[u8]) -> (u64, u64) {
    let start = memrchr(b'\n', before).map_or(0, |at| at + 1);
    let column = String::from_utf8_lossy(&before[start..]).chars().count() as u64 + 1;
    (memchr_iter(b'\n', before).count() as u64 + 1, column)
}
