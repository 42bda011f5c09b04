//! Access to a hub's data: through the API of a running server, or in a store that no server has
//! open.

use crate::config::File;
use crate::config::database::{DatabaseConfig, database_url};
use crate::program::errors::ExitCodeError;
use crate::program::errors::UsageError;
use crate::store::database::Database;
use crate::store::log_access::{LogAccessArgs, base_of, exchange};
use crate::store::stores::{Stores, Task, open_hub};
use crate::store::unwritable_store::Readable;
use abreast_core::hub::{Ending, HubStore, Target, TargetId};
use abreast_core::{LogError, Offset, TopicId};
use abreast_net::{Client, Options, Post, Request, Shared};
use abreast_server::api::hub_model::{TargetAnswer, TargetDetails, TopicAnswer};
use abreast_store::hub::SqliteHub;
use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

/// Entries asked for at a time.
const PAGE: usize = 1_000;

/// A hub, as its operators see it.
pub(super) enum HubAccess {
    Server { runtime: tokio::runtime::Runtime, client: Client, base: String },
    Store { store: Arc<dyn HubStore>, _stores: Option<Stores>, _read: Option<Readable> },
}

/// Entries, and where the next ones are.
type Page = (Vec<Value>, Option<i64>);

impl HubAccess {
    /// Opens the hub of a server or a store; `changes` is false for read-only commands.
    pub(super) fn open(args: &LogAccessArgs, changes: bool) -> Result<Self> {
        if let Some(server) = &args.server {
            let mut options = Options::default();
            let server = args.access.apply(server, &mut options)?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let base = format!("{}/api/v1/hub", base_of(&server));
            return Ok(Self::Server { runtime, client: Client::new(Shared::new(options)), base });
        }
        if let Some(database) = database_of(args)? {
            // Other nodes may have the store open, and follow its changes.
            let store = Database::connect(&database)?.hub()?;
            return Ok(Self::Store { store, _stores: None, _read: None });
        }
        let data = data_of(args)?;
        let path = data.join("hub.db");
        if !crate::program::there::is_file(&path)? {
            let message = format!(
                "there is no hub's store in `{}`\n  help: name the folder that has hub.db",
                data.display()
            );
            bail!(ExitCodeError { message, code: 2 });
        }
        let (path, stores, read) = if changes {
            (path, Some(Stores::open(&data, Task::Read)?), None)
        } else {
            let read = Readable::of(&data, "hub.db", SqliteHub::is_changed_by_opening)?;
            (read.path.clone(), None, Some(read))
        };
        Ok(Self::Store { store: open_hub(&path)?, _stores: stores, _read: read })
    }

    /// Topics after one.
    pub(super) fn topics(&self, after: i64) -> Result<Page> {
        match self {
            Self::Server { .. } => {
                self.page("topics", &format!("/topics?limit={PAGE}&after={after}"))
            }
            Self::Store { store, .. } => {
                let found = store.topics(TopicId(after), PAGE)?;
                let next =
                    (found.len() == PAGE).then(|| found.last().map(|topic| topic.id.0)).flatten();
                // Internal topics of the hub are not listed.
                let found = found.into_iter().filter(|topic| topic.url.starts_with("http"));
                Ok((
                    found.map(|topic| to_json(&TopicAnswer::from(topic))).collect::<Result<_>>()?,
                    next,
                ))
            }
        }
    }

    /// Targets of a topic, after one.
    pub(super) fn targets(&self, topic: i64, after: i64) -> Result<Page> {
        match self {
            Self::Server { .. } => {
                self.page("targets", &format!("/topics/{topic}/targets?limit={PAGE}&after={after}"))
            }
            Self::Store { store, .. } => {
                let found = store.targets_of(TopicId(topic), TargetId(after), PAGE)?;
                let next =
                    (found.len() == PAGE).then(|| found.last().map(|target| target.id.0)).flatten();
                let all =
                    found.into_iter().map(|target| to_json(&TargetAnswer::read(&**store, target)?));
                Ok((all.collect::<Result<_>>()?, next))
            }
        }
    }

    /// A target with what happened to it.
    pub(super) fn target(&self, id: i64) -> Result<Value> {
        match self {
            Self::Server { .. } => self.ask(&format!("/targets/{id}"), false),
            Self::Store { store, .. } => to_json(&TargetDetails::read(
                &**store,
                one(store.target(TargetId(id)))?,
                Offset(0),
            )?),
        }
    }

    /// Sets a cursor; `None` attempts the next delivery at once.
    pub(super) fn replay(&self, id: i64, after: Option<u64>) -> Result<Value> {
        match self {
            Self::Server { .. } => {
                let query = after.map(|after| format!("?after={after}")).unwrap_or_default();
                self.ask(&format!("/targets/{id}/replay{query}"), true)
            }
            Self::Store { store, .. } => {
                let Some(after) = after else {
                    bail!(UsageError(
                        "only a running hub can attempt a delivery at once (help: --server URL, or --after OFFSET)".into()
                    ));
                };
                let target = one(store.replay(TargetId(id), Offset(after)))?;
                to_json(&TargetAnswer::read(&**store, target)?)
            }
        }
    }

    /// Ends a target; the second value is true if its subscriber will be notified.
    pub(super) fn end(&self, id: i64, reason: Option<&str>) -> Result<(Value, bool)> {
        match self {
            Self::Server { .. } => {
                let mut query = url::form_urlencoded::Serializer::new(String::new());
                let query = reason
                    .map(|reason| query.append_pair("reason", reason).finish().replace('+', "%20"));
                let query = query.map_or(String::new(), |query| format!("?{query}"));
                Ok((self.ask(&format!("/targets/{id}/end{query}"), true)?, true))
            }
            Self::Store { store, .. } => {
                let answer =
                    to_json(&TargetAnswer::read(&**store, one(store.target(TargetId(id)))?)?)?;
                store.end_target(TargetId(id), Ending::ByHand)?;
                Ok((answer, false))
            }
        }
    }

    fn page(&self, name: &str, path: &str) -> Result<Page> {
        let mut answer = self.ask(path, false)?;
        let Value::Array(entries) = answer[name].take() else {
            bail!("the server's response is not of this API")
        };
        Ok((entries, answer["next"].as_i64()))
    }

    fn ask(&self, path: &str, post: bool) -> Result<Value> {
        let Self::Server { runtime, client, base } = self else {
            bail!("there is no server to ask")
        };
        let (url, body) = (format!("{base}{path}"), bytes::Bytes::new());
        let post = post.then_some(Post {
            body: &body,
            content_type: "application/json",
            idempotency_key: None,
        });
        let answer = runtime.block_on(exchange(client, &Request { post, ..Request::new(&url) }))?;
        serde_json::from_slice(&answer).context("the server's response is not of this API")
    }
}

fn to_json<T: Serialize>(answer: &T) -> Result<Value> {
    Ok(serde_json::to_value(answer)?)
}

fn one(found: Result<Option<Target>, LogError>) -> Result<Target> {
    let missing = || ExitCodeError {
        message: "there is no such target: it may have ended, or never existed".to_owned(),
        code: 1,
    };
    Ok(found?.ok_or_else(missing)?)
}

/// The database with the hub's store, if it is in one.
fn database_of(args: &LogAccessArgs) -> Result<Option<DatabaseConfig>> {
    if let Some(config) = &args.config {
        return DatabaseConfig::of_file(&File::read(config)?);
    }
    Ok(args.data.as_deref().and_then(database_url).map(DatabaseConfig::of_url))
}

fn data_of(args: &LogAccessArgs) -> Result<PathBuf> {
    if let Some(data) = &args.data {
        return Ok(data.clone());
    }
    let Some(config) = &args.config else {
        bail!(UsageError(
            "where is the hub? (help: --server URL of a running server, else --config FILE or --data DIR)".into()
        ));
    };
    let file = File::read(config)?;
    file.store_folder()
        .ok_or_else(|| UsageError(format!("`{}` names no `data`", config.display())).into())
}
