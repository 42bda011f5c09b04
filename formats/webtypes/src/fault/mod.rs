//! Faults of documents, and texts without the logins of their URLs.

pub(crate) mod logins;
pub(crate) mod syntax_error;
