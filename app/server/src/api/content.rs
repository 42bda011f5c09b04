//! The content of a resource in a folder.

use super::answers::{Receiver, RecordedAnswer, blocking, durable, json, waiting};
use super::context::Context;
use super::intake::Pieces;
use super::model::RecordAnswer;
use super::problem::{Problem, ProblemKind, disk_full, full_disk, out_of_reach};
use super::refusals::{elsewhere_only, files_of_nodes};
use crate::message::conditional::unmodified_since;
use crate::message::respond::Answer;
use crate::site::resource::{self, relative_path};
use crate::site::served::ServedSet;
use abreast_core::Appended;
use abreast_source::Naming;
use abreast_source::deposit::{Condition, DepositError, Upload, tag_of};
use http::header::{CONTENT_ENCODING, CONTENT_RANGE, ETAG, IF_MATCH, IF_NONE_MATCH, LOCATION};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use hyper::body::{Body as _, Incoming};
use serde::Serialize;
use std::sync::Arc;

/// Bytes that are collected before they are passed to a blocking thread.
const CHUNK: usize = 256 * 1024;

pub(super) async fn read(
    context: &Context<'_>,
    slug: &str,
    path: &str,
    request: &Request<Incoming>,
) -> Result<Answer, Problem> {
    let target = context.target(slug)?;
    if !target.published.representations.has_folder() {
        return Err(elsewhere_only());
    }
    // No redirect: a URL of the bucket needs no token.
    let asked = (request.method(), request.headers());
    let answer = resource::answer(context.site, target, path, asked, None).await;
    answer.map_err(|error| {
        Problem::new(ProblemKind::Store, format!("the file cannot be read: {error}"))
    })
}

#[derive(Serialize)]
struct Put {
    #[serde(flatten)]
    recorded: RecordedAnswer,
    resource: RecordAnswer,
}

pub(super) async fn put(
    context: &Context<'_>,
    slug: &str,
    path: &str,
    request: Request<Incoming>,
) -> Result<Answer, Problem> {
    let target = context.target(slug)?;
    let (deposit, folder) = place(target)?;
    context.not_importing(target.published.id).await?;
    for (name, why) in
        [(CONTENT_RANGE, "a part of a content"), (CONTENT_ENCODING, "an encoded content")]
    {
        if request.headers().contains_key(&name) {
            return Err(Problem::new(ProblemKind::Query, format!("{why} cannot be put"))
                .help(format!("send the whole as it is, without `{name}`")));
        }
    }
    let path = path_in(path)?;
    let limit = context.api.options.max_content;
    if request.body().size_hint().lower() > limit {
        return Err(Problem::new(
            ProblemKind::TooLarge,
            format!("more than {limit} bytes are not taken"),
        )
        .help("set `max_content` under `[api]` higher"));
    }
    let Some(_place) = context.api.uploads.enter(&context.client).await else {
        return Err(Problem::new(ProblemKind::Busy, "the server is stopping"));
    };
    let condition = condition(request.headers());
    let key = Naming::key(&path);
    let id = target.published.id;
    let log = Arc::clone(context.site.publisher.log());
    let (at, begun) = (folder.clone(), Arc::clone(&deposit));
    let known_key = key.clone();
    let (mut upload, known) = blocking(move || {
        let known = log.resource(id, &known_key)?.is_some();
        let upload = begun.begin(&at, &path).map_err(|error| refused(&error))?;
        Ok((upload, known))
    })
    .await?;
    let mut pieces = Pieces::new(request.into_body(), limit, context.api.options.body_time);
    let mut chunk = Vec::with_capacity(CHUNK);
    while let Some(piece) = pieces.next().await? {
        chunk.extend_from_slice(&piece);
        if chunk.len() >= CHUNK {
            (upload, chunk) = write(upload, chunk).await?;
        }
    }
    (upload, _) = write(upload, chunk).await?;
    let (done, receiver) = waiting();
    let (state, stat) = blocking(move || {
        deposit.finish(&folder, upload, &condition, done).map_err(|error| refused(&error))
    })
    .await?;
    let appended = recorded(receiver).await?;
    let resources = target.published.urls.resources();
    let resource = RecordAnswer::of_state(&key, appended.head.0, &state, &resources);
    let location = HeaderValue::from_str(&resource.uri);
    let status = if known { StatusCode::OK } else { StatusCode::CREATED };
    let mut answer = json(status, &Put { recorded: appended.into(), resource });
    if let Ok(tag) = HeaderValue::from_str(&tag_of(&stat)) {
        answer.headers_mut().insert(ETAG, tag);
    }
    if let Ok(location) = location {
        answer.headers_mut().insert(LOCATION, location);
    }
    Ok(answer)
}

async fn write(mut upload: Upload, mut chunk: Vec<u8>) -> Result<(Upload, Vec<u8>), Problem> {
    blocking(move || {
        upload.write(&chunk).map_err(|error| refused(&DepositError::Io(error)))?;
        chunk.clear();
        Ok((upload, chunk))
    })
    .await
}

pub(super) async fn delete(
    context: &Context<'_>,
    slug: &str,
    path: &str,
    request: &Request<Incoming>,
) -> Result<Answer, Problem> {
    let target = context.target(slug)?;
    place(target)?;
    context.not_importing(target.published.id).await?;
    remove(target, path_in(path)?, condition(request.headers())).await
}

/// Removes a file of the folder.
pub(super) async fn remove(
    target: &ServedSet,
    path: Vec<u8>,
    condition: Condition,
) -> Result<Answer, Problem> {
    let (deposit, folder) = place(target)?;
    let (done, receiver) = waiting();
    blocking(move || {
        deposit.remove(&folder, &path, &condition, done).map_err(|error| refused(&error))
    })
    .await?;
    Ok(json(StatusCode::OK, &RecordedAnswer::from(recorded(receiver).await?)))
}

type UploadTarget = (Arc<abreast_source::deposit::Deposit>, abreast_folder::Folder);

fn place(target: &ServedSet) -> Result<UploadTarget, Problem> {
    if target.published.representations.has_stored_files() {
        return Err(files_of_nodes());
    }
    target.deposit.clone().zip(target.published.representations.folder()).ok_or_else(elsewhere_only)
}

fn path_in(path: &str) -> Result<Vec<u8>, Problem> {
    relative_path(path).ok_or_else(|| {
        Problem::new(ProblemKind::Field, "the path has an empty, hidden or impossible name")
            .help("hidden names (`.x`) and leftovers of editors (`x~`, `#x#`) are not published")
    })
}

/// The preconditions of a write [rfc9110 §13.1].
pub(super) fn condition(headers: &HeaderMap) -> Condition {
    let tags = |name| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values
            .flat_map(|value| value.split(','))
            .map(|tag| tag.trim().to_owned())
            .collect::<Vec<_>>()
    };
    let (wanted, unwanted) = (tags(IF_MATCH), tags(IF_NONE_MATCH));
    Condition {
        absent: unwanted.iter().any(|tag| tag == "*"),
        present: wanted.iter().any(|tag| tag == "*"),
        // If-None-Match uses the weak comparison, If-Match the strong one.
        other_than: unwanted
            .iter()
            .map(|tag| tag.strip_prefix("W/").unwrap_or(tag).to_owned())
            .collect(),
        unmodified_since: unmodified_since(headers),
        tags: (!wanted.is_empty() && !wanted.iter().any(|tag| tag == "*")).then_some(wanted),
    }
}

/// Waits until the log has recorded a change of the folder. If recording fails, the watch of the
/// folder finds the change later.
pub(super) async fn recorded(receiver: Receiver) -> Result<Appended, Problem> {
    durable(receiver).await.map_err(|problem| {
        problem.after("the folder was changed, which is recorded as soon as that is possible; ")
    })
}

/// The problem for a refused upload.
pub(super) fn refused(error: &DepositError) -> Problem {
    use abreast_folder::ErrorKind;
    match error {
        DepositError::Io(inner) => {
            full_disk(inner).or_else(|| out_of_reach(inner)).unwrap_or_else(|| failed(error))
        }
        DepositError::Store(inner) => full_disk(inner).unwrap_or_else(|| failed(error)),
        DepositError::Name(why) => Problem::new(ProblemKind::Field, why.as_str()),
        DepositError::Links(why) => Problem::new(ProblemKind::Field, format!("`links`: {why}")),
        DepositError::NotFound => {
            Problem::new(ProblemKind::NotFound, "the set has no such resource")
        }
        DepositError::InTheWay(why) => Problem::new(ProblemKind::Conflict, why.as_str()),
        DepositError::Precondition => Problem::new(ProblemKind::Precondition, error.to_string())
            .help("read it again, then retry"),
        DepositError::Folder(inner) => match inner.kind() {
            ErrorKind::Full => disk_full(),
            ErrorKind::Denied => {
                Problem::new(ProblemKind::Conflict, "the server may not write in its folder")
                    .help("give the user it runs as the right to write there")
            }
            ErrorKind::Name | ErrorKind::TooLong => {
                Problem::new(ProblemKind::Field, inner.to_string())
            }
            _ => failed(error),
        },
        _ => failed(error),
    }
}

fn failed(error: &DepositError) -> Problem {
    tracing::error!("the folder failed for a request of the API: {error}");
    Problem::new(
        ProblemKind::Store,
        "the folder could not be written; the server's log has the reason",
    )
}
