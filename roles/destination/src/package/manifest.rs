//! Which resource is which member of a package? The manifest, read out of the package itself [rs-core §11.2, §13.2].

use super::archive::{Found, Package};
use super::shelves::Shelves;
use crate::document::{at_earliest, is_zoneless, syntax_error};
use crate::error::{Error, ExitCode};
use crate::noticed::Care;
use crate::plan::listed;
use crate::read::resourcesync::listed::listed;
use crate::sink::outcome::Failure;
use abreast_resourcesync::v1_1::{Capability, Entry, Head, Limits, Parser, Root, Step};
use abreast_webtypes::{Timestamp, excerpt};
use std::hash::{BuildHasher as _, RandomState};
use std::io::Read as _;

/// Where the manifest is in each package.
const NAME: &str = "manifest.xml";
/// Bytes read at a time.
const BLOCK_BYTES: usize = 64 << 10;
/// Most entries of one manifest: it has one for each member, or several where a resource changed again.
const ENTRIES_MAX: u64 = 2_000_000;
/// Entries without a member that are told one by one.
const FAULTS_MAX: usize = 1_000;

/// What a manifest comes to: which URI is which member.
#[derive(Debug)]
pub(crate) struct Manifest {
    /// In the order of the hashes of their URIs; of several for one URI the last of the manifest comes last.
    listed: Vec<Listed>,
    shelves: Shelves,
    hasher: RandomState,
    /// Entries whose path leads nowhere.
    pub(crate) faults: Vec<(String, Failure)>,
    /// How many entries have such a path, told or not.
    pub(crate) faulty: u64,
    /// Members that it does not name.
    pub(crate) strays: u64,
    /// The instant of the snapshot, at the earliest.
    pub(crate) at: Option<Timestamp>,
    /// Entries left out because they could not be understood.
    pub(crate) skipped: u64,
    /// Times were written without a zone.
    pub(crate) zoneless: bool,
}

#[derive(Clone, Copy, Debug)]
struct Listed {
    uri: u64,
    number: u32,
    /// Last modification of the resource, microseconds, if the entry states it.
    modified: Option<i64>,
}

impl Manifest {
    /// Reads the manifest of a package, and hands over each entry as it comes.
    ///
    /// # Errors
    /// `dump.manifest` when there is none or it is of another kind; else as for any document.
    pub(crate) fn read(
        package: &Package,
        url: &str,
        capability: Capability,
        care: &Care,
        each: &mut dyn FnMut(&Head, &listed::Listed<'_>) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let refuse = |code, what: &str| {
            Error::new(code, ExitCode::SourceInvalid, format!("cannot use the package {url}: {what}"))
        };
        let Found::Member(number) = package.find(NAME) else {
            return Err(refuse("dump.manifest", "there is no `manifest.xml` at its top"));
        };
        let failed = |failure: &Failure| {
            let exit = if failure.code == "dump.ratio" { ExitCode::Limit } else { ExitCode::SourceInvalid };
            Error::new(failure.code, exit, format!("cannot use the package {url}: its manifest: {}", failure.message))
        };
        let mut reader = package.reader(package.member(number)).map_err(|failure| failed(&failure))?;
        let mut manifest = Self {
            listed: Vec::new(),
            shelves: Shelves::of(0, |_| 0),
            hasher: RandomState::new(),
            faults: Vec::new(),
            faulty: 0,
            strays: 0,
            at: None,
            skipped: 0,
            zoneless: false,
        };
        let mut used = vec![0_u64; package.members() / 64 + 1];
        let mut name_it = |number: u32| used[number as usize / 64] |= 1 << (number % 64);
        name_it(number);
        let name = format!("{url}!/{NAME}");
        let mut parser = Parser::with_tolerance(Limits::default().with_entries(ENTRIES_MAX), care.tolerance);
        let (mut head, mut entry, mut block) = (Head::default(), Entry::default(), vec![0; BLOCK_BYTES]);
        loop {
            match parser.next(&mut entry).map_err(|fault| syntax_error(&name, &fault))? {
                Step::NeedInput => {
                    let count = reader
                        .read(&mut block)
                        .map_err(|cause| failed(&Failure::new("dump.manifest", cause.to_string())))?;
                    if count == 0 {
                        parser.finish();
                    } else {
                        parser.feed(&block[..count]);
                    }
                }
                Step::Head => {
                    head = parser.head().cloned().unwrap_or_default();
                    if head.capability != Some(capability) || head.root != Root::UrlSet {
                        let found = head.capability.map_or("none", Capability::token);
                        let what = format!("its manifest should be a `{}` and is `{found}`", capability.token());
                        return Err(refuse("dump.manifest", &what));
                    }
                    manifest.at = head.at.map(|at| at.instant);
                }
                Step::Entry => {
                    let listed = listed(url, &head, &entry);
                    each(&head, &listed)?;
                    manifest.add(package, &listed, entry.path.as_deref(), &mut name_it);
                }
                Step::End => break,
            }
        }
        for finding in parser.findings() {
            care.found(&name, finding);
        }
        (manifest.skipped, manifest.zoneless) = (parser.skipped(), is_zoneless(&parser));
        manifest.at = manifest.at.map(|at| at_earliest(manifest.zoneless, at));
        // Stable: of several for one URI the order of the manifest stays.
        manifest.listed.sort_by_key(|listed| listed.uri);
        manifest.shelves = Shelves::of(manifest.listed.len(), |at| manifest.listed[at].uri);
        let named: u64 = used.iter().map(|bits| u64::from(bits.count_ones())).sum();
        manifest.strays = (package.count() as u64).saturating_sub(named);
        Ok(manifest)
    }

    fn add(
        &mut self,
        package: &Package,
        listed: &listed::Listed<'_>,
        path: Option<&str>,
        name_it: &mut dyn FnMut(u32),
    ) {
        if listed.is_deletion() {
            return;
        }
        let (uri, has_path, path) = (listed.uri, path.is_some(), path.unwrap_or_default());
        let fault = match package.find(path) {
            Found::Member(number) => {
                name_it(number);
                let modified = listed.sure_modified();
                self.listed.push(Listed { uri: self.hasher.hash_one(uri.as_bytes()), number, modified });
                return;
            }
            Found::Escape if !has_path => Failure::refused("dump.missing", "the manifest gives no path"),
            Found::Escape => {
                let message = format!("the path `{}` leads out of the package", excerpt(path));
                Failure::refused("path.escape", message)
            }
            Found::Missing => {
                let message = format!("the manifest names `{}`, which is not in the package", excerpt(path));
                Failure::refused("dump.missing", message)
            }
        };
        self.faulty += 1;
        if self.faults.len() < FAULTS_MAX {
            self.faults.push((uri.to_owned(), fault));
        }
    }

    /// The members for a URI, with their modification; the newest last.
    pub(crate) fn members_for(&self, uri: &str) -> impl DoubleEndedIterator<Item = (u32, Option<i64>)> {
        let hash = self.hasher.hash_one(uri.as_bytes());
        let places = self.shelves.find(hash, |at| self.listed[at].uri);
        self.listed[places].iter().map(|listed| (listed.number, listed.modified))
    }
}

#[cfg(test)]
mod tests {
    use super::super::archive::zip::Zip;
    use super::*;
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

    fn read(zip: &mut Zip, capability: Capability) -> Result<Manifest, Error> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&zip.finish()).unwrap();
        let package = Package::open(file)?;
        Manifest::read(&package, "http://h/p.zip", capability, &Care::default(), &mut |_, _| Ok(()))
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
        zip.add("../../escape", b"x").add("/tmp/escape", b"x").add("resources/ok", b"hello").add("stray", b"x");
        zip.deflated("manifest.xml", manifest("resourcedump-manifest", &entries.concat()).as_bytes());
        let manifest = read(&mut zip, Capability::ResourceDumpManifest).unwrap();
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
        let manifest = read(&mut zip, Capability::ChangeDumpManifest).unwrap();
        let numbers: Vec<_> = manifest.members_for("http://h/a").map(|(number, _)| number).collect();
        assert_eq!((numbers.len(), manifest.faulty), (2, 0));
        assert_ne!(numbers[0], numbers[1]);
    }

    #[test]
    fn a_package_without_its_manifest_is_refused() {
        let code = |zip: &mut Zip| read(zip, Capability::ResourceDumpManifest).unwrap_err().code();
        assert_eq!(code(Zip::new().add("resources/ok", b"hello")), "dump.manifest");
        assert_eq!(code(Zip::new().add("manifest.xml", manifest("resourcelist", "").as_bytes())), "dump.manifest");
        assert_eq!(code(Zip::new().add("manifest.xml", b"<html/>")), "rs.root");
        assert_eq!(code(Zip::new().encrypted("manifest.xml", b"<x/>")), "dump.encrypted");
        let cut = manifest("resourcedump-manifest", "");
        assert_eq!(code(Zip::new().add("manifest.xml", &cut.as_bytes()[..cut.len() - 3])), "xml.eof");
        assert_eq!(code(Zip::new().deflated("manifest.xml", &vec![b' '; 20 << 20])), "dump.ratio");
    }
}
