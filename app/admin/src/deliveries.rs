//! The hub's topics, their targets, and the deliveries to a target.

use crate::request::{Page, Request, rendered};
use abreast_core::hub::TargetId;
use abreast_core::{LogError, Offset, TopicId};
use abreast_hub::Hub;
use abreast_maintenance::HubStatus;
use abreast_server::api::hub_model::{TargetAnswer, TargetDetails, TopicAnswer};
use askama::Template;

/// Rows of a page.
const ROWS: usize = 100;

#[derive(Template)]
#[template(path = "topics.html")]
struct TopicsTemplate<'p> {
    root: &'p str,
    hub: &'p HubStatus,
    topics: Vec<TopicAnswer>,
    /// The address of the next page.
    next: Option<String>,
}

#[derive(Template)]
#[template(path = "topic.html")]
struct TopicTemplate<'p> {
    root: &'p str,
    topic: TopicAnswer,
    targets: Vec<TargetAnswer>,
    next: Option<String>,
}

#[derive(Template)]
#[template(path = "target.html")]
struct TargetTemplate<'p> {
    root: &'p str,
    target: TargetDetails,
    /// The number of the topic, if it is still there.
    topic: Option<i64>,
}

/// The number after which the next page begins, if this page is full.
fn next<T>(rows: &[T], id: impl Fn(&T) -> i64) -> Option<i64> {
    rows.last().filter(|_| rows.len() == ROWS).map(id)
}

fn hub<'r>(request: &Request<'r>) -> Option<&'r Hub> {
    Some(&request.site.hub.as_ref()?.hub)
}

/// Topics, and the targets that have failed longest. `None` without a hub.
pub(crate) fn topics(request: &Request<'_>) -> Result<Option<Page>, LogError> {
    let Some(hub) = hub(request) else { return Ok(None) };
    let Some(report) = request.sources.report.hub(request.site) else { return Ok(None) };
    let (status, _) = report?;
    // The hub leaves out its internal topic.
    let mut found = hub.topics(TopicId(request.number("after")), ROWS + 1)?;
    found.truncate(ROWS);
    let next = next(&found, |topic| topic.id.0);
    let template = TopicsTemplate {
        root: &request.root,
        hub: &status,
        topics: found.into_iter().map(TopicAnswer::from).collect(),
        next: next.map(|after| format!("{}deliveries?after={after}", request.root)),
    };
    let content = rendered(&template);
    Ok(Some(Page { title: "Deliveries".to_owned(), tab: "deliveries", content }))
}

/// The targets of a topic.
pub(crate) fn topic(request: &Request<'_>, id: i64) -> Result<Option<Page>, LogError> {
    let Some(hub) = hub(request) else { return Ok(None) };
    let found = hub.topics(TopicId(id.saturating_sub(1)), 1)?.pop();
    let Some(topic) = found.filter(|topic| topic.id.0 == id) else { return Ok(None) };
    let found = hub.targets(Some(topic.id), TargetId(request.number("after")), ROWS)?;
    let next = next(&found, |target| target.id.0);
    let answer = |target| TargetAnswer::of(&**hub.store(), target, &topic.url, topic.head);
    let targets = found.into_iter().map(answer).collect::<Result<_, _>>()?;
    let template = TopicTemplate {
        root: &request.root,
        topic: topic.into(),
        targets,
        next: next.map(|after| format!("{}topics/{id}?after={after}", request.root)),
    };
    let content = rendered(&template);
    Ok(Some(Page { title: format!("Topic {id}"), tab: "deliveries", content }))
}

/// A target with its last attempts, and the forms that change it.
pub(crate) fn target(request: &Request<'_>, id: i64) -> Result<Option<Page>, LogError> {
    let Some(hub) = hub(request) else { return Ok(None) };
    let Some(target) = hub.target(TargetId(id))? else { return Ok(None) };
    let details = TargetDetails::read(&**hub.store(), target, Offset(0))?;
    let topic = hub.topic(&details.target.topic).map(|topic| topic.0);
    let template = TargetTemplate { root: &request.root, target: details, topic };
    let content = rendered(&template);
    Ok(Some(Page { title: format!("Target {id}"), tab: "deliveries", content }))
}
