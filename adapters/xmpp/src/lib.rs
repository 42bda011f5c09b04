#![doc = include_str!("../README.md")]

mod account;
mod connect;
mod depth;
mod error;
mod events;
mod node;
mod pubsub;
mod session;
mod stanza;
mod tls;
mod wire;

pub use account::{Account, SENT_MAX};
pub use error::{Error, ErrorKind};
pub use events::{Event, Item};
pub use node::Node;
pub use session::{Events, Session};
pub use tls::check_certificates;
