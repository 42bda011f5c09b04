//! Options of a validation: what to check, how closely, and when to stop.

use crate::report::rule::Mode;
use std::time::Duration;

/// The limit of documents, by the name of its option.
pub(crate) const MAX_DOCUMENTS: &str = "--max-documents";

/// How many of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Up to that many; 0 for none.
    Some(u64),
    /// Every one.
    All,
}

impl Share {
    /// Reads `none`, `all` or a number.
    ///
    /// # Errors
    /// The expected form.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::Some(0)),
            "all" => Ok(Self::All),
            number => number
                .parse()
                .map(Self::Some)
                .map_err(|_| format!("`{text}` is neither a number, all nor none")),
        }
    }

    pub(crate) const fn is_none(self) -> bool {
        matches!(self, Self::Some(0))
    }
}

/// Options of a validation.
#[derive(Clone, Debug)]
pub struct Options {
    /// URLs and paths of files.
    pub starts: Vec<String>,
    /// How to judge.
    pub mode: Mode,
    /// Continue to the documents that a document links to. Files lead nowhere.
    pub walk: bool,
    /// How far down: 0 is the Source Description, 1 the Capability Lists, 2 their documents, 3 the
    /// lists of indexes.
    pub depth: u32,
    /// Requests in flight to one host. Default 4.
    pub connections: usize,
    /// Documents and packages. Default 10,000.
    pub max_documents: usize,
    /// Bytes of documents, packages and resources together, unpacked. Default 16 GiB.
    pub max_bytes: u64,
    /// Time. Default an hour.
    pub max_time: Duration,
    /// Bytes of one document, unpacked. Default 512 MiB.
    pub max_document_bytes: u64,
    /// Bytes of one package or resource; larger ones are left out. Default 256 MiB.
    pub max_file_bytes: u64,
    /// Packages of each dump. Default 2.
    pub packages: Share,
    /// Resources fetched and compared with what the lists state. Default 40 of each set.
    pub sample: Share,
    /// Which resources are sampled: the same number, the same ones.
    pub seed: u64,
    /// Findings kept of one rule in one document. Default 10.
    pub most_each: usize,
    /// Hosts to check beside those of the starts: `host` or `host:port`.
    pub allow_hosts: Vec<String>,
    /// Limits and manners of the HTTP client.
    pub net: abreast_net::Options,
}

impl Options {
    /// The defaults.
    pub fn new(starts: Vec<String>) -> Self {
        Self {
            starts,
            mode: Mode::Normal,
            walk: true,
            depth: u32::MAX,
            connections: 4,
            max_documents: 10_000,
            max_bytes: 16 << 30,
            max_time: Duration::from_secs(3_600),
            max_document_bytes: 512 << 20,
            max_file_bytes: 256 << 20,
            packages: Share::Some(2),
            sample: Share::Some(40),
            seed: 1,
            most_each: 10,
            allow_hosts: Vec::new(),
            net: abreast_net::Options::default(),
        }
    }
}
