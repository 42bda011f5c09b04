//! Checks of elements and attributes that would otherwise be ignored, although without them a list
//! has fewer entries, or a change has another meaning: elements in a misspelt namespace, and
//! misplaced entries.

use super::{Fault, RS_NAMESPACE, SITEMAP_NAMESPACE, SM};
use abreast_webtypes::excerpt;
use abreast_webtypes::xml::{Attribute, Element, Ns};

/// Namespace of `link` and `meta` in documents of 0.1.
pub(crate) const XHTML_NAMESPACE: &str = "http://www.w3.org/1999/xhtml";
/// Part of the relation types that occurs only in documents of 0.1.
const CHANGE_SET: &str = "http://www.openarchives.org/rs/changeset";

/// Parts of a URI by which a misspelt namespace is recognised, and the right namespaces.
const MARKS: [(&str, &str); 3] = [
    ("openarchives.org/rs", RS_NAMESPACE),
    ("sitemaps.org/schemas/sitemap", SITEMAP_NAMESPACE),
    ("w3.org/1999/xhtml", XHTML_NAMESPACE),
];
const HELP: &str = "the Source has to correct its document: read without this, a list would seem \
                    shorter, or a list of changes a list of all resources";

/// The right namespace for a misspelt one.
fn expected(found: &str) -> Option<&'static str> {
    // Links in the namespace of XHTML are usual.
    if MARKS.iter().any(|(_, namespace)| *namespace == found) {
        return None;
    }
    let lower = found.to_ascii_lowercase();
    MARKS.into_iter().find(|(mark, _)| lower.contains(mark)).map(|(_, namespace)| namespace)
}

/// The fault of an element or attribute in a wrong namespace.
fn wrong_namespace(what: &str, name: &str, found: &str, expected: &str) -> Fault {
    let found = match found {
        "" => "no namespace".to_owned(),
        found => format!("the namespace `{}`", excerpt(found)),
    };
    let message = format!("{what}`{}` is in {found}; expected `{expected}`", excerpt(name));
    Fault::new("rs.namespace", message).with_help(HELP)
}

fn fault_of(element: &Element<'_>, expected: &str) -> Fault {
    wrong_namespace("", element.local(), element.namespace(), expected)
}

/// The fault of a root that is not a Sitemap's.
pub(super) fn wrong_root(element: &Element<'_>) -> Fault {
    let fault = match element.local() {
        "urlset" | "sitemapindex" => fault_of(element, SITEMAP_NAMESPACE),
        local => {
            let local = excerpt(local);
            let message = format!("the root is `{local}`; expected `urlset` or `sitemapindex`");
            Fault::new("rs.root", message)
        }
    };
    Fault { code: "rs.root", ..fault }
}

/// A change set of 0.1 instead of another document: read as a Sitemap, it resembles a list of all
/// resources. Only change sets have a link to a previous document [rs-0.1 §6.1].
pub(crate) fn change_set(why: &str) -> Fault {
    let message = format!("{why}: this is a change set of ResourceSync 0.1");
    Fault::new("rs.version", message)
}

/// Checks an ignored child of the root.
///
/// # Errors
/// It shows the kind of the document, or is an entry, in a wrong namespace.
pub(crate) fn check_in_head(element: &Element<'_>) -> Result<(), Fault> {
    if is_entry(element.local()) {
        return Err(fault_of(element, SITEMAP_NAMESPACE));
    }
    if has(element, "capability") {
        return Err(misspelt_md(element));
    }
    let rel = element.attribute("rel").filter(|_| element.local() == "link").unwrap_or_default();
    let is_rel = |one| rel.split_ascii_whitespace().any(|rel| rel.eq_ignore_ascii_case(one));
    match (is_rel(CHANGE_SET), element.namespace()) {
        (true, XHTML_NAMESPACE) if is_rel("prev") => Err(change_set("it links to a previous one")),
        (true, XHTML_NAMESPACE) => Ok(()),
        (true, _) => Err(fault_of(element, XHTML_NAMESPACE)),
        (false, _) => check_namespace(element),
    }
}

/// Checks an ignored child of an entry.
///
/// # Errors
/// It is an entry itself, or a change or metadata in a wrong namespace.
pub(crate) fn check_in_entry(element: &Element<'_>) -> Result<(), Fault> {
    let is_md = || element.local().eq_ignore_ascii_case("md");
    let is_metadata = || ["capability", "change", "hash"].iter().any(|name| has(element, name));
    if is_md() && is_metadata() {
        return Err(misspelt_md(element));
    }
    check_deeper(element)
}

/// Checks an element inside an ignored one.
///
/// # Errors
/// It is an entry.
pub(super) fn check_deeper(element: &Element<'_>) -> Result<(), Fault> {
    if is_entry(element.local())
        && (element.ns() == SM
            || element.ns() == Ns::NONE
            || expected(element.namespace()) == Some(SITEMAP_NAMESPACE))
    {
        let local = excerpt(element.local());
        let message = format!("`{local}` inside another element than the root");
        return Err(Fault::new("rs.nested", message).with_help(HELP));
    }
    check_namespace(element)
}

/// Whether an element has an attribute with this name in any namespace.
fn has(element: &Element<'_>, name: &str) -> bool {
    element.attributes().any(|of| of.local() == name)
}

fn check_namespace(element: &Element<'_>) -> Result<(), Fault> {
    // Other names need no check, so ordinary documents with other vocabularies are read fast.
    const NAMES: [&str; 11] = [
        "md",
        "ln",
        "lastmod",
        "expires",
        "fixity",
        "size",
        "mimetype",
        "contentencoding",
        "path",
        "link",
        "meta",
    ];
    if element.ns() == Ns::FOREIGN
        && NAMES.contains(&element.local())
        && let Some(expected) = expected(element.namespace())
    {
        return Err(fault_of(element, expected));
    }
    Ok(())
}

/// Checks an element for an attribute of ResourceSync in a wrong namespace.
///
/// # Errors
/// It has `type` with a value of 0.1, or the attribute in a misspelt namespace.
pub(crate) fn check_attribute(element: &Element<'_>, name: &str) -> Result<(), Fault> {
    let is_wrong = |of: &Attribute<'_>| {
        let is_value = || {
            let value = of.value();
            let value = value.trim_ascii();
            ["changeset", "created", "updated"].iter().any(|own| value.eq_ignore_ascii_case(own))
        };
        of.ns() == Ns::FOREIGN
            && of.local() == name
            && (expected(of.namespace()) == Some(RS_NAMESPACE) || name == "type" && is_value())
    };
    match element.attributes().find(is_wrong) {
        Some(of) => {
            Err(wrong_namespace("the attribute ", of.local(), of.namespace(), RS_NAMESPACE))
        }
        None => Ok(()),
    }
}

/// The fault of metadata in an element other than `rs:md`.
fn misspelt_md(element: &Element<'_>) -> Fault {
    if element.namespace() != RS_NAMESPACE {
        return fault_of(element, RS_NAMESPACE);
    }
    let message = format!("`{}` has what `md` should have", excerpt(element.local()));
    Fault::new("rs.namespace", message).with_help(HELP)
}

/// Whether an element is an entry of a list, perhaps in other letter case.
pub(super) fn is_entry(local: &str) -> bool {
    ["url", "sitemap"].iter().any(|name| local.eq_ignore_ascii_case(name))
}
