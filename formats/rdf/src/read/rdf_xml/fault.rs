//! Faults of RDF/XML.

/// A fault of the current element.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) help: Option<&'static str>,
}

impl Fault {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), help: None }
    }

    pub(super) fn with_help(mut self, help: &'static str) -> Self {
        self.help = Some(help);
        self
    }
}
