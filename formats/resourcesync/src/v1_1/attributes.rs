//! Attributes of `rs:md` and `rs:ln`, and the elements that 0.1 had in their place [rs-core §7].

use super::{Capability, Change, Entry, Head, Ln};
use crate::sitemap::{
    Fault, MAX_VALUE_LENGTH, Notes, StringPool, checked, is_before, length, note_space,
    note_unknown, parse_datetime,
};
use abreast_webtypes::xml::{Attribute, Element, Ns};
use abreast_webtypes::{Algorithm, Digests, MAX_URI_LENGTH, W3cDatetime, excerpt, hash_fault};

/// Namespace of ResourceSync elements; their attributes do not have a namespace.
pub(super) const RS: Ns = Ns::known(1);

/// Reads the `rs:md` of a document.
pub(super) fn read_head_md(
    head: &mut Head,
    element: &Element<'_>,
    notes: &mut Notes,
) -> Result<(), Fault> {
    for attribute in own_attributes(element, notes) {
        match attribute.local().as_bytes() {
            b"capability" => {
                let (capability, lenient) = capability(&attribute, notes)?;
                if lenient {
                    let value = excerpt(&attribute.value());
                    notes.add(
                        "rs.capability-case",
                        format!(
                            "`capability` is \"{value}\", not in the letters of the specification"
                        ),
                    );
                }
                head.capability = Some(capability);
                head.lenient_capability = lenient;
            }
            b"at" => head.at = Some(datetime(&attribute, notes)?),
            b"completed" => head.completed = Some(datetime(&attribute, notes)?),
            b"from" => head.from = Some(datetime(&attribute, notes)?),
            b"until" => head.until = Some(datetime(&attribute, notes)?),
            _ => {}
        }
    }
    if head.capability.is_none() {
        let message = "the `rs:md` of the document has no `capability`";
        return Err(Fault::new("rs.capability", message)
            .with_help("without it a list of changes looks like a list of all"));
    }
    note_missing(head, notes);
    check_snapshot(&mut head.at, &mut head.completed, notes)?;
    check_order((head.from, "from"), (head.until, "until"))
}

/// Notes that a list lacks its times [rs-core §10.1, §11.1, §12.1, §13.1].
fn note_missing(head: &Head, notes: &mut Notes) {
    use Capability as C;
    let (code, name, is_there) = match head.capability {
        Some(C::ResourceList | C::ResourceDump | C::ResourceDumpManifest) => {
            ("rs.no-at", "at", head.at.is_some())
        }
        Some(C::ChangeList | C::ChangeDump | C::ChangeDumpManifest) => {
            ("rs.no-from", "from", head.from.is_some())
        }
        _ => return,
    };
    if !is_there {
        notes.add(code, format!("the `rs:md` of the document has no `{name}`"));
    }
}

/// Reads the `rs:md` of an entry.
pub(super) fn read_entry_md(
    entry: &mut Entry,
    element: &Element<'_>,
    spare: &mut StringPool,
    notes: &mut Notes,
) -> Result<(), Fault> {
    for attribute in own_attributes(element, notes) {
        match attribute.local().as_bytes() {
            b"hash" => digests(&mut entry.digests, &attribute.value(), notes),
            b"length" => entry.length = Some(length("length", &attribute.value())?),
            b"type" => entry.media_type = Some(short("type", &attribute, MAX_VALUE_LENGTH, spare)?),
            b"change" => entry.change = Some(change(&attribute, notes)?),
            b"datetime" => entry.datetime = Some(datetime(&attribute, notes)?),
            b"path" => entry.path = Some(short("path", &attribute, MAX_URI_LENGTH, spare)?),
            b"encoding" => {
                entry.encoding = Some(short("encoding", &attribute, MAX_VALUE_LENGTH, spare)?);
            }
            b"capability" => entry.capability = entry_capability(&attribute, notes),
            b"at" => entry.at = Some(datetime(&attribute, notes)?),
            b"completed" => entry.completed = Some(datetime(&attribute, notes)?),
            b"from" => entry.from = Some(datetime(&attribute, notes)?),
            b"until" => entry.until = Some(datetime(&attribute, notes)?),
            _ => {}
        }
    }
    check_snapshot(&mut entry.at, &mut entry.completed, notes)?;
    check_order((entry.from, "from"), (entry.until, "until"))
}

/// Reads an `rs:ln`; `None` if `rel` or `href` is missing.
///
/// Lenient: such a link has no meaning and is left out, since a Destination may ignore any link
/// [rs-core §14.1]. An invalid priority counts as absent.
pub(super) fn read_ln(
    element: &Element<'_>,
    spare: &mut StringPool,
    notes: &mut Notes,
) -> Result<Option<Ln>, Fault> {
    let mut link = Ln::default();
    for attribute in own_attributes(element, notes) {
        match attribute.local().as_bytes() {
            b"rel" => link.rel = short("rel", &attribute, MAX_URI_LENGTH, spare)?,
            b"href" => link.href = short("href", &attribute, MAX_URI_LENGTH, spare)?,
            b"pri" => {
                link.pri = attribute
                    .value()
                    .trim_ascii()
                    .parse()
                    .ok()
                    .filter(|priority| (1..=999_999).contains(priority));
            }
            b"modified" => link.modified = Some(datetime(&attribute, notes)?),
            b"type" => link.media_type = Some(short("type", &attribute, MAX_VALUE_LENGTH, spare)?),
            b"length" => link.length = Some(length("length", &attribute.value())?),
            b"hash" => digests(&mut link.digests, &attribute.value(), notes),
            b"encoding" => {
                link.encoding = Some(short("encoding", &attribute, MAX_VALUE_LENGTH, spare)?);
            }
            b"path" => link.path = Some(short("path", &attribute, MAX_URI_LENGTH, spare)?),
            _ => {}
        }
    }
    if link.rel.is_empty() || link.href.is_empty() {
        notes.add("rs.link", "an `rs:ln` without `rel` or `href`; left out".to_owned());
        return Ok(None);
    }
    Ok(Some(link))
}

/// Reads the text of a child of `url` that is from version 0.1 [rs-0.1 §3.1].
pub(super) fn read_alpha(
    entry: &mut Entry,
    field: AlphaField,
    text: &str,
    spare: &mut StringPool,
) -> Result<(), Fault> {
    match field {
        AlphaField::Fixity(Some(algorithm)) => {
            if entry.digests.parse_value_into(algorithm, text.as_bytes()).is_err() {
                note_unknown(&mut entry.digests, &format!("{}:{text}", algorithm.token()));
            }
        }
        AlphaField::Fixity(None) => note_unknown(&mut entry.digests, text),
        AlphaField::Size => entry.length = Some(length("rs:size", text)?),
        AlphaField::MediaType => {
            entry.media_type = Some(checked("rs:mimetype", text, MAX_VALUE_LENGTH, spare)?);
        }
        AlphaField::Encoding => {
            entry.encoding = Some(checked("rs:contentencoding", text, MAX_VALUE_LENGTH, spare)?);
        }
    }
    Ok(())
}

/// Metadata that is an element in version 0.1.
#[derive(Clone, Copy, Debug)]
pub enum AlphaField {
    /// `rs:fixity`, with its algorithm if it is known
    Fixity(Option<Algorithm>),
    /// `rs:size`: length of the content in bytes
    Size,
    /// `rs:mimetype`: media type of the content
    MediaType,
    /// `rs:contentencoding`: coding of the transferred content
    Encoding,
}

impl AlphaField {
    pub(super) fn of(element: &Element<'_>) -> Option<Self> {
        Some(match element.local().as_bytes() {
            b"fixity" => Self::Fixity(
                element
                    .attribute("type")
                    .and_then(|kind| Algorithm::from_token(kind.trim_ascii().as_bytes())),
            ),
            b"size" => Self::Size,
            b"mimetype" => Self::MediaType,
            b"contentencoding" => Self::Encoding,
            _ => return None,
        })
    }
}

/// Attributes of communities are in other namespaces and ignored [rs-core §7].
///
/// Lenient: attributes with the prefix of ResourceSync are accepted too. They are returned first,
/// so that the right spelling takes precedence.
fn own_attributes<'a>(
    element: &Element<'a>,
    notes: &mut Notes,
) -> impl Iterator<Item = Attribute<'a>> + use<'a> {
    let prefixed = element.attributes().find(|attribute| attribute.ns() == RS);
    if let Some(attribute) = prefixed {
        let name = attribute.local();
        notes
            .add("rs.prefix", format!("attribute `{name}` has a prefix; ResourceSync's have none"));
    }
    let wrong = prefixed.map(|_| element.attributes().filter(|attribute| attribute.ns() == RS));
    wrong
        .into_iter()
        .flatten()
        .chain(element.attributes().filter(|attribute| attribute.ns() == Ns::NONE))
}

/// Digests in hex, or in base64 as 0.1 and some publishers of 1.1 write them.
fn digests(into: &mut Digests, value: &str, notes: &mut Notes) {
    if !into.parse_leniently_into(value.as_bytes())
        && let Some(fault) = hash_fault(value)
    {
        notes.add("rs.hash", fault);
    }
    // Base64 of every digest length ends with this character; hex never does.
    if memchr::memchr(b'=', value.as_bytes()).is_some() {
        notes.add(
            "rs.hash-base64",
            format!("`hash` is \"{}\", in base64 where hex is due", excerpt(value)),
        );
    }
}

fn capability(attribute: &Attribute<'_>, notes: &mut Notes) -> Result<(Capability, bool), Fault> {
    let value = attribute.value();
    note_space("capability", &value, notes);
    Capability::from_token_leniently(&value).ok_or_else(|| {
        Fault::new(
            "rs.capability",
            format!("`capability` is \"{}\", which is unknown", excerpt(&value)),
        )
    })
}

fn change(attribute: &Attribute<'_>, notes: &mut Notes) -> Result<Change, Fault> {
    let value = attribute.value();
    note_space("change", &value, notes);
    Change::from_token(value.trim_ascii()).ok_or_else(|| {
        let message = format!(
            "`change` is \"{}\"; expected created, updated or deleted [rs-core §12.1]",
            excerpt(&value)
        );
        Fault::new("rs.change", message)
    })
}

/// The capability of an entry's target; unknown ones are ignored.
fn entry_capability(attribute: &Attribute<'_>, notes: &mut Notes) -> Option<Capability> {
    let value = attribute.value();
    note_space("capability", &value, notes);
    let read = Capability::from_token_leniently(&value);
    match read {
        None => {
            notes.add(
                "rs.capability-unknown",
                format!("`capability` is \"{}\", which is unknown", excerpt(&value)),
            );
        }
        Some((_, true)) => {
            let message = format!(
                "`capability` is \"{}\", not in the letters of the specification",
                excerpt(&value)
            );
            notes.add("rs.capability-case", message);
        }
        Some((_, false)) => {}
    }
    read.map(|(capability, _)| capability)
}

fn datetime(attribute: &Attribute<'_>, notes: &mut Notes) -> Result<W3cDatetime, Fault> {
    parse_datetime(attribute.local(), &attribute.value(), notes)
}

fn short(
    name: &str,
    attribute: &Attribute<'_>,
    most: usize,
    spare: &mut StringPool,
) -> Result<String, Fault> {
    checked(name, &attribute.value(), most, spare)
}

/// A snapshot must not be complete before its start [rs-core §7].
///
/// Lenient, on demand: if the two times are in the wrong order, the earlier one is used as the
/// start. The only effect is that changes may be read twice. A `from` after its `until` is always
/// refused: the document may claim changes that it does not contain.
fn check_snapshot(
    at: &mut Option<W3cDatetime>,
    completed: &mut Option<W3cDatetime>,
    notes: &mut Notes,
) -> Result<(), Fault> {
    match check_order((*at, "at"), (*completed, "completed")) {
        Err(fault) if notes.lenient => {
            notes.add(fault.code, format!("{}; the earlier time is taken for `at`", fault.message));
            std::mem::swap(at, completed);
            Ok(())
        }
        checked => checked,
    }
}

/// An interval must not end before its start [rs-core §7].
fn check_order(
    begin: (Option<W3cDatetime>, &str),
    end: (Option<W3cDatetime>, &str),
) -> Result<(), Fault> {
    let ((Some(first), first_name), (Some(last), last_name)) = (begin, end) else { return Ok(()) };
    if !is_before(last, first) {
        return Ok(());
    }
    let message =
        format!("`{last_name}` {} is before `{first_name}` {}", last.instant, first.instant);
    Err(Fault::new("time.interval", message))
}
