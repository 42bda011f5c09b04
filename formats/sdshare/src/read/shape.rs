//! Checks of elements and links that would otherwise be ignored, although without them a feed has
//! fewer entries: elements in a misspelt namespace, and misplaced entries.

use crate::Relation;
use crate::feed::relation::{ATOM_NAMESPACE, SDSHARE_NAMESPACE};
use abreast_webtypes::excerpt;
use abreast_webtypes::xml::Element;

/// A reason to refuse the whole feed.
pub(crate) type Refusal = (&'static str, String, Option<&'static str>);

/// The elements of Atom that are read.
const OF_ATOM: [&str; 5] = ["entry", "link", "updated", "category", "id"];
/// Elements for the IRI of a resource, in 1.0 and in older drafts.
const OF_SDSHARE: [&str; 3] = ["resource", "ResourceUri", "TopicSI"];
const HELP: &str = "the server has to correct its feed: read without this, it would seem shorter";

/// Checks an ignored child of a feed or an entry.
///
/// # Errors
/// It is an entry, or a known element in a wrong namespace.
pub(crate) fn check_ignored(element: &Element<'_>, in_feed: bool) -> Result<(), Refusal> {
    let (local, namespace) = (element.local(), element.namespace());
    let is_entry = local.eq_ignore_ascii_case("entry");
    if is_entry && namespace == ATOM_NAMESPACE {
        return Err(nested(element));
    }
    if OF_ATOM.contains(&local)
        && namespace != ATOM_NAMESPACE
        && (in_feed && is_entry || namespace.is_empty() || mentions(namespace, "w3.org/2005/atom"))
    {
        return Err(wrong_namespace("atom.namespace", element, ATOM_NAMESPACE));
    }
    if OF_SDSHARE.contains(&local)
        && (["", ATOM_NAMESPACE].contains(&namespace) || mentions(namespace, "sdshare"))
    {
        return Err(wrong_namespace("sdshare.namespace", element, SDSHARE_NAMESPACE));
    }
    Ok(())
}

/// The fault of an entry inside another element than the feed.
pub(crate) fn nested(element: &Element<'_>) -> Refusal {
    let local = excerpt(element.local());
    ("atom.nested", format!("`{local}` inside another element than the feed"), Some(HELP))
}

fn wrong_namespace(code: &'static str, element: &Element<'_>, expected: &str) -> Refusal {
    let message = format!(
        "`{}` is in {}; expected `{expected}`",
        excerpt(element.local()),
        name_of(element.namespace())
    );
    (code, message, Some(HELP))
}

/// A namespace as messages show it.
pub(crate) fn name_of(namespace: &str) -> String {
    match namespace {
        "" => "no namespace".to_owned(),
        namespace => format!("the namespace `{}`", excerpt(namespace)),
    }
}

fn mentions(namespace: &str, mark: &str) -> bool {
    namespace.to_ascii_lowercase().contains(mark)
}

/// Checks the relation of a link, as it is written.
///
/// # Errors
/// It is a relation of SDShare in a wrong namespace.
pub(crate) fn check_relation(relation: &Relation) -> Result<(), Refusal> {
    let Relation::Other(written) = relation else { return Ok(()) };
    let Some((namespace, name)) = written.rsplit_once(['/', '#']) else { return Ok(()) };
    match Relation::of_name(name) {
        Some(meant) if mentions(namespace, "sdshare") => {
            let message = format!("`rel` is \"{}\"; expected \"{meant}\"", excerpt(written));
            Err(("sdshare.namespace", message, Some(HELP)))
        }
        _ => Ok(()),
    }
}
