//! The syntaxes of RDF: media types and file name extensions.

use memchr::memmem;
use std::fmt;

/// A syntax of RDF that this crate reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Syntax {
    /// N-Triples: one statement in each line [n-triples §1].
    NTriples,
    /// N-Quads: N-Triples and their graphs [n-quads §1].
    NQuads,
    /// Turtle: prefixes and nested blank nodes [turtle §1].
    Turtle,
    /// TriG: Turtle and graphs [trig §1].
    TriG,
    /// RDF/XML: statements as XML elements [rdf-xml §1].
    RdfXml,
    /// JSON-LD: JSON with a context that maps keys to IRIs [json-ld §1].
    JsonLd,
}

/// The syntax and the compression of a file, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSyntax {
    /// The syntax of the unpacked content.
    pub syntax: Syntax,
    /// `gz`, `bz2`, `xz` or `zst`, if the file name has this extension.
    pub compression: Option<&'static str>,
}

impl Syntax {
    /// All syntaxes, the simplest first.
    pub const ALL: [Self; 6] =
        [Self::NTriples, Self::NQuads, Self::Turtle, Self::TriG, Self::RdfXml, Self::JsonLd];

    /// The registered media type of the syntax.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::NTriples => "application/n-triples",
            Self::NQuads => "application/n-quads",
            Self::Turtle => "text/turtle",
            Self::TriG => "application/trig",
            Self::RdfXml => "application/rdf+xml",
            Self::JsonLd => "application/ld+json",
        }
    }

    /// Name of the syntax, for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NTriples => "N-Triples",
            Self::NQuads => "N-Quads",
            Self::Turtle => "Turtle",
            Self::TriG => "TriG",
            Self::RdfXml => "RDF/XML",
            Self::JsonLd => "JSON-LD",
        }
    }

    /// The usual file name extension, without the point.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::NTriples => "nt",
            Self::NQuads => "nq",
            Self::Turtle => "ttl",
            Self::TriG => "trig",
            Self::RdfXml => "rdf",
            Self::JsonLd => "jsonld",
        }
    }

    /// The syntax of a media type; parameters and case do not matter.
    ///
    /// The types used before registration are known too: `application/x-turtle`,
    /// `application/x-trig` and `text/x-nquads`. `text/plain` is not: see
    /// [`Syntax::of_sdshare_media_type`].
    ///
    /// # Examples
    /// ```
    /// use abreast_rdf::Syntax;
    ///
    /// assert_eq!(Syntax::of_media_type("Text/Turtle; charset=UTF-8"), Some(Syntax::Turtle));
    /// assert_eq!(Syntax::of_media_type("application/x-trig"), Some(Syntax::TriG));
    /// assert_eq!(Syntax::of_media_type("text/plain"), None);
    /// ```
    pub fn of_media_type(media_type: &str) -> Option<Self> {
        let essence = media_type.split(';').next()?.trim_matches([' ', '\t']);
        let is = |name: &str| essence.eq_ignore_ascii_case(name);
        let registered = Self::ALL.into_iter().find(|syntax| is(syntax.media_type()));
        registered
            .or_else(|| is("application/x-turtle").then_some(Self::Turtle))
            .or_else(|| is("application/x-trig").then_some(Self::TriG))
            .or_else(|| is("text/x-nquads").then_some(Self::NQuads))
    }

    /// The syntax of a media type in SDShare, where N-Triples are `text/plain`
    /// [sdshare §Recommended Resource Representation Formats].
    ///
    /// # Examples
    /// ```
    /// use abreast_rdf::Syntax;
    ///
    /// assert_eq!(Syntax::of_sdshare_media_type("text/plain"), Some(Syntax::NTriples));
    /// assert_eq!(Syntax::of_sdshare_media_type("application/rdf+xml"), Some(Syntax::RdfXml));
    /// ```
    pub fn of_sdshare_media_type(media_type: &str) -> Option<Self> {
        let essence = media_type.split(';').next()?.trim_matches([' ', '\t']);
        if essence.eq_ignore_ascii_case("text/plain") {
            return Some(Self::NTriples);
        }
        Self::of_media_type(media_type)
    }

    /// The syntax of a file by its name, which may end with the extension of a compression.
    ///
    /// # Examples
    /// ```
    /// use abreast_rdf::{FileSyntax, Syntax};
    ///
    /// let dump = Syntax::of_file_name("subjects-2026-03.nt.gz");
    /// assert_eq!(dump, Some(FileSyntax { syntax: Syntax::NTriples, compression: Some("gz") }));
    /// assert_eq!(Syntax::of_file_name("subjects.csv"), None);
    /// ```
    pub fn of_file_name(name: &str) -> Option<FileSyntax> {
        let (stem, extension) = name.rsplit_once('.')?;
        let compression = ["gz", "bz2", "xz", "zst"]
            .into_iter()
            .find(|known| extension.eq_ignore_ascii_case(known));
        let extension = match compression {
            Some(_) => stem.rsplit_once('.')?.1,
            None => extension,
        };
        let known = |syntax: &Self| extension.eq_ignore_ascii_case(syntax.extension());
        let syntax = Self::ALL
            .into_iter()
            .find(known)
            .or_else(|| extension.eq_ignore_ascii_case("owl").then_some(Self::RdfXml))?;
        Some(FileSyntax { syntax, compression })
    }
}

/// Whether the start of a document is RDF/XML, by its root: `rdf:RDF`, with any prefix.
/// A document whose root is its only node is not recognised.
///
/// # Examples
/// ```
/// use abreast_rdf::is_rdf_xml;
///
/// let skos = br#"<?xml version="1.0"?><r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#">"#;
/// assert!(is_rdf_xml(skos));
/// assert!(!is_rdf_xml(br#"<feed xmlns="http://www.w3.org/2005/Atom">"#));
/// ```
pub fn is_rdf_xml(start: &[u8]) -> bool {
    let mut rest = start;
    while let Some(at) = memchr::memchr(b'<', rest) {
        rest = &rest[at..];
        let end = match rest {
            [_, b'!', b'-', b'-', ..] => memmem::find(rest, b"-->"),
            // Declarations in a DOCTYPE start in the same way, and are skipped one by one.
            [_, b'!' | b'?', ..] => Some(1),
            _ => {
                let name = rest[1..].split(|byte| b" \t\r\n/>".contains(byte)).next();
                let local = name.and_then(|name| name.rsplit(|byte| *byte == b':').next());
                return local == Some(b"RDF") && memmem::find(start, RDF_NS).is_some();
            }
        };
        let Some(end) = end else { return false };
        rest = &rest[end..];
    }
    false
}

const RDF_NS: &[u8] = b"http://www.w3.org/1999/02/22-rdf-syntax-ns#";

impl fmt::Display for Syntax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_are_known_with_parameters() {
        for syntax in Syntax::ALL {
            let written = format!(" {} ; charset=utf-8", syntax.media_type().to_uppercase());
            assert_eq!(Syntax::of_media_type(&written), Some(syntax));
            assert_eq!(Syntax::of_sdshare_media_type(&written), Some(syntax));
        }
        assert_eq!(Syntax::of_media_type("application/x-turtle"), Some(Syntax::Turtle));
        for unknown in ["", "text/plain", "text/html", "text/n3", "text/rdf+n3", "application/xml"]
        {
            assert_eq!(Syntax::of_media_type(unknown), None, "{unknown}");
        }
        let plain = Syntax::of_sdshare_media_type("text/plain;charset=utf-8");
        assert_eq!(plain, Some(Syntax::NTriples));
    }

    #[test]
    fn documents_of_rdf_xml_are_known_by_their_root() {
        let ns = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
        for start in [
            format!("<rdf:RDF xmlns:rdf=\"{ns}\">"),
            format!("\u{feff}<?xml version='1.0'?>\n<!-- <a> -->\n<RDF xmlns='{ns}'/>"),
            format!("<!DOCTYPE rdf:RDF [<!ENTITY rdf \"{ns}\">]><rdf:RDF xmlns:rdf=\"&rdf;\">"),
        ] {
            assert!(is_rdf_xml(start.as_bytes()), "{start}");
        }
        for start in
            ["", "RDF", "<", "<!-- x", "<?xml version='1.0'?><urlset>", "<rdf:RDF>", "<RDF"]
        {
            assert!(!is_rdf_xml(start.as_bytes()), "{start}");
        }
        assert!(!is_rdf_xml(format!("<a xmlns:rdf='{ns}'><rdf:RDF/></a>").as_bytes()));
    }

    #[test]
    fn file_names_state_syntax_and_compression() {
        let of = |name| Syntax::of_file_name(name).map(|found| (found.syntax, found.compression));
        assert_eq!(of("a.nt"), Some((Syntax::NTriples, None)));
        assert_eq!(of("a.b.NQ.GZ"), Some((Syntax::NQuads, Some("gz"))));
        assert_eq!(of("dir/a.ttl.zst"), Some((Syntax::Turtle, Some("zst"))));
        assert_eq!(of("a.trig.xz"), Some((Syntax::TriG, Some("xz"))));
        assert_eq!(of("a.owl"), Some((Syntax::RdfXml, None)));
        assert_eq!(of("a.rdf.bz2"), Some((Syntax::RdfXml, Some("bz2"))));
        assert_eq!(of("a.jsonld"), Some((Syntax::JsonLd, None)));
        for name in ["nt", "a.gz", "ttl.gz", "a.txt", "a.nt.txt", ""] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
