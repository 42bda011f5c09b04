//! Attributes of `rs:md` and `rs:ln`, and the elements that 0.1 had in their place [rs-core §7].

use super::tolerance::Notes;
use super::{Capability, Change, Entry, Head, Ln, names::RS};
use abreast_webtypes::xml::{Attribute, Element, Ns};
use abreast_webtypes::{
    Algorithm, Digests, MAX_URI_LENGTH, ParseDatetimeError, W3cDatetime, excerpt,
};

/// Bytes of a media type, a content coding, a datetime, a number.
pub(super) const MAX_VALUE_LENGTH: usize = 1_024;
/// Bytes of a datetime that is worth repairing.
const MAX_DATETIME_LENGTH: usize = 64;

/// A fault whose place is the element that is being read.
pub(super) struct Fault {
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) help: Option<&'static str>,
}

impl Fault {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), help: None }
    }

    pub(super) const fn with_help(mut self, help: &'static str) -> Self {
        self.help = Some(help);
        self
    }
}

/// Strings to use again, so that reading an entry allocates nothing in the long run.
#[derive(Default)]
pub(super) struct StringPool(Vec<String>);

impl StringPool {
    const MOST: usize = 64;

    fn string(&mut self, text: &str) -> String {
        let mut string = self.0.pop().unwrap_or_default();
        string.clear();
        string.push_str(text);
        string
    }

    fn keep(&mut self, string: Option<String>) {
        if let Some(string) = string
            && self.0.len() < Self::MOST
            && (1..=MAX_VALUE_LENGTH).contains(&string.capacity())
        {
            self.0.push(string);
        }
    }

    /// Clears an entry and keeps its strings.
    pub(super) fn clear(&mut self, entry: &mut Entry) {
        self.keep(entry.media_type.take());
        self.keep(entry.encoding.take());
        self.keep(entry.path.take());
        for link in entry.links.drain(..) {
            self.keep(Some(link.rel));
            self.keep(Some(link.href));
            self.keep(link.media_type);
        }
        entry.clear();
    }
}

/// Reads the `rs:md` of a document.
pub(super) fn read_head_md(
    head: &mut Head,
    element: &Element<'_>,
    notes: &mut Notes,
) -> Result<(), Fault> {
    for attribute in own_attributes(element, notes) {
        match attribute.local().as_bytes() {
            b"capability" => {
                let (capability, lenient) = capability(&attribute)?;
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
    check_snapshot(&mut head.at, &mut head.completed, notes)?;
    check_order((head.from, "from"), (head.until, "until"))
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
            b"change" => entry.change = Some(change(&attribute)?),
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

/// Reads an `rs:ln`; `None` when it has no `rel` or `href`.
///
/// Lenient: such a link has no meaning and is left out, since a Destination may ignore any link
/// [rs-core §14.1]. A priority that is not one counts as absent.
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
    Ok((!link.rel.is_empty() && !link.href.is_empty()).then_some(link))
}

/// Reads the text of a child of `url` that 0.1 used [rs-0.1 §3.1].
pub(super) fn read_alpha(
    entry: &mut Entry,
    field: AlphaField,
    text: &str,
    spare: &mut StringPool,
) -> Result<(), Fault> {
    let text = text.trim_ascii();
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

/// Metadata that 0.1 wrote as elements.
#[derive(Clone, Copy)]
pub(super) enum AlphaField {
    /// `rs:fixity`, with its algorithm when we know it
    Fixity(Option<Algorithm>),
    /// `rs:size`
    Size,
    /// `rs:mimetype`
    MediaType,
    /// `rs:contentencoding`
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

fn note_unknown(digests: &mut Digests, text: &str) {
    if digests.unknown.len() < Digests::MAX_UNKNOWN {
        digests.unknown.push(excerpt(text));
    }
}

/// Attributes of communities are in other namespaces and ignored [rs-core §7].
///
/// Lenient: those with the prefix of ResourceSync are taken too, before the others, so that the
/// right spelling counts where both are there.
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
    into.parse_leniently_into(value.as_bytes());
    // Base64 of every length that a digest has ends so; hex never does.
    if memchr::memchr(b'=', value.as_bytes()).is_some() {
        notes.add(
            "rs.hash-base64",
            format!("`hash` is \"{}\", in base64 where hex is due", excerpt(value)),
        );
    }
}

fn capability(attribute: &Attribute<'_>) -> Result<(Capability, bool), Fault> {
    let value = attribute.value();
    Capability::from_token_leniently(&value).ok_or_else(|| {
        Fault::new(
            "rs.capability",
            format!("`capability` is \"{}\", which is unknown", excerpt(&value)),
        )
    })
}

fn change(attribute: &Attribute<'_>) -> Result<Change, Fault> {
    let value = attribute.value();
    Change::from_token(value.trim_ascii()).ok_or_else(|| {
        let message = format!(
            "`change` is \"{}\"; expected created, updated or deleted [rs-core §12.1]",
            excerpt(&value)
        );
        Fault::new("rs.change", message)
    })
}

/// The target of an entry; unknown ones are ignored.
fn entry_capability(attribute: &Attribute<'_>, notes: &mut Notes) -> Option<Capability> {
    let value = attribute.value();
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

/// Reads a datetime; white space around it does not matter.
///
/// Lenient: a blank for the `T` and an offset without colon mean one thing only. A time without
/// zone is taken for UTC: conclusions from it must allow for all zones.
pub(super) fn parse_datetime(
    name: &str,
    text: &str,
    notes: &mut Notes,
) -> Result<W3cDatetime, Fault> {
    let text = text.trim_ascii();
    let cause = match W3cDatetime::parse(text.as_bytes()) {
        Ok(read) => return Ok(read),
        Err(cause) => cause,
    };
    let fault =
        |cause| Fault::new("rs.datetime", format!("`{name}` is \"{}\": {cause}", excerpt(text)));
    let mut mended = text.as_bytes().to_vec();
    if mended.len() > MAX_DATETIME_LENGTH {
        return Err(fault(cause));
    }
    if mended.get(10) == Some(&b' ') {
        mended[10] = b'T';
    }
    if let [.., b'+' | b'-', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9'] = mended[..]
        && mended.contains(&b':')
    {
        mended.insert(mended.len() - 2, b':');
    }
    match W3cDatetime::parse(&mended) {
        Ok(read) => {
            notes.add("rs.datetime-form", format!("`{name}` is \"{}\": {cause}", excerpt(text)));
            return Ok(read);
        }
        Err(ParseDatetimeError::Zone) => mended.push(b'Z'),
        Err(_) => return Err(fault(cause)),
    }
    let read = W3cDatetime::parse(&mended).map_err(fault)?;
    notes.add(
        "rs.zone",
        format!("`{name}` is \"{}\", without a zone; taken for UTC", excerpt(text)),
    );
    Ok(read)
}

fn length(name: &str, text: &str) -> Result<u64, Fault> {
    let digits = text.trim_ascii();
    let number =
        if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None };
    number.ok_or_else(|| {
        Fault::new("rs.length", format!("`{name}` is \"{}\", not a number of bytes", excerpt(text)))
    })
}

fn short(
    name: &str,
    attribute: &Attribute<'_>,
    most: usize,
    spare: &mut StringPool,
) -> Result<String, Fault> {
    checked(name, &attribute.value(), most, spare)
}

fn checked(name: &str, text: &str, most: usize, spare: &mut StringPool) -> Result<String, Fault> {
    let text = text.trim_ascii();
    if text.len() > most {
        return Err(Fault::new("rs.value", format!("`{name}` is longer than {most} bytes")));
    }
    if has_control_or_less(text, b' ' - 1) {
        let message = format!("`{name}` has control characters in it: \"{}\"", excerpt(text));
        return Err(Fault::new("rs.value", message));
    }
    Ok(spare.string(text))
}

/// Is there a byte up to `most`, or DEL? Without an early exit, so that many bytes are tested at
/// once.
pub(super) fn has_control_or_less(text: &str, most: u8) -> bool {
    text.bytes().fold(0, |found, byte| found | u8::from(byte <= most) | u8::from(byte == 0x7f)) != 0
}

/// A snapshot is complete after it was begun [rs-core §7].
///
/// Lenient, on demand: of two times in the wrong order the earlier one is taken for the beginning.
/// That costs changes that are read twice, and loses none. A span in the wrong order is refused
/// always: it may claim changes that are not in it.
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

/// An interval ends after it begins [rs-core §7].
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

/// Is all that `one` covers before `other`? `2013` is not before `2013-05`.
fn is_before(one: W3cDatetime, other: W3cDatetime) -> bool {
    use abreast_webtypes::Precision;
    if one.instant >= other.instant {
        return false;
    }
    let written = match one.precision {
        Precision::Year => 4,
        Precision::Month => 7,
        Precision::Day => 10,
        Precision::Minute => 16,
        Precision::Second => 19,
        Precision::Fraction => return true,
    };
    one.instant.to_string()[..written] != other.instant.to_string()[..written]
}
