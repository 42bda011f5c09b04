//! Dumps and their manifests [rs-0.1 §4.2], also as replacements of a Sitemap.

use super::baseline::{MARGIN_MICROS, in_its_second, time_of};
use super::entry_points::DumpLink;
use super::listed::listed;
use super::sitemap::is_gone;
use crate::plan::listed::Listed;
use crate::plan::manifest::Manifest;
use crate::read::Snapshot;
use crate::read::resourcesync_0_1::newest_time::NewestTime;
use crate::read::sitemap::document::Part as DocumentPart;
use crate::read::sitemap::manifest::{self, refusal};
use crate::read::walk::Walk;
use crate::report::clock::now;
use crate::report::error::{Error, ExitCode};
use crate::request::diagnostics::Diagnostics;
use crate::request::limits::is_over;
use crate::request::package::archive::Package;
use crate::request::package::listing::{Dump, ListedPackage, Packaged, unusable};
use crate::request::pieces::Answered;
use crate::request::requests::{Requests, answered_else, net_error};
use abreast_net::{Request, StatusCode};
use abreast_resourcesync::v0_1::{Head, Root, V0_1};
use abreast_store::mirror::Document;
use abreast_webtypes::{Moment, Timestamp};
use std::fs::File;

/// A dump as a source of individual resources. Its length is known from the server, since links do
/// not contain it.
pub(super) fn offered(requests: &Requests<'_>, links: &[DumpLink]) -> Result<Dump, Error> {
    let package = |part: Part| ListedPackage { length: part.length, ..part.package };
    let parts = made_parts_of(requests, links)?;
    let latest = parts.iter().map(|part| part.answered.latest_now()).min();
    let packages = parts.into_iter().map(package).collect();
    Ok(Dump { packages, packaged: Packaged::Snapshot, at: None, latest, is_plan: false })
}

/// A part of a dump, with the properties in the response headers of its server.
struct Part {
    package: ListedPackage,
    length: Option<u64>,
    answered: Answered,
    is_making: bool,
}

/// Requests the properties of all parts. The properties of a part are unknown while the server
/// creates it.
fn parts_of(requests: &Requests<'_>, links: &[DumpLink]) -> Result<Vec<Part>, Error> {
    links.iter().map(|link| part_of(requests, link)).collect()
}

/// The parts, after their creation by the server, which a request for a part may start.
fn made_parts_of(requests: &Requests<'_>, links: &[DumpLink]) -> Result<Vec<Part>, Error> {
    let made = |link: &DumpLink| -> Result<Part, Error> {
        let part = part_of(requests, link)?;
        if !part.is_making {
            return Ok(part);
        }
        let url = &link.url;
        let request = Request { accept_gzip: false, ..requests.request(url) };
        let work = abreast_net::with_retries(&requests.client, url, async |_| {
            Ok(requests.send(&requests.client, &request).await?.require_success()?.status())
        });
        match requests.run(work)?.map_err(net_error)? {
            StatusCode::OK => part_of(requests, link),
            other => Err(answered_else(url, other)),
        }
    };
    links.iter().map(made).collect()
}

fn part_of(requests: &Requests<'_>, link: &DumpLink) -> Result<Part, Error> {
    let url = &link.url;
    let request = Request { head: true, accept_gzip: false, ..requests.request(url) };
    let work = abreast_net::with_retries(&requests.client, url, async |_| {
        let response = requests.client.send(&request).await?;
        let answered = Answered::of(&response);
        let is_making = response.status() == StatusCode::ACCEPTED;
        if is_making || refuses_head(response.status()) {
            let validators = Document::default();
            return Ok((None, Answered { last_modified: None, validators, ..answered }, is_making));
        }
        let response = response.require_success()?;
        let length = response.header("content-length").and_then(|length| length.parse().ok());
        Ok((length, answered, false))
    });
    let (length, answered, is_making) = requests.run(work)?.map_err(net_error)?;
    Ok(Part { package: link.package(), length, answered, is_making })
}

/// Whether a server may accept GET although it answers HEAD with this status: addresses may be
/// signed for one method, and not all servers support HEAD.
fn refuses_head(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::FORBIDDEN | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED
    )
}

/// Reads the manifest of a dump, and passes on each entry immediately.
///
/// # Errors
/// `dump.manifest` if the manifest is missing or has another kind; otherwise the errors of any
/// document.
pub(super) fn read_manifest(
    package: &Package,
    url: &str,
    diagnostics: &Diagnostics,
    each: &mut dyn FnMut(&Listed<'_>) -> Result<(), Error>,
) -> Result<Manifest, Error> {
    let (mut entries, mut placed, mut others, now) = (0_u64, 0_u64, 0_u64, now());
    let manifest =
        manifest::read_manifest::<V0_1>(package, url, diagnostics, &mut |part, manifest| {
            match part {
                DocumentPart::Begin(head, _) => {
                    check_head(head).map_err(|what| refusal(url, what))?;
                    manifest.at = head.modified.map(|modified| modified.instant);
                }
                DocumentPart::Entry(_, entry) if entry.protocol.is_some() => others += 1,
                DocumentPart::Entry(_, entry) if is_gone(entry, now) => {}
                DocumentPart::Entry(_, entry) => {
                    entries += 1;
                    placed += u64::from(entry.path.is_some());
                    let listed = listed(url, false, entry);
                    each(&listed)?;
                    manifest.add(package, &listed, entry.path.as_deref());
                }
            }
            Ok(())
        })?;
    if others > 0 && entries == 0 {
        let what = "all entries of its manifest are addresses of other protocols, such as OAI-PMH";
        return Err(refusal(url, what));
    }
    if entries > 0 && placed == 0 && !package.is_warc() {
        return Err(refusal(url, "none of the entries of its manifest has `rs:path`")
            .with_help("give the address of the document that lists the dump, if there is one"));
    }
    Ok(manifest)
}

fn check_head(head: &Head) -> Result<(), &'static str> {
    match head.root {
        Root::UrlSet if !head.change_set => Ok(()),
        Root::UrlSet => Err("its manifest is a change set"),
        Root::SitemapIndex => Err("its manifest is an index of Sitemaps"),
    }
}

/// Passes on all resources of a dump, that is, of all its parts.
pub(super) fn dump_snapshot(
    walk: &mut Walk<'_, '_>,
    links: &[DumpLink],
    has_changes: bool,
) -> Result<Snapshot, Error> {
    let name = links.first().map(|link| link.url.clone()).unwrap_or_default();
    let requests = walk.requests;
    if walk.options.dry_run {
        let message =
            format!("{name} is all there is, and it must be fetched to see what is in it");
        return Err(Error::new("dump.dry-run", ExitCode::Usage, message)
            .with_help("run without `--dry-run`"));
    }
    let parts = if walk.plans() && has_changes && walk.is_conditional() {
        // Tests for a new dump, after changes that neither the dump nor the change sets contained.
        // Parts without validators cannot be tested.
        let mut parts = parts_of(requests, links)?;
        parts.retain(|part| {
            let Document { etag, last_modified, .. } = &part.answered.validators;
            etag.is_some() || last_modified.is_some()
        });
        parts
    } else {
        made_parts_of(requests, links)?
    };
    if walk.is_conditional() && is_known(walk, &parts)? {
        return Ok(Snapshot { is_unchanged: true, ..Snapshot::default() });
    }
    walk.begin_snapshot(&name)?;
    walk.with_downloads(|walk, downloads| {
        let mut files = Vec::new();
        for part in &parts {
            let length = part.length.filter(|_| !walk.plans());
            let package = ListedPackage { length, ..part.package.clone() };
            files.push(downloads.fetch(requests, &package)?);
        }
        let discard = || parts.iter().for_each(|part| downloads.discard(&part.package));
        if parts.len() > 1 && !is_same(&parts, &parts_of(requests, links)?) {
            discard();
            let message = format!("the dump {name} changed while its parts were fetched");
            return Err(Error::new("list.unstable", ExitCode::Retryable, message));
        }
        hand_over(walk, &parts, files, has_changes).inspect_err(|error| {
            if error.exit_code() != ExitCode::Cancelled && !is_over(error) {
                discard();
            }
        })
    })
}

/// Whether the dump is the last dump that was read, according to its response headers.
fn is_known(walk: &Walk<'_, '_>, parts: &[Part]) -> Result<bool, Error> {
    for Part { package, answered, .. } in parts {
        let Some(known) = walk.document(&package.url)? else { return Ok(false) };
        if (known.etag.is_none() && known.last_modified.is_none()) || known != answered.validators {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether no part was replaced, according to the response headers.
fn is_same(before: &[Part], now: &[Part]) -> bool {
    let state = |part: &Part| {
        let Answered { validators, last_modified, .. } = &part.answered;
        (part.length, validators.etag.clone(), *last_modified)
    };
    before.iter().map(state).eq(now.iter().map(state))
}

/// Passes on the resources of all parts.
fn hand_over(
    walk: &mut Walk<'_, '_>,
    parts: &[Part],
    files: Vec<File>,
    has_changes: bool,
) -> Result<Snapshot, Error> {
    let requests = walk.requests;
    let diagnostics = requests.diagnostics.clone();
    let (mut is_stated, mut at) = (true, None);
    for (Part { package, answered, .. }, file) in parts.iter().zip(files) {
        let url = &package.url;
        walk.begin_document(url);
        walk.clock(answered);
        let archive = Package::open(file, &|| requests.check_continues())
            .map_err(|error| unusable(package, &error))?;
        let mut newest = NewestTime::of(answered);
        let manifest = read_manifest(&archive, url, &diagnostics, &mut |listed| {
            requests.check_cancelled()?;
            newest.add(listed.modified.map(Timestamp::from_micros));
            walk.resource(listed, None, None)
        })?;
        walk.end_document(url)?;
        walk.skipped(url, manifest.skipped)?;
        is_stated &= manifest.at.is_some();
        let newest = newest.end(&diagnostics, url, manifest.zoneless);
        let own = time_of(walk, url, (answered, None), manifest.at.map(in_its_second), newest);
        at = at.filter(|at: &Moment| at.first() <= own.first()).or(Some(own));
        walk.keep_document(url, &answered.validators);
    }
    let packages = parts.iter().map(|part| part.package.clone()).collect();
    let packaged = Packaged::Snapshot;
    Ok(Snapshot {
        lists_all: true,
        as_of: at.filter(|_| is_stated || has_changes),
        changes_from: at
            .map(|at| Moment::between(at.first().plus_micros(-MARGIN_MICROS), at.first())),
        made_from: Some(Dump {
            packages,
            packaged,
            at: at.map(Moment::first),
            latest: None,
            is_plan: true,
        }),
        ..Snapshot::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_testkit::zip::Zip;
    use std::io::Write as _;

    fn manifest(root: &str, entries: &str) -> String {
        format!(
            "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:rs='http://www.openarchives.org/rs/terms/' \
             xmlns:xhtml='http://www.w3.org/1999/xhtml' {root}>\
             <xhtml:meta name='DCTERMS.modified' content='2026-01-03T09:00:00Z'/>{entries}</urlset>"
        )
    }

    fn entry(uri: &str, path: &str) -> String {
        format!("<url><loc>{uri}</loc>{path}</url>")
    }

    fn read(zip: &mut Zip) -> Result<Manifest, Error> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&zip.finish()).unwrap();
        let package = Package::open(file, &|| Ok(()))?;
        read_manifest(&package, "http://h/d.zip", &Diagnostics::default(), &mut |_| Ok(()))
    }

    #[test]
    fn entries_lead_to_members_or_are_reported() {
        let path = |path: &str| format!("<rs:path>{path}</rs:path>");
        let entries = [
            entry("http://h/e1", &path("../../escape")),
            entry("http://h/e2", &path("/tmp/escape")),
            entry("http://h/lost", &path("resources/lost")),
            entry("http://h/none", ""),
            entry("http://h/gone", "<expires>2026-01-01</expires>"),
            entry("http://h/ok", &path("resources/ok")),
        ];
        let mut zip = Zip::new();
        zip.add("../../escape", b"x").add("/tmp/escape", b"x").add("resources/ok", b"hello");
        zip.deflated("manifest.xml", manifest("", &entries.concat()).as_bytes());
        let manifest = read(&mut zip).unwrap();
        let codes: Vec<_> =
            manifest.faults.iter().map(|(uri, failure)| (uri.as_str(), failure.code)).collect();
        assert_eq!(
            codes,
            [
                ("http://h/e1", "path.escape"),
                ("http://h/e2", "dump.missing"),
                ("http://h/lost", "dump.missing"),
                ("http://h/none", "dump.missing")
            ]
        );
        assert_eq!(manifest.members_for("http://h/ok").count(), 1);
        assert!(manifest.at.is_some());
    }

    #[test]
    fn a_dump_without_its_manifest_is_refused() {
        let code = |zip: &mut Zip| read(zip).unwrap_err().code();
        assert_eq!(code(Zip::new().add("resources/ok", b"hello")), "dump.manifest");
        let of = |text: String| code(Zip::new().add("manifest.xml", text.as_bytes()));
        assert_eq!(of(manifest("rs:type='changeset'", "")), "dump.manifest");
        assert_eq!(of(manifest("", &entry("http://h/a", ""))), "dump.manifest");
        assert_eq!(of("<html/>".to_owned()), "rs.root");
        assert_eq!(code(Zip::new().deflated("manifest.xml", &vec![b' '; 20 << 20])), "dump.ratio");
    }
}
