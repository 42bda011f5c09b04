//! The choice of a reader: the reader of the existing copy, or the reader that recognises the
//! response of the address.
//!
//! The address is requested once: the chosen reader continues with the response by which it was
//! chosen.

use super::driver::Driver;
use super::resourcesync_0_1::recognise::{leads_to_0_1, unpacked};
use super::{Reader, emm, resourcesync, resourcesync_0_1, sdshare};
use crate::copy::key;
use crate::read::leads::leads_on;
use crate::read::protocol::{AnswerHead, HEAD_BYTES, Protocol};
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use crate::request::requests::Requests;
use abreast_store::mirror::Mirror;
use abreast_webtypes::xml::utf8_begin;
use std::borrow::Cow;

/// Every protocol, in the order of the tests. The last one reads all documents that no other
/// protocol recognises, since it has discovery, and the copies of versions that supported no other.
const PROTOCOLS: &[Protocol] =
    &[sdshare::PROTOCOL, emm::PROTOCOL, resourcesync_0_1::PROTOCOL, resourcesync::PROTOCOL];

/// The reader of a copy, chosen with its first run.
pub(crate) struct Choice {
    protocols: &'static [Protocol],
    chosen: Option<Driver>,
}

impl Default for Choice {
    fn default() -> Self {
        Self::of(PROTOCOLS)
    }
}

impl Choice {
    /// Between these protocols.
    pub(crate) const fn of(protocols: &'static [Protocol]) -> Self {
        Self { protocols, chosen: None }
    }

    /// The reader for the Source in the options; `known` is the database of the copy.
    pub(crate) fn reader(
        &mut self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        known: Option<&Mirror>,
    ) -> Result<&mut Driver, Error> {
        let chosen = match self.chosen.take() {
            Some(chosen) => chosen,
            None => Driver::of(choose(self.protocols, requests, options, known)?.reader),
        };
        Ok(self.chosen.insert(chosen))
    }

    /// The reader for a run, which stores the choice for later runs.
    pub(crate) fn reader_of_run(
        &mut self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        mirror: &Mirror,
    ) -> Result<&mut Driver, Error> {
        if self.chosen.is_none() {
            let chosen = choose(self.protocols, requests, options, Some(mirror))?;
            if self.protocols.len() > 1 {
                mirror.set_meta(key::PROTOCOL, Some(chosen.protocol))?;
            }
            self.chosen = Some(Driver::of(chosen.reader));
        }
        self.reader(requests, options, Some(mirror))
    }
}

/// A reader with the name of its protocol.
struct Chosen {
    protocol: &'static str,
    reader: Box<dyn Reader>,
}

impl Chosen {
    fn of(protocol: &Protocol) -> Self {
        Self { protocol: protocol.name, reader: (protocol.reader)() }
    }
}

fn choose(
    protocols: &'static [Protocol],
    requests: &Requests<'_>,
    options: &SyncOptions,
    known: Option<&Mirror>,
) -> Result<Chosen, Error> {
    let chosen = choose_any(protocols, requests, options, known)?;
    if !options.categories.is_empty() && chosen.protocol != resourcesync_0_1::PROTOCOL.name {
        let message = format!(
            "`--category` is for Sources of ResourceSync 0.1, and {} is an address of {}",
            options.url, chosen.protocol
        );
        return Err(Error::new("filter.category", ExitCode::Usage, message).with_help(
            "leave out `--category`, and select resources with `--include` or `--exclude`",
        ));
    }
    // Only targets of RDF read what these Sources list; decision 70 has the reasons.
    let has_descriptions = ![resourcesync_0_1::PROTOCOL.name, resourcesync::PROTOCOL.name]
        .contains(&chosen.protocol)
        || options.sink.is_of_statements();
    if options.leave_out_invalid && !has_descriptions {
        let message = format!(
            "`--leave-out-invalid` is for statements of RDF, and the resources of {}, an address of {}, are stored \
             in this target as they are",
            options.url, chosen.protocol
        );
        return Err(Error::new("rdf.leave-out", ExitCode::Usage, message).with_help(
            "leave out `--leave-out-invalid`, or use a target of RDF, such as `nquads:FOLDER`",
        ));
    }
    Ok(chosen)
}

fn choose_any(
    protocols: &'static [Protocol],
    requests: &Requests<'_>,
    options: &SyncOptions,
    known: Option<&Mirror>,
) -> Result<Chosen, Error> {
    let Some((fallback, others)) = protocols.split_last() else {
        return Err(Error::new("internal", ExitCode::Other, "no protocol can be read"));
    };
    if others.is_empty() {
        return Ok(Chosen::of(fallback));
    }
    let begun = known.map(|mirror| of_copy(protocols, mirror)).transpose()?.flatten();
    let source = known.map(|mirror| mirror.meta(key::SOURCE_URL)).transpose()?.flatten();
    let is_known = source.is_none_or(|source| source == options.url);
    if let Some(protocol) = begun.filter(|_| is_known) {
        return Ok(Chosen::of(protocol));
    }
    let mut plain_index = None;
    let found = requests.open(&options.url, HEAD_BYTES, |answer| {
        let bytes = utf8_begin(answer.map_or(&[][..], |begun| &begun.begin));
        let head = AnswerHead { bytes: &bytes };
        let is_linked = answer.is_ok_and(|begun| leads_on(&begun.response.values("link")));
        let unpacked = unpacked(&bytes);
        let is_packed = matches!(unpacked, Cow::Owned(_));
        let head_unpacked = AnswerHead { bytes: &unpacked };
        let is_sitemap = head_unpacked.is_sitemap();
        if head_unpacked.root_element() == Some("sitemapindex") {
            plain_index = Some(bytes.to_vec());
        }
        let mut known = others.iter().filter(|protocol| (protocol.recognises)(&head));
        match (known.next(), fallback.at_site) {
            // A document that links to its Source is a resource. It is a dump or a feed only if it
            // has a mark of the protocol, or if the copy was begun over the protocol.
            (Some(protocol), _)
                if !is_linked
                    || (protocol.has_mark)(&head)
                    || begun.is_some_and(|begun| begun.name == protocol.name) =>
            {
                Err(protocol)
            }
            (_, Some(at_site)) if !is_sitemap && (is_linked || !is_packed) => Ok(at_site),
            _ => Err(fallback),
        }
    })?;
    let is_fallback = found.as_ref().is_err_and(|found| found.name == fallback.name);
    let is_old = match plain_index.as_ref().filter(|_| is_fallback) {
        Some(begin) => leads_to_0_1(requests, options, &options.url, begin)?,
        None => false,
    };
    let chosen = match found {
        Err(_) if is_old => Chosen::of(&resourcesync_0_1::PROTOCOL),
        Err(protocol) => Chosen::of(protocol),
        Ok(at_site) => {
            let (name, reader) = at_site(requests, options)?;
            Chosen { protocol: name.unwrap_or(fallback.name), reader }
        }
    };
    match begun {
        Some(begun) if begun.name != chosen.protocol => {
            let message = format!(
                "the copy was begun over {}, and {} is an address of {}",
                begun.name, options.url, chosen.protocol
            );
            Err(Error::new("folder.source", ExitCode::Usage, message)
                .with_help("give an address of the same protocol, with `--moved` if it is new, or use another place"))
        }
        _ => Ok(chosen),
    }
}

/// The protocol of an existing copy.
fn of_copy(
    protocols: &'static [Protocol],
    mirror: &Mirror,
) -> Result<Option<&'static Protocol>, Error> {
    if let Some(name) = mirror.meta(key::PROTOCOL)? {
        let protocol = protocols.iter().find(|protocol| protocol.name == name).ok_or_else(|| {
            Error::new(
                "folder.protocol",
                ExitCode::Usage,
                format!("the copy is of a Source of {name}, which is not supported"),
            )
            .with_help("use the version of this program that made the copy, or another folder")
        });
        return protocol.map(Some);
    }
    let is_begun = mirror.meta(key::SOURCE_URL)?.is_some();
    Ok(protocols.last().filter(|_| is_begun))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_element_is_found_behind_prolog_and_comments() {
        let root = |bytes: &[u8]| AnswerHead { bytes }.root_element().map(str::to_owned);
        let prolog =
            b"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- <a> --><!DOCTYPE x>\n <atom:feed xmlns";
        assert_eq!(root(prolog).as_deref(), Some("feed"));
        assert_eq!(root(b"<urlset>").as_deref(), Some("urlset"));
        assert_eq!(root(b"<a/>\xc3").as_deref(), Some("a"));
        for other in [&b""[..], b"5\n", b"{\"a\": 1}", b"<cut", b"<!-- cut"] {
            assert_eq!(root(other), None, "{}", String::from_utf8_lossy(other));
        }
    }
}
