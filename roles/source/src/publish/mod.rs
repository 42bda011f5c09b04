//! Publisher: resolves documents and topics through the projections, and caches rendered documents
//! until they are out of date.

mod about;
mod body;
mod cache;
pub(crate) mod document;
mod error;
pub(crate) mod files;
mod head_reader;
mod institution;
mod lanes;
mod news;
mod notifications;
mod parts;
pub(crate) mod publisher;
mod reader;
pub(crate) mod representations;
mod served;
mod set;
pub(crate) mod set_state;
mod site;
mod topic;
mod topics;
mod validation;

pub use crate::names::urls::{SetUrls, SourceUrls};
pub use about::About;
pub use body::{Body, CacheFile, Document};
pub use cache::tag_of_bytes;
pub use document::{Freshness, LogState, Output, Rendered, ResolvedDocument, Version};
pub use error::PublishError;
pub use files::{FileContent, FileError, PublishedFile, SharedContent};
pub use head_reader::HeadReader;
pub use institution::{Accent, AccentError, Institution};
pub(crate) use lanes::LARGE;
pub use news::{EndedTopic, News, NewsRequest, NotifiedDocuments};
pub use notifications::Notifications;
pub use parts::Parts;
pub use publisher::{Projection, Publisher};
pub use reader::Reader;
pub use served::{ServedSet, ServedSets};
pub use set::PublishedSet;
pub use site::{SiteDocument, SiteStage};
pub use topic::{Topic, TopicContent};
pub use topics::TopicDocument;
pub use validation::Validation;
