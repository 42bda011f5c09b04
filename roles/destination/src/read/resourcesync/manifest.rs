//! Manifests of packages of 1.1 [rs-core §11.2, §13.2].

pub(crate) mod fuzz_property;

use super::listed::listed;
use crate::plan::listed::Listed;
use crate::plan::manifest::Manifest;
use crate::read::sitemap::document::Part;
use crate::read::sitemap::manifest::{self, refusal};
use crate::report::error::Error;
use crate::request::diagnostics::Diagnostics;
use crate::request::package::archive::Package;
use crate::request::package::listing::Packaged;
use abreast_resourcesync::v1_1::{Capability, Head, Root, V1_1};
use abreast_webtypes::W3cDatetime;

/// Reads the manifest of a package, and passes on each entry immediately.
///
/// # Errors
/// `dump.manifest` if the manifest is missing or has another kind; otherwise the errors of any
/// document.
pub(crate) fn read_manifest(
    package: &Package,
    url: &str,
    packaged: Packaged,
    diagnostics: &Diagnostics,
    each: &mut dyn FnMut(&Head, &Listed<'_>) -> Result<(), Error>,
) -> Result<Manifest, Error> {
    let capability = match packaged {
        Packaged::Snapshot => Capability::ResourceDumpManifest,
        Packaged::Changes => Capability::ChangeDumpManifest,
    };
    if package.is_warc() {
        return Err(refusal(url, "it is a WARC file, and packages of this version are ZIP files"));
    }
    manifest::read_manifest::<V1_1>(package, url, diagnostics, &mut |part, manifest| {
        match part {
            Part::Begin(head, _) => {
                if head.capability != Some(capability) || head.root != Root::UrlSet {
                    let found = head.capability.map_or("none", Capability::token);
                    let token = capability.token();
                    let what = format!("its manifest should be a `{token}` and is `{found}`");
                    return Err(refusal(url, &what));
                }
                manifest.at = head.at.map(|at| at.instant);
                manifest.from = head.from.map(W3cDatetime::moment);
                manifest.until = head.until.map(W3cDatetime::moment);
            }
            Part::Entry(head, entry) => {
                let listed = listed(url, head, entry);
                each(head, &listed)?;
                manifest.add(package, &listed, entry.path.as_deref());
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_testkit::zip::Zip;
    use std::io::Write as _;

    fn manifest(capability: &str, entries: &str) -> String {
        format!(
            "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:rs='http://www.openarchives.org/rs/terms/'>\
             <rs:md capability='{capability}' at='2026-01-03T09:00:00Z'/>{entries}</urlset>"
        )
    }

    fn entry(uri: &str, attributes: &str) -> String {
        format!("<url><loc>{uri}</loc><rs:md {attributes}/></url>")
    }

    fn read(zip: &mut Zip, packaged: Packaged) -> Result<Manifest, Error> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&zip.finish()).unwrap();
        let package = Package::open(file, &|| Ok(()))?;
        read_manifest(&package, "http://h/p.zip", packaged, &Diagnostics::default(), &mut |_, _| {
            Ok(())
        })
    }

    fn codes(manifest: &Manifest) -> Vec<(&str, &str)> {
        manifest.faults.iter().map(|(uri, failure)| (uri.as_str(), failure.code)).collect()
    }

    #[test]
    fn entries_lead_to_members_or_are_told() {
        let entries = [
            entry("http://h/e1", "path='../../escape'"),
            entry("http://h/e2", "path='/tmp/escape'"),
            entry("http://h/lost", "path='/resources/lost'"),
            entry("http://h/none", "length='1'"),
            entry("http://h/ok#part", "path='/resources/ok'"),
        ];
        let mut zip = Zip::new();
        zip.add("../../escape", b"x")
            .add("/tmp/escape", b"x")
            .add("resources/ok", b"hello")
            .add("stray", b"x");
        zip.deflated(
            "manifest.xml",
            manifest("resourcedump-manifest", &entries.concat()).as_bytes(),
        );
        let manifest = read(&mut zip, Packaged::Snapshot).unwrap();
        assert_eq!(
            codes(&manifest),
            [
                ("http://h/e1", "path.escape"),
                ("http://h/e2", "path.escape"),
                ("http://h/lost", "dump.missing"),
                ("http://h/none", "dump.missing")
            ]
        );
        assert_eq!(manifest.members_for("http://h/ok").count(), 1);
        assert_eq!(manifest.members_for("http://h/lost").count(), 0);
        // The two that would escape are named by the manifest in vain.
        assert_eq!((manifest.strays, manifest.faulty), (3, 4));
    }

    #[test]
    fn of_several_changes_of_one_resource_the_last_comes_last() {
        let entries = [
            entry("http://h/a", "change='created' path='/1'"),
            entry("http://h/a", "change='updated' path='/2'"),
            entry("http://h/a", "change='deleted'"),
        ];
        let mut zip = Zip::new();
        zip.add("1", b"one").add("2", b"two");
        zip.add("manifest.xml", manifest("changedump-manifest", &entries.concat()).as_bytes());
        let manifest = read(&mut zip, Packaged::Changes).unwrap();
        let numbers: Vec<_> =
            manifest.members_for("http://h/a").map(|placed| placed.number).collect();
        assert_eq!((numbers.len(), manifest.faulty), (2, 0));
        assert_ne!(numbers[0], numbers[1]);
    }

    #[test]
    fn a_package_without_its_manifest_is_refused() {
        let code = |zip: &mut Zip| read(zip, Packaged::Snapshot).unwrap_err().code();
        assert_eq!(code(Zip::new().add("resources/ok", b"hello")), "dump.manifest");
        assert_eq!(
            code(Zip::new().add("manifest.xml", manifest("resourcelist", "").as_bytes())),
            "dump.manifest"
        );
        assert_eq!(code(Zip::new().add("manifest.xml", b"<html/>")), "rs.root");
        assert_eq!(code(Zip::new().encrypted("manifest.xml", b"<x/>")), "dump.encrypted");
        let cut = manifest("resourcedump-manifest", "");
        assert_eq!(
            code(Zip::new().add("manifest.xml", &cut.as_bytes()[..cut.len() - 3])),
            "xml.eof"
        );
        assert_eq!(code(Zip::new().deflated("manifest.xml", &vec![b' '; 20 << 20])), "dump.ratio");
    }
}
