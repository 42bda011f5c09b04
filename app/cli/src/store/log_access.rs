//! The log of a set: behind the API of a running server, or in a store that no server has open.

use crate::config::access::AccessArgs;
use crate::config::database::{DatabaseConfig, database_url};
use crate::config::{File, ServeConfig};
use crate::program::errors::ExitCodeError;
use crate::program::errors::UsageError;
use crate::store::database::Database;
use crate::store::stores::{Stores, Task, open_log};
use crate::store::unwritable_store::Readable;
use abreast_core::{
    Action, Change, ChangeLog, Imported, NewSet, PageRule, Position, SetId, append,
};
use abreast_net::{Client, Options, Post, Request, Response, Retries, Shared};
use abreast_server::api::model::{RecordAnswer, RecordFault, RecordRequest};
use abreast_server::api::{change_of, reused_key};
use abreast_store::SqliteLog;
use abreast_webtypes::{Timestamp, visible};
use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Maximum size of an API response, in bytes.
const MAX_ANSWER: u64 = 64 << 20;

/// Which log.
#[derive(Debug, Args)]
pub(crate) struct LogAccessArgs {
    /// Use the API of a running server, given by any of its addresses
    #[arg(long, value_name = "URL", env = "ABREAST_SERVER", conflicts_with_all = ["config", "data"], value_parser = crate::values::address::http_url)]
    pub(crate) server: Option<String>,
    /// Use the store of a server that is not running, or the database of nodes, given by the configuration file
    #[arg(long, value_name = "FILE", conflicts_with = "data")]
    pub(crate) config: Option<PathBuf>,
    /// Use the store in this folder, which no server may have open, or the URL of a database
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

/// Counts of a batch.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct BatchCounts {
    pub(crate) head: u64,
    pub(crate) recorded: u64,
    pub(crate) unchanged: u64,
}

/// The log of a set, in a running server or in a store.
pub(crate) enum LogAccess {
    Server(Box<Remote>),
    Store(Box<Local>),
}

impl LogAccess {
    /// Reaches the log of this set, to read or to record. Who reads makes neither store nor set.
    pub(crate) fn open(args: &LogAccessArgs, set: &str, task: Task) -> Result<Self> {
        if let Some(server) = &args.server {
            let idle = Duration::from_secs(90);
            return Ok(Self::Server(Box::new(Remote::new(args, server, set, idle)?)));
        }
        if let Some(config) = &args.config {
            return Local::configured(config, set, task).map(|local| Self::Store(Box::new(local)));
        }
        if let Some(url) = args.data.as_deref().and_then(database_url) {
            let database = DatabaseConfig::of_url(url);
            return Local::shared(&database, set, None, true, String::new(), task)
                .map(|local| Self::Store(Box::new(local)));
        }
        let Some(data) = &args.data else {
            bail!(UsageError(
                "give one of --server, --config and --data (help: --server URL of a running server, else --config FILE or --data DIR)".into()
            ));
        };
        Local::open(data, set, None, true, String::new(), task)
            .map(|local| Self::Store(Box::new(local)))
    }

    /// Records changes, all or none.
    pub(crate) fn record(&mut self, records: &[RecordRequest]) -> Result<BatchCounts> {
        match self {
            Self::Server(server) => server.record(records),
            Self::Store(store) => store.record(records),
        }
    }

    /// Changes after a position, or after an instant; waits for one if requested. The second value
    /// is the position to continue after.
    pub(crate) fn read(
        &mut self,
        after: u64,
        since: Option<Timestamp>,
        limit: usize,
        wait: Duration,
    ) -> Result<(Vec<Value>, u64)> {
        match self {
            Self::Server(server) => server.read(after, since, limit, wait),
            Self::Store(store) => store.read(after, since, limit),
        }
    }

    /// Nothing more will be recorded now.
    pub(crate) fn finish(&mut self) -> Result<()> {
        match self {
            Self::Server(_) => Ok(()),
            Self::Store(store) => store.finish(),
        }
    }

    /// Whether others can record while this is open.
    pub(crate) const fn is_live(&self) -> bool {
        matches!(self, Self::Server(_))
    }
}

/// A store in a folder, locked against servers, or in a database.
pub(crate) struct Local {
    log: Arc<dyn ChangeLog>,
    set: SetId,
    resources: String,
    /// Resources come from here only, so the base is complete when the import is.
    records: bool,
    _stores: Option<Stores>,
    /// Database that is opened for reading, or its temporary copy; closed or removed when dropped.
    _read: Option<Readable>,
}

impl Local {
    fn configured(path: &Path, set: &str, task: Task) -> Result<Self> {
        let config = ServeConfig::check(File::read_with_faults(path)?)?;
        let Some(found) = config.sets.iter().find(|one| one.slug == set) else {
            let names: Vec<&str> = config.sets.iter().map(|one| one.slug.as_str()).collect();
            return Err(unknown_set(
                set,
                &format!("the configuration `{}`", path.display()),
                &names,
            ));
        };
        let rule = PageRule { changes: found.changes_per_list, ..PageRule::default() };
        let resources = config.listen.base_url.as_ref().map_or(String::new(), |base| {
            abreast_source::publish::SourceUrls::new(base).set(set).resources()
        });
        let records = found.origin.folder().is_none();
        match &config.database {
            Some(database) => Self::shared(database, set, Some(rule), records, resources, task),
            None => Self::open(&config.data, set, Some(rule), records, resources, task),
        }
    }

    /// A log in a database, which running nodes may have open as well. A set that is not configured must
    /// be in the database.
    fn shared(
        database: &DatabaseConfig,
        set: &str,
        page_rule: Option<PageRule>,
        records: bool,
        resources: String,
        task: Task,
    ) -> Result<Self> {
        let log = match task {
            Task::Read => Database::log_to_read(database)?,
            _ => Database::connect(database)?.log()?,
        };
        let id = match (log.find_set(set).context("cannot open the set")?, page_rule) {
            (Some(known), _) => known.id,
            (None, Some(page_rule)) if task == Task::Record => {
                let new = NewSet { slug: set.to_owned(), page_rule, ..NewSet::default() };
                log.open_set(&new).context("cannot open the set")?.id
            }
            (None, _) => {
                let sets = log.sets().context("cannot list the sets")?;
                let mut names: Vec<&str> = sets.iter().map(|set| set.slug.as_str()).collect();
                names.sort_unstable();
                let place = format!("the database `{}`", database.shown());
                return Err(unknown_set(set, &place, &names));
            }
        };
        Ok(Self { log, set: id, resources, records, _stores: None, _read: None })
    }

    fn open(
        data: &Path,
        set: &str,
        page_rule: Option<PageRule>,
        records: bool,
        resources: String,
        task: Task,
    ) -> Result<Self> {
        if task == Task::Read && !crate::program::there::is_file(&data.join("source.db"))? {
            let message = format!(
                "there is no store in `{}`\n  help: name the folder that has source.db",
                data.display()
            );
            bail!(ExitCodeError { message, code: 2 });
        }
        if task == Task::Record && !crate::store::served::has_store(data)? {
            let data = data.display();
            crate::program::terminal::warning(&format!(
                "the store `{data}` is new: the history of its sets begins now"
            ));
        }
        let (log, mut stores, read): (Arc<dyn ChangeLog>, _, _) = if task == Task::Read {
            let read = Readable::of(data, "source.db", SqliteLog::is_changed_by_opening)?;
            (Arc::new(open_log(&read.path)?), None, Some(read))
        } else {
            let stores = Stores::open(data, task)?;
            (Arc::new(stores.log()?), Some(stores), None)
        };
        let opened = match (log.find_set(set).context("cannot open the set")?, page_rule) {
            // Unchanged: no options for its lists were given.
            (Some(known), None) => known,
            (None, _) if task == Task::Read => {
                let sets = log.sets().context("cannot list the sets")?;
                let mut names: Vec<&str> = sets.iter().map(|set| set.slug.as_str()).collect();
                names.sort_unstable();
                return Err(unknown_set(set, &format!("the store `{}`", data.display()), &names));
            }
            (Some(known), _) if task == Task::Read => known,
            (_, rule) => {
                let new = NewSet {
                    slug: set.to_owned(),
                    page_rule: rule.unwrap_or_default(),
                    ..NewSet::default()
                };
                log.open_set(&new).context("cannot open the set")?
            }
        };
        stores.iter_mut().for_each(Stores::keep);
        Ok(Self { log, set: opened.id, resources, records, _stores: stores, _read: read })
    }

    fn record(&self, requests: &[RecordRequest]) -> Result<BatchCounts> {
        if let Some((change, detail)) = reused_key(requests) {
            let message = format!(
                "change {change}: {detail}\n  help: give each change an `idempotency_key` of its own"
            );
            bail!(ExitCodeError { message, code: 2 });
        }
        let mut changes = Vec::with_capacity(requests.len());
        for request in requests {
            let change = change_of(request, &self.resources, &*self.log, self.set, !self.records);
            let fault = |fault: RecordFault| ExitCodeError { message: fault.to_string(), code: 2 };
            changes.push(change.map_err(fault)?);
        }
        if !self.log.head(self.set)?.importing {
            let done = append(&*self.log, self.set, changes)?;
            return Ok(BatchCounts {
                head: done.head.0,
                recorded: done.recorded,
                unchanged: done.unchanged,
            });
        }
        // In a new set, resources from before the start of the log are the base.
        let mut base = Vec::with_capacity(changes.len());
        let count = changes.len() as u64;
        for Change { key, action, .. } in changes {
            match action {
                Action::Put { state, witness } | Action::Add { state, witness } => {
                    base.push(Imported { key, state, witness });
                }
                Action::Deprecate { .. } | Action::Remove | Action::Delete => {
                    let message =
                        format!("`{key}` is deleted before the log began\n  help: leave it out");
                    bail!(ExitCodeError { message, code: 2 });
                }
            }
        }
        self.log.import(self.set, base)?;
        Ok(BatchCounts { head: 0, recorded: count, unchanged: 0 })
    }

    fn finish(&self) -> Result<()> {
        // The base of a folder is complete when the folder was read.
        if self.records {
            self.log.complete_import(self.set)?;
        }
        Ok(())
    }

    fn read(
        &self,
        after: u64,
        since: Option<Timestamp>,
        limit: usize,
    ) -> Result<(Vec<Value>, u64)> {
        let start = match since {
            Some(since) => self.log.position_at(self.set, since)?.max(Position(after)),
            None => Position(after),
        };
        let head = self.log.head(self.set)?.position;
        if start > head {
            let message = format!(
                "the position {after} is beyond the last change ({}) of this log: the store was made again or restored\n  help: read the set's resources \
                 again, then continue after {}",
                head.0, head.0
            );
            bail!(ExitCodeError { message, code: 1 });
        }
        let (mut changes, mut next) = (Vec::new(), start.0);
        self.log.read(self.set, start, &mut |record| {
            next = record.position.0;
            if since.is_none_or(|since| record.time > since) {
                changes
                    .extend(serde_json::to_value(RecordAnswer::of_change(record, &self.resources)));
            }
            if changes.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok((changes, next))
    }
}

/// The API of a running server.
pub(crate) struct Remote {
    runtime: tokio::runtime::Runtime,
    client: Client,
    base: String,
    set: String,
    changes: String,
    /// Prefix of all idempotency keys in this run.
    run: String,
    sent: u64,
}

impl Remote {
    /// Reaches a server, which may be silent for that long.
    pub(crate) fn new(
        args: &LogAccessArgs,
        server: &str,
        set: &str,
        idle_timeout: Duration,
    ) -> Result<Self> {
        let mut options = Options { idle_timeout, ..Options::default() };
        let server = args.access.apply(server, &mut options)?;
        let base = base_of(&server);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut random = [0; 16];
        std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut random)?;
        Ok(Self {
            runtime,
            client: Client::new(Shared::new(options)),
            base: base.to_owned(),
            set: set.to_owned(),
            changes: format!("{base}/api/v1/sets/{set}/changes"),
            run: format!("import-{:032x}", u128::from_le_bytes(random)),
            sent: 0,
        })
    }

    /// With another number of retries.
    pub(crate) fn with_retries(mut self, retries: u32) -> Self {
        self.client = self.client.with_retries(retries);
        self
    }

    /// Imports RDF; the answer.
    pub(crate) fn import<T: DeserializeOwned>(
        &self,
        query: &str,
        content_type: &str,
        body: Vec<u8>,
    ) -> Result<T> {
        let url = format!("{}/api/v1/sets/{}/entities?{query}", self.base, self.set);
        let body = bytes::Bytes::from(body);
        let post = Some(Post { body: &body, content_type, idempotency_key: None });
        let answer = self.ask(&Request { post, ..Request::new(&url) })?;
        serde_json::from_slice(&answer).context("the server's response is not of this API")
    }

    fn record(&mut self, records: &[RecordRequest]) -> Result<BatchCounts> {
        let mut body = Vec::new();
        for record in records {
            serde_json::to_writer(&mut body, record)?;
            body.push(b'\n');
        }
        self.sent += 1;
        // A batch that is sent again is recorded once.
        let key = format!("{}-{}", self.run, self.sent);
        let body = bytes::Bytes::from(body);
        let post =
            Post { body: &body, content_type: "application/x-ndjson", idempotency_key: Some(&key) };
        let request = Request { post: Some(post), ..Request::new(&self.changes) };
        let answer = self.ask(&request)?;
        serde_json::from_slice(&answer).context("the server's response is not of this API")
    }

    /// Sends one request. If the set does not exist, the error lists the sets.
    fn ask(&self, request: &Request<'_>) -> Result<Vec<u8>> {
        #[derive(Deserialize)]
        struct Sets {
            sets: Vec<SetName>,
        }
        #[derive(Deserialize)]
        struct SetName {
            name: String,
        }
        self.runtime.block_on(async {
            let error = match exchange(&self.client, request).await {
                Err(error) if error.is::<ExitCodeError>() => error,
                done => return done,
            };
            let url = format!("{}/api/v1/sets", self.base);
            let Ok(answer) = exchange(&self.client, &Request::new(&url)).await else {
                return Err(error);
            };
            let Ok(Sets { sets }) = serde_json::from_slice(&answer) else { return Err(error) };
            let names: Vec<&str> = sets.iter().map(|set| set.name.as_str()).collect();
            if names.contains(&self.set.as_str()) {
                return Err(error);
            }
            Err(unknown_set(&self.set, &format!("the server {}", self.base), &names))
        })
    }

    fn read(
        &self,
        after: u64,
        since: Option<Timestamp>,
        limit: usize,
        wait: Duration,
    ) -> Result<(Vec<Value>, u64)> {
        #[derive(Deserialize)]
        struct Page {
            changes: Vec<Value>,
            next: u64,
        }
        let start = match since {
            Some(since) if after == 0 => format!("since={since}"),
            _ => format!("after={after}"),
        };
        let url = format!("{}?{start}&limit={limit}&wait={}", self.changes, wait.as_secs());
        let answer = self.ask(&Request::new(&url))?;
        let page: Page =
            serde_json::from_slice(&answer).context("the server's response is not of this API")?;
        Ok((page.changes, page.next))
    }
}

/// Sets that an error lists.
const LISTED_MAX: usize = 50;

/// The error for an unknown set, with a list of the existing sets.
pub(crate) fn unknown_set(set: &str, place: &str, names: &[&str]) -> anyhow::Error {
    let more = names.len().saturating_sub(LISTED_MAX);
    let mut listed = names[..names.len() - more].join(", ");
    if more > 0 {
        listed = format!("{listed} and {more} more");
    }
    let help = if names.is_empty() {
        "it has no sets".to_owned()
    } else {
        format!("name one of its sets: {listed}")
    };
    ExitCodeError {
        message: format!("{place} has no set `{set}`\n  help: {help}"),
        code: crate::program::exit::USAGE,
    }
    .into()
}

/// The prefix of the paths of a server's API, from any of its addresses.
pub(crate) fn base_of(server: &str) -> &str {
    match server.split_once("/api/v1") {
        Some((base, _)) => base,
        None => server.trim_end_matches('/'),
    }
}

/// Sends one request, with retries; a refusal is reported in the server's words.
pub(crate) async fn exchange(client: &Client, request: &Request<'_>) -> Result<Vec<u8>> {
    let mut retries = Retries::default();
    loop {
        match once(client, request).await {
            Ok((response, body)) if response.is_success() => return Ok(body),
            Ok((status, body)) => return Err(refusal(status, &body)),
            Err(error) => retries.wait_after(client, error).await?,
        }
    }
}

async fn once(
    client: &Client,
    request: &Request<'_>,
) -> Result<(http::StatusCode, Vec<u8>), abreast_net::Error> {
    let mut response: Response = client.send(request).await?;
    let status = response.status();
    if matches!(status.as_u16(), 429 | 502 | 503 | 504) {
        response = response.require_success()?;
    }
    let mut body = Vec::new();
    response.read_to(&mut body, MAX_ANSWER).await?;
    Ok((status, body))
}

fn refusal(status: http::StatusCode, body: &[u8]) -> anyhow::Error {
    #[derive(Deserialize)]
    struct Problem {
        detail: String,
        help: Option<String>,
    }
    let code = match status.as_u16() {
        401 | 403 => 12,
        400 | 413 | 422 => 2,
        507 => 13,
        _ => 1,
    };
    let message = match serde_json::from_slice::<Problem>(body) {
        Ok(Problem { detail, help: Some(help) }) => {
            format!("the server refuses: {}\n  help: {}", visible(&detail), visible(&help))
        }
        Ok(Problem { detail, help: None }) => format!("the server refuses: {}", visible(&detail)),
        Err(_) => format!(
            "the server answers {status}, and not as this API does\n  help: give the base URL of a server made by `abreast serve`"
        ),
    };
    ExitCodeError { message, code }.into()
}
