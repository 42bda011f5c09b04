//! Reading the log, and recording many changes at once.

use super::answers::{RecordedAnswer, blocking, durable, json, typed, waiting};
use super::context::Context;
use super::intake::{self, MAX_BATCH_BYTES, parameter, unreadable};
use super::model::{RecordAnswer, RecordFault, RecordRequest, key_of_uri};
use super::problem::{FieldError, Problem, ProblemKind};
use super::request_name::{RequestName, idempotency_key};
use crate::message::negotiate;
use crate::message::respond::Answer;
use crate::observe::followers::Following;
use abreast_core::{Change, ChangeLog, LogError, Position, SetId};
use abreast_source::{AtMost, Naming};
use abreast_webtypes::{Timestamp, W3cDatetime};
use http::header::VARY;
use http::{HeaderValue, Request, StatusCode};
use hyper::body::Incoming;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// Most changes in a batch.
const MAX_BATCH: usize = 10_000;
/// Bytes of memory for each byte of a batch.
const MEMORY_OF_BATCH: u64 = 6;
/// Most changes in an answer.
const MAX_READ: usize = 10_000;
/// Most changes in an answer to a request without `limit`.
const READ: usize = 1_000;
/// Bytes after which a response ends.
const MAX_ANSWER: usize = 8 * 1024 * 1024;
/// Longest time that a request waits for a change, in seconds.
const MAX_WAIT: u64 = 30;
/// Most faults in a batch that are reported.
const MAX_FAULTS: usize = 20;

/// A page of the log.
#[derive(Serialize)]
struct ChangesAnswer {
    changes: Vec<RecordAnswer>,
    /// The value of `after` for the next request.
    next: u64,
    /// The head of the log at the time of the read.
    head: u64,
}

pub(super) async fn read(
    context: &Context<'_>,
    slug: &str,
    request: &Request<Incoming>,
) -> Result<Answer, Problem> {
    const KNOWN: &[&str] = &["after", "since", "limit", "wait"];
    let target = context.target(slug)?;
    let query = request.uri().query();
    let number = |name: &str| -> Result<Option<u64>, Problem> {
        let Some(text) = parameter(query, KNOWN, name)? else { return Ok(None) };
        let number =
            text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
        number
            .map(Some)
            .ok_or_else(|| Problem::new(ProblemKind::Query, format!("`{name}` is not a number")))
    };
    let (after, limit, wait) = (number("after")?, number("limit")?, number("wait")?.unwrap_or(0));
    let since = match parameter(query, KNOWN, "since")? {
        None => None,
        Some(text) => Some(
            W3cDatetime::parse(text.as_bytes())
                .map_err(|error| Problem::new(ProblemKind::Query, format!("`since`: {error}")))?
                .instant,
        ),
    };
    if after.is_some() && since.is_some() {
        return Err(Problem::new(ProblemKind::Query, "both `after` and `since` set the start")
            .help("leave one out"));
    }
    let limit = limit.unwrap_or(READ as u64);
    if !(1..=MAX_READ as u64).contains(&limit) {
        return Err(Problem::new(
            ProblemKind::Query,
            format!("`limit` is not between 1 and {MAX_READ}"),
        ));
    }
    if wait > MAX_WAIT {
        return Err(Problem::new(
            ProblemKind::Query,
            format!("`wait` is more than {MAX_WAIT} seconds"),
        ));
    }
    let resources = target.published.urls.resources();
    let log = Arc::clone(context.site.publisher.log());
    let id = target.published.id;
    let start = match (after, since) {
        (Some(after), _) => Position(after),
        (None, Some(since)) => {
            let log = Arc::clone(&log);
            blocking(move || Ok(log.position_at(id, since)?)).await?
        }
        (None, None) => Position(0),
    };
    if after.is_some() {
        let log = Arc::clone(&log);
        let (head, is_known) =
            blocking(move || Ok((log.head(id)?.position, is_known(&*log, id, start)?))).await?;
        if start > head || !is_known {
            let message = if start > head {
                format!(
                    "position {} is after the last change, {}: the store was made again, or restored from a backup",
                    start.0, head.0
                )
            } else {
                format!("position {} is of an earlier history: a new one began since then", start.0)
            };
            return Err(Problem::new(ProblemKind::Conflict, message)
                .help("read the set's resources again, then follow the log from its head"));
        }
    }
    let until = tokio::time::Instant::now() + Duration::from_secs(wait);
    if wait > 0 {
        context.heads.wait_behind(id, start, until).await;
    }
    let page =
        blocking(move || Ok(page(&*log, id, start, since, limit as usize, &resources)?)).await?;
    let lines = negotiate::prefers(request.headers(), "application/x-ndjson", "application/json");
    let mut answer = if lines {
        let mut text = Vec::new();
        for change in &page.changes {
            let _ = serde_json::to_writer(&mut text, change);
            text.push(b'\n');
        }
        typed("application/x-ndjson", text)
    } else {
        json(StatusCode::OK, &page)
    };
    answer.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
    let following = Following::Set(slug.to_owned(), Position(page.next));
    answer.extensions_mut().insert(following);
    Ok(answer)
}

fn page(
    log: &dyn ChangeLog,
    set: SetId,
    start: Position,
    since: Option<Timestamp>,
    limit: usize,
    resources: &str,
) -> Result<ChangesAnswer, LogError> {
    let head = log.head(set)?.position;
    let mut page = ChangesAnswer { changes: Vec::new(), next: start.0, head: head.0 };
    let mut bytes = 0;
    log.read(set, start, &mut |record| {
        page.next = record.position.0;
        if since.is_none_or(|since| record.time > since) {
            let state = record.state.as_ref();
            bytes += 300 + record.key.len() + state.map_or(0, |state| state.links.len() * 200);
            page.changes.push(RecordAnswer::of_change(record, resources));
        }
        if page.changes.len() < limit && bytes < MAX_ANSWER {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    page.head = page.head.max(page.next);
    Ok(page)
}

/// True if a client may have received this position. After a restart of the log, positions of the
/// lost part are recognised.
fn is_known(log: &dyn ChangeLog, set: SetId, position: Position) -> Result<bool, LogError> {
    let begins = log.pages(set, 1, 1)?.first().map_or(0, |page| page.after.0);
    // Every position after the start of the log has its change.
    if position.0 == 0 || position.0 >= begins {
        return Ok(true);
    }
    let mut known = false;
    log.read(set, Position(position.0 - 1), &mut |record| {
        known = record.position == position;
        ControlFlow::Break(())
    })?;
    Ok(known)
}

pub(super) async fn record(
    context: &Context<'_>,
    slug: &str,
    request: Request<Incoming>,
) -> Result<Answer, Problem> {
    let target = context.target(slug)?;
    let log = Arc::clone(context.site.publisher.log());
    context.not_importing(target.published.id).await?;
    if target.published.urls.naming().names_entities() {
        return Err(Problem::new(ProblemKind::Conflict, "this set has descriptions of entities")
            .help("PUT each at /api/v1/sets/SET/resource?uri=IRI, or use `abreast import`"));
    }
    let name = idempotency_key(&request)?;
    let _place = context.site.memory.receive(&context.client).await;
    let body = intake::whole(request.into_body(), MAX_BATCH_BYTES, context.api).await?;
    let memory = context.site.memory.take(body.len() * MEMORY_OF_BATCH).await;
    let (body, digest) = blocking(move || {
        let body = body.into_bytes()?;
        let digest: [u8; 32] = Sha256::digest(&body).into();
        Ok((body, digest))
    })
    .await?;
    let name = name.map(|name| RequestName::new(context.api, target.published.id, name, digest));
    let name = name.transpose()?;
    let (id, resources) = (target.published.id, target.published.urls.resources());
    let folder = target.published.representations.has_folder();
    let receiver = blocking(move || {
        let _memory = memory;
        let records = records_of(&body)?;
        drop(body);
        if let Some((change, detail)) = reused_key(&records) {
            let first = format!("change {change}: {detail}");
            return Err(Problem::new(ProblemKind::KeyReused, first)
                .help("give each change an `idempotency_key` of its own")
                .errors(vec![FieldError { change, detail }]));
        }
        let mut changes = changes_of(&records, &resources, &*log, id, folder)?;
        if let Some(name) = name {
            name.check(&*log)?;
            for (number, change) in changes.iter_mut().enumerate() {
                change.idempotency_key.get_or_insert_with(|| name.key(number));
            }
        }
        let (done, receiver) = waiting();
        log.append_then(id, changes, done);
        Ok(receiver)
    })
    .await?;
    let appended = durable(receiver).await?;
    Ok(json(StatusCode::OK, &RecordedAnswer::from(appended)))
}

/// Parses a JSON array, or lines with one JSON object each.
pub(crate) fn records_of(body: &[u8]) -> Result<Vec<RecordRequest>, Problem> {
    let too_many = |count: usize| {
        Problem::new(
            ProblemKind::TooLarge,
            format!("{count} changes; at most {MAX_BATCH} are recorded at once"),
        )
        .help("send them in several batches")
    };
    let records: Vec<RecordRequest> = if body.trim_ascii_start().first() == Some(&b'[') {
        let AtMost { items, more } = intake::parse::<AtMost<_, MAX_BATCH>>(body)?;
        if more > 0 {
            return Err(too_many(items.len() + more));
        }
        items
    } else {
        let mut records = Vec::new();
        for (number, line) in body.split(|byte| *byte == b'\n').enumerate() {
            if line.trim_ascii().is_empty() {
                continue;
            }
            if records.len() == MAX_BATCH {
                return Err(too_many(body.split(|byte| *byte == b'\n').count()));
            }
            records.push(
                serde_json::from_slice(line)
                    .map_err(|error| unreadable(&error, Some(number + 1)))?,
            );
        }
        records
    };
    if records.is_empty() {
        return Err(Problem::new(ProblemKind::Syntax, "there are no changes in the body")
            .help("send a JSON array of changes, or one JSON object a line"));
    }
    Ok(records)
}

/// The first change in a batch that has the idempotency key of another, different change, from 1,
/// and a message. Only the first of the two could be recorded.
pub fn reused_key(records: &[RecordRequest]) -> Option<(usize, String)> {
    let mut keys = HashMap::new();
    for (number, record) in records.iter().enumerate() {
        let Some(key) = &record.idempotency_key else { continue };
        let first = *keys.entry(key).or_insert(number);
        // Equal lines are the same change, sent twice.
        let is_other = first != number
            && serde_json::to_value(&records[first]).ok() != serde_json::to_value(record).ok();
        if is_other {
            let key = abreast_webtypes::visible(key);
            let detail = format!(
                "`idempotency_key`: `{key}` is that of change {} as well, which is another one",
                first + 1
            );
            return Some((number + 1, detail));
        }
    }
    None
}

fn changes_of(
    records: &[RecordRequest],
    resources: &str,
    log: &dyn ChangeLog,
    set: SetId,
    folder: bool,
) -> Result<Vec<Change>, Problem> {
    let mut changes = Vec::with_capacity(records.len());
    let mut faults = Vec::new();
    for (number, record) in records.iter().enumerate() {
        match change_of(record, resources, log, set, folder) {
            Ok(change) => changes.push(change),
            Err(RecordFault::Log(error)) => return Err(error.into()),
            Err(RecordFault::Field(detail)) if faults.len() < MAX_FAULTS => {
                faults.push(FieldError { change: number + 1, detail });
            }
            Err(_) => {}
        }
    }
    if let Some(first) = faults.first() {
        let detail = format!("change {}: {}", first.change, first.detail);
        return Err(Problem::new(ProblemKind::Field, detail).errors(faults));
    }
    Ok(changes)
}

/// The change of a resource that another server serves.
///
/// # Errors
/// The error in the record.
pub fn change_of(
    record: &RecordRequest,
    resources: &str,
    log: &dyn ChangeLog,
    set: SetId,
    folder: bool,
) -> Result<Change, RecordFault> {
    let uri = record.uri.as_deref().ok_or("`uri` is missing")?;
    let key = key_of_uri(uri, resources)?;
    if Naming::is_own(&key) {
        let fault = if folder {
            "`uri`: files of the folder cannot be recorded (help: PUT its content, or its links, one resource at a time)"
        } else {
            "`uri`: not absolute; this set has records of resources elsewhere only"
        };
        return Err(fault.into());
    }
    let change = record.to_change(&key, resources, log, set)?;
    abreast_core::check_change(&change).map_err(|error| error.to_string())?;
    Ok(change)
}
