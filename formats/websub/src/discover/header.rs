//! Hub and topic in the `Link` header of topics, notifications and deliveries
//! [websub §4, §7] [rs-change-notification §4].

use crate::discover::MAX_HUBS;
use crate::request::address::{AddressError, check_topic};
use abreast_webtypes::{Link, LinkHeaderError, parse_link_headers, write_link};
use thiserror::Error;

/// One `Link` value with every hub, the topic, and other links that stand as they are [websub §7].
///
/// # Examples
/// ```
/// use abreast_websub::topic_links;
///
/// let value = topic_links(["https://hub.example/"], "https://repo.example/changelist.xml", "");
/// assert_eq!(
///     value,
///     r#"<https://hub.example/>; rel="hub", <https://repo.example/changelist.xml>; rel="self""#,
/// );
/// ```
pub fn topic_links<'a>(
    hubs: impl IntoIterator<Item = &'a str>,
    topic: &str,
    others: &str,
) -> String {
    let mut value = String::new();
    let links = hubs.into_iter().map(|hub| (hub, "hub")).chain([(topic, "self")]);
    for (target, rel) in links {
        if !value.is_empty() {
            value.push_str(", ");
        }
        write_link(
            &mut value,
            &Link { target: target.to_owned(), rel: rel.to_owned(), params: Vec::new() },
        );
    }
    if !others.is_empty() {
        value.push_str(", ");
        value.push_str(others);
    }
    value
}

/// The `Link` headers of a notification that a publisher sends to a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedLinks {
    /// The topic, the one `rel="self"`.
    pub topic: String,
    /// The hubs, each once, at most [`MAX_HUBS`].
    pub hubs: Vec<String>,
    /// All other links, as one value to send along; empty for none.
    pub others: String,
}

/// Why the links name no topic.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LinksError {
    /// The `Link` headers cannot be read.
    #[error(transparent)]
    Unreadable(#[from] LinkHeaderError),
    /// The links have no `rel="self"`.
    #[error("no `Link` with rel=\"self\" names the topic")]
    NoTopic,
    /// Several links `rel="self"` lead to different places.
    #[error("several `Link` with rel=\"self\" name different topics")]
    Topics,
    /// The topic cannot be one.
    #[error("the `Link` with rel=\"self\" cannot be a topic: {0}")]
    Topic(AddressError),
    /// The message has more hubs than [`MAX_HUBS`].
    #[error("more than {MAX_HUBS} `Link` with rel=\"hub\"")]
    Hubs,
}

impl PublishedLinks {
    /// Reads the values of all `Link` headers of a message. Targets must be absolute, since the
    /// only base would be the hub's own address.
    ///
    /// # Examples
    /// ```
    /// use abreast_websub::PublishedLinks;
    ///
    /// let links = PublishedLinks::read([concat!(
    ///     r#"<https://repo.example/changelist.xml>; rel="self", "#,
    ///     r#"<https://hub.example/>; rel="hub", "#,
    ///     r#"<https://repo.example/capabilitylist.xml>; rel="resourcesync""#,
    /// )])?;
    /// assert_eq!(links.topic, "https://repo.example/changelist.xml");
    /// assert_eq!(links.hubs, ["https://hub.example/"]);
    /// assert_eq!(links.others, r#"<https://repo.example/capabilitylist.xml>; rel="resourcesync""#);
    /// # Ok::<(), abreast_websub::LinksError>(())
    /// ```
    ///
    /// # Errors
    /// See [`LinksError`].
    pub fn read<'a>(values: impl IntoIterator<Item = &'a str>) -> Result<Self, LinksError> {
        let (mut topic, mut hubs, mut others) = (None, Vec::new(), String::new());
        for mut link in parse_link_headers(values)? {
            if link.anchor().is_none() {
                if link.has_rel("self") {
                    if topic.as_ref().is_some_and(|topic| *topic != link.target) {
                        return Err(LinksError::Topics);
                    }
                    topic = Some(link.target.clone());
                }
                if link.has_rel("hub") && !hubs.contains(&link.target) {
                    if hubs.len() == MAX_HUBS {
                        return Err(LinksError::Hubs);
                    }
                    hubs.push(link.target.clone());
                }
                let is_other = |rel: &&str| {
                    !rel.eq_ignore_ascii_case("self") && !rel.eq_ignore_ascii_case("hub")
                };
                link.rel = link
                    .rel
                    .split_ascii_whitespace()
                    .filter(is_other)
                    .collect::<Vec<_>>()
                    .join(" ");
            }
            // A header cannot carry every text, so other links are left out: `hüb` would become
            // another relation, and a link from elsewhere a link of the topic.
            let is_plain = link.rel.is_ascii() && link.anchor().is_none_or(str::is_ascii);
            if is_plain && !link.rel.is_empty() {
                if !others.is_empty() {
                    others.push_str(", ");
                }
                write_link(&mut others, &link);
            }
        }
        let topic = topic.ok_or(LinksError::NoTopic)?;
        check_topic(&topic).map_err(LinksError::Topic)?;
        Ok(Self { topic, hubs, others })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn notification_links_name_topic_and_hub_and_keep_others() {
        let read = PublishedLinks::read([
            "<http://e/t>; rel=self, <http://h/>;rel=\"hub\"",
            "<http://e/caps>; rel=\"resourcesync\"; title=\"a, b\", <http://x/>; rel=self; anchor=\"/z\"",
            "<http://h/>; rel=\"HUB help\"",
        ]);
        let read = read.unwrap();
        assert_eq!(
            (read.topic.as_str(), read.hubs.as_slice()),
            ("http://e/t", &["http://h/".to_owned()][..])
        );
        assert_eq!(
            read.others,
            "<http://e/caps>; rel=\"resourcesync\"; title=\"a, b\", <http://x/>; rel=\"self\"; anchor=\"/z\", \
             <http://h/>; rel=\"help\""
        );
    }

    #[test]
    fn links_without_exactly_one_topic_are_refused() {
        for (value, error) in [
            ("", LinksError::NoTopic),
            ("<http://h/>; rel=hub", LinksError::NoTopic),
            ("<http://e/a>; rel=self, <http://e/b>; rel=self", LinksError::Topics),
            ("</a>; rel=self", LinksError::Topic(AddressError::NotAbsolute("/a".to_owned()))),
        ] {
            assert_eq!(PublishedLinks::read([value]), Err(error), "{value}");
        }
        assert!(PublishedLinks::read(["<http://e/a>; rel=self, <http://e/a>; rel=self"]).is_ok());
        let many = (0..=MAX_HUBS)
            .map(|n| format!("<http://h/{n}>; rel=hub, "))
            .collect::<Vec<_>>()
            .concat();
        assert_eq!(PublishedLinks::read([many.as_str()]), Err(LinksError::Hubs));
    }

    #[test]
    fn no_link_becomes_another_when_it_is_passed_on() {
        let read = PublishedLinks::read([
            "<http://e/t>; rel=self, <http://x/>; rel=\"hu\u{e9}b\", <http://x/>; rel=self; anchor=\"\u{e9}\"",
            "<http://x/>; rel=\"s\u{e9}elf up\", <http://y/\u{e9}>; rel=up",
        ]);
        assert_eq!(read.unwrap().others, "<http://y/%C3%A9>; rel=\"up\"");
    }

    proptest! {
        #[test]
        fn written_links_read_back(
            topic in "http://e/[!$-;=?-\\[\\]-~]{0,30}",
            hubs in proptest::collection::hash_set("http://h/[!$-;=?-\\[\\]-~]{0,30}", 1..4),
            other in "[a-z]{0,9}",
        ) {
            let others = if other.is_empty() { other } else { format!("<http://e/{other}>; rel=\"{other}\"") };
            prop_assume!(!others.contains("rel=\"hub\"") && !others.contains("rel=\"self\""));
            let value = topic_links(hubs.iter().map(String::as_str), &topic, &others);
            let read = PublishedLinks::read([value.as_str()]).unwrap();
            prop_assert_eq!(read, PublishedLinks { topic, hubs: hubs.into_iter().collect(), others });
        }

        #[test]
        fn no_value_panics(value: String) {
            let _ = PublishedLinks::read([value.as_str()]);
        }
    }
}
