//! ResourceSync 0.1 (alpha draft of August 2012), as another view of the same log [rs-0.1 §2.2.2].

mod options;

pub use options::{Options, PushLink};
