//! Programs that tests start, what they are told by the environment, and waiting.

pub(crate) mod environment;
pub(crate) mod process;
pub(crate) mod wait;
