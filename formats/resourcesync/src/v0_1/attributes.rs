//! Attributes of `xhtml:link` and `xhtml:meta`, and attributes with the prefix of ResourceSync.

use super::{CHANGE_SET, Link, Meta};
use crate::sitemap::{Fault, MAX_VALUE_LENGTH, Notes, StringPool, checked};
use abreast_webtypes::MAX_URI_LENGTH;
use abreast_webtypes::xml::{Element, Ns};
use std::borrow::Cow;

/// Namespace of ResourceSync elements and attributes.
pub(super) const RS: Ns = Ns::known(1);

/// An attribute of ResourceSync.
///
/// Lenient: the attribute is accepted without its prefix too, because the elements do not have
/// another attribute with the same name.
pub(super) fn rs_attribute<'a>(
    element: &Element<'a>,
    name: &str,
    notes: &mut Notes,
) -> Option<Cow<'a, str>> {
    let right = element.attributes().find(|of| of.ns() == RS && of.local() == name);
    if let Some(attribute) = right {
        return Some(attribute.value());
    }
    let value = element.attribute(name)?;
    notes.add("rs.prefix", no_prefix(name));
    Some(value)
}

fn no_prefix(name: &str) -> String {
    format!("attribute `{name}` has no prefix; expected `rs:{name}`")
}

/// Reads an `xhtml:link`; `None` if it does not have a target, or has neither relation nor
/// protocol.
pub(super) fn read_link(
    element: &Element<'_>,
    spare: &mut StringPool,
    notes: &mut Notes,
) -> Result<Option<Link>, Fault> {
    let mut link = Link::default();
    for attribute in element.attributes() {
        let (ns, name) = (attribute.ns(), attribute.local());
        if ns != RS && ns != Ns::NONE {
            continue;
        }
        let value = attribute.value();
        let mut text = |most| checked(name, &value, most, spare);
        match (name.as_bytes(), ns == RS) {
            (b"rel", false) => link.rel = text(MAX_URI_LENGTH)?,
            (b"href", false) => link.href = text(MAX_URI_LENGTH)?,
            (b"title", false) => link.title = Some(text(MAX_VALUE_LENGTH)?),
            (b"type", false) => link.media_type = Some(text(MAX_VALUE_LENGTH)?),
            (b"protocol", true) => link.protocol = Some(text(MAX_URI_LENGTH)?),
            (b"pubsubnode", true) => link.pubsub_node = Some(text(MAX_VALUE_LENGTH)?),
            (b"protocol", false) => {
                if link.protocol.is_none() {
                    link.protocol = Some(text(MAX_URI_LENGTH)?);
                }
                notes.add("rs.prefix", no_prefix(name));
            }
            (b"pubsubnode", false) => {
                if link.pubsub_node.is_none() {
                    link.pubsub_node = Some(text(MAX_VALUE_LENGTH)?);
                }
                notes.add("rs.prefix", no_prefix(name));
            }
            _ => {}
        }
    }
    // Another registered name of the same relation type.
    if link.has_rel("previous") && !link.has_rel("prev") {
        notes.add("rs.previous", "relation type `previous`; expected `prev`".to_owned());
        link.rel.push_str(" prev");
    }
    if link.href.is_empty() && link.has_rel("prev") && link.has_rel(CHANGE_SET) {
        // If this link were ignored, the document would be read as a Sitemap, or as the first
        // change set.
        return Err(Fault::new("rs.link", "a link to a previous change set without `href`"));
    }
    if link.href.is_empty() || (link.rel.is_empty() && link.protocol.is_none()) {
        let message =
            "an `xhtml:link` without `href`, or without `rel` and `rs:protocol`; left out";
        notes.add("rs.link", message.to_owned());
        return Ok(None);
    }
    Ok(Some(link))
}

/// Reads an `xhtml:meta`; `None` without name or content.
pub(super) fn read_meta(
    element: &Element<'_>,
    spare: &mut StringPool,
    notes: &mut Notes,
) -> Result<Option<Meta>, Fault> {
    let mut text = |name| {
        let value = element.attribute(name).unwrap_or_default();
        checked(name, &value, MAX_VALUE_LENGTH, spare)
    };
    let meta = Meta { name: text("name")?, content: text("content")? };
    if meta.name.is_empty() || meta.content.is_empty() {
        let message = "an `xhtml:meta` without `name` or `content`; left out";
        notes.add("rs.meta", message.to_owned());
        return Ok(None);
    }
    Ok(Some(meta))
}
