//! Attributes of `rs:md` and `rs:ln`, and faults in them [rs-core §7].
//!
//! Unlike the parser of documents, this module does not stop at faults: a value that cannot be read
//! is reported and ignored.

use crate::fetch::values;
use crate::report::{Rule, rules as r};
use abreast_resourcesync::sitemap::trimmed;
use abreast_resourcesync::v1_1::{Capability, Change, Ln, RS_NAMESPACE, SITEMAP_NAMESPACE};
use abreast_webtypes::xml::{Element, Ns};
use abreast_webtypes::{Digests, Precision, Timestamp, W3cDatetime, excerpt, hash_fault};

/// Known namespaces, in the order of [`SM`] and [`RS`].
pub(crate) const KNOWN: &[&str] = &[SITEMAP_NAMESPACE, RS_NAMESPACE];
pub(crate) const SM: Ns = Ns::known(0);
pub(crate) const RS: Ns = Ns::known(1);

/// Faults of the current element, whose place is known only when the element is released.
#[derive(Default)]
pub(crate) struct ElementFaults {
    pub(crate) list: Vec<(&'static Rule, String)>,
    /// Times after this one are reported as in the future.
    pub(crate) now: Option<Timestamp>,
}

impl ElementFaults {
    pub(crate) fn add(&mut self, rule: &'static Rule, message: impl Into<String>) {
        self.list.push((rule, message.into()));
    }
}

/// Bits for attributes that an element has, with any value.
pub(crate) mod has {
    pub(crate) const AT: u16 = 1;
    pub(crate) const COMPLETED: u16 = 1 << 1;
    pub(crate) const FROM: u16 = 1 << 2;
    pub(crate) const UNTIL: u16 = 1 << 3;
    pub(crate) const CAPABILITY: u16 = 1 << 4;
    pub(crate) const CHANGE: u16 = 1 << 5;
    pub(crate) const DATETIME: u16 = 1 << 6;
    pub(crate) const HASH: u16 = 1 << 7;
    pub(crate) const LENGTH: u16 = 1 << 8;
    pub(crate) const TYPE: u16 = 1 << 9;
    pub(crate) const ENCODING: u16 = 1 << 10;
    pub(crate) const PATH: u16 = 1 << 11;
}

/// Values of an `rs:md` that could be read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Md {
    pub(crate) has: u16,
    pub(crate) capability: Option<Capability>,
    pub(crate) change: Option<Change>,
    pub(crate) at: Option<W3cDatetime>,
    pub(crate) completed: Option<W3cDatetime>,
    pub(crate) from: Option<W3cDatetime>,
    pub(crate) until: Option<W3cDatetime>,
    pub(crate) datetime: Option<W3cDatetime>,
    pub(crate) digests: Digests,
    pub(crate) length: Option<u64>,
    pub(crate) media_type: String,
    pub(crate) encoding: String,
    pub(crate) path: String,
}

impl Md {
    pub(crate) const fn has(&self, which: u16) -> bool {
        self.has & which != 0
    }

    /// Resets all fields, retaining their allocations.
    pub(crate) fn clear(&mut self) {
        (self.has, self.capability, self.change, self.length) = (0, None, None, None);
        (self.at, self.completed, self.from, self.until, self.datetime) =
            (None, None, None, None, None);
        self.digests.clear();
        self.media_type.clear();
        self.encoding.clear();
        self.path.clear();
    }

    /// Reads the attributes of an `rs:md` in the head or in an entry.
    pub(crate) fn read(&mut self, element: &Element<'_>, faults: &mut ElementFaults) {
        for attribute in element.attributes() {
            let name = attribute.local();
            if !own(name, attribute.ns(), faults) {
                continue;
            }
            let value = attribute.value();
            let mut time = |bit: u16| {
                self.has |= bit;
                datetime(name, &value, faults)
            };
            match name.as_bytes() {
                b"hash" => {
                    self.has |= has::HASH;
                    hash(&value, &mut self.digests, faults);
                }
                b"length" => {
                    self.has |= has::LENGTH;
                    self.length = length(&value, faults);
                }
                b"type" => {
                    self.has |= has::TYPE;
                    // Usually the value is the same as in the previous entry.
                    media_type(&value, faults);
                    self.media_type.push_str(trimmed(&value));
                }
                b"change" => {
                    self.has |= has::CHANGE;
                    self.change = Change::from_token(&value);
                    if self.change.is_none() {
                        let message = format!("`change` is \"{}\"", excerpt(&value));
                        faults.add(&r::CHANGE_VALUE, message);
                    }
                }
                b"datetime" => self.datetime = time(has::DATETIME),
                b"at" => self.at = time(has::AT),
                b"completed" => self.completed = time(has::COMPLETED),
                b"from" => self.from = time(has::FROM),
                b"until" => self.until = time(has::UNTIL),
                b"path" => {
                    self.has |= has::PATH;
                    self.path.push_str(&value);
                }
                b"encoding" => {
                    self.has |= has::ENCODING;
                    encoding(&value, faults);
                    self.encoding.push_str(trimmed(&value));
                }
                b"capability" => {
                    self.has |= has::CAPABILITY;
                    self.capability = match Capability::from_token_leniently(&value) {
                        Some((capability, false)) => Some(capability),
                        other => {
                            faults.add(
                                &r::CAPABILITY_VALUE,
                                format!("`capability` is \"{}\"", excerpt(&value)),
                            );
                            other.map(|(capability, _)| capability)
                        }
                    };
                }
                _ => unknown(name, "rs:md", faults),
            }
        }
        self.check_intervals(faults);
    }

    fn check_intervals(&self, faults: &mut ElementFaults) {
        if let (Some(at), Some(completed)) = (self.at, self.completed)
            && values::is_before(completed, at)
        {
            let message =
                format!("`completed` {} is before `at` {}", completed.instant, at.instant);
            faults.add(&r::COMPLETED, message);
        }
        if let (Some(from), Some(until)) = (self.from, self.until)
            && values::is_before(until, from)
        {
            faults.add(
                &r::INTERVAL,
                format!("`until` {} is before `from` {}", until.instant, from.instant),
            );
        }
    }
}

/// Reads an `rs:ln`; `None` if the link does not have a relation and a target.
pub(crate) fn read_ln(element: &Element<'_>, faults: &mut ElementFaults) -> Option<Ln> {
    let mut link = Ln::default();
    let (mut has_rel, mut has_href) = (false, false);
    for attribute in element.attributes() {
        let name = attribute.local();
        if !own(name, attribute.ns(), faults) {
            continue;
        }
        let value = attribute.value();
        let text = trimmed(&value);
        match name.as_bytes() {
            b"rel" => {
                has_rel = !text.is_empty();
                for token in
                    text.split_ascii_whitespace().filter(|token| !values::is_relation(token))
                {
                    faults.add(&r::REL_REGISTERED, format!("`rel` is \"{}\"", excerpt(token)));
                }
                text.clone_into(&mut link.rel);
            }
            b"href" => {
                has_href = !text.is_empty();
                if let Some(fault) = values::uri_fault(text).filter(|_| has_href) {
                    faults.add(&r::URI, format!("`href` \"{}\" {fault}", excerpt(text)));
                }
                text.clone_into(&mut link.href);
            }
            b"pri" => {
                let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
                let priority = if is_number { text.parse().ok() } else { None };
                link.pri = priority.filter(|priority| (1..=999_999).contains(priority));
                if link.pri.is_none() {
                    faults.add(&r::PRI, format!("`pri` is \"{}\"", excerpt(text)));
                }
            }
            b"modified" => link.modified = datetime(name, &value, faults),
            b"type" => {
                media_type(&value, faults);
                link.media_type = Some(text.to_owned());
            }
            b"length" => link.length = length(&value, faults),
            b"hash" => hash(&value, &mut link.digests, faults),
            b"encoding" => {
                encoding(text, faults);
                link.encoding = Some(text.to_owned());
            }
            b"path" => link.path = Some(text.to_owned()),
            _ => unknown(name, "rs:ln", faults),
        }
    }
    if !has_rel {
        faults.add(&r::REL, "an `rs:ln` without `rel`");
    }
    if !has_href {
        faults.add(&r::HREF, "an `rs:ln` without `href`");
    }
    (has_rel && has_href).then_some(link)
}

/// Whether an attribute is without a namespace, like the attributes of ResourceSync. Extensions use
/// their own namespace [rs-core §7].
fn own(name: &str, ns: Ns, faults: &mut ElementFaults) -> bool {
    if ns == RS {
        faults.add(
            &r::PREFIX,
            format!("`{}` is written with the prefix of ResourceSync's namespace", excerpt(name)),
        );
    }
    ns == Ns::NONE
}

fn unknown(name: &str, element: &str, faults: &mut ElementFaults) {
    let message = match alpha(name) {
        Some(now) => format!("`{name}` is a name of ResourceSync 0.1; in 1.1 write {now}"),
        None => format!("`{}` is not an attribute of `{element}`", excerpt(name)),
    };
    faults.add(&r::ATTRIBUTES, message);
}

/// Replacement for a name from the first draft [rs-0.1 §3.2, §5.2].
pub(crate) fn alpha(name: &str) -> Option<&'static str> {
    Some(match name {
        "size" => "`length` of `rs:md`",
        "fixity" => "`hash` of `rs:md`, in hex",
        "mimetype" => "`type` of `rs:md`",
        "contentencoding" => "`encoding` of `rs:md`",
        "path" => "`path` of `rs:md`, beginning with a slash",
        "expires" => "`change=\"deleted\"` and `datetime` of `rs:md`",
        _ => return None,
    })
}

/// Reads a datetime from an attribute or element.
pub(crate) fn datetime(name: &str, text: &str, faults: &mut ElementFaults) -> Option<W3cDatetime> {
    let text = trimmed(text);
    match W3cDatetime::parse(text.as_bytes()) {
        Ok(read) => {
            if let Some(fault) = values::datetime_fault(text) {
                faults
                    .add(&r::DATETIME_FORM, format!("`{name}` is \"{}\": {fault}", excerpt(text)));
            }
            if faults.now.is_some_and(|now| read.instant > now) {
                faults.add(&r::FUTURE, format!("`{name}` is \"{}\"", excerpt(text)));
            }
            if read.precision < Precision::Second || !text.ends_with('Z') {
                faults.add(&r::DATETIME_UTC, format!("`{name}` is \"{}\"", excerpt(text)));
            }
            Some(read)
        }
        Err(cause) => {
            faults.add(&r::DATETIME, format!("`{name}` is \"{}\": {cause}", excerpt(text)));
            None
        }
    }
}

fn length(text: &str, faults: &mut ElementFaults) -> Option<u64> {
    let digits = text.trim_ascii();
    let number =
        if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None };
    if number.is_none() {
        faults.add(&r::LENGTH, format!("`length` is \"{}\"", excerpt(text)));
    }
    number
}

fn media_type(text: &str, faults: &mut ElementFaults) {
    if !values::is_media_type(text) {
        faults.add(&r::TYPE, format!("`type` is \"{}\"", excerpt(text)));
    }
}

fn encoding(text: &str, faults: &mut ElementFaults) {
    if !values::is_encoding(text) {
        faults.add(&r::ENCODING, format!("`encoding` is \"{}\"", excerpt(text)));
    }
}

fn hash(text: &str, digests: &mut Digests, faults: &mut ElementFaults) {
    if let Some(fault) = hash_fault(text) {
        faults.add(&r::HASH, fault);
    } else if text.trim_ascii().is_empty() {
        faults.add(&r::HASH, "`hash` is empty");
    } else if let Some(name) = values::twice_in_hash(text) {
        faults.add(&r::HASH_ONCE, format!("`hash` has different digests of {}", excerpt(name)));
    } else if let Some(message) = values::odd_algorithm(text) {
        faults.add(&r::HASH_ALGORITHM, message);
    }
    digests.parse_leniently_into(text.as_bytes());
}
