//! Stanzas: reading their parts, and escaping text for them.

use crate::error::{Error, ErrorKind};
use crate::wire::Wire;
use tokio_xmpp::minidom::Element;
use tokio_xmpp::parsers::ns;
use tokio_xmpp::xmlstream::XmlStream;

/// The incoming stanzas, not interpreted, so that an invalid one does not end the stream.
pub(crate) type Elements = XmlStream<Wire, Element>;

/// A stanza, or another element of the stream.
#[derive(Clone, Copy)]
pub(crate) struct Stanza<'a>(&'a Element);

impl<'a> Stanza<'a> {
    pub(crate) const fn of(element: &'a Element) -> Self {
        Self(element)
    }

    pub(crate) fn is(self, name: &str) -> bool {
        self.0.is(name, ns::JABBER_CLIENT)
    }

    pub(crate) fn attribute(self, name: &'static str) -> &'a str {
        self.0.attr(name).unwrap_or_default()
    }

    /// Whether the stanza is the response to a request.
    pub(crate) fn is_answer_to(self, id: &str) -> bool {
        self.is("iq")
            && self.attribute("id") == id
            && matches!(self.attribute("type"), "result" | "error")
    }

    /// The condition of a stream error [rfc6120 §4.9], which ends the stream, and its text.
    pub(crate) fn stream_error(self) -> Option<(String, String)> {
        self.0
            .is("error", ns::STREAM)
            .then(|| (condition(self.0), text_of(self.0.get_child("text", ns::XMPP_STREAMS))))
    }

    /// The failure in a response; `whom` is its sender.
    pub(crate) fn result(self, whom: &str) -> Result<(), Error> {
        if self.attribute("type") == "result" {
            return Ok(());
        }
        let error = self.0.get_child("error", ns::JABBER_CLIENT);
        let defined = error.map_or_else(|| "undefined-condition".to_owned(), condition);
        // Conditions that the service adds, such as `payload-too-big` [xep-0060 §7.1.3].
        let more = error.into_iter().flat_map(Element::children);
        let more = more.filter(|child| child.ns() == PUBSUB_ERRORS).map(Element::name);
        let conditions: Vec<&str> = std::iter::once(defined.as_str()).chain(more).collect();
        let waits = error.is_some_and(|error| error.attr("type") == Some("wait"));
        let kind = match defined.as_str() {
            // The service asks for another attempt [rfc6120 §8.3.2].
            _ if waits => ErrorKind::Unavailable,
            _ if conditions.contains(&"payload-too-big") => ErrorKind::TooLarge,
            "policy-violation" => ErrorKind::TooLarge,
            "forbidden"
            | "not-authorized"
            | "not-allowed"
            | "registration-required"
            | "subscription-required" => ErrorKind::Forbidden,
            "item-not-found" | "remote-server-not-found" => ErrorKind::NotFound,
            "conflict" => ErrorKind::Conflict,
            "remote-server-timeout"
            | "service-unavailable"
            | "internal-server-error"
            | "resource-constraint"
            | "recipient-unavailable" => ErrorKind::Unavailable,
            _ => ErrorKind::Refused,
        };
        let text = text_of(error.and_then(|error| error.get_child("text", ns::XMPP_STANZAS)));
        Err(Error::new(kind, format!("{whom} answered {}{text}", conditions.join(", "))))
    }
}

/// The server's text for users, in parentheses.
fn text_of(text: Option<&Element>) -> String {
    in_parentheses(text.map(Element::text).as_deref())
}

/// A text of a server for users, in parentheses.
pub(crate) fn in_parentheses(text: Option<&str>) -> String {
    let text = text.map(str::trim).filter(|text| !text.is_empty());
    text.map_or_else(String::new, |text| format!(" ({})", abreast_webtypes::excerpt(text)))
}

const PUBSUB_ERRORS: &str = "http://jabber.org/protocol/pubsub#errors";

/// The defined condition of an error: its first child that is not a text.
fn condition(error: &Element) -> String {
    let mut children = error.children().filter(|child| child.name() != "text");
    children
        .next()
        .map_or_else(|| "undefined-condition".to_owned(), |child| child.name().to_owned())
}

/// Escapes a text for an attribute or an element.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    abreast_webtypes::xml::write_escaped(&mut out, text);
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_work_later_is_not_a_refusal() {
        for (kind, condition, expected) in [
            ("wait", "resource-constraint", ErrorKind::Unavailable),
            ("wait", "policy-violation", ErrorKind::Unavailable),
            ("wait", "not-acceptable", ErrorKind::Unavailable),
            ("cancel", "service-unavailable", ErrorKind::Unavailable),
            ("cancel", "remote-server-timeout", ErrorKind::Unavailable),
            ("modify", "policy-violation", ErrorKind::TooLarge),
            ("modify", "not-acceptable", ErrorKind::Refused),
            ("auth", "forbidden", ErrorKind::Forbidden),
            ("cancel", "item-not-found", ErrorKind::NotFound),
        ] {
            let answer: Element = format!(
                "<iq xmlns='jabber:client' type='error'><error type='{kind}'>\
                 <{condition} xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>"
            )
            .parse()
            .unwrap();
            let error = Stanza::of(&answer).result("s").unwrap_err();
            assert_eq!(error.kind(), expected, "{kind} {condition}");
            assert_eq!(error.is_transient(), expected == ErrorKind::Unavailable);
        }
    }
}
