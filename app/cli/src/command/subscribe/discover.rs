//! Discovery of the event stream: at the topic, at its hub, or through a Source's documents.

use crate::program::errors::UsageError;
use abreast_destination::{TopicKind, TopicStep};
use abreast_net::{Client, ErrorKind, Request, Response, with_retries};
use abreast_websub::in_headers;
use anyhow::{Context as _, Result, bail};
use http::header::{CONTENT_TYPE, LINK};
use url::Url;

/// Requested media types: a stream, or a document that leads to one.
pub(super) const ACCEPT: &str = "text/event-stream, application/xml;q=0.9, */*;q=0.1";

/// A stream.
pub(super) struct Stream {
    pub(super) topic: String,
    /// URL from which the stream is reopened.
    pub(super) url: String,
    pub(super) response: Response,
}

/// Steps from the given address to the stream.
const MAX_STEPS: usize = 8;
/// Bytes of a document that leads on.
const MAX_DOCUMENT: u64 = 4 << 20;

pub(super) fn is_stream(response: &Response) -> bool {
    let kind = response.header(CONTENT_TYPE.as_str()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream")
}

/// Which topic of a Source.
pub(super) struct TopicFilter<'a> {
    pub(super) kind: TopicKind,
    /// The set's name, or the URL of its Capability List.
    pub(super) set: Option<&'a str>,
}

impl TopicFilter<'_> {
    fn is_set(&self, list: &str) -> bool {
        self.set.is_none_or(|set| set == list || abreast_destination::set_name(list) == set)
    }
}

/// Opens the stream of a topic. If `url` is a document, follows its links to a topic of the wanted
/// kind.
pub(super) async fn stream(
    client: &Client,
    url: &str,
    wanted: &TopicFilter<'_>,
    last: Option<&str>,
) -> Result<Stream> {
    let host = |url: &str| Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
    let own = host(url);
    let (mut next, mut topic) = (url.to_owned(), None);
    let mut tried: Vec<String> = Vec::new();
    for _ in 0..MAX_STEPS {
        // Do not trust links in documents: outside the host in `url`, only public addresses are used.
        let public_only = host(&next) != own;
        let request = Request {
            accept: Some(ACCEPT),
            last_event_id: last,
            public_only,
            ..Request::new(&next)
        };
        let answer =
            with_retries(client, &next, async |_| client.send(&request).await?.require_success())
                .await;
        // The root of a site may have no page.
        let is_bare_root = tried.is_empty() && Url::parse(&next).is_ok_and(|url| url.path() == "/");
        if is_bare_root
            && answer.as_ref().err().is_some_and(|error| {
                matches!(error.status(), Some(403 | 404 | 410)) || error.kind() == ErrorKind::Header
            })
        {
            let well_known = Url::parse(url)?.join("/.well-known/resourcesync")?;
            tried.push(std::mem::replace(&mut next, well_known.into()));
            continue;
        }
        let mut response = answer.with_context(|| format!("cannot follow {next}"))?;
        tried.push(std::mem::take(&mut next));
        let here = tried.last().map_or("", String::as_str);
        if is_stream(&response) {
            let topic = topic.or_else(|| named(here)).unwrap_or_else(|| response.url().to_owned());
            return Ok(Stream { topic, url: here.to_owned(), response });
        }
        let links = response.values(LINK.as_str());
        let mut body = Vec::new();
        response.set_limit(MAX_DOCUMENT);
        response
            .read_to(&mut body, MAX_DOCUMENT)
            .await
            .with_context(|| format!("cannot read {here}"))?;
        let found = in_headers(response.url(), links.iter().map(String::as_str)).ok().flatten();
        next = if let Some(found) = found {
            let hub = found
                .hubs
                .iter()
                .map(|hub| events_at(hub, &found.topic))
                .find(|url| !tried.contains(url));
            topic = Some(found.topic);
            hub.unwrap_or_default()
        } else {
            documents_lead(&body, response.url(), url, wanted)?
                .or_else(|| {
                    Url::parse(url).ok()?.join("/.well-known/resourcesync").ok().map(String::from)
                })
                .unwrap_or_default()
        };
        if next.is_empty() || tried.contains(&next) {
            break;
        }
    }
    let way = tried.join(", ");
    bail!(
        "{url} leads to no event stream\n  tried {way}\n  help: name a topic; its own hub must offer streams"
    )
}

/// The stream of a topic at a hub like ours.
fn events_at(hub: &str, topic: &str) -> String {
    let Ok(mut url) = Url::parse(hub) else { return String::new() };
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().push("events");
    }
    url.query_pairs_mut().append_pair("topic", topic);
    url.into()
}

/// The topic in the address of a hub's stream.
fn named(url: &str) -> Option<String> {
    let url = Url::parse(url).ok().filter(|url| url.path().ends_with("/events"))?;
    url.query_pairs().find(|(name, _)| name == "topic").map(|(_, topic)| topic.into_owned())
}

/// The next address that a document of a Source links to; `None` for any other document. If the
/// Source has several sets and `wanted` specifies none, the set above `given` is chosen.
fn documents_lead(
    body: &[u8],
    base: &str,
    given: &str,
    wanted: &TopicFilter<'_>,
) -> Result<Option<String>> {
    match TopicStep::read(body, base, wanted.kind) {
        None => Ok(None),
        Some(TopicStep::Set { topic: Some(topic), .. }) if wanted.is_set(base) => Ok(Some(topic)),
        Some(TopicStep::Set { topic: None, .. }) if wanted.is_set(base) => {
            bail!(
                "{base} lists no {} topic: the Source sends no such notifications",
                wanted.kind.capability()
            )
        }
        Some(TopicStep::Sets(lists)) => {
            let mut chosen: Vec<&String> =
                lists.iter().filter(|list| wanted.is_set(list)).collect();
            if wanted.set.is_none() && chosen.len() > 1 {
                let above: Vec<_> =
                    chosen.iter().copied().filter(|list| is_below(given, list)).collect();
                chosen = if above.len() == 1 { above } else { chosen };
            }
            let shown: Vec<_> = lists
                .iter()
                .take(10)
                .map(|list| format!("{}  {list}", abreast_destination::set_name(list)))
                .collect();
            let shown = shown.join("\n  ");
            match (chosen.as_slice(), wanted.set) {
                ([only], _) => Ok(Some((*only).clone())),
                ([], None) => bail!("{base} names no Capability List"),
                ([], Some(set)) => {
                    bail!(UsageError(format!(
                        "the Source has no set `{set}`; it has\n  {shown}\n  help: choose one of these"
                    )))
                }
                (_, _) => bail!(UsageError(format!(
                    "the Source has {} sets\n  {shown}\n  help: choose one with `--set NAME` or `--set URL`",
                    lists.len()
                ))),
            }
        }
        Some(TopicStep::Set { up, .. } | TopicStep::Up(up)) => Ok(up),
    }
}

/// Whether an address is in the folder of a set's Capability List.
fn is_below(url: &str, list: &str) -> bool {
    let folder = list.rfind('/').map_or(list, |end| &list[..=end]);
    let is_root = Url::parse(folder).is_ok_and(|url| url.path() == "/");
    !is_root && url.starts_with(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_keeps_its_query() {
        let url = events_at("https://hub.example/hub?key=1", "http://x/a?b=c&d");
        assert_eq!(
            url,
            "https://hub.example/hub/events?key=1&topic=http%3A%2F%2Fx%2Fa%3Fb%3Dc%26d"
        );
        assert_eq!(named(&url).as_deref(), Some("http://x/a?b=c&d"));
        assert_eq!(named("http://x/topic?topic=y"), None);
    }

    #[test]
    fn documents_lead_up_and_then_down_to_the_topic() {
        let of_set = |body: &str, set: Option<&str>| {
            let wanted = TopicFilter { kind: TopicKind::Changes, set };
            let base = "http://x/s/list.xml";
            documents_lead(body.as_bytes(), base, "http://x/", &wanted)
        };
        let read = |body: &str| of_set(body, None);
        let document = |inner: &str| {
            format!(
                "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
                 xmlns:rs=\"http://www.openarchives.org/rs/terms/\">{inner}</urlset>"
            )
        };
        let up = document(
            "<rs:ln rel=\"up\" href=\"http://x/s/caps.xml\"/><rs:md capability=\"resourcelist\"/>",
        );
        assert_eq!(read(&up).unwrap().as_deref(), Some("http://x/s/caps.xml"));
        let caps =
            |inner: &str| document(&format!("<rs:md capability=\"capabilitylist\"/>{inner}"));
        let topic = "<url><loc>http://x/t</loc><rs:md capability=\"change-notification\"/></url>";
        assert_eq!(read(&caps(topic)).unwrap().as_deref(), Some("http://x/t"));
        assert!(read(&caps("")).is_err());
        let one = "<url><loc>http://x/c</loc><rs:md capability=\"capabilitylist\"/></url>";
        let description =
            |inner: &str| document(&format!("<rs:md capability=\"description\"/>{inner}"));
        assert_eq!(read(&description(one)).unwrap().as_deref(), Some("http://x/c"));
        let two =
            description(&format!("{one}{}", one.replace("x/c<", "x/maps/capabilitylist.xml<")));
        assert!(read(&two).unwrap_err().is::<UsageError>());
        let maps = Some("http://x/maps/capabilitylist.xml");
        assert_eq!(of_set(&two, Some("maps")).unwrap().as_deref(), maps);
        assert_eq!(of_set(&two, maps).unwrap().as_deref(), maps);
        let wanted = TopicFilter { kind: TopicKind::Changes, set: None };
        let below = |given: &str| documents_lead(two.as_bytes(), "http://x/", given, &wanted);
        assert_eq!(below("http://x/maps/v0.1/sitemap.xml").unwrap().as_deref(), maps);
        assert!(below("http://x/other/emm/1.0").unwrap_err().is::<UsageError>());
        let error = of_set(&two, Some("map")).unwrap_err();
        assert!(
            error.is::<UsageError>() && error.to_string().contains("maps  http://x/maps/"),
            "{error}"
        );
        // A document of another set leads up to the Source.
        let other = caps(&format!("<rs:ln rel=\"up\" href=\"http://x/all\"/>{topic}"));
        assert_eq!(of_set(&other, Some("maps")).unwrap().as_deref(), Some("http://x/all"));
        assert_eq!(read("<html/>").unwrap(), None);
    }
}
