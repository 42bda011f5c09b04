//! Comparison of a package with its manifest [rs-core §11.2, §13.2].

use crate::fetch::archive::{CHUNK, Got, Member, MemberRules, TOO_LARGE, each_piece};
use crate::fetch::digest::Hasher;
use crate::fetch::paths::MANIFEST;
use crate::fetch::{Budget, Failure, values};
use crate::report::{Document, Finding, Findings, Mode, rules as r};
use crate::resourcesync::checker::Checker;
use crate::resourcesync::collect::{Child, Collector, Context};
use crate::resourcesync::entry::{DocumentObserver, Entry, Head};
use crate::resourcesync::markup::has;
use crate::walk::node::{Node, Origin, Outcome, Record};
use crate::walk::protocol::{Inspected, Inspection, Visit};
use crate::walk::sketch::{Listed, Sketch};
use abreast_resourcesync::v1_1::Capability;
use abreast_webtypes::{Digests, W3cDatetime, count, excerpt};
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek as _, SeekFrom};
use zip::ZipArchive;

/// Members of a package and entries of its manifest that are checked.
const MEMBERS_MAX: usize = 1_000_000;
static MEMBERS: MemberRules = MemberRules {
    listed: &r::MANIFEST_ALL,
    is_there: &r::MANIFEST_EXISTS,
    is_true: &r::MANIFEST_TRUE,
};
/// Most bytes of a manifest, unpacked.
const MANIFEST_BYTES_MAX: u64 = 512 << 20;

/// A package that was checked.
#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) capability: Option<Capability>,
    pub(crate) at: Option<W3cDatetime>,
    pub(crate) from: Option<W3cDatetime>,
    pub(crate) until: Option<W3cDatetime>,
    /// Number of bitstreams in the manifest.
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    pub(crate) fingerprint: u64,
    /// Whether the whole manifest was read, so that the fingerprint is valid.
    pub(crate) complete: bool,
    pub(crate) listed: Option<Sketch<Listed>>,
}

impl Record for Package {
    fn report(&self, _node: &Node, document: &mut Document) {
        "package".clone_into(&mut document.name);
        (document.is_source, document.read) = (true, true);
        (document.entries, document.bytes) = (self.entries, self.bytes);
        document.at = self.at.map(|time| time.instant);
        document.from = self.from.map(|time| time.instant);
        document.until = self.until.map(|time| time.instant);
    }
}

/// Origin of a package: its URL, and the document that links to it.
pub(crate) struct PackageOrigin<'a> {
    pub(crate) url: &'a str,
    pub(crate) number: u32,
    pub(crate) context: &'a Context,
    pub(crate) mode: Mode,
    pub(crate) most_each: usize,
    /// Kind of the document that links to the package; `None` for a given package.
    pub(crate) dump: Option<Capability>,
}

/// Checks a package that the walk fetched.
pub(super) fn inspect(context: &Context, visit: &Visit<'_>, got: Got) -> Inspection {
    let linked = visit.note.as_ref().and_then(|note| note.downcast_ref::<(Child, Capability)>());
    let entry = linked.map(|(child, _)| child);
    let mut found = visit.findings();
    let file = match got {
        Got::File(file) => file,
        Got::TooLarge(length) => {
            if let Some(child) = entry {
                compare_length(child, length, &mut found);
            }
            return Inspection {
                found: Inspected::Done(Outcome::Left(TOO_LARGE)),
                findings: found.into_list(),
            };
        }
    };
    let of = PackageOrigin {
        url: &visit.url,
        number: visit.number as u32,
        context,
        mode: visit.run.options.mode,
        most_each: visit.most_each,
        dump: linked.map(|(_, capability)| *capability),
    };
    match check(file, entry, &of, visit.run.budget, &mut found) {
        Ok((package, in_manifest)) => {
            let findings = [found.into_list(), in_manifest].concat();
            Inspection { found: Inspected::Done(Outcome::read(package)), findings }
        }
        Err(limit @ Failure::Limit(_)) => limit.into(),
        Err(_) => Failure::Cancelled.into(),
    }
}

/// Compares the length of a package with the length in its entry; returns whether the lengths
/// differ.
fn compare_length(entry: &Child, length: Option<u64>, found: &mut Findings) -> bool {
    let Some((stated, length)) = entry.length.zip(length).filter(|(one, other)| one != other)
    else {
        return false;
    };
    found.add(&r::LENGTH_TRUE, (0, 0), || format!("{}, {stated} stated", count(length, "byte")));
    true
}

/// Compares a package with its entry, and the manifest with the members.
pub(crate) fn check(
    mut file: File,
    entry: Option<&Child>,
    of: &PackageOrigin<'_>,
    budget: &Budget<'_>,
    found: &mut Findings,
) -> Result<(Package, Vec<Finding>), Failure> {
    let mut package = Package {
        bytes: file.metadata().map_or(0, |metadata| metadata.len()),
        ..Package::default()
    };
    if let Some(entry) = entry
        && !compare_length(entry, Some(package.bytes), found)
        && entry.digests.strongest().is_some()
        && digests_of(&mut file, &entry.digests, budget)?.agree(&entry.digests) == Some(false)
    {
        found.add(&r::HASH_TRUE, (0, 0), || "the package has another digest than is stated");
    }
    let mut archive =
        match file.seek(SeekFrom::Start(0)).map_err(Into::into).and_then(|_| ZipArchive::new(file))
        {
            Ok(archive) => archive,
            Err(error) => {
                found.add(&r::MANIFEST, (0, 0), || format!("this is no ZIP file: {error}"));
                return Ok((package, Vec::new()));
            }
        };
    let Some(number) = archive.index_for_name(MANIFEST) else {
        let mut names =
            archive.file_names().filter_map(Result::ok).map(std::borrow::Cow::into_owned);
        let elsewhere = names.find(|name| name.rsplit('/').next() == Some(MANIFEST));
        found.add(&r::MANIFEST, (0, 0), || match elsewhere {
            Some(name) => format!("the manifest is at {}, not at the top level", excerpt(&name)),
            None => "the package has no manifest.xml".to_owned(),
        });
        return Ok((package, Vec::new()));
    };
    let label = format!("{}!/{MANIFEST}", of.url);
    let observer = Members {
        collector: Collector::new(of.context, of.number, of.url, Origin::default()),
        paths: HashMap::new(),
    };
    let mut checker =
        Checker::new(Findings::new(&label, of.mode, of.most_each), observer, MANIFEST_BYTES_MAX)
            .of_manifest();
    if let Err(error) = each_piece(&mut archive, number, budget, |bytes| checker.feed(bytes))? {
        found.add(&r::MANIFEST, (0, 0), || format!("the manifest cannot be unpacked: {error}"));
        return Ok((package, Vec::new()));
    }
    checker.finish();
    let md = checker.head.md.clone().unwrap_or_default();
    (package.capability, package.at, package.from, package.until) =
        (md.capability, md.at, md.from, md.until);
    (package.entries, package.complete) = (checker.entries, checker.complete);
    package.fingerprint = checker.observer.collector.fingerprint();
    let due = match of.dump {
        Some(Capability::ChangeDump) => &[Capability::ChangeDumpManifest][..],
        Some(Capability::ResourceDump) => &[Capability::ResourceDumpManifest],
        _ => &[Capability::ResourceDumpManifest, Capability::ChangeDumpManifest],
    };
    if let Some(capability) = md.capability.filter(|capability| !due.contains(capability)) {
        checker.found.add(&r::MANIFEST, checker.head.md_place, || {
            format!(
                "the manifest has the capability `{}`, not `{}`",
                capability.token(),
                due[0].token()
            )
        });
    }
    if let Some(entry) = entry {
        for (stated, own, word) in [(entry.from, md.from, "from"), (entry.until, md.until, "until")]
        {
            if let (Some(stated), Some(own)) = (stated, own)
                && values::differ(stated, own)
            {
                let message =
                    || format!("`{word}` is {}, in the dump {}", own.instant, stated.instant);
                checker.found.add(&r::CHANGE_DUMP_INTERVAL, checker.head.md_place, message);
            }
        }
    }
    let Checker { mut observer, found: mut in_manifest, .. } = checker;
    let members = (&mut observer.paths, true);
    MEMBERS.compare_all(&mut archive, MEMBERS_MAX, members, budget, (&mut in_manifest, found))?;
    package.listed = Some(observer.collector.listed);
    Ok((package, in_manifest.into_list()))
}

fn digests_of(file: &mut File, stated: &Digests, budget: &Budget<'_>) -> Result<Digests, Failure> {
    let mut hasher = Hasher::of(stated);
    let mut buffer = vec![0; CHUNK];
    file.seek(SeekFrom::Start(0)).map_err(|error| Failure::Missing(error.to_string()))?;
    loop {
        let length = file.read(&mut buffer).map_err(|error| Failure::Missing(error.to_string()))?;
        if length == 0 {
            return Ok(hasher.finish());
        }
        budget.take(0)?;
        hasher.update(&buffer[..length]);
    }
}

/// Collects the paths of a manifest with the digests and lengths of the members.
struct Members<'a> {
    collector: Collector<'a>,
    paths: HashMap<String, Member>,
}

impl DocumentObserver for Members<'_> {
    fn head(&mut self, head: &Head) {
        self.collector.head(head);
    }

    fn entry(&mut self, head: &Head, entry: &Entry, found: &mut Findings) {
        self.collector.entry(head, entry, found);
        let md = &entry.md;
        let own = md.has(has::PATH).then_some((md.path.as_str(), &md.digests, md.length));
        let linked = entry
            .links
            .iter()
            .filter_map(|link| Some((link.path.as_deref()?, &link.digests, link.length)));
        for (path, digests, length) in own.into_iter().chain(linked) {
            let path = path.strip_prefix('/').unwrap_or(path);
            if self.paths.len() >= MEMBERS_MAX {
                return;
            }
            let (loc, digests, place) = (String::new(), digests.clone(), entry.place);
            let member = Member { loc, digests, length, place };
            self.paths.insert(path.to_owned(), member);
        }
    }
}
