//! The HTTP server of a Source: documents, resources, API and hub.
#![doc = include_str!("../README.md")]

mod admin;
pub mod api;
mod connection;
mod limits;
mod message;
mod observe;
mod routes;
mod run;
mod site;

pub use connection::client::TrustedProxies;
pub use limits::clients::KnownClient;
pub use limits::memory::Memory;
pub use observe::access::{AccessFormat, AccessLog, AccessLogOptions};
pub use observe::followers::{Follower, FollowerAt, Followers};
pub use observe::metrics::{METRICS, Metric, MetricKind, Metrics};
pub use routes::health::forget_set;
pub use run::admin::{AdminServer, Observed};
#[doc(hidden)]
pub use run::fuzz_property;
pub use run::options::ServerOptions;
pub use run::server::{Server, ServerError, reread};
pub use site::administration::{AdminPath, Administration};
pub use site::current::CurrentSite;
pub use site::served::{ServedSet, ServedSets, SetLink, Site, SiteHub, set_link};
