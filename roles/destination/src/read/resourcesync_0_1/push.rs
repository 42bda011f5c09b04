//! The offers of a Source to push change sets [rs-0.1 §5.2].

use crate::push::announcement::PushOffer;
use abreast_resourcesync::v0_1::{CALLBACK_PROTOCOL, Link, XMPP_PROTOCOL};
use abreast_webtypes::resolve;
use percent_encoding::percent_decode_str;

/// Maximum number of offers that are used of a document.
const OFFERS_MAX: usize = 16;
/// Maximum length of the name of a service or node (RFC 7622 allows 1,023 bytes for each part).
const NAME_MAX: usize = 3_071;

impl PushOffer {
    /// Parses a link of a document at `base` as an offer; `topic` is the current change set.
    fn of(link: &Link, base: &str, topic: Option<&str>) -> Option<Self> {
        let (protocol, href) =
            (link.protocol.as_deref().unwrap_or_default().trim(), link.href.trim());
        let scheme = href.get(..5).unwrap_or_default();
        if scheme.eq_ignore_ascii_case("xmpp:") {
            let has_protocol = protocol == XMPP_PROTOCOL;
            let node = link.pubsub_node.as_deref().filter(|_| has_protocol);
            return xmpp(&href[5..], node);
        }
        let is_plain = protocol != CALLBACK_PROTOCOL;
        if is_plain && !is_of_callbacks(protocol) {
            return None;
        }
        let subscribe = resolve(base, href).ok()?;
        let is_http = abreast_net::check_url(&subscribe).is_ok();
        let topic = topic.map(str::to_owned);
        is_http.then_some(Self::Callback { subscribe, topic, is_plain })
    }

    /// All offers among the links of a document.
    pub(crate) fn all_of(links: &[Link], base: &str, topic: Option<&str>) -> Vec<Self> {
        let mut offers = Vec::new();
        for offer in links.iter().filter_map(|link| Self::of(link, base, topic)) {
            if offers.len() < OFFERS_MAX && !offers.contains(&offer) {
                offers.push(offer);
            }
        }
        offers
    }

    /// As a line of text.
    pub(super) fn to_line(&self) -> String {
        match self {
            Self::Xmpp { service, node } => format!("xmpp\t{service}\t{node}"),
            Self::Callback { subscribe, topic, is_plain } => {
                let kind = if *is_plain { "plain" } else { "callback" };
                format!("{kind}\t{subscribe}\t{}", topic.as_deref().unwrap_or_default())
            }
        }
    }

    /// Parses a stored line.
    pub(super) fn from_line(line: &str) -> Option<Self> {
        let mut parts = line.split('\t');
        let (kind, first, second) = (parts.next()?, parts.next()?, parts.next()?);
        match kind {
            "xmpp" => Some(Self::Xmpp { service: first.to_owned(), node: second.to_owned() }),
            "callback" | "plain" => Some(Self::Callback {
                subscribe: first.to_owned(),
                topic: Some(second.to_owned()).filter(|topic| !topic.is_empty()),
                is_plain: kind == "plain",
            }),
            _ => None,
        }
    }
}

/// Whether the URI of a protocol denotes callbacks. The specification has only an example, whose
/// last part is this word; the URIs of other Sources are similar.
fn is_of_callbacks(protocol: &str) -> bool {
    let last = protocol.trim_end_matches('/').rsplit(['/', ':', '#']).next().unwrap_or_default();
    last.eq_ignore_ascii_case("callback") || last.eq_ignore_ascii_case("http-callback")
}

/// The service and node of an XMPP URI without its scheme. Its query may name the node:
/// `?pubsub;action=subscribe;node=N` (XEP-0060, section 12.21).
fn xmpp(address: &str, node: Option<&str>) -> Option<PushOffer> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8().ok().map(String::from);
    let (service, query) = address.split_once('?').unwrap_or((address, ""));
    // `//` is followed by an account, which only the user may choose.
    let service = decoded(service).filter(|service| !service.contains(['/', '?', '#']))?;
    let mut keys = query.split(';');
    let named = || {
        let is_pubsub = keys.next()? == "pubsub";
        let pairs: Vec<_> = keys.filter_map(|pair| pair.split_once('=')).collect();
        let of = |key: &str| pairs.iter().find(|pair| pair.0 == key).map(|pair| pair.1);
        let is_subscription = of("action").is_none_or(|action| action == "subscribe");
        of("node").filter(|_| is_pubsub && is_subscription).and_then(decoded)
    };
    let node = node.map(str::to_owned).or_else(named)?;
    let is_valid =
        |text: &str| !text.is_empty() && text.len() <= NAME_MAX && !text.contains(char::is_control);
    (is_valid(&service) && is_valid(&node)).then_some(PushOffer::Xmpp { service, node })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offers(href: &str, protocol: Option<&str>, node: Option<&str>) -> Vec<PushOffer> {
        let link = Link {
            href: href.to_owned(),
            protocol: protocol.map(str::to_owned),
            pubsub_node: node.map(str::to_owned),
            ..Link::default()
        };
        PushOffer::all_of(&[link.clone(), link], "http://h/s.xml", Some("http://h/c.xml"))
    }

    #[test]
    fn nodes_are_named_by_an_attribute_or_by_the_query() {
        let node = |node: &str| {
            vec![PushOffer::Xmpp { service: "pubsub.h".to_owned(), node: node.to_owned() }]
        };
        let xmpp = Some(XMPP_PROTOCOL);
        assert_eq!(offers("xmpp:pubsub.h", xmpp, Some("N")), node("N"));
        assert_eq!(
            offers("XMPP:pubsub.h?pubsub;action=subscribe;node=a%2Fb", None, None),
            node("a/b")
        );
        assert_eq!(offers("xmpp:pubsub.h?pubsub;node=N", xmpp, None), node("N"));
        for (href, protocol, name) in [
            ("xmpp:pubsub.h", xmpp, None),
            ("xmpp:pubsub.h", Some("http://other.example/"), Some("N")),
            ("xmpp:pubsub.h?pubsub;action=unsubscribe;node=N", None, None),
            ("xmpp:pubsub.h?message;node=N", None, None),
            ("xmpp://user@h/pubsub.h?pubsub;node=N", None, None),
            ("xmpp:?pubsub;node=N", None, None),
            ("xmpp:h?pubsub;node=a%0Ab", None, None),
            ("http://pubsub.h/", xmpp, Some("N")),
        ] {
            assert!(offers(href, protocol, name).is_empty(), "{href}");
        }
    }

    #[test]
    fn callbacks_are_subscribed_at_http_addresses() {
        let topic = Some("http://h/c.xml".to_owned());
        let offer = |is_plain| PushOffer::Callback {
            subscribe: "http://h/subscribe".to_owned(),
            topic: topic.clone(),
            is_plain,
        };
        assert_eq!(offers("/subscribe", Some(CALLBACK_PROTOCOL), None), [offer(false)]);
        assert!(offers("mailto:a@h", Some(CALLBACK_PROTOCOL), None).is_empty());
        // Protocols of other publishers are accepted too, as in the specification's example.
        for protocol in ["http://example.com/protocol/callback", "http://h/#Callback"] {
            assert_eq!(offers("/subscribe", Some(protocol), None), [offer(true)], "{protocol}");
        }
        for protocol in ["http://example.com/protocol/other", "", "http://h/callback/2"] {
            assert!(offers("/subscribe", Some(protocol), None).is_empty(), "{protocol}");
        }
        for offer in [offer(true), offer(false)] {
            assert_eq!(PushOffer::from_line(&offer.to_line()), Some(offer));
        }
        let xmpp = PushOffer::Xmpp { service: "s".to_owned(), node: "n m".to_owned() };
        assert_eq!(PushOffer::from_line(&xmpp.to_line()), Some(xmpp));
        assert_eq!(PushOffer::from_line("other\ta\tb"), None);
    }
}
