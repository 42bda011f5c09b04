//! Namespace prefixes in scope [xml-names §3].

/// A namespace by number, so that comparing costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ns(u16);

impl Ns {
    /// The namespace of names without a prefix and without a default.
    pub const NONE: Self = Self(0);
    /// `http://www.w3.org/XML/1998/namespace`, always bound to `xml`.
    pub const XML: Self = Self(1);
    /// A namespace that the caller did not list.
    pub const FOREIGN: Self = Self(2);

    /// The namespace at that index in the list given to [`Reader::new`](super::Reader::new).
    pub const fn known(index: u16) -> Self {
        Self(index + 3)
    }
}

const XML_URI: &str = "http://www.w3.org/XML/1998/namespace";
const XMLNS_URI: &str = "http://www.w3.org/2000/xmlns/";

/// The declarations in scope, innermost last.
pub(super) struct Namespaces {
    known: &'static [&'static str],
    limit: usize,
    bindings: Vec<Binding>,
    /// The namespace of the empty prefix, stored apart since most names have no prefix.
    default: Ns,
    /// Prefixes that were used without a declaration and that [`Namespaces::assume`] allows.
    pub(super) undeclared: Vec<String>,
}

struct Binding {
    /// Empty for the default namespace.
    prefix: String,
    uri: String,
    ns: Ns,
    depth: usize,
    /// Nobody declared it; unused so far.
    assumed: bool,
}

impl Namespaces {
    pub(super) fn new(known: &'static [&'static str], limit: usize) -> Self {
        Self { known, limit, bindings: Vec::new(), default: Ns::NONE, undeclared: Vec::new() }
    }

    /// Binds a prefix outside the root element, for documents that do not declare it.
    pub(super) fn assume(&mut self, prefix: &str, uri: &str) {
        if self.declare(prefix, uri, 0).is_ok()
            && let Some(binding) = self.bindings.last_mut()
        {
            binding.assumed = true;
        }
    }

    /// Notes `xmlns="uri"` (an empty prefix) or `xmlns:prefix="uri"` of an element at that depth.
    pub(super) fn declare(
        &mut self,
        prefix: &str,
        uri: &str,
        depth: usize,
    ) -> Result<(), (&'static str, String)> {
        let fault = |message: &str| Err(("xml.syntax", message.to_owned()));
        match (prefix, uri) {
            ("xml", XML_URI) => return Ok(()),
            ("xml" | "xmlns", _) | (_, XML_URI | XMLNS_URI) => {
                return fault("a reserved namespace is redeclared");
            }
            (prefix, "") if !prefix.is_empty() => {
                return fault("a prefix is declared for no namespace");
            }
            _ => {}
        }
        if self.bindings.len() == self.limit {
            return Err((
                "xml.attributes",
                format!("more than {} namespace declarations in scope", self.limit),
            ));
        }
        let ns = if uri.is_empty() {
            Ns::NONE
        } else {
            self.known
                .iter()
                .position(|known| *known == uri)
                .map_or(Ns::FOREIGN, |index| Ns::known(index as u16))
        };
        self.bindings.push(Binding {
            prefix: prefix.to_owned(),
            uri: uri.to_owned(),
            ns,
            depth,
            assumed: false,
        });
        self.note_default();
        Ok(())
    }

    /// Removes the declarations of the element at that depth.
    pub(super) fn leave(&mut self, depth: usize) {
        if self.bindings.last().is_some_and(|binding| binding.depth >= depth) {
            self.bindings.retain(|binding| binding.depth < depth);
            self.note_default();
        }
    }

    fn note_default(&mut self) {
        self.default = self.find("").map_or(Ns::NONE, |binding| binding.ns);
    }

    fn find(&self, prefix: &str) -> Option<&Binding> {
        self.position(prefix).map(|at| &self.bindings[at])
    }

    fn position(&self, prefix: &str) -> Option<usize> {
        // Prefixes are short: comparing bytes here is cheaper than a call.
        let same = |binding: &Binding| {
            binding.prefix.len() == prefix.len()
                && binding.prefix.bytes().zip(prefix.bytes()).all(|(a, b)| a == b)
        };
        self.bindings.iter().rposition(same)
    }

    /// The namespace of a prefix, or the default one of elements; `None` for a prefix nobody
    /// declared.
    pub(super) fn resolve(&mut self, prefix: &str) -> Option<Ns> {
        if prefix.is_empty() {
            return Some(self.default);
        }
        let Some(at) = self.position(prefix) else {
            return (prefix == "xml").then_some(Ns::XML);
        };
        let binding = &mut self.bindings[at];
        if std::mem::take(&mut binding.assumed) {
            self.undeclared.push(prefix.to_owned());
        }
        Some(binding.ns)
    }

    /// The namespace name of a declared prefix.
    pub(super) fn uri(&self, prefix: &str) -> &str {
        let predefined = if prefix == "xml" { XML_URI } else { "" };
        self.find(prefix).map_or(predefined, |binding| &binding.uri)
    }
}
