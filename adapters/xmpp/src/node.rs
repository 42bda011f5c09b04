//! The address of a node of a service.

use crate::error::{Error, ErrorKind};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use tokio_xmpp::jid::Jid;

/// Longest name of a node, in bytes [rfc6120]: as long as each part of an address.
const NAME_MAX: usize = 1_023;

/// Characters that must be percent-encoded in the query of an address.
const ENCODED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'&')
    .add(b'+')
    .add(b';')
    .add(b'<')
    .add(b'>')
    .add(b'=');

/// A node: an address such as `xmpp:pubsub.example.org?;node=papers` [xep-0060 §12.20].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    service: String,
    name: String,
}

impl Node {
    /// The node with this name at a service, such as `pubsub.example.org`.
    ///
    /// # Errors
    /// The service is not an address, or the name is empty or too long.
    pub fn new(service: &str, name: &str) -> Result<Self, Error> {
        let wrong = |why: &str| {
            Error::new(ErrorKind::Usage, format!("`{name}` at `{service}` is not a node: {why}"))
                .with_help("write it as xmpp:pubsub.example.org?;node=NAME")
        };
        let jid = Jid::new(service).map_err(|error| wrong(&error.to_string()))?;
        if name.is_empty() {
            return Err(wrong("it has no name"));
        }
        if name.len() > NAME_MAX || name.chars().any(char::is_control) {
            return Err(wrong("its name is too long, or has control characters"));
        }
        Ok(Self { service: jid.to_string(), name: name.to_owned() })
    }

    /// The address of the service.
    pub fn service(&self) -> &str {
        &self.service
    }

    /// Name of the node in its service.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "xmpp:{}?;node={}", self.service, utf8_percent_encode(&self.name, ENCODED))
    }
}

impl FromStr for Node {
    type Err = Error;

    /// Reads `xmpp:SERVICE?;node=NAME`, and `xmpp:SERVICE?pubsub;action=subscribe;node=NAME`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |why: &str| {
            Error::new(ErrorKind::Usage, format!("`{text}` is not the address of a node: {why}"))
                .with_help("write it as xmpp:pubsub.example.org?;node=NAME")
        };
        let rest = text
            .get(..5)
            .filter(|scheme| scheme.eq_ignore_ascii_case("xmpp:"))
            .map(|_| &text[5..])
            .ok_or_else(|| wrong("it does not begin with xmpp:"))?;
        // An authority in the URI would be an account, which is configured separately.
        if rest.starts_with("//") {
            return Err(wrong("it names an account"));
        }
        let (service, query) = rest.split_once('?').ok_or_else(|| wrong("it names no node"))?;
        let query = query.split_once('#').map_or(query, |(query, _)| query);
        let decode = |text: &str| percent_decode_str(text).decode_utf8().map(Cow::into_owned);
        let mut names = query.split(';').filter_map(|part| part.strip_prefix("node="));
        let name = names.next().ok_or_else(|| wrong("it names no node"))?;
        let (Ok(service), Ok(name)) = (decode(service), decode(name)) else {
            return Err(wrong("it is not text"));
        };
        Self::new(&service, &name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_read_and_one_is_written() {
        for text in [
            "xmpp:pubsub.example.org?;node=a%20b%3Bc",
            "XMPP:pubsub.example.org?pubsub;action=subscribe;node=a%20b%3Bc#x",
        ] {
            let node: Node = text.parse().unwrap();
            assert_eq!((node.service(), node.name()), ("pubsub.example.org", "a b;c"));
            assert_eq!(node.to_string(), "xmpp:pubsub.example.org?;node=a%20b%3Bc");
        }
    }

    #[test]
    fn what_is_no_node_is_refused() {
        for text in [
            "",
            "xmpp:",
            "xmpp:pubsub.example.org",
            "xmpp:pubsub.example.org?;node=",
            "xmpp://me@example.org/pubsub.example.org?;node=a",
            "xmpp:pubsub.example.org?;node=%ff",
            "xmpp:?;node=a",
            "https://pubsub.example.org?;node=a",
            "xmpp:pubsub.example.org?;node=a%00",
        ] {
            assert!(text.parse::<Node>().is_err(), "{text}");
        }
    }
}
