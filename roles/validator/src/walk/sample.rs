//! Comparison of resources with the lists. A sample is fetched, or all resources [rs-core §7].

use crate::fetch::archive::TOO_LARGE;
use crate::fetch::digest::Hasher;
use crate::fetch::{self, Failure, Go, ResponseFacts, html, values};
use crate::report::{Findings, MAX_DOCUMENTS, Options, Share, rules as r};
use crate::walk::node::Walked;
use crate::walk::protocol::Run;
use crate::walk::sketch::Listed;
use abreast_core::spawn_scoped;
use abreast_net::Client;
use abreast_webtypes::{count, excerpt};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Resources that may wait for a free connection.
const WAITING_MAX: usize = 256;
/// Bytes of a web page that are searched for links.
const PAGE_MAX: usize = 64 << 10;

/// Results of fetching the sample.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    pub(crate) fetched: u64,
    pub(crate) limit: Option<&'static str>,
}

/// Fetches the sample. Findings belong to the list that contains the resource.
pub(crate) fn sample(walked: &mut Walked, run: &Run<'_>) -> Fetched {
    let options = run.options;
    let is_over = walked.limit.is_some_and(|limit| limit != MAX_DOCUMENTS);
    if options.sample.is_none() || !options.walk || walked.cancelled || is_over {
        return Fetched::default();
    }
    let found: Mutex<HashMap<String, Findings>> = Mutex::default();
    let limit: Mutex<Option<&'static str>> = Mutex::default();
    let fetched = AtomicU64::new(0);
    let (sender, receiver) = sync_channel::<Listed>(WAITING_MAX);
    let receiver = Mutex::new(receiver);
    let walked_now: &Walked = walked;
    std::thread::scope(|scope| {
        for _ in 0..options.connections.clamp(1, 64) {
            spawn_scoped(scope, || {
                let Some(runtime) = fetch::runtime() else { return };
                let client = Client::new(Arc::clone(&run.shared));
                while let Some(listed) = next(&receiver) {
                    if limit.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
                        continue; // Drains, so that the sender does not wait.
                    }
                    let one = One { listed: &listed, walked: walked_now, run, found: &found };
                    match runtime.block_on(one.fetch(&client)) {
                        Ok(true) => drop(fetched.fetch_add(1, Ordering::Relaxed)),
                        Ok(false) => {}
                        Err(what) => {
                            *limit.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
                        }
                    }
                }
            });
        }
        let mut other_hosts = HashSet::new();
        let mut send = |listed: Listed| {
            if run.hosts.may(&listed.uri) {
                let _ = sender.send(listed);
            } else if other_hosts.insert(listed.document.clone()) {
                let message =
                    || format!("{} and perhaps others were not sampled", excerpt(&listed.uri));
                with(&found, options, &listed.document, |found| {
                    found.add(&r::OTHER_HOST, listed.place, message);
                });
            }
        };
        match options.sample {
            Share::Some(most) => {
                for set in walked_now.sets.values() {
                    set.listed
                        .iter()
                        .take(most as usize)
                        .for_each(|(_, listed)| send(listed.clone()));
                }
            }
            Share::All => {
                for protocol in run.protocols {
                    protocol.each_resource(walked_now, run, &mut send);
                }
                let all = walked_now.sets.values().filter(|set| set.is_all);
                for (_, listed) in all.flat_map(|set| set.listed.iter()) {
                    send(listed.clone());
                }
            }
        }
        drop(sender);
    });
    walked.add(found.into_inner().unwrap_or_else(PoisonError::into_inner));
    let limit = limit.into_inner().unwrap_or_else(PoisonError::into_inner);
    Fetched { fetched: fetched.into_inner(), limit }
}

fn next(receiver: &Mutex<Receiver<Listed>>) -> Option<Listed> {
    receiver.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

fn with(
    found: &Mutex<HashMap<String, Findings>>,
    options: &Options,
    url: &str,
    add: impl FnOnce(&mut Findings),
) {
    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
    let of = found.entry(url.to_owned());
    add(of.or_insert_with(|| Findings::new(url, options.mode, options.most_each)));
}

/// A resource that is being fetched.
struct One<'a> {
    listed: &'a Listed,
    walked: &'a Walked,
    run: &'a Run<'a>,
    found: &'a Mutex<HashMap<String, Findings>>,
}

impl One<'_> {
    /// Fetches and compares the resource; returns whether it was fetched. The error is the name of
    /// a limit.
    async fn fetch(&self, client: &Client) -> Result<bool, &'static str> {
        let listed = self.listed;
        let most = self.run.options.max_file_bytes;
        if listed.length.is_some_and(|length| length > most) {
            return self.ask_length(client).await;
        }
        let state = std::cell::RefCell::new((Hasher::of(&listed.digests), Vec::new(), false));
        let begin = |_: &ResponseFacts| {
            *state.borrow_mut() = (Hasher::of(&listed.digests), Vec::new(), false);
            Go::On
        };
        let is_page = listed.media_type.starts_with("text/html");
        let piece = |bytes: &[u8]| {
            let (hasher, page, too_large) = &mut *state.borrow_mut();
            hasher.update(bytes);
            if is_page && page.len() < PAGE_MAX {
                page.extend_from_slice(&bytes[..bytes.len().min(PAGE_MAX)]);
            }
            *too_large = hasher.length > most;
            if *too_large { Go::Enough } else { Go::On }
        };
        let facts = match fetch::url(client, &listed.uri, true, self.run.budget, begin, piece).await
        {
            Ok(facts) => facts,
            Err(Failure::Missing(message)) => {
                self.add(&r::AVAILABLE, || format!("{}: {message}", excerpt(&listed.uri)));
                return Ok(true);
            }
            Err(Failure::Limit(limit)) => return Err(limit),
            Err(Failure::Cancelled) => return Err("stopped"),
        };
        let (hasher, page, too_large) = state.into_inner();
        if too_large {
            self.too_large(&facts, Some(hasher.length));
        } else {
            self.compare(&facts, hasher);
        }
        for target in facts.links.iter().cloned().chain(html::in_html(&page)) {
            let mut all = self.run.protocols.iter();
            let wrong = all.find_map(|protocol| protocol.link_fault(self.walked, listed, &target));
            if let Some(wrong) = wrong {
                self.add(&r::LINK, || format!("{}: {wrong}", excerpt(&listed.uri)));
            }
        }
        Ok(true)
    }

    /// Compares the length of a resource over the size limit with Content-Length. Many servers do
    /// not answer HEAD, or send neither a length nor a correct one: then the headers of GET decide,
    /// and the body is not read.
    async fn ask_length(&self, client: &Client) -> Result<bool, &'static str> {
        let uri = &self.listed.uri;
        let mut answer = fetch::head(client, uri, self.run.budget).await;
        let is_useful = match &answer {
            Ok(facts) => facts.is_success() && facts.length().is_some_and(|length| length > 0),
            Err(failure) => !matches!(failure, Failure::Missing(_)),
        };
        if !is_useful {
            answer =
                fetch::url(client, uri, true, self.run.budget, |_| Go::On, |_| Go::Enough).await;
        }
        match answer {
            Ok(facts) => self.too_large(&facts, None),
            Err(Failure::Missing(message)) => {
                self.add(&r::AVAILABLE, || format!("{}: {message}", excerpt(&self.listed.uri)));
            }
            Err(Failure::Limit(limit)) => return Err(limit),
            Err(Failure::Cancelled) => return Err("stopped"),
        }
        Ok(true)
    }

    /// Compares the length of a resource that was read in part with Content-Length or the bytes
    /// read so far.
    fn too_large(&self, facts: &ResponseFacts, read: Option<u64>) {
        let uri = || excerpt(&self.listed.uri);
        let stated = facts.length();
        let at_least = if stated.is_none() { "at least " } else { "" };
        if let (Some(length), Some(bytes)) = (self.listed.length, stated.or(read))
            && length != bytes
            && !self.changed_since(facts)
        {
            let bytes = count(bytes, "byte");
            self.add(&r::LENGTH_TRUE, || format!("{} has {at_least}{bytes}, not {length}", uri()));
        }
        self.add(&r::LIMIT, || format!("{} was not checked: {TOO_LARGE}", uri()));
    }

    fn add(&self, rule: &'static crate::Rule, message: impl FnOnce() -> String) {
        with(self.found, self.run.options, &self.listed.document, |found| {
            found.add(rule, self.listed.place, message);
        });
    }

    fn compare(&self, facts: &ResponseFacts, hasher: Hasher) {
        let listed = self.listed;
        let uri = || excerpt(&listed.uri);
        if self.changed_since(facts) {
            return;
        }
        if let Some(length) = listed.length {
            if hasher.length != length {
                self.add(&r::LENGTH_TRUE, || {
                    format!("{} has {}, not {length}", uri(), count(hasher.length, "byte"))
                });
            } else if let Some(stated) = facts.content_length.filter(|stated| *stated != length) {
                self.add(&r::LENGTH_EQUAL, || {
                    format!("{}: Content-Length is {stated}, not {length}", uri())
                });
            } else if facts.content_length.is_none() {
                self.add(&r::LENGTH_EQUAL, || {
                    format!("{}: the server states no Content-Length", uri())
                });
            }
        }
        if hasher.finish().agree(&listed.digests) == Some(false) {
            self.add(&r::HASH_TRUE, || format!("{} has another digest", uri()));
        }
        if let Some(delivered) =
            facts.content_type.as_deref().filter(|_| !listed.media_type.is_empty())
            && values::essence(delivered) != values::essence(&listed.media_type)
        {
            self.add(&r::TYPE_TRUE, || {
                format!("{}: Content-Type is {}", uri(), excerpt(delivered))
            });
        }
        let delivered = facts
            .content_encoding
            .as_deref()
            .filter(|coding| *coding != "identity")
            .unwrap_or_default();
        if !delivered.eq_ignore_ascii_case(&listed.encoding) {
            let message = || {
                let stated = if listed.encoding.is_empty() { ", and none is stated" } else { "" };
                format!("{}: Content-Encoding is \"{}\"{stated}", uri(), excerpt(delivered))
            };
            self.add(&r::ENCODING_TRUE, message);
        }
        if let (Some(stated), Some(delivered)) = (listed.lastmod, seconds(facts))
            && stated.instant.as_seconds().abs_diff(delivered) > 1
            && stated.precision >= abreast_webtypes::Precision::Second
        {
            let modified = facts.last_modified.clone().unwrap_or_default();
            self.add(&r::LASTMOD_TRUE, || format!("{}: Last-Modified is {modified}", uri()));
        }
    }

    /// Whether the resource changed after the list was made, so that the list cannot contain the
    /// change.
    fn changed_since(&self, facts: &ResponseFacts) -> bool {
        let (Some(at), Some(modified)) = (self.listed.at, seconds(facts)) else { return false };
        modified > at.instant.as_seconds()
            && self.listed.lastmod.is_none_or(|l| l.instant.as_seconds() < modified)
    }
}

fn seconds(facts: &ResponseFacts) -> Option<i64> {
    let time = httpdate::parse_http_date(facts.last_modified.as_deref()?).ok()?;
    i64::try_from(time.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs()).ok()
}
