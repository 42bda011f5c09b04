//! Contexts of JSON-LD that are given as files.

use abreast_rdf::Contexts;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

/// Most bytes of a context.
const CONTEXT_MAX: u64 = 8 << 20;

/// A context of JSON-LD.
#[derive(Clone, Debug)]
pub(crate) struct JsonLdContext {
    pub(crate) url: String,
    pub(crate) document: Arc<str>,
}

/// Reads a context: `URL=FILE`.
///
/// # Errors
/// The text does not have this form, or the file has no usable context.
pub(crate) fn context(text: &str) -> Result<JsonLdContext, String> {
    let all = text.match_indices('=').map(|(at, _)| (&text[..at], &text[at + 1..]));
    let mut all = all.filter(|(url, file)| url.contains(':') && !file.is_empty());
    // URLs and file names may contain `=` as well.
    let named = all.clone().find(|(_, file)| Path::new(file).is_file());
    let (url, file) = named.or_else(|| all.next_back()).ok_or("expected URL=FILE")?;
    let read = || -> std::io::Result<String> {
        let mut document = String::new();
        File::open(file)?.take(CONTEXT_MAX + 1).read_to_string(&mut document)?;
        Ok(document)
    };
    let document = read().map_err(|error| format!("cannot read `{file}`: {error}"))?;
    if document.len() as u64 > CONTEXT_MAX {
        return Err(format!("`{file}` is longer than {CONTEXT_MAX} bytes"));
    }
    let json: serde_json::Value = serde_json::from_str(&document)
        .map_err(|error| format!("`{file}` is not JSON: {error}"))?;
    if json.get("@context").is_none() {
        return Err(format!("`{file}` has no `@context`"));
    }
    Contexts::check(&document).map_err(|error| format!("`{file}` cannot be used: {error}"))?;
    Ok(JsonLdContext { url: url.to_owned(), document: document.into() })
}

/// Adds the given contexts to the bundled ones. A given context replaces a bundled context with the same URL.
pub(crate) fn contexts(bundled: Contexts, given: &[JsonLdContext]) -> Contexts {
    let with = |contexts: Contexts, context: &JsonLdContext| {
        contexts.with(&context.url, &context.document)
    };
    given.iter().fold(bundled, with)
}
