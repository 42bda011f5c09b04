//! Reading a document, and the documents of an index or the pages of a feed.

use crate::model::error::Error;
use crate::model::item::Item;
use crate::protocol::{Next, Out, Source};
use crate::walk::input::{Body, Network, with_unpacked};
use crate::walk::recognise::Kind;
use abreast_net::{Client, Options, Shared};
use abreast_webtypes::{Origin, resolve};
use bytes::Bytes;
use std::cell::Cell;
use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io::{BufRead, Read};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Callback for each item; [`ControlFlow::Break`] ends the reading with [`Error::Cancelled`].
pub type Visit<'v> = dyn FnMut(Item) -> ControlFlow<()> + 'v;

const HELP_UNKNOWN: &str = "expected a document of ResourceSync, a feed of SDShare, a page in Activity Streams, RDF or RDF Patch";

/// Place of the first document of a reading.
#[derive(Clone, Debug)]
pub enum Place {
    /// A document at an address.
    Url(String),
    /// A document in a file.
    File(PathBuf),
    /// A document that is in memory already.
    Bytes {
        /// The document, possibly compressed with gzip.
        bytes: Vec<u8>,
        /// Address of the document; may be empty.
        url: String,
    },
}

/// Limits of a reading over all of its documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most documents, 10,000 by default.
    pub documents: usize,
    /// Most bytes, unpacked; 16 GiB by default.
    pub bytes: u64,
    /// Longest time, 1 hour by default.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { documents: 10_000, bytes: 16 << 30, time: Duration::from_secs(3_600) }
    }
}

/// What is read, and how.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Place of the first document of a reading.
    pub place: Place,
    /// Whether the documents of an index and the pages of a feed are read too, in their order.
    pub follow_indexes: bool,
    /// Options of all requests of the reading.
    pub net: Options,
    /// Hosts other than the host of the first document, from which further documents are read.
    pub allow_hosts: Vec<String>,
    /// Limits over all documents of the reading.
    pub limits: Limits,
}

impl Reading {
    /// Reads one document with the default options of the network.
    pub fn new(place: Place, limits: Limits) -> Self {
        let (net, allow_hosts) = (Options::default(), Vec::new());
        Self { place, follow_indexes: false, net, allow_hosts, limits }
    }
}

/// Reads a document, and visits its head and its entries in order.
///
/// # Errors
/// A document cannot be fetched or read, or exceeds a limit. Items before the error were visited.
pub fn read(reading: &Reading, cancel: &AtomicBool, visit: &mut Visit<'_>) -> Result<(), Error> {
    let Limits { documents, bytes, time } = reading.limits;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|source| Error::Io { place: "the network".to_owned(), source })?;
    let network = Network {
        runtime,
        client: Client::new(Shared::new(reading.net.clone())),
        cancel,
        deadline: Instant::now() + time,
    };
    let left = Cell::new(bytes);
    let mut out = Out { visit };
    let (url, next) = match &reading.place {
        Place::Url(url) => fetch(&network, url, true, &left, &mut out)?,
        Place::File(path) => {
            let place = path.display().to_string();
            let opened =
                File::open(path).map_err(|source| Error::Io { place: place.clone(), source });
            let next = one(opened?, &place, "", &left, &mut out)?;
            (String::new(), next)
        }
        Place::Bytes { bytes, url } => {
            (url.clone(), one(bytes.as_slice(), url, "", &left, &mut out)?)
        }
    };
    if !reading.follow_indexes {
        return Ok(());
    }
    let own = Origin::of(&url);
    let mut visited = HashSet::from([url.clone()]);
    let mut waiting: VecDeque<(String, String)> =
        next.into_iter().map(|reference| (url.clone(), reference)).collect();
    while let Some((base, reference)) = waiting.pop_front() {
        let url = match resolve(&base, &reference) {
            Ok(url) => url,
            Err(_) if abreast_webtypes::absolute_fault(&reference).is_none() => reference,
            Err(error) => {
                return Err(Error::document(&base, "documents.address", error.to_string(), None));
            }
        };
        if !visited.insert(url.clone()) {
            let message = "the documents lead in a circle: this one was read before";
            return Err(Error::document(&url, "documents.circle", message, None));
        }
        if visited.len() > documents {
            let message = format!("there are more than {documents} documents");
            let help = Some("raise --max-documents");
            return Err(Error::document(&url, "documents.number", message, help));
        }
        let is_own = Origin::of(&url).is_some_and(|origin| own.as_ref() == Some(&origin));
        if !is_own && !is_allowed(&url, &reading.allow_hosts) {
            let message = "the document is on a host other than that of the first document";
            let help = Some("allow the host with --allow-host");
            return Err(Error::document(&url, "documents.host", message, help));
        }
        let (at, next) = fetch(&network, &url, is_own, &left, &mut out)?;
        // Depth first: the parts of an index inside an index come in its place.
        for reference in next.into_iter().rev() {
            waiting.push_front((at.clone(), reference));
        }
    }
    Ok(())
}

fn is_allowed(url: &str, hosts: &[String]) -> bool {
    Origin::of(url).is_some_and(|origin| {
        let with_port = format!("{}:{}", origin.host, origin.port);
        hosts.iter().any(|host| {
            host.eq_ignore_ascii_case(&origin.host) || host.eq_ignore_ascii_case(&with_port)
        })
    })
}

/// Reads the document at an address. The address after redirects is returned with the next documents.
fn fetch(
    network: &Network<'_>,
    url: &str,
    is_own: bool,
    left: &Cell<u64>,
    out: &mut Out<'_>,
) -> Result<(String, Next), Error> {
    let response = network.open(url, is_own)?;
    let media_type = response.header("content-type").unwrap_or_default().to_owned();
    let at = response.url().to_owned();
    let body = Body { network, response, piece: Bytes::new() };
    let next = one(body, &at, &media_type, left, out)?;
    Ok((at, next))
}

fn one(
    input: impl Read,
    url: &str,
    media_type: &str,
    left: &Cell<u64>,
    out: &mut Out<'_>,
) -> Result<Next, Error> {
    with_unpacked(input, url, left, |begin: &[u8], input: &mut dyn BufRead| {
        let Some(kind) = Kind::of(begin, media_type, url) else {
            let message = "the document is of an unknown kind";
            return Err(Error::document(url, "documents.kind", message, Some(HELP_UNKNOWN)));
        };
        kind.read(&mut Source { url, input }, out)
    })
}
