//! `/api/v1`: reading the log, and recording changes, over HTTP. `openapi.json` describes it.
//!
//! A change is durable before it is answered. Requests that come together share one commit of the
//! store.

mod access;
mod changes;
mod content;
mod entities;
mod entity;
mod hub;
pub mod hub_model;
mod import;
mod intake;
pub mod model;
mod operations;
mod problem;
mod push;
mod record;
mod sets;
mod tokens;

use access::VisibleSets;
pub use access::is_local_host;
pub(crate) use access::may_publish;
pub(crate) use changes::records_of;
pub use changes::{change_of, reused_key};
pub(crate) use hub::TopicUrls;
pub use import::{JsonLines, MAX_LINE, ReadError, Table};
pub use tokens::{
    PREFIX, Scope, Token, change_tokens, check_tokens, new_token, read_tokens, repair_tokens,
    write_tokens,
};

use crate::body::ResponseBody;
use crate::heads::Heads;
use crate::places::ClientPlaces;
use crate::respond::Answer;
use crate::site::{ServedSet, Site};
use abreast_core::{AppendDone, Appended, Head, LogError, SetId};
use abreast_hub::Client;
use http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::{Body as _, Incoming};
use operations::{Call, Operation, find};
use problem::{Problem, ProblemKind};
use serde::Serialize;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokens::Tokens;
use tokio::sync::oneshot;

/// Bodies on their way in at a time; one client alone has half of them. Of a server with fewer than 512 connections an
/// eighth of these.
const UPLOADS: usize = 64;

/// The document that describes this interface.
pub const OPENAPI: &str = include_str!("openapi.json");

/// Who may read through the API. Published documents are public anyway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Readers {
    /// Anyone.
    #[default]
    Anyone,
    /// Holder of a token.
    Tokens,
}

/// Settings of the API.
#[derive(Clone, Debug)]
pub struct ApiOptions {
    /// Whether changes are accepted.
    pub write: bool,
    /// Who may read.
    pub readers: Readers,
    /// The file of tokens.
    pub tokens: PathBuf,
    /// Only programs on this machine can connect: until the first token is made, they may write
    /// without one.
    pub local: bool,
    /// Largest content taken in, in bytes.
    pub max_content: u64,
    /// The folder of temporary files.
    pub temporary: PathBuf,
    /// Time for the body of a request; contents have more, as they are larger.
    pub body_time: Duration,
}

impl ApiOptions {
    /// Nothing is taken in, all may read; bodies have a minute, and are beside the tokens until they are read.
    pub fn new(tokens: impl Into<PathBuf>) -> Self {
        let tokens = tokens.into();
        Self {
            write: false,
            readers: Readers::Anyone,
            temporary: tokens.parent().unwrap_or(Path::new(".")).to_owned(),
            tokens,
            local: false,
            max_content: 1 << 30,
            body_time: Duration::from_secs(60),
        }
    }
}

/// The API of one server.
pub struct Api {
    options: ApiOptions,
    tokens: Tokens,
    uploads: ClientPlaces,
    /// Idempotency keys of requests, and what they were used for.
    keys: Mutex<HashMap<(SetId, String), [u8; 32]>>,
}

impl Api {
    /// An API with these options.
    ///
    /// # Errors
    /// The file of tokens cannot be read.
    pub fn new(options: ApiOptions) -> io::Result<Self> {
        let tokens = Tokens::open(options.tokens.clone())?;
        Ok(Self { options, tokens, uploads: ClientPlaces::new(UPLOADS), keys: Mutex::default() })
    }

    /// Bodies on their way in never take most of so many connections.
    pub(crate) fn fit(&self, connections: usize) {
        self.uploads.limit(connections / 8);
    }
}

/// Whether an address is read by everybody without a token: then scripts of any page may read it too.
pub(crate) fn is_public(site: &Site, path: &str) -> bool {
    let readers = site.api.as_ref().map(|api| api.options.readers);
    path == "/api/v1/openapi.json" || readers == Some(Readers::Anyone)
}

/// One request on its way through.
struct Context<'s> {
    site: &'s Arc<Site>,
    heads: &'s Heads,
    api: &'s Api,
    operation: &'static Operation,
    client: Client,
    seen: VisibleSets,
}

impl<'s> Context<'s> {
    /// The set that a request names.
    fn target(&self, slug: &str) -> Result<&'s Arc<ServedSet>, Problem> {
        self.site.sets.find(slug).ok_or_else(|| {
            Problem::new(ProblemKind::NotFound, "there is no set of this name")
                .help("GET /api/v1/sets lists their names")
        })
    }

    /// The head of a set's log: the one that is known in memory, else the one in the store.
    async fn head(&self, set: SetId) -> Result<Head, Problem> {
        let log = Arc::clone(self.site.publisher.log());
        match log.known_head(set) {
            Some(head) => Ok(head),
            None => blocking(move || Ok(log.head(set)?)).await,
        }
    }

    /// Refuses changes of a set that is being read for the first time.
    async fn not_importing(&self, set: SetId) -> Result<(), Problem> {
        if self.head(set).await?.importing {
            return Err(Problem::new(
                ProblemKind::Importing,
                "the set is being read for the first time",
            )
            .help("send it again in a while"));
        }
        Ok(())
    }
}

/// Does a path belong to the API?
pub(crate) fn is_path(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

/// Answers a request to the API.
pub(crate) async fn answer(
    site: &Arc<Site>,
    heads: &Heads,
    request: Request<Incoming>,
    client: Client,
) -> Answer {
    let has_body = !request.body().is_end_stream();
    let chunked = request.headers().contains_key(http::header::TRANSFER_ENCODING);
    let mut answer = match respond(site, heads, request, client).await {
        Ok(answer) => answer,
        Err(problem) => problem.answer(),
    };
    let failed = !answer.status().is_success();
    // The rest of a body is not read, and after one in chunks nothing else is.
    if (has_body && failed) || chunked {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let policy = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; sandbox");
    answer.headers_mut().entry(CONTENT_SECURITY_POLICY).or_insert(policy);
    answer
}

async fn respond(
    site: &Arc<Site>,
    heads: &Heads,
    request: Request<Incoming>,
    client: Client,
) -> Result<Answer, Problem> {
    let Some(api) = &site.api else {
        return Err(Problem::new(ProblemKind::NotFound, "this server has no API"));
    };
    let path = request.uri().path().to_owned();
    let (operation, call) = find(request.method(), &path)?;
    let mut context = Context { site, heads, api, operation, client, seen: VisibleSets::All };
    context.seen = access::check(&context, &call, &request, client)?;
    let answer = run(&context, call, request).await;
    if cfg!(debug_assertions) {
        let status = match &answer {
            Ok(answer) => answer.status(),
            Err(problem) => problem.answer().status(),
        };
        let documented = operation.statuses.contains(&status.as_u16());
        debug_assert!(
            documented,
            "{} {} answers {status}, which is not documented",
            operation.method, operation.path
        );
    }
    answer
}

async fn run(
    context: &Context<'_>,
    call: Call<'_>,
    request: Request<Incoming>,
) -> Result<Answer, Problem> {
    match call {
        Call::OpenApi => {
            Ok(typed("application/json", openapi(context.site.publisher.urls().base())))
        }
        Call::Tokens => Ok(sets::tokens(context)),
        Call::Hub => hub::overview(context).await,
        Call::HubTopics => hub::topics(context, request.uri().query()).await,
        Call::HubTargets(topic) => hub::targets(context, topic, request.uri().query()).await,
        Call::HubTarget(id) => hub::target(context, id, request.uri().query()).await,
        Call::HubReplay(id) => hub::replay(context, id, request.uri().query()).await,
        Call::HubEnd(id) => hub::end(context, id, request.uri().query()).await,
        Call::Sets => sets::all(context).await,
        Call::Set(slug) => sets::one(context, slug).await,
        Call::ConfirmDeletions(slug) => sets::confirm_deletions(context, slug).await,
        Call::ReadChanges(slug) => changes::read(context, slug, &request).await,
        Call::RecordChanges(slug) => changes::record(context, slug, request).await,
        Call::ImportEntities(slug) => entities::import(context, slug, request).await,
        Call::ReadRecord(slug) => record::read(context, slug, &request).await,
        Call::PutRecord(slug) => record::put(context, slug, request).await,
        Call::DeleteRecord(slug) => record::delete(context, slug, &request).await,
        Call::Push(slug) => push::receive(context, slug, request).await,
        Call::ReadContent(slug, path) => content::read(context, slug, path, &request).await,
        Call::PutContent(slug, path) => content::put(context, slug, path, request).await,
        Call::DeleteContent(slug, path) => content::delete(context, slug, path, &request).await,
    }
}

/// An answer in JSON.
fn json<T: Serialize>(status: StatusCode, value: &T) -> Answer {
    let mut text = serde_json::to_vec(value).unwrap_or_default();
    text.push(b'\n');
    let mut answer = typed("application/json", text);
    *answer.status_mut() = status;
    answer
}

/// The document that describes this interface, with the address at which it is here: behind a proxy
/// there may be a path before it.
fn openapi(base: &str) -> String {
    let url = serde_json::to_string(base.trim_end_matches('/')).unwrap_or_default();
    OPENAPI.replacen("\"url\": \"/\"", &format!("\"url\": {url}"), 1)
}

fn typed(content_type: &'static str, body: impl Into<bytes::Bytes>) -> Answer {
    let mut answer = Response::new(ResponseBody::from(body));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

/// The response to a recorded change.
#[derive(Serialize)]
struct RecordedAnswer {
    /// Head of the log after it.
    head: u64,
    /// Changes recorded.
    recorded: u64,
    /// Changes that were none: the state was that already, or the idempotency key was seen before.
    unchanged: u64,
}

impl From<Appended> for RecordedAnswer {
    fn from(appended: Appended) -> Self {
        Self { head: appended.head.0, recorded: appended.recorded, unchanged: appended.unchanged }
    }
}

/// Receives the answer of the log.
type Receiver = oneshot::Receiver<Result<Appended, LogError>>;

/// Two ends: one for the log, one that waits.
fn waiting() -> (AppendDone, Receiver) {
    let (sender, receiver) = oneshot::channel();
    let done: AppendDone = Box::new(move |result| {
        let _ = sender.send(result);
    });
    (done, receiver)
}

/// Waits until the log has it. However long that takes: an answer before would be a guess.
async fn durable(receiver: Receiver) -> Result<Appended, Problem> {
    match receiver.await {
        Ok(result) => Ok(result?),
        Err(_) => Err(Problem::new(
            ProblemKind::Store,
            "the store ended before it answered; read the log to see what it has",
        )),
    }
}

/// Runs blocking work.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err(Problem::new(
            ProblemKind::Store,
            "an internal error; the server's log has the reason",
        )),
    }
}
