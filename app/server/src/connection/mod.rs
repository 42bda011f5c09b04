//! One connection: its client, its speed, its line ends and the prefix of its paths.

pub(crate) mod client;
pub(crate) mod lines;
pub(crate) mod origin_form;
pub(crate) mod prefix;
pub(crate) mod stream;
