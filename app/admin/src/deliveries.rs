//! The hub's topics, their targets, and the deliveries to a target.

use crate::request::{Page, Request, rendered};
use abreast_core::{Offset, TopicId};
use abreast_maintenance::HubStatus;
use abreast_server::api::hub_model::{TargetAnswer, TargetDetails, TopicAnswer};
use abreast_store::hub::TargetId;
use askama::Template;

/// Rows of a page.
const ROWS: usize = 100;

#[derive(Template)]
#[template(path = "topics.html")]
struct Topics<'p> {
    root: &'p str,
    hub: &'p HubStatus,
    topics: Vec<TopicAnswer>,
    /// The address of the next page.
    next: Option<String>,
}

#[derive(Template)]
#[template(path = "topic.html")]
struct Topic<'p> {
    root: &'p str,
    topic: TopicAnswer,
    targets: Vec<TargetAnswer>,
    next: Option<String>,
}

#[derive(Template)]
#[template(path = "target.html")]
struct Target<'p> {
    root: &'p str,
    target: TargetDetails,
    /// The number of the topic, if it is still there.
    topic: Option<i64>,
}

/// The number after which the next page begins, if this page is full.
fn next<T>(rows: &[T], id: impl Fn(&T) -> i64) -> Option<i64> {
    rows.last().filter(|_| rows.len() == ROWS).map(id)
}

/// Topics, and the targets that have failed longest. `None` without a hub, or if the store fails.
pub(crate) fn topics(request: &Request<'_>) -> Option<Page> {
    let hub = &request.site.hub.as_ref()?.hub;
    let store = request.sources.report.store(request.site);
    // The hub leaves out its internal topic.
    let mut found = hub.topics(TopicId(request.number("after")), ROWS + 1).ok()?;
    found.truncate(ROWS);
    let next = next(&found, |topic| topic.id.0);
    let template = Topics {
        root: &request.root,
        hub: store.hub.as_ref()?,
        topics: found.into_iter().map(TopicAnswer::from).collect(),
        next: next.map(|after| format!("{}deliveries?after={after}", request.root)),
    };
    let content = rendered(&template);
    Some(Page { title: "Deliveries".to_owned(), tab: "deliveries", content })
}

/// The targets of a topic.
pub(crate) fn topic(request: &Request<'_>, id: i64) -> Option<Page> {
    let hub = &request.site.hub.as_ref()?.hub;
    let topic = hub.store().topic(TopicId(id)).ok()??;
    let found = hub.targets(Some(topic.id), TargetId(request.number("after")), ROWS).ok()?;
    let next = next(&found, |target| target.id.0);
    let answer = |target| TargetAnswer::of(hub.store(), target, &topic.url, topic.head);
    let targets = found.into_iter().map(answer).collect::<Result<_, _>>().ok()?;
    let template = Topic {
        root: &request.root,
        topic: topic.into(),
        targets,
        next: next.map(|after| format!("{}topics/{id}?after={after}", request.root)),
    };
    let content = rendered(&template);
    Some(Page { title: format!("Topic {id}"), tab: "deliveries", content })
}

/// A target with its last attempts, and the forms that change it.
pub(crate) fn target(request: &Request<'_>, id: i64) -> Option<Page> {
    let hub = &request.site.hub.as_ref()?.hub;
    let target = hub.target(TargetId(id)).ok()??;
    let details = TargetDetails::read(hub.store(), target, Offset(0)).ok()?;
    let topic = hub.topic(&details.target.topic).map(|topic| topic.0);
    let template = Target { root: &request.root, target: details, topic };
    let content = rendered(&template);
    Some(Page { title: format!("Target {id}"), tab: "deliveries", content })
}
