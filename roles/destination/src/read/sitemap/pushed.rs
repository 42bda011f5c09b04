//! Pushed documents of the Sitemap family, read strictly.

use super::document::is_zoneless;
use abreast_resourcesync::sitemap::{Limits, Parser, Step, Tolerance, Version};

/// Reads a pushed document, strictly: for anything odd the changes are requested.
pub(crate) fn read_strictly<V: Version>(
    bytes: &[u8],
    name: &str,
) -> Result<(V::Head, Vec<V::Entry>), String> {
    let mut parser = Parser::<V>::with_tolerance(Limits::default(), Tolerance::Usual);
    parser.feed(bytes);
    parser.finish();
    let (mut entry, mut entries) = (V::Entry::default(), Vec::new());
    loop {
        let step = parser.next(&mut entry);
        match step.map_err(|fault| format!("{name} cannot be read: {fault}"))? {
            Step::NeedInput | Step::End => break,
            Step::Head => {}
            Step::Entry => entries.push(std::mem::take(&mut entry)),
        }
    }
    let Some(head) = parser.head() else { return Err(odd(name, "it is empty")) };
    if parser.skipped() > 0 || is_zoneless(parser.findings()) {
        let what = "it has entries that cannot be understood, or times without a zone";
        return Err(odd(name, what));
    }
    Ok((head.clone(), entries))
}

/// Why a pushed document is not used.
pub(crate) fn odd(name: &str, what: &str) -> String {
    format!("{name} is not as it should be: {what}")
}
