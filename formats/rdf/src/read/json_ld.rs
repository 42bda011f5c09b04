//! JSON-LD, with the given contexts only.

use crate::read::contexts::Contexts;
use crate::read::error::ReadError;
use crate::read::json_ld_base::{NO_BASE, NO_BASE_SCHEME, is_relative, relative, shown};
use crate::read::json_ld_dropped::examine;
use crate::read::json_memory;
use crate::read::nesting::Brackets;
use crate::read::options::{ReadLimits, ReadOptions, Visit};
use crate::read::term_chains::{self, Terms};
use abreast_webtypes::SyntaxError;
use memchr::{memchr_iter, memmem, memrchr};
use oxjsonld::{JsonLdErrorCode, JsonLdParser, JsonLdRemoteDocument, JsonLdSyntaxError};
use std::io::Read;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Deepest nesting of brackets, also if the options allow more.
const MAX_DEPTH: usize = 128;

/// Bytes of all keys and values if each was as long as the longest term of the contexts: the parser
/// has the keys and values of an object in memory.
const MAX_EXPANDED: usize = 64 << 20;
const SIZE_HELP: &str = "split it, write it as an array of nodes at the top, or publish N-Triples";

const BASE_HELP: &str = "write it in full, or state `@base` in `@context`";

const CONTEXT_IN_FULL_HELP: &str =
    "write the URL of the context in full, or give the document a base IRI";
const CONTEXT_HELP: &str = "store the context in a file, and name it: `--context URL=FILE`; or copy its terms into `@context` of the document";

const CONTEXT_WRONG_HELP: &str = "correct the context";

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
        // The sizes of all contexts are counted once for all unknown IRIs.
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
    let loaded = Loaded::default();
    let parse = |is_lenient: bool| {
        let parser = JsonLdParser::new().with_base_iri(base.clone());
        let parser =
            parser.map_err(|error| ReadError::new("rdf.iri", (0, 0), error.to_string(), None))?;
        let parser = if is_lenient { parser.lenient() } else { parser };
        let (contexts, loaded) = (options.contexts.clone(), loaded.clone());
        Ok::<_, ReadError>(
            parser
                .for_slice(&document)
                .with_load_document_callback(move |iri, _| loaded.load(iri, &contexts)),
        )
    };
    let fault = |error: &JsonLdSyntaxError| fault(error, &loaded, &document);
    let allowed = options.limits.expansion.allowed(document.len() as u64);
    let mut examined = match examine(parse(true)?, allowed, options.left_out.as_ref()) {
        Ok(examined) => examined,
        // The help of this error is useful only if the document does not have another fault.
        Err(invalid) => {
            let mut others = parse(false)?.filter_map(Result::err);
            let other = others.find(|error| !is_about_datatype(error));
            return Err(other.map_or(invalid, |error| fault(&error)));
        }
    };
    for quad in parse(false)? {
        let quad = match quad {
            Ok(quad) => quad,
            // The fault was found when the document was examined.
            Err(error) if examined.is_whole && is_about_datatype(&error) => continue,
            Err(error) => return Err(fault(&error)),
        };
        if !has_base && let Some(iri) = relative(quad.as_ref()) {
            if options.left_out.is_some() {
                continue;
            }
            let place = memmem::find(&document, format!("\"{iri}\"").as_bytes())
                .map_or((0, 0), |at| place(&document[..at]));
            return Err(ReadError::new("rdf.iri", place, is_relative(iri), Some(BASE_HELP)));
        }
        if examined.tags.visit(quad.as_ref(), visit).is_break() {
            break;
        }
    }
    Ok(())
}

/// Whether the error is an invalid datatype: the parser then leaves its statement out and
/// continues.
fn is_about_datatype(error: &JsonLdSyntaxError) -> bool {
    matches!(error.code(), Some(JsonLdErrorCode::InvalidTypedValue))
        && error.to_string().contains("must be an IRI")
}

/// The contexts that a document loads. Clones share the list.
#[derive(Clone, Default)]
struct Loaded(Arc<Mutex<LoadedContexts>>);

#[derive(Default)]
struct LoadedContexts {
    last: String,
    /// Whether the last context cannot be used.
    is_unusable: bool,
    /// The fault of the context; `None` if the context was not given.
    fault: Option<SyntaxError>,
}

impl Loaded {
    fn load(
        &self,
        iri: &str,
        contexts: &Contexts,
    ) -> Result<JsonLdRemoteDocument, Box<dyn std::error::Error + Send + Sync>> {
        let fault = contexts.fault(iri).cloned();
        let context = contexts.get(iri).filter(|_| fault.is_none());
        let last = iri.to_owned();
        *self.lock() = LoadedContexts { last, is_unusable: context.is_none(), fault };
        let document = context.ok_or("the context cannot be used")?.as_bytes().to_vec();
        Ok(JsonLdRemoteDocument { document, document_url: iri.to_owned() })
    }

    fn lock(&self) -> MutexGuard<'_, LoadedContexts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fault(error: &JsonLdSyntaxError, loaded: &Loaded, document: &[u8]) -> ReadError {
    let loaded = loaded.lock();
    let iri = shown(&loaded.last);
    if let Some(fault) = &loaded.fault {
        let message = format!("the context `{iri}` cannot be used: {}", fault.message());
        return ReadError::new(fault.code(), (0, 0), message, Some(CONTEXT_WRONG_HELP));
    }
    if loaded.is_unusable {
        let place =
            memmem::find(document, iri.as_bytes()).map_or((0, 0), |at| place(&document[..at]));
        let (message, help) = if loaded.last.starts_with(NO_BASE_SCHEME) {
            let message = format!("the context `{iri}` is relative, and there is no base");
            (message, CONTEXT_IN_FULL_HELP)
        } else {
            let message = format!("the context `{iri}` was not given, and none is ever fetched");
            (message, CONTEXT_HELP)
        };
        return ReadError::new("jsonld.context", place, message, Some(help));
    }
    if matches!(error.code(), Some(JsonLdErrorCode::ContextOverflow)) {
        let message = format!(
            "the context `{iri}` refers to itself, or it is one of more than 8 that lead to each other"
        );
        return ReadError::new("jsonld.context", (0, 0), message, Some(CONTEXT_WRONG_HELP));
    }
    let place = error
        .location()
        .map_or((0, 0), |location| (location.start.line + 1, location.start.column + 1));
    let message = shown(&error.to_string());
    // The keys of objects are sorted before, but the key of a type map is after the `@id` of its
    // node.
    let is_type_map = message.starts_with(TYPE_LATE);
    ReadError::new("rdf.syntax", place, message, is_type_map.then_some(TYPE_MAP_HELP))
}

fn place(before: &[u8]) -> (u64, u64) {
    let start = memrchr(b'\n', before).map_or(0, |at| at + 1);
    let column = String::from_utf8_lossy(&before[start..]).chars().count() as u64 + 1;
    (memchr_iter(b'\n', before).count() as u64 + 1, column)
}
