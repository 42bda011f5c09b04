//! `abreast subscribe`: prints the notifications of a topic as they arrive, one JSON object per
//! line.

mod args;
mod discover;
mod lines;
#[cfg(feature = "xmpp")]
mod node;

use crate::program::errors::UsageError;
use abreast_destination::TopicKind;
use abreast_net::{Client, Options, Request, Response, Shared};
use abreast_websub::{EventError, EventReader, MAX_EVENT_LENGTH};
use abreast_webtypes::without_login;
use anyhow::{Context as _, Result, bail};
pub(crate) use args::SubscribeArgs;
use args::{MAX_RETRY, RETRY, is_node};
use discover::{ACCEPT, Stream};
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// A stream in which nothing comes for so long, not even a sign of life, is dead.
const SILENCE: Duration = Duration::from_secs(60);
/// Prints the notifications of a topic.
pub(crate) fn run(args: &SubscribeArgs) -> ExitCode {
    ExitCode::from(follow(args).unwrap_or_else(|error| {
        let code = crate::program::exit::code(&error);
        crate::program::logging::failure(&error, code);
        code
    }))
}

fn follow(args: &SubscribeArgs) -> Result<u8> {
    if is_node(&args.url) {
        #[cfg(feature = "xmpp")]
        return run_until_stopped(args, node::Follower::new(args)?.all());
        #[cfg(not(feature = "xmpp"))]
        return Err(crate::config::xmpp::without());
    }
    if let Err(error) = abreast_websub::check_topic(&args.url) {
        bail!(UsageError(format!("`{}` cannot be followed: {error}", without_login(&args.url))));
    }
    // A stream has neither a minimum speed nor a maximum length.
    let mut options = Options {
        idle_timeout: SILENCE,
        min_speed: 0,
        max_body_bytes: u64::MAX,
        ..Options::default()
    };
    let url = args.access.apply(&args.url, &mut options)?;
    let client = Client::new(Shared::new(options));
    let kind = if args.framework { TopicKind::Documents } else { TopicKind::Changes };
    let mut reading = StreamPosition {
        left: args.limit.unwrap_or(u64::MAX),
        last: args.from.map(|from| from.to_string()),
        ..StreamPosition::default()
    };
    let wanted = discover::TopicFilter { kind, set: args.set.as_deref() };
    run_until_stopped(args, reading.all(&client, &url, &wanted))
}

/// Reads until the end, the time limit or a signal.
fn run_until_stopped(
    args: &SubscribeArgs,
    reading: impl Future<Output = Result<u8>>,
) -> Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let time_is_over = async {
            match args.max_time {
                Some(time) => tokio::time::sleep(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            ended = reading => ended,
            () = time_is_over => Ok(8),
            _ = terminate.recv() => Ok(130),
            _ = interrupt.recv() => Ok(130),
        }
    })
}

/// How far reading has come.
#[derive(Default)]
struct StreamPosition {
    /// Notifications still wanted.
    left: u64,
    /// The offset to continue after.
    last: Option<String>,
    /// As the stream wishes.
    retry: Option<Duration>,
    failures: u32,
}

/// Why a stream is not read on.
enum StreamEnd {
    /// Everything was printed, or the reader of the output has closed the pipe.
    Done,
    /// The connection may be opened again.
    Broken(String),
}

impl StreamPosition {
    async fn all(
        &mut self,
        client: &Client,
        url: &str,
        wanted: &discover::TopicFilter<'_>,
    ) -> Result<u8> {
        let mut stream = discover::stream(client, url, wanted, self.last.as_deref()).await?;
        loop {
            let why = match self.one(&mut stream).await? {
                StreamEnd::Done => return Ok(0),
                StreamEnd::Broken(why) => why,
            };
            tracing::info!("the stream ended: {why}");
            stream.response = loop {
                let wait = self.retry.unwrap_or(RETRY).clamp(Duration::from_millis(100), MAX_RETRY);
                tokio::time::sleep(wait.saturating_mul(1 << self.failures.min(10)).min(MAX_RETRY))
                    .await;
                let request = Request {
                    accept: Some(ACCEPT),
                    last_event_id: self.last.as_deref(),
                    ..Request::new(&stream.url)
                };
                match client.send(&request).await.and_then(Response::require_success) {
                    Ok(response) if discover::is_stream(&response) => break response,
                    Ok(_) => bail!("{} is no longer an event stream", stream.url),
                    Err(error) if error.is_transient() => {
                        if self.failures == 0 {
                            tracing::warn!("the stream is lost, trying again: {error}");
                        }
                        self.failures += 1;
                    }
                    Err(error) => return Err(error.into()),
                }
            };
        }
    }

    /// Reads one stream to its end.
    async fn one(&mut self, stream: &mut Stream) -> Result<StreamEnd> {
        let mut events = EventReader::with_limit(MAX_EVENT_LENGTH);
        let mut out = crate::program::terminal::output();
        loop {
            let piece = match stream.response.chunk().await {
                Ok(Some(piece)) => piece,
                Ok(None) => return Ok(StreamEnd::Broken("the server closed it".to_owned())),
                Err(error) => return Ok(StreamEnd::Broken(error.to_string())),
            };
            self.failures = 0;
            let fed: Result<(), EventError> = events.feed(&piece);
            while let Some(event) = events.next_event() {
                let line = lines::line(&stream.topic, &event);
                // The reader of the output has closed the pipe.
                if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
                    return Ok(StreamEnd::Done);
                }
                self.last = Some(event.id).filter(|id| !id.is_empty()).or_else(|| self.last.take());
                self.left -= 1;
                if self.left == 0 {
                    return Ok(StreamEnd::Done);
                }
            }
            fed.context("the event stream cannot be read")?;
            if !events.last_id().is_empty() {
                self.last = Some(events.last_id().to_owned());
            }
            self.retry = events.retry();
        }
    }
}
