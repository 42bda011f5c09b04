//! The elements of 0.1, and the misprints of its examples [rs-0.1 §3.1].

use super::attributes::{RS, read_link, read_meta, rs_attribute};
use super::{CHANGE_SET, Change, Entry, Head, Link, Root};
use crate::sitemap::{
    Child, Fault, MAX_LINKS, MAX_VALUE_LENGTH, Notes, RS_NAMESPACE, SITEMAP_NAMESPACE, SM,
    SPEC_MAX_ENTRIES, StringPool, Version, XHTML_NAMESPACE, check_attribute, check_in_entry,
    check_in_head, checked, is_before, length, note_space, note_unknown, parse_datetime,
    parse_lastmod, too_many_links,
};
use abreast_webtypes::xml::{Element, Ns};
use abreast_webtypes::{Algorithm, MAX_URI_LENGTH, W3cDatetime, excerpt};

/// Most bytes of a document before compression [rs-0.1 §3.2].
pub const SPEC_MAX_BYTES: u64 = 10_000_000;

const XHTML: Ns = Ns::known(2);
const PUBSUB: Ns = Ns::known(3);
const PUBSUB_EVENT: Ns = Ns::known(4);
const JABBER: Ns = Ns::known(5);

/// The elements of ResourceSync 0.1, for the parser.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct V0_1 {
    /// `lastmod` of the current entry, with its type, and `expires`.
    lastmod: Option<W3cDatetime>,
    change: Option<Change>,
    expires: Option<W3cDatetime>,
    /// Whether the start tags of `lastmod` and `expires` were read.
    lastmod_read: bool,
    expires_read: bool,
}

/// A child of an entry whose text matters.
#[derive(Clone, Copy, Debug)]
pub enum Field {
    /// `lastmod`: time of a creation or update
    Lastmod,
    /// `expires`: time of a deletion
    Expires,
    /// `rs:fixity`, with its algorithm if it is known
    Fixity(Option<Algorithm>),
    /// `rs:size`: length of the content in bytes
    Size,
    /// `rs:mimetype`: media type of the content
    MediaType,
    /// `rs:contentencoding`: coding of the transferred content
    Encoding,
    /// `rs:path`: path in a dump
    Path,
}

impl Version for V0_1 {
    type Head = Head;
    type Entry = Entry;
    type Field = Field;

    const NAMESPACES: &'static [&'static str] = &[
        SITEMAP_NAMESPACE,
        RS_NAMESPACE,
        XHTML_NAMESPACE,
        "http://jabber.org/protocol/pubsub",
        "http://jabber.org/protocol/pubsub#event",
        "jabber:client",
    ];
    const REPAIRS: bool = true;
    const PREFIXES: &'static [(&'static str, &'static str)] =
        &[("rs", RS_NAMESPACE), ("xhtml", XHTML_NAMESPACE)];

    fn root(head: &mut Head) -> &mut Root {
        &mut head.root
    }

    fn root_of(head: &Head) -> Root {
        head.root
    }

    fn write_head(out: &mut Vec<u8>, head: &Head) {
        super::write_head(out, head);
    }

    fn write_entry(out: &mut Vec<u8>, root: Root, entry: &Entry) {
        super::write_entry(out, root, entry);
    }

    fn loc(entry: &mut Entry) -> &mut String {
        &mut entry.loc
    }

    fn line(entry: &mut Entry) -> &mut u64 {
        &mut entry.line
    }

    fn clear(entry: &mut Entry, spare: &mut StringPool) {
        spare.keep(entry.protocol.take());
        spare.keep(entry.media_type.take());
        spare.keep(entry.encoding.take());
        spare.keep(entry.path.take());
        for link in entry.links.drain(..) {
            spare.keep(Some(link.rel));
            spare.keep(Some(link.href));
            spare.keep(link.title);
        }
        for meta in entry.metas.drain(..) {
            spare.keep(Some(meta.name));
            spare.keep(Some(meta.content));
        }
        entry.clear();
    }

    fn code(field: Field) -> &'static str {
        match field {
            Field::Lastmod | Field::Expires => "rs.datetime",
            _ => "rs.value",
        }
    }

    fn start_root(
        &mut self,
        head: &mut Head,
        element: &Element<'_>,
        notes: &mut Notes,
    ) -> Result<(), Fault> {
        let Some(kind) = rs_attribute(element, "type", notes) else {
            return check_attribute(element, "type");
        };
        note_space("rs:type", &kind, notes);
        let kind = kind.trim_ascii();
        if !kind.eq_ignore_ascii_case("changeset") {
            let message = format!("`rs:type` is \"{}\"; expected \"changeset\"", excerpt(kind));
            return Err(Fault::new("rs.type", message)
                .with_help("taken for a Sitemap, a list of changes looks like a list of all"));
        }
        if kind != "changeset" {
            let message =
                format!("`rs:type` is \"{kind}\", not in the letters of the specification");
            notes.add("rs.type-case", message);
        }
        head.change_set = true;
        check_root(head)
    }

    /// Links and times of the document may follow its entries, because the specification does not
    /// define an order. They are added to the head, although the caller has it already.
    fn start_in_head(
        &mut self,
        head: &mut Head,
        element: &Element<'_>,
        late: bool,
        spare: &mut StringPool,
        notes: &mut Notes,
    ) -> Result<(), Fault> {
        let name = element.local();
        match (element.ns(), name) {
            (XHTML, "link" | "meta") => {}
            (RS, "md") => return Err(another_version()),
            _ => return check_in_head(element),
        }
        if late {
            let message = format!("`{name}` of the document comes behind its first entry");
            notes.add("rs.order", message);
        }
        if name == "link" {
            if head.links.len() == MAX_LINKS {
                return Err(too_many_links("xhtml:link"));
            }
            let link = read_link(element, spare, notes)?;
            if late && !head.change_set && link.as_ref().is_some_and(is_prev) {
                // The caller already got the entries as a list of resources.
                let message = "a link to a previous change set, behind the entries of a document without `rs:type`";
                return Err(Fault::new("rs.type", message)
                    .with_help("write `rs:type=\"changeset\"` on the root"));
            }
            head.links.extend(link);
            return Ok(());
        }
        if head.metas.len() == MAX_LINKS {
            return Err(too_many_links("xhtml:meta"));
        }
        let Some(meta) = read_meta(element, spare, notes)? else { return Ok(()) };
        if !meta.name.eq_ignore_ascii_case("DCTERMS.modified") {
            head.metas.push(meta);
        } else if head.modified.is_some() {
            notes.add("rs.repeated", "a second `DCTERMS.modified`; the first counts".to_owned());
        } else {
            match parse_datetime("DCTERMS.modified", &meta.content, notes) {
                Ok(modified) => head.modified = Some(modified),
                // The time is only recommended, so its absence does not matter.
                Err(fault) => notes.add("rs.modified", format!("{}; ignored", fault.message)),
            }
        }
        Ok(())
    }

    fn end_head(&mut self, head: &mut Head, notes: &mut Notes) -> Result<(), Fault> {
        if !head.change_set && head.root == Root::UrlSet && head.links.iter().any(is_prev) {
            // The attribute is optional for a change set, and a Sitemap must not have this link
            // [rs-0.1 §5.1].
            head.change_set = true;
            let message =
                "a document with a previous change set and without `rs:type`; read as a change set";
            notes.add("rs.type-missing", message.to_owned());
        }
        check_root(head)
    }

    fn start_entry(&mut self) {
        *self = Self::default();
    }

    fn start_in_entry(
        &mut self,
        entry: &mut Entry,
        element: &Element<'_>,
        spare: &mut StringPool,
        notes: &mut Notes,
    ) -> Result<Child<Field>, Fault> {
        let field = match (element.ns(), element.local().as_bytes()) {
            (SM, b"loc") => {
                if let Some(protocol) = rs_attribute(element, "protocol", notes) {
                    entry.protocol =
                        Some(checked("rs:protocol", &protocol, MAX_URI_LENGTH, spare)?);
                } else {
                    check_attribute(element, "protocol")?;
                }
                return Ok(Child::Loc);
            }
            (SM, b"lastmod") => {
                if std::mem::replace(&mut self.lastmod_read, true) {
                    return Err(Fault::new("rs.change", "a second `lastmod` in one entry"));
                }
                if let Some(kind) = rs_attribute(element, "type", notes) {
                    self.change = Some(change(&kind, notes)?);
                } else {
                    check_attribute(element, "type")?;
                }
                Field::Lastmod
            }
            (SM, b"expires") => {
                if std::mem::replace(&mut self.expires_read, true) {
                    return Err(Fault::new("rs.change", "a second `expires` in one entry"));
                }
                Field::Expires
            }
            (RS, b"fixity") => Field::Fixity(algorithm(element, notes)),
            (RS, b"size") => Field::Size,
            (RS, b"mimetype") => Field::MediaType,
            (RS, b"contentencoding") => Field::Encoding,
            (RS, b"path") => Field::Path,
            (RS, b"md") => return Err(another_version()),
            (XHTML, b"link") if entry.links.len() == MAX_LINKS => {
                return Err(too_many_links("xhtml:link"));
            }
            (XHTML, b"link") => {
                entry.links.extend(read_link(element, spare, notes)?);
                return Ok(Child::Other);
            }
            (XHTML, b"meta") if entry.metas.len() == MAX_LINKS => {
                return Err(too_many_links("xhtml:meta"));
            }
            (XHTML, b"meta") => {
                entry.metas.extend(read_meta(element, spare, notes)?);
                return Ok(Child::Other);
            }
            _ => return check_in_entry(element).map(|()| Child::Other),
        };
        Ok(Child::Text(field))
    }

    fn end_field(
        &mut self,
        field: Field,
        entry: &mut Entry,
        text: &str,
        spare: &mut StringPool,
        notes: &mut Notes,
    ) -> Result<(), Fault> {
        let mut once = |repeated: bool, name: &str| {
            if repeated {
                notes.add("rs.repeated", format!("a second `{name}`; the first counts"));
            } else if text.is_empty() {
                notes.add("rs.empty", format!("`{name}` is empty"));
            }
            !repeated && !text.is_empty()
        };
        match field {
            Field::Lastmod => self.lastmod = parse_lastmod(text, notes)?,
            Field::Expires => self.expires = Some(parse_datetime("expires", text, notes)?),
            Field::Fixity(algorithm) => read_fixity(entry, algorithm, text, notes),
            Field::Size => {
                if once(entry.size.is_some(), "rs:size") {
                    match length("rs:size", text) {
                        Ok(size) => entry.size = Some(size),
                        // A resource without size can be fetched: report the fault only.
                        Err(fault) => notes.add(fault.code, format!("{}; ignored", fault.message)),
                    }
                }
            }
            Field::MediaType => {
                if once(entry.media_type.is_some(), "rs:mimetype") {
                    entry.media_type = Some(checked("rs:mimetype", text, MAX_VALUE_LENGTH, spare)?);
                }
            }
            Field::Encoding => {
                if once(entry.encoding.is_some(), "rs:contentencoding") {
                    let read = checked("rs:contentencoding", text, MAX_VALUE_LENGTH, spare)?;
                    entry.encoding = Some(read);
                }
            }
            Field::Path => {
                if once(entry.path.is_some(), "rs:path") {
                    let relative = text.trim_start_matches('/');
                    if relative.len() < text.len() {
                        let message = format!("`rs:path` is \"{}\", not relative", excerpt(text));
                        notes.add("rs.path", message);
                    }
                    if !relative.is_empty() {
                        entry.path = Some(checked("rs:path", relative, MAX_URI_LENGTH, spare)?);
                    }
                }
            }
        }
        Ok(())
    }

    /// Determines the change of the resource and its time, by the table of [rs-0.1 §5.1].
    fn end_entry(
        &mut self,
        head: &Head,
        entry: &mut Entry,
        notes: &mut Notes,
    ) -> Result<(), Fault> {
        let is_future = |expires: &W3cDatetime| {
            head.modified.is_some_and(|modified| is_before(modified, *expires))
        };
        if let Some(expires) = self.expires.filter(is_future) {
            let message = format!("`expires` is {}, later than the document", expires.instant);
            notes.add("rs.expires-future", message);
        }
        (entry.change, entry.time) = match (self.lastmod, self.expires) {
            (Some(_), Some(_)) if head.change_set => {
                // One of the two is wrong, and so it is not certain that the resource was deleted.
                let message = "a change with both `lastmod` and `expires`";
                return Err(Fault::new("rs.change", message)
                    .with_help("a deletion has `expires`, every other change `lastmod`"));
            }
            (None, None) if head.change_set => {
                let message = "a change without `lastmod` and `expires`";
                return Err(Fault::new("rs.change", message)
                    .with_help("a deletion has `expires`, every other change `lastmod`"));
            }
            (Some(lastmod), Some(_)) => {
                let message = "an entry with both `lastmod` and `expires`; not taken for deleted";
                notes.add("rs.expires", message.to_owned());
                (self.change, Some(lastmod))
            }
            (lastmod @ Some(_), None) if head.change_set && self.change.is_none() => {
                // An example in the specification lacks it too [rs-0.1 §4.3.2]. A Destination
                // treats the creation and the update of a resource equally.
                let message = "`lastmod` of a change has no `rs:type`; read as \"updated\"";
                notes.add("rs.change-type", message.to_owned());
                (Some(Change::Updated), lastmod)
            }
            (None, Some(_)) if head.root == Root::SitemapIndex => {
                let message = "`expires` of a Sitemap in an index; ignored";
                notes.add("rs.expires", message.to_owned());
                (None, None)
            }
            // Elsewhere, `expires` is a time in the future until which a page is useful and exists.
            (None, Some(expires)) if !head.change_set && is_future(&expires) => (None, None),
            (None, expires @ Some(_)) => (Some(Change::Deleted), expires),
            (lastmod, None) => (self.change, lastmod),
        };
        Ok(())
    }

    /// The elements of XMPP around a change set, as in the specification's example [rs-0.1 §5.2.1].
    fn wrapper(element: &Element<'_>) -> Option<String> {
        match (element.ns(), element.local()) {
            (PUBSUB, "iq" | "message") => Some(format!(
                "the change set is inside `{}`, in the namespace of PubSub: in a file it is `urlset` alone, and XMPP has its stanzas in `jabber:client`",
                element.local()
            )),
            (JABBER, "iq" | "message")
            | (PUBSUB, "pubsub" | "publish" | "items" | "item")
            | (PUBSUB_EVENT, "event" | "items" | "item") => Some(format!(
                "the change set is inside `{}` of XMPP: in a file it is `urlset` alone",
                element.local()
            )),
            _ => None,
        }
    }

    fn element_of_text(text: &str) -> Option<String> {
        const MOST: usize = 8 * 1_024;
        let is_element = ["xhtml:meta ", "xhtml:link "].iter().any(|name| text.starts_with(name));
        (is_element && text.ends_with("/>") && text.len() <= MOST).then(|| format!("<{text}"))
    }

    fn end_document(&mut self, entries: u64, bytes: u64, notes: &mut Notes) {
        if entries > SPEC_MAX_ENTRIES {
            let message = format!("{entries} entries; a Sitemap has at most {SPEC_MAX_ENTRIES}");
            notes.add("rs.entries", message);
        }
        if bytes > SPEC_MAX_BYTES {
            notes.add("rs.bytes", format!("{bytes} bytes; a Sitemap has at most {SPEC_MAX_BYTES}"));
        }
    }
}

/// Only change sets have a link to a previous document [rs-0.1 §6.1].
fn is_prev(link: &Link) -> bool {
    link.has_rel("prev") && link.has_rel(CHANGE_SET)
}

fn check_root(head: &Head) -> Result<(), Fault> {
    if head.change_set && head.root == Root::SitemapIndex {
        let message = "an index of change sets: they are linked with `prev` instead";
        return Err(Fault::new("rs.type", message));
    }
    Ok(())
}

/// Read as a Sitemap, a list of changes of 1.1 resembles a list of all resources.
fn another_version() -> Fault {
    Fault::new(
        "rs.version",
        "`rs:md`: this is no document of ResourceSync 0.1, but of a later version",
    )
}

/// Reads the `rs:type` of `lastmod`.
///
/// Strict: the specification has two values. Another value, such as `deleted`, may or may not be a
/// deletion, so it is an error.
fn change(kind: &str, notes: &mut Notes) -> Result<Change, Fault> {
    note_space("rs:type", kind, notes);
    let kind = kind.trim_ascii();
    let read = [Change::Created, Change::Updated]
        .into_iter()
        .find(|change| kind.eq_ignore_ascii_case(change.token()));
    let Some(change) = read else {
        let message =
            format!("`rs:type` of `lastmod` is \"{}\"; expected created or updated", excerpt(kind));
        return Err(Fault::new("rs.change", message).with_help("a deletion has `expires` instead"));
    };
    if kind != change.token() {
        let message = format!("`rs:type` is \"{kind}\", not in the letters of the specification");
        notes.add("rs.type-case", message);
    }
    Ok(change)
}

/// The algorithm in the `type` of `rs:fixity` [rs-0.1 §3.1.3].
fn algorithm(element: &Element<'_>, notes: &mut Notes) -> Option<Algorithm> {
    let prefixed = || {
        element.attributes().find(|of| of.ns() == RS && of.local() == "type").map(|of| of.value())
    };
    let kind = element.attribute("type").or_else(|| {
        let kind = prefixed()?;
        notes.add("rs.prefix", "`type` of `rs:fixity` has a prefix, and must have none".to_owned());
        Some(kind)
    });
    let Some(kind) = kind else {
        notes.add("rs.fixity-type", "`rs:fixity` has no `type`".to_owned());
        return None;
    };
    let algorithm = Algorithm::from_token(kind.trim_ascii().as_bytes());
    if !matches!(&*kind, "md5" | "sha-1" | "sha-256") {
        let message = format!("`type` is \"{}\"; expected md5, sha-1 or sha-256", excerpt(&kind));
        notes.add("rs.fixity-type", message);
    }
    algorithm
}

/// Reads a digest. An invalid one is ignored, because the content can be fetched without it.
fn read_fixity(entry: &mut Entry, algorithm: Option<Algorithm>, text: &str, notes: &mut Notes) {
    let Some(algorithm) = algorithm else { return note_unknown(&mut entry.digests, text) };
    let name = algorithm.token();
    if entry.digests.bytes_of(algorithm).is_some() {
        notes.add("rs.repeated", format!("a second `rs:fixity` of {name}; the first counts"));
    } else if entry.digests.parse_value_into(algorithm, text.as_bytes()).is_err() {
        let message = format!("\"{}\" is no {name} digest in base64; ignored", excerpt(text));
        notes.add("rs.fixity", message);
        note_unknown(&mut entry.digests, &format!("{name}:{text}"));
    } else if text.len() == algorithm.length() * 2 {
        let message = format!("\"{}\" is in hex, where base64 is due", excerpt(text));
        notes.add("rs.fixity-hex", message);
    }
}
