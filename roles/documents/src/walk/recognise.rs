//! The protocol of a document, by its first bytes, its media type and its name.

use crate::model::error::Error;
use crate::protocol::{Next, Out, Source, emm, rdf, resourcesync, resourcesync_0_1, sdshare};
use abreast_rdf::Syntax;
use abreast_webtypes::xml::{Reader, Token};

/// A protocol or syntax that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    ResourceSync,
    ResourceSync01,
    ActivityStreams,
    SdShare,
    Patch,
    Rdf(Syntax),
}

impl Kind {
    /// `None` for a document of another kind.
    pub(crate) fn of(begin: &[u8], media_type: &str, url: &str) -> Option<Self> {
        let path = url.split(['?', '#']).next().unwrap_or(url);
        let essence = media_type.split(';').next().unwrap_or_default().trim_ascii();
        if emm::is_document(begin) {
            return Some(Self::ActivityStreams);
        }
        if let Some(kind) = Self::of_xml(begin) {
            return Some(kind);
        }
        let is = |known: &str| essence.eq_ignore_ascii_case(known);
        if is(rdf_patch::MEDIA_TYPE)
            || is(rdf_patch::MEDIA_TYPE_TEXT)
            || has_extension(path, rdf_patch::FILE_EXTENSION)
            || has_patch_row(begin)
        {
            return Some(Self::Patch);
        }
        let syntax = Syntax::of_media_type(essence);
        let syntax = syntax.or_else(|| Syntax::of_file_name(path).map(|file| file.syntax));
        syntax.or_else(|| syntax_of(begin)).map(Self::Rdf)
    }

    fn of_xml(begin: &[u8]) -> Option<Self> {
        if abreast_rdf::is_rdf_xml(begin) {
            return Some(Self::Rdf(Syntax::RdfXml));
        }
        match root(begin)?.as_str() {
            "feed" => Some(Self::SdShare),
            "urlset" | "sitemapindex" | "iq" | "message"
                if resourcesync_0_1::is_document(begin) =>
            {
                Some(Self::ResourceSync01)
            }
            "urlset" | "sitemapindex" => Some(Self::ResourceSync),
            _ => None,
        }
    }

    pub(crate) fn read(self, source: &mut Source<'_>, out: &mut Out<'_>) -> Result<Next, Error> {
        match self {
            Self::ResourceSync => resourcesync::read(source, out),
            Self::ResourceSync01 => resourcesync_0_1::read(source, out),
            Self::ActivityStreams => emm::read(source, out),
            Self::SdShare => sdshare::read(source, out),
            Self::Patch => rdf::read_patch(source, out),
            Self::Rdf(syntax) => rdf::read(syntax, source, out),
        }
    }
}

fn has_extension(path: &str, extension: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, found)| found.eq_ignore_ascii_case(extension))
}

/// Local name of the root element of XML, which may be truncated.
fn root(begin: &[u8]) -> Option<String> {
    let mut xml = Reader::with_limit(&[], u64::MAX);
    xml.guess_encoding();
    xml.push(begin);
    loop {
        match xml.next() {
            Ok(Token::Start(root)) => return Some(root.local().to_owned()),
            Ok(Token::Markup(_) | Token::Text(_)) => {}
            _ => return None,
        }
    }
}

/// The first line that is neither empty nor a comment.
fn first_line(begin: &[u8]) -> Option<&[u8]> {
    let begin = begin.strip_prefix(b"\xef\xbb\xbf").unwrap_or(begin);
    let mut lines = begin.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines.find(|line| !line.is_empty() && !line.starts_with(b"#"))
}

fn has_patch_row(begin: &[u8]) -> bool {
    let word = first_line(begin).and_then(|line| line.split(u8::is_ascii_whitespace).next());
    matches!(word, Some(b"H" | b"TX" | b"TB" | b"A" | b"D" | b"PA" | b"PD"))
}

fn syntax_of(begin: &[u8]) -> Option<Syntax> {
    let line = first_line(begin)?;
    let lower = line[..line.len().min(7)].to_ascii_lowercase();
    if [&b"@prefix"[..], b"@base", b"prefix ", b"base "].iter().any(|word| lower.starts_with(word))
    {
        return Some(Syntax::Turtle);
    }
    // N-Quads contain N-Triples.
    let is_statement = line.ends_with(b".")
        && (line.starts_with(b"_:")
            || line.starts_with(b"<") && line.windows(3).any(|part| part == b"> <"));
    is_statement.then_some(Syntax::NQuads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_recognised_by_their_first_bytes() {
        let rs = "xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:rs='http://www.openarchives.org/rs/terms/'";
        let list = format!("<urlset {rs}><rs:md capability='resourcelist'/>");
        let old = format!("<urlset {rs} rs:type='changeset'>");
        for (begin, kind) in [
            (list.as_str(), Some(Kind::ResourceSync)),
            (&old, Some(Kind::ResourceSync01)),
            ("{\"type\": \"OrderedCollection\"", Some(Kind::ActivityStreams)),
            ("<feed xmlns='http://www.w3.org/2005/Atom'>", Some(Kind::SdShare)),
            ("# a patch\nH id <uuid:1> .\nTX .", Some(Kind::Patch)),
            ("<http://h/a> <http://h/b> \"c\" .\n", Some(Kind::Rdf(Syntax::NQuads))),
            ("@prefix a: <http://h/> .\n", Some(Kind::Rdf(Syntax::Turtle))),
            (
                "<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>",
                Some(Kind::Rdf(Syntax::RdfXml)),
            ),
            ("<!DOCTYPE html><html>", None),
            ("plain text", None),
            ("", None),
        ] {
            assert_eq!(Kind::of(begin.as_bytes(), "", ""), kind, "{begin}");
        }
        assert_eq!(
            Kind::of(b"<a> <b> <c> .", "text/turtle; charset=utf-8", ""),
            Some(Kind::Rdf(Syntax::Turtle))
        );
        assert_eq!(Kind::of(b"", "", "http://h/dump.nt?a=1"), Some(Kind::Rdf(Syntax::NTriples)));
        assert_eq!(Kind::of(b"", "application/rdf-patch", ""), Some(Kind::Patch));
    }
}
