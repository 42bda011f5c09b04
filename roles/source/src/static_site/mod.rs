//! Export of a whole Source as files, for a web server or a bucket without program logic.
//!
//! The publisher renders every document. Files are complete when they appear under their names. The
//! order of writing ensures that links in published documents do not lead to missing files:
//! resources first, then lists, new lists before others, then documents with links to lists, and
//! the Source Description last. Unpublished files are removed afterwards; lists are removed one
//! build later, for clients with an old index. After a killed build, the next build repairs the
//! site.

mod build_record;
mod copies;
mod report;
mod site_folder;
mod tree;

use crate::publish::publisher::{Projection, Publisher};
use crate::publish::{PublishedSet, SiteDocument, SiteStage};
use crate::static_site::tree::tree_of;
use build_record::BuildRecord;
pub use build_record::is_site_record_damaged;
use copies::Copies;
use flate2::{Compression, write::GzEncoder};
pub use report::{SiteError, SiteReport};
use site_folder::{SiteFolder, Written};
use std::collections::HashSet;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
/// Notice of a build that finds a site without a record.
const NO_RECORD: &str = "the record of earlier builds is missing (`.abreast` in the site): the site was recognised by its Source \
    Description and is written again; if the store is new as well, Change Lists begin a new history, and mirrors compare with the \
    whole Resource List once";
const ROBOTS: &str = "robots.txt";
/// Documents that other programs often write; existing files are not replaced, and the build
/// continues.
const COMMON: [&str; 3] = [ROBOTS, ".well-known/host-meta", ".well-known/host-meta.json"];
/// Increased when the rendering of closed documents changes.
const RENDERER: u32 = 2;

/// Options for the export of a site.
#[derive(Clone, Copy, Debug, Default)]
pub struct SiteOptions {
    /// Also copy the resources into the site.
    pub copy: bool,
    /// Also write each document in gzip, as `name.gz`.
    pub gzip: bool,
    /// Compare the bytes of all copies with the digests in the lists.
    pub reread: bool,
}

/// Writes all documents of a publisher into a folder, which is created if it is missing. Only
/// changed files are written.
///
/// # Errors
/// See [`SiteError`].
pub fn write_site(
    publisher: &Publisher,
    site: &Path,
    options: SiteOptions,
    stop: &AtomicBool,
) -> Result<SiteReport, SiteError> {
    std::fs::create_dir_all(site)
        .map_err(|error| SiteError::Write(site.display().to_string(), error))?;
    let mut site_folder = SiteFolder::open(site)?;
    let mut record = BuildRecord::open(site_folder.own(), publisher.urls().base())?;
    let mut report = SiteReport::default();
    let mut plan = plan(publisher)?;

    let mut foreign = Vec::new();
    let mut claims = Vec::new();
    let mut refused = Vec::new();
    let recovers = record.is_empty() && is_own_site(publisher, &plan, &site_folder)?;
    if recovers {
        claims = abandoned_lists(publisher, &site_folder)?;
        report.notices.push(NO_RECORD.to_owned());
    }
    for document in &plan {
        let is_common = COMMON.contains(&document.path.as_str());
        for (path, wanted) in
            [(document.path.clone(), true), (gzip_of(&document.path), options.gzip)]
        {
            if record.owns(&path) || !(wanted || recovers) {
                continue;
            }
            let exists = site_folder.exists(&path)?;
            // In a site of an earlier build, only these files may belong to other programs.
            let is_ours = recovers
                && exists
                && (!is_common || site_folder.holds(&path, &publisher.bytes(&document.path)?)?);
            if is_ours || (wanted && !exists) {
                claims.push(path);
            } else if wanted && is_common {
                refused.push(document.path.clone());
            } else if wanted {
                foreign.push(path);
            }
        }
    }
    for set in publisher.sets().iter().filter(|set| is_copied(set, options)) {
        let tree = tree_of(publisher, set);
        if !record.owns(&tree) {
            if !recovers && site_folder.exists(tree.trim_end_matches('/'))? {
                foreign.push(tree);
            } else {
                claims.push(tree);
            }
        }
    }
    if !foreign.is_empty() {
        foreign.truncate(10);
        return Err(SiteError::Foreign(foreign));
    }
    plan.retain(|document| !refused.contains(&document.path));
    for path in refused {
        report.notices.push(if path == ROBOTS {
            let line = format!("Sitemap: {}", publisher.urls().sitemap());
            format!("robots.txt is yours and stays as it is; to be found, add the line `{line}`")
        } else {
            format!("{path} is yours and stays as it is")
        });
    }
    record.claim(&claims)?;
    let sets = publisher.sets().iter();
    let origins = sets.map(|set| Ok((set.slug.clone(), origin_of(publisher, set)?)));
    record.originate(origins.collect::<Result<Vec<_>, SiteError>>()?)?;

    let copies = Copies { publisher, stop, reread: options.reread };
    let meter = publisher.meter();
    let mut copied = Vec::new();
    for set in publisher.sets().iter().filter(|set| is_copied(set, options)) {
        meter.begin("copying");
        meter.expect(publisher.log().head(set.id)?.resources, 0);
        copied.push((set, copies.put(set, &mut site_folder, &record, &mut report)?));
    }
    meter.begin("writing");
    meter.expect(plan.len() as u64, 0);
    for phase in phases(&plan, &site_folder)? {
        for document in phase {
            let _named = meter.item(|| document.path.clone());
            meter.add(1, 0);
            if stop.load(Ordering::Relaxed) {
                return Err(SiteError::Stopped);
            }
            write_document(
                publisher,
                document,
                &mut site_folder,
                &mut record,
                options,
                &mut report,
            )?;
        }
        // Documents are durable before other documents have links to them.
        site_folder.sync()?;
    }

    for (set, mark) in copied {
        if recovers {
            let left = copies.unknown(set, &site_folder)?.len();
            if left > 0 {
                let tree = tree_of(publisher, set);
                report.notices.push(format!(
                    "files in `{tree}` that the set does not have, and that stay there: {left}"
                ));
            }
        } else {
            copies.remove(set, &record, &mut site_folder, &mut report)?;
        }
        record.copied(&set.slug, mark);
    }
    let planned = plan.iter().flat_map(|document| {
        [Some(document.path.clone()), options.gzip.then(|| gzip_of(&document.path))]
            .into_iter()
            .flatten()
    });
    let trees: Vec<String> = publisher.sets().iter().map(|set| tree_of(publisher, set)).collect();
    for path in record.retire(planned.chain(trees.iter().cloned())) {
        report.removed += if path.ends_with('/') {
            site_folder.remove_all(&path)?
        } else {
            u64::from(site_folder.remove(&path)?)
        };
    }
    for tree in record.left().filter(|path| path.ends_with('/')) {
        report.notices.push(format!(
            "resources of a set that is not published any more are in `{tree}`; the next build removes them"
        ));
    }
    for set in publisher.sets().iter().filter(|set| !is_copied(set, options)) {
        let tree = tree_of(publisher, set);
        if record.owns(&tree) {
            report.notices.push(format!(
                "copies of an earlier build in `{tree}` are not updated (help: build with --copy, or remove them)"
            ));
        }
    }
    site_folder.sync()?;
    record.save()?;
    Ok(report)
}

/// Whether the resources of a set are copied into the site. Descriptions of entities always are,
/// because they are not available elsewhere.
fn is_copied(set: &PublishedSet, options: SiteOptions) -> bool {
    options.copy || set.urls.naming().names_entities()
}

/// All documents of all projections, in the order in which they are written.
fn plan(publisher: &Publisher) -> Result<Vec<SiteDocument>, SiteError> {
    let mut plan = Vec::new();
    for projection in publisher.projections() {
        plan.append(&mut projection.site(publisher)?);
    }
    // Several archived copies may have the same list.
    let mut known = HashSet::new();
    plan.retain(|document| known.insert(document.path.clone()));
    plan.sort_by_key(|document| document.stage);
    Ok(plan)
}

/// Documents in the order in which they are written: lists without links to them, then known lists,
/// which may have links to the new lists, then documents with links to lists.
fn phases<'d>(
    plan: &'d [SiteDocument],
    site_folder: &SiteFolder,
) -> Result<[Vec<&'d SiteDocument>; 3], SiteError> {
    let mut phases = [const { Vec::new() }; 3];
    for document in plan {
        let phase = match document.stage {
            SiteStage::List => usize::from(site_folder.exists(&document.path)?),
            _ => 2,
        };
        phases[phase].push(document);
    }
    Ok(phases)
}

/// Text that identifies the source of a set's closed documents, in addition to the public base.
/// While the text is equal, the documents are equal.
fn origin_of(publisher: &Publisher, set: &PublishedSet) -> Result<String, SiteError> {
    let created = publisher.log().head(set.id)?.created;
    let PublishedSet { urls, versions, .. } = set;
    let feeds = set.feeds();
    let naming = urls.naming();
    let origin = format!("{RENDERER} {created} {naming:?} {feeds:?} {versions:?}");
    Ok(blake3::hash(origin.as_bytes()).to_hex().to_string())
}

/// Whether an earlier build of the same sets wrote the site. The Source Description is compared: it
/// has no time, and has the public URLs of the Capability Lists.
fn is_own_site(
    publisher: &Publisher,
    plan: &[SiteDocument],
    site_folder: &SiteFolder,
) -> Result<bool, SiteError> {
    match plan.iter().find(|planned| planned.stage == SiteStage::Identity) {
        Some(planned) => site_folder.holds(&planned.path, &publisher.bytes(&planned.path)?),
        None => Ok(false),
    }
}

/// Lists of a lost history with a number in their names. The new history will use the same names.
fn abandoned_lists(
    publisher: &Publisher,
    site_folder: &SiteFolder,
) -> Result<Vec<String>, SiteError> {
    let mut found = Vec::new();
    for set in publisher.sets() {
        for folder in publisher.projections().flat_map(Projection::numbered_folders) {
            site_folder.visit(&format!("{}/{folder}", set.slug), &mut |path| {
                let path = String::from_utf8_lossy(path).into_owned();
                let name = path.rsplit('/').next().unwrap_or_default();
                let plain = name.strip_suffix(".gz").unwrap_or(name);
                let is_list = [".xml", ".json"].iter().any(|end| plain.ends_with(end));
                if is_list && name.starts_with(|first: char| first.is_ascii_digit()) {
                    found.push(path);
                }
                Ok(())
            })?;
        }
    }
    Ok(found)
}

fn write_document(
    publisher: &Publisher,
    document: &SiteDocument,
    site_folder: &mut SiteFolder,
    record: &mut BuildRecord,
    options: SiteOptions,
    report: &mut SiteReport,
) -> Result<(), SiteError> {
    let gzip = gzip_of(&document.path);
    let ready = |site_folder: &SiteFolder, path: &str| site_folder.exists(path);
    if document.closed
        && record.is_closed(&document.path)
        && ready(site_folder, &document.path)?
        && (!options.gzip || ready(site_folder, &gzip)?)
    {
        report.unchanged += 1;
        return Ok(());
    }
    let bytes = publisher.bytes(&document.path)?;
    let same = site_folder.holds(&document.path, &bytes)?;
    if options.gzip {
        if !same || !site_folder.exists(&gzip)? {
            let mut encoder =
                GzEncoder::new(Vec::with_capacity(bytes.len() / 6), Compression::best());
            let compressed = encoder.write_all(&bytes).and_then(|()| encoder.finish());
            let compressed = compressed.map_err(|error| SiteError::Write(gzip.clone(), error))?;
            site_folder.write(&gzip, &compressed)?;
        }
    } else if !same && record.owns(&gzip) {
        // A server that prefers gzip must not send an old file.
        site_folder.remove(&gzip)?;
    }
    if same {
        report.unchanged += 1;
    } else {
        match site_folder.write(&document.path, &bytes)? {
            Written::Changed => report.written += 1,
            Written::Same => report.unchanged += 1,
        }
    }
    if document.closed {
        record.close(&document.path);
    }
    Ok(())
}

fn gzip_of(path: &str) -> String {
    format!("{path}.gz")
}
