//! Heads, entries and statements of documents in one form, with the field names of the HTTP API.

use serde::{Deserialize, Serialize};

/// A part of a document, in the order of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// The start of a document: its kind, times and links.
    Document(Box<Head>),
    /// A resource, a change or a link to a document.
    Entry(Box<Entry>),
    /// A statement of RDF, or its addition or removal.
    Statement(Box<Statement>),
}

/// The properties of a whole document. Times are texts in W3C Datetime.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Head {
    /// Address of the document, or its path; empty for bytes without an address.
    pub url: String,
    /// Name of the protocol, such as `ResourceSync 1.1`.
    pub protocol: String,
    /// Name of the kind in its specification, such as `Change List Index`.
    pub kind: String,
    /// Whether the entries are documents of the same kind.
    pub is_index: bool,
    /// The capability of a document of ResourceSync, such as `changelist`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// Start of a snapshot: earlier changes are included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// When the snapshot was complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed: Option<String>,
    /// Start of the period whose changes are included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// End of the period; the document does not change any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Last modification of the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified: Option<String>,
    /// Title of a feed, for display to users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Links of the document, such as `up` and `next`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
}

/// A resource, a change, or a link to a document. Times are texts in W3C Datetime.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Entry {
    /// The URI as written in the document.
    pub uri: String,
    /// Kind of the change: `created`, `updated`, `deleted`; in Activity Streams also `added`, `deprecated`, `removed`,
    /// `moved`, `refresh` and `other`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
    /// Time of the change at the Source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datetime: Option<String>,
    /// Last modification of the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lastmod: Option<String>,
    /// Length of the content in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// Digests of the content, such as `md5:… sha-256:…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Media type of the content.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Content coding, such as `gzip`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// Path of the content in a package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The capability of a listed document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// As in [`Head`], for a listed document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// As in [`Head`], for a listed document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed: Option<String>,
    /// As in [`Head`], for a listed document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// As in [`Head`], for a listed document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Identifier of the activity or of the entry in a feed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Title of an entry in a feed, for display to users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Links of the entry to related resources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
}

/// A link of a document or an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Link {
    /// Relation types, separated by spaces.
    pub rel: String,
    /// Target of the link, as written.
    pub href: String,
    /// Priority among links with the same relation; 1 is the highest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pri: Option<u32>,
    /// Last modification of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified: Option<String>,
    /// Length of the target in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// Digests of the content of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Media type of the target.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Content coding of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// Path of the target in a package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Title of the target, for display to users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

impl Link {
    /// A link without further properties.
    pub fn new(rel: impl Into<String>, href: impl Into<String>) -> Self {
        Self { rel: rel.into(), href: href.into(), ..Self::default() }
    }
}

/// A statement of RDF. Terms are written as in N-Triples.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Statement {
    /// `added` or `removed` in a patch; `None` in a document that contains the statements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<&'static str>,
    /// The subject: an IRI or a blank node.
    pub subject: String,
    /// The predicate, which is always an IRI.
    pub predicate: String,
    /// The object: an IRI, a blank node or a literal.
    pub object: String,
    /// The graph; `None` for the default graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<String>,
}
