//! Whether a response starts like a document of this version.
//!
//! A Sitemap belongs to 0.1 if it has an element or attribute that exists only in 0.1, and nothing
//! from later versions; an index of plain Sitemaps, if its first Sitemap does. All other Sitemaps
//! are read by the reader of 1.1. A change set may be inside a stanza of XMPP, as in the
//! specification's example; the lenient reader removes the stanza [rs-0.1 §5.2.1].

use crate::read::protocol::{AnswerHead, HEAD_BYTES};
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use crate::request::admit::Admission;
use crate::request::requests::Requests;
use abreast_net::Unpacker;
use abreast_resourcesync::v0_1::{INDEXES_MAX, first_of_plain_index, has_marks};
use abreast_webtypes::xml::utf8_begin;
use std::borrow::Cow;

/// Number of decompressed bytes of a document that are searched.
const BYTES_MAX: usize = 64 << 10;
/// The first bytes of ZIP files.
const ZIP: &[u8] = b"PK\x03\x04";
/// The first bytes of WARC files.
const WARC: &[u8] = b"WARC/";

/// Whether a response is a document of 0.1, or a dump itself.
pub(crate) fn recognises(head: &AnswerHead<'_>) -> bool {
    let unpacked = unpacked(head.bytes);
    is_dump(&unpacked) || has_marks(&unpacked)
}

/// Whether a response starts like a dump: a ZIP or WARC file, possibly compressed.
pub(crate) fn is_dump_begin(begin: &[u8]) -> bool {
    is_dump(&unpacked(begin))
}

fn is_dump(begin: &[u8]) -> bool {
    begin.starts_with(ZIP) || begin.starts_with(WARC)
}

/// The start of the content of a gzip file; other files are returned unchanged.
pub(crate) fn unpacked(begin: &[u8]) -> Cow<'_, [u8]> {
    if !begin.starts_with(&Unpacker::MAGIC) {
        return begin.into();
    }
    let mut unpacked = Vec::new();
    // The file is incomplete, and the bytes before the error are used.
    let _ = Unpacker::new(u64::MAX).unpack(begin, &mut |bytes| {
        unpacked.extend_from_slice(bytes);
        unpacked.len() < BYTES_MAX
    });
    unpacked.into()
}

/// Whether the first Sitemap of a plain index belongs to 0.1. A Sitemap that cannot be requested
/// does not count.
///
/// # Errors
/// The user stops the run.
pub(crate) fn leads_to_0_1(
    requests: &Requests<'_>,
    options: &SyncOptions,
    index: &str,
    begin: &[u8],
) -> Result<bool, Error> {
    let mut admission = Admission::new(index, &options.allow_hosts, options.allow_downgrade);
    let mut next = first_of_plain_index(&unpacked(begin));
    for _ in 0..INDEXES_MAX {
        let Some(url) = next.take().filter(|url| admission.check(url).is_ok()) else { break };
        let opened = requests.open(&url, HEAD_BYTES, |answer| {
            let bytes = utf8_begin(answer.map_or(&[][..], |begun| &begun.begin));
            let is_old = recognises(&AnswerHead { bytes: &bytes });
            (is_old, first_of_plain_index(&unpacked(&bytes)))
        });
        match opened {
            Ok((true, _)) => return Ok(true),
            Ok((false, below)) => next = below,
            Err(error) if error.exit_code() == ExitCode::Cancelled => return Err(error),
            Err(_) => break,
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn recognised(bytes: &[u8]) -> bool {
        recognises(&AnswerHead { bytes })
    }

    #[test]
    fn dumps_and_packed_documents_are_recognised_by_their_begin() {
        assert!(recognised(b"PK\x03\x04 and so on"));
        assert!(recognised(b"WARC/1.1\r\n"));
        for (text, is_known) in [
            ("WARC/1.0\r\nWARC-Type: warcinfo\r\n", true),
            ("<urlset xmlns:rs='http://www.openarchives.org/rs/terms/' rs:type='changeset'>", true),
            ("something else", false),
        ] {
            let mut packed =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            packed.write_all(text.as_bytes()).unwrap();
            let packed = packed.finish().unwrap();
            assert_eq!(recognised(&packed), is_known, "{text}");
        }
    }

    #[test]
    fn what_is_packed_well_is_recognised() {
        let entry =
            "<url><loc>http://h/x</loc><lastmod r:type='created'>2026-01-01</lastmod></url>";
        let text = format!(
            "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:r='http://www.openarchives.org/rs/terms/'>{}",
            entry.repeat(20_000)
        );
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packer.write_all(text.as_bytes()).unwrap();
        let packed = packer.finish().unwrap();
        assert!(recognised(&packed[..packed.len().min(4_096)]));
    }
}
