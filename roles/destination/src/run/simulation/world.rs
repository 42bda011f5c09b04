//! The provider of a thread, and its documents as received from a network.

use crate::report::clock;
use crate::report::error::{Error, ExitCode};
use crate::request::package::download::Downloads;
use crate::request::package::listing::ListedPackage;
use crate::request::pieces::{Answered, Asked, Documents};
use crate::request::requests::Requests;
use crate::request::spool::Spool;
use crate::request::verify::{Hasher, Verdict, judge};
use abreast_testkit::number;
use abreast_testkit::providers::{Known, Provider, Reply};
use abreast_webtypes::Timestamp;
use std::cell::RefCell;
use std::fs::File;
use std::io::{Seek as _, Write as _};

/// Number of attempts to fetch a document, as a client makes.
const ATTEMPTS: usize = 2;
/// Number of bytes in a piece of a transfer.
const PIECE_BYTES: usize = 100;

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// A provider, and how many requests the consumer sends before it is killed.
struct World {
    provider: Provider,
    left: usize,
    asked: usize,
    /// How often the consumer compared with all that the provider has.
    gaps: usize,
    baselines: usize,
}

fn with_world<T>(with: impl FnOnce(&mut World) -> T) -> T {
    WORLD.with_borrow_mut(|world| with(world.as_mut().expect("a provider")))
}

/// The thread has this provider from now on.
pub(super) fn begin(provider: Provider) {
    clock::set(Timestamp::from_micros(provider.clock()));
    WORLD.set(Some(World { provider, left: 0, asked: 0, gaps: 0, baselines: 0 }));
}

/// The next run sends so many requests at most.
pub(super) fn allow(requests: usize) {
    with_world(|world| {
        world.left = requests;
        world.provider.begin_run();
    });
}

/// Does something with the provider.
pub(super) fn provider<T>(with: impl FnOnce(&mut Provider) -> T) -> T {
    with_world(|world| {
        let done = with(&mut world.provider);
        clock::set(Timestamp::from_micros(world.provider.clock()));
        done
    })
}

/// Requests sent, in all runs.
pub(super) fn asked() -> usize {
    with_world(|world| world.asked)
}

/// Comparisons with all that the provider has, in all runs.
pub(super) fn gaps() -> usize {
    with_world(|world| world.gaps)
}

/// Runs that compared the copy with all that the provider has, whether they could or not.
pub(super) fn baselines() -> usize {
    with_world(|world| world.baselines)
}

/// Counts such a run.
pub(super) fn count_baseline() {
    with_world(|world| world.baselines += 1);
}

/// Counts a comparison.
pub(super) fn count_gap() {
    with_world(|world| world.gaps += 1);
}

/// Shows what happens, if a single seed was chosen.
pub(super) fn note(what: impl FnOnce() -> String) {
    if number("ABREAST_TEST_SEED").is_some() {
        eprintln!("{}", what());
    }
}

/// Sends one request.
///
/// # Errors
/// The consumer is killed.
pub(super) fn ask(url: &str, known: Known<'_>) -> Result<Reply, Error> {
    with_world(|world| {
        world.left = world.left.checked_sub(1).ok_or_else(Error::cancelled)?;
        world.asked += 1;
        let reply = world.provider.answer(url, known);
        clock::set(Timestamp::from_micros(world.provider.clock()));
        note(|| shown(url, &reply));
        Ok(reply)
    })
}

/// A reply as text; of a package only the manifest.
fn shown(url: &str, reply: &Reply) -> String {
    let is_package = reply.body.starts_with(b"PK");
    let manifest = reply.body.windows(5).position(|text| text == b"<?xml").unwrap_or(0);
    let text = String::from_utf8_lossy(&reply.body[if is_package { manifest } else { 0 }..]);
    let text = text.split_once("</urlset>").filter(|_| is_package).map_or(&*text, |it| it.0);
    format!("{url} {} {:?} {text}", reply.status, reply.cut)
}

/// Sends a request, and repeats it if the response is a transient failure or the transfer is
/// interrupted; `None` if each attempt fails in this way. `part` receives the pieces of an
/// interrupted transfer.
pub(super) fn ask_again(
    url: &str,
    known: Known<'_>,
    part: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<Option<Reply>, Error> {
    for _ in 0..ATTEMPTS {
        let reply = ask(url, known)?;
        match reply.cut {
            Some(length) => part(&reply.body[..length])?,
            None if matches!(reply.status, 0 | 429 | 500..) => {}
            None => return Ok(Some(reply)),
        }
    }
    Ok(None)
}

/// Documents of the provider of this thread.
pub(super) struct Simulated;

impl Documents for Simulated {
    fn receive(
        &self,
        _: &Requests<'_>,
        asked: &Asked<'_>,
        to: &mut Spool<'_>,
    ) -> Result<Option<Answered>, Error> {
        let url = asked.url;
        let known = Known {
            etag: asked.known.and_then(|known| known.etag.as_deref()),
            last_modified: asked.known.and_then(|known| known.last_modified.as_deref()),
        };
        let reply = ask_again(url, known, &mut |part| {
            to.begin();
            to.add(part).map(drop)
        })?;
        let Some(reply) = used(url, reply)? else { return Ok(None) };
        to.begin();
        let mut more = true;
        for piece in reply.body.chunks(PIECE_BYTES) {
            more = more && to.add(piece)?;
        }
        if more {
            to.end();
        }
        let date = reply.date.map(http_date);
        let header = |name: &str| match name {
            "etag" => reply.etag.as_deref(),
            "last-modified" => reply.last_modified.as_deref(),
            "date" => date.as_deref(),
            _ => None,
        };
        Ok(Some(Answered::from_headers(url, &header, Vec::new())))
    }

    fn download(
        &self,
        _: &Requests<'_>,
        _: &Downloads,
        file: &ListedPackage,
        _: Option<&str>,
    ) -> Result<File, Error> {
        let reply = ask_again(&file.url, Known::default(), &mut |_| Ok(()))?;
        let reply = used(&file.url, reply)?.expect("nothing was known");
        let (mut hasher, length) = (Hasher::for_listed(&file.digests), reply.body.len() as u64);
        hasher.update(&reply.body);
        if judge(&file.digests, file.length, &hasher.finish(), length) == Verdict::Mismatch {
            let message = format!("{} is not the package that is listed", file.url);
            return Err(Error::new("fixity.mismatch", ExitCode::SourceInvalid, message));
        }
        let mut kept = tempfile::tempfile().unwrap();
        kept.write_all(&reply.body).unwrap();
        kept.rewind().unwrap();
        Ok(kept)
    }
}

/// The answer if it is the document; `None` if that has not changed.
fn used(url: &str, reply: Option<Reply>) -> Result<Option<Reply>, Error> {
    let failed = |status: u16, exit| {
        let error = Error::new("http.status", exit, format!("{status} for {url}"));
        Err(error.with_status(Some(status)))
    };
    match reply {
        Some(reply) => match reply.status {
            200 => Ok(Some(reply)),
            304 => Ok(None),
            403 => failed(403, ExitCode::Auth),
            status => failed(status, ExitCode::SourceInvalid),
        },
        None => failed(503, ExitCode::Retryable),
    }
}

fn http_date(micros: i64) -> String {
    let since = std::time::Duration::from_micros(u64::try_from(micros).unwrap_or_default());
    httpdate::fmt_http_date(std::time::UNIX_EPOCH + since)
}
