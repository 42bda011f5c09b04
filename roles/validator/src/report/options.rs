//! Options of a validation: what to check, how closely, and when to stop.

use crate::report::rule::Mode;
use std::time::Duration;

/// Limit on documents, as the name of its option.
pub(crate) const MAX_DOCUMENTS: &str = "--max-documents";

/// How many items to check: a number or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// At most this many items; 0 for none.
    Some(u64),
    /// All items, without a limit.
    All,
}

impl Share {
    /// Reads `none`, `all` or a number.
    ///
    /// # Errors
    /// The error is the expected form.
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

/// Options of a validation: starts, mode, limits, and the HTTP client.
#[derive(Clone, Debug)]
pub struct Options {
    /// URLs and paths of files where the validation starts.
    pub starts: Vec<String>,
    /// Mode that determines the severities of findings.
    pub mode: Mode,
    /// Whether to follow links from a document to others. Links in files are never followed.
    pub walk: bool,
    /// Levels to follow links down: 0 is the Source Description, 1 the Capability Lists, 2 their
    /// documents, 3 the lists of indexes.
    pub depth: u32,
    /// Most concurrent requests to one host. Default 4.
    pub connections: usize,
    /// Most documents and packages to check. Default 10,000.
    pub max_documents: usize,
    /// Most bytes of documents, packages and resources together, unpacked. Default 16 GiB.
    pub max_bytes: u64,
    /// Time after which the validation stops. Default an hour.
    pub max_time: Duration,
    /// Most bytes of a document, unpacked. Default 512 MiB.
    pub max_document_bytes: u64,
    /// Most bytes of a package or resource; larger ones are not checked. Default 256 MiB.
    pub max_file_bytes: u64,
    /// Packages of each dump to check. Default 2.
    pub packages: Share,
    /// Resources of each set to fetch and compare with their entries. Default 40.
    pub sample: Share,
    /// Seed that selects the sampled resources; the same seed selects the same resources.
    pub seed: u64,
    /// Most findings of a rule in a document; further ones are counted only. Default 10.
    pub most_each: usize,
    /// Hosts to check in addition to the hosts of the starts: `host` or `host:port`.
    pub allow_hosts: Vec<String>,
    /// Limits and request behaviour of the HTTP client.
    pub net: abreast_net::Options,
}

impl Options {
    /// Default options for these starts.
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
