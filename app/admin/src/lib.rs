//! Pages for the administrators of a server, and the report on a running server.
#![doc = include_str!("../README.md")]

mod chart;
mod deliveries;
mod log;
mod overview;
mod pages;
mod report;
mod request;
mod samples;
mod set;
mod text;

pub use pages::AdminPages;
pub use report::SiteReport;
pub use request::Sources;
pub use samples::Samples;
