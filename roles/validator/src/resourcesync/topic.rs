//! Rules for topics and hubs as subscribers need them [rs-change-notification §4.1] [websub
//! §5.1.2].

use crate::fetch::{self, Budget, Failure, ResponseFacts, values};
use crate::report::{Findings, rules as r};
use crate::resourcesync::doc::Doc;
use crate::walk::node::Walked;
use crate::walk::protocol::Run;
use abreast_net::{Client, Post, Request, Response, UnaskedEncoding};
use abreast_resourcesync::v1_1::Capability;
use abreast_webtypes::{excerpt, resolve, without_fragment};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// Most hubs that receive a test request.
const HUBS_ASKED_MAX: usize = 16;

/// Checks the answer of a topic to subscribers. `got` contains the headers of the content; a
/// `silent` topic does not have content yet.
///
/// # Errors
/// A limit was reached, or the user stopped the walk.
pub(crate) async fn answers(
    client: &Client,
    url: &str,
    got: &ResponseFacts,
    silent: bool,
    budget: &Budget<'_>,
    found: &mut Findings,
) -> Result<(), Failure> {
    let nowhere = (0, 0);
    status("GET", url, got, found);
    if !is_xml(got) {
        found.add(&r::TOPIC_TYPE, nowhere, || format!("Content-Type is {}", content_type(got)));
    }
    let selves = targets(got, &got.selves);
    if got.selves.len() != 1 {
        found.add(&r::TOPIC_SELF, nowhere, || {
            format!("there are {} links `self`", got.selves.len())
        });
    } else if !selves.contains(url) {
        found.add(&r::TOPIC_SELF, nowhere, || format!("`self` is {}", excerpt(&got.selves[0])));
    }
    if got.hubs.is_empty() {
        found.add(&r::TOPIC_HUBS, nowhere, || "there is no link `hub`");
    }
    if silent && got.content_length != Some(0) {
        found.add(&r::TOPIC_EMPTY, nowhere, || "no content, and no Content-Length");
    }
    let asked = match fetch::head(client, url, budget).await {
        Ok(asked) => asked,
        Err(Failure::Missing(message)) => {
            found.add(&r::TOPIC_ANSWERS, nowhere, || format!("HEAD: {message}"));
            return Ok(());
        }
        Err(other) => return Err(other),
    };
    status("HEAD", url, &asked, found);
    if targets(&asked, &asked.selves) != selves {
        found.add(&r::TOPIC_HEAD, nowhere, || "HEAD brings another `self`");
    }
    if targets(&asked, &asked.hubs) != targets(got, &got.hubs) {
        found.add(&r::TOPIC_HEAD, nowhere, || "HEAD brings other hubs");
    }
    if is_xml(&asked) != is_xml(got) {
        let message = || format!("HEAD brings Content-Type {}", content_type(&asked));
        found.add(&r::TOPIC_HEAD, nowhere, message);
    }
    Ok(())
}

fn status(method: &str, url: &str, facts: &ResponseFacts, found: &mut Findings) {
    if facts.url != without_fragment(url) {
        found.add(&r::TOPIC_ANSWERS, (0, 0), || format!("{method} is redirected to {}", facts.url));
    } else if facts.status != 200 {
        found.add(&r::TOPIC_ANSWERS, (0, 0), || {
            format!("{method} is answered with {}", facts.status)
        });
    }
}

fn content_type(facts: &ResponseFacts) -> String {
    facts.content_type.as_deref().map_or_else(|| "missing".to_owned(), excerpt)
}

fn is_xml(facts: &ResponseFacts) -> bool {
    facts
        .content_type
        .as_deref()
        .is_some_and(|content_type| values::essence(content_type) == "application/xml")
}

/// Targets of links, without duplicates.
fn targets(facts: &ResponseFacts, links: &[String]) -> BTreeSet<String> {
    links.iter().map(|link| resolve(&facts.url, link).unwrap_or_else(|_| link.clone())).collect()
}

/// Hubs in the `Link` headers of a topic.
pub(crate) fn hubs(facts: &ResponseFacts) -> BTreeSet<String> {
    targets(facts, &facts.hubs)
}

/// Sends each hub of the Source a request without parameters. A hub that refuses it with a clear
/// message also explains errors to subscribers.
pub(super) fn ask_hubs(walked: &mut Walked, run: &Run<'_>) {
    let options = run.options;
    if options.sample.is_none() || !options.walk || walked.cancelled || walked.limit.is_some() {
        return;
    }
    let (mut asked, mut all) = (HashSet::new(), Vec::new());
    for (number, node) in walked.nodes.iter().enumerate() {
        let Some(doc) = node.outcome.record::<Doc>() else { continue };
        for child in doc.children.iter().filter(|_| doc.is(Capability::CapabilityList)) {
            for hub in child.announced.iter().flat_map(|announced| &announced.hubs) {
                if asked.len() < HUBS_ASKED_MAX && run.hosts.may(hub) && asked.insert(hub.clone()) {
                    all.push((number, child.place, hub.clone()));
                }
            }
        }
    }
    if all.is_empty() {
        return;
    }
    let Some(runtime) = fetch::runtime() else { return };
    let client = Client::new(Arc::clone(&run.shared));
    for (number, place, hub) in all {
        let fault = match runtime.block_on(refusal(&client, &hub, run.budget)) {
            Ok(None) => continue,
            Ok(Some(fault)) | Err(Failure::Missing(fault)) => fault,
            Err(Failure::Limit(limit)) => {
                walked.limit = Some(limit);
                return;
            }
            Err(Failure::Cancelled) => {
                walked.cancelled = true;
                return;
            }
        };
        let node = &mut walked.nodes[number];
        let mut found = Findings::new(&node.url, options.mode, options.most_each);
        found.add(&r::HUB_ANSWERS, place, || format!("the hub {}: {fault}", excerpt(&hub)));
        node.findings.append(&mut found.into_list());
    }
}

/// Faults in the response of a hub to a request without parameters.
async fn refusal(
    client: &Client,
    hub: &str,
    budget: &Budget<'_>,
) -> Result<Option<String>, Failure> {
    budget.take(0)?;
    let nothing = Vec::<u8>::new().into();
    let post = Post {
        body: &nothing,
        content_type: "application/x-www-form-urlencoded",
        idempotency_key: None,
    };
    let request = Request {
        post: Some(post),
        unasked_encoding: UnaskedEncoding::Decode,
        ..Request::new(hub)
    };
    let mut response =
        client.send(&request).await.map_err(|error| fetch::missing(hub, &error, budget))?;
    let status = response.status();
    if !status.is_client_error() {
        return Ok(Some(format!(
            "a request without parameters is answered with {}",
            status.as_u16()
        )));
    }
    if !is_text(&response) {
        return Ok(Some("the refusal is not text".to_owned()));
    }
    let body = response
        .chunk()
        .await
        .map_err(|error| fetch::missing(hub, &error, budget))?
        .unwrap_or_default();
    budget.take(body.len())?;
    Ok(body.is_empty().then(|| "the refusal has no reason".to_owned()))
}

/// Whether the body is text, or a problem description for programs [rfc9457 §3].
fn is_text(response: &Response) -> bool {
    let essence = response.header("content-type").map(values::essence).unwrap_or_default();
    essence.starts_with("text/")
        || essence == "application/problem+json"
        || essence == "application/json"
}
