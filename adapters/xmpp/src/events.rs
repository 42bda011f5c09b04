//! Items of nodes, and the events that a service sends about them [xep-0060 §7.1].

use tokio_xmpp::minidom::Element;

const EVENT: &str = "http://jabber.org/protocol/pubsub#event";

/// An item of a node, as published.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Item {
    /// Name of the node in its service.
    pub node: String,
    /// Identifier of the item within the node.
    pub id: String,
    /// The payload as a separate document; `None` if the service sends none, or more than one.
    pub payload: Option<String>,
}

impl Item {
    /// Creates an item of a node.
    pub fn new(node: &str, id: &str, payload: Option<String>) -> Self {
        Self { node: node.to_owned(), id: id.to_owned(), payload }
    }
}

/// An event about a node that a service sends to subscribers [xep-0060 §7.1].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A new or replaced item.
    Item(Item),
    /// An item of a node was removed.
    Retracted {
        /// Name of the node in its service.
        node: String,
        /// Identifier of the item within the node.
        id: String,
    },
    /// All items of a node were removed.
    Emptied {
        /// Name of the node in its service.
        node: String,
    },
    /// A node was removed, or its owner ended our subscription: there are no further events until
    /// we subscribe again.
    Unsubscribed {
        /// Name of the node in its service.
        node: String,
    },
    /// Events came faster than they were read: some are lost.
    Missed,
}

impl Event {
    /// Number of bytes in the texts of the event.
    pub(crate) fn length(&self) -> usize {
        match self {
            Self::Item(Item { node, id, payload }) => {
                node.len() + id.len() + payload.as_ref().map_or(0, String::len)
            }
            Self::Retracted { node, id } => node.len() + id.len(),
            Self::Emptied { node } | Self::Unsubscribed { node } => node.len(),
            Self::Missed => 0,
        }
    }
}

/// The events in a message. A message that came back as an error does not have events, even if it
/// contains some.
pub(crate) fn events(message: &Element) -> Vec<Event> {
    if message.attr("type") == Some("error") {
        return Vec::new();
    }
    let Some(event) = message.get_child("event", EVENT) else { return Vec::new() };
    let mut events = Vec::new();
    for child in event.children() {
        let node = child.attr("node").unwrap_or_default();
        if child.is("items", EVENT) {
            events.extend(items_of(child, node, EVENT).map(Event::Item));
            let retracted = child.children().filter(|child| child.is("retract", EVENT));
            events.extend(retracted.map(|one| Event::Retracted {
                node: node.to_owned(),
                id: one.attr("id").unwrap_or_default().to_owned(),
            }));
        } else if child.is("purge", EVENT) {
            events.push(Event::Emptied { node: node.to_owned() });
        } else if child.is("delete", EVENT)
            || child.is("subscription", EVENT) && child.attr("subscription") != Some("subscribed")
        {
            events.push(Event::Unsubscribed { node: node.to_owned() });
        }
    }
    events
}

pub(crate) fn items_of<'a>(
    items: &'a Element,
    node: &'a str,
    namespace: &'a str,
) -> impl Iterator<Item = Item> + use<'a> {
    items.children().filter(move |child| child.is("item", namespace)).map(move |item| Item {
        node: node.to_owned(),
        id: item.attr("id").unwrap_or_default().to_owned(),
        payload: payload_of(item),
    })
}

/// The payload of an item, which has one at most [xep-0060 §7.1.3].
fn payload_of(item: &Element) -> Option<String> {
    let mut payloads = item.children();
    payloads.next().filter(|_| payloads.next().is_none()).map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_by_namespace() {
        let message: Element = "<message xmlns='jabber:client' from='s'><event xmlns='http://jabber.org/protocol/pubsub#event'>\
             <items node='n'><item id='7'><s:urlset xmlns:s='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:r='urn:r' \
             r:type='changeset'/></item><item id='8'/><retract id='3'/></items></event></message>"
            .parse()
            .unwrap();
        let found = events(&message);
        let [Event::Item(first), Event::Item(second), Event::Retracted { node, id }] = &found[..]
        else {
            panic!("{found:?}");
        };
        let payload: Element = first.payload.as_ref().unwrap().parse().unwrap();
        assert!(payload.is("urlset", "http://www.sitemaps.org/schemas/sitemap/0.9"), "{payload:?}");
        assert_eq!((first.id.as_str(), second.id.as_str(), &second.payload), ("7", "8", &None));
        assert_eq!((node.as_str(), id.as_str()), ("n", "3"));
        for (inside, lost) in [
            ("<delete node='n'/>", true),
            ("<subscription node='n' jid='a@b' subscription='none'/>", true),
            ("<subscription node='n' jid='a@b' subscription='subscribed'/>", false),
            ("<purge node='n'/>", false),
        ] {
            let message: Element = format!(
                "<message xmlns='jabber:client'><event xmlns='{EVENT}'>{inside}</event></message>"
            )
            .parse()
            .unwrap();
            let expected = Event::Unsubscribed { node: "n".to_owned() };
            assert_eq!(events(&message).contains(&expected), lost, "{inside}");
        }
        for other in [
            "<message xmlns='jabber:client'/>",
            "<message xmlns='jabber:client' type='error'><event xmlns='http://jabber.org/protocol/pubsub#event'>\
             <delete node='n'/></event></message>",
            "<message xmlns='jabber:client'><event xmlns='urn:x'/></message>",
        ] {
            assert!(events(&other.parse().unwrap()).is_empty());
        }
    }
}
