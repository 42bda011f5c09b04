//! A Source at a new address: the copy is retained, and its resources get their new URIs.
//!
//! The user specifies the new address. The list at this address shows whether it is the same set,
//! and how URIs change: by their common start, or not at all, like the URIs of entities. Rows, base
//! and address change in one transaction; paths and files do not change. A comparison with the
//! whole list follows, which judges each resource by its digest.

use crate::copy::common_base::authority_root;
use crate::copy::key;
use crate::copy::path_map::{NameRules, PathMap};
use crate::plan::listed::Listed;
use crate::read::driver::Driver;
use crate::read::marks::Marks;
use crate::read::moved::MOVED;
use crate::read::position::{Due, Position};
use crate::report::error::{Error, ExitCode};
use crate::report::events::Observer;
use crate::report::options::SyncOptions;
use crate::request::admit::{Admission, Refusal};
use crate::request::package::download::Downloads;
use crate::request::requests::Requests;
use abreast_core::Kind;
use abreast_store::mirror::{Expected, ExpectedRow, Mirror, Row};
use abreast_webtypes::{Digests, count};
use std::collections::BTreeMap;

/// Rows whose paths are searched for in the list, to find the new base.
const SAMPLE: usize = 16;
/// Bases that are tried.
const BASES_MAX: usize = 8;

/// Moves the copy to the address in the options, if the user wants that and the copy has another
/// address. Returns a message for the user.
pub(crate) fn prepare(
    driver: &mut Driver,
    (requests, options): (&Requests<'_>, &SyncOptions),
    downloads: &Downloads,
    (mirror, observer): (&Mirror, &dyn Observer),
) -> Result<Option<String>, Error> {
    if let Some(url) = mirror.meta(MOVED)? {
        if url == options.url {
            return Ok(None);
        }
        let message = format!("this copy is being moved to {url}");
        return Err(Error::new("folder.source", ExitCode::Usage, message)
            .with_help(format!("run `abreast sync {url} {}`", options.folder.display())));
    }
    let Some(old) = mirror.meta(key::SOURCE_URL)?.filter(|_| options.moved) else {
        return Ok(None);
    };
    let start = driver.find_read_only(requests, options, None, observer)?;
    let (listed, mut position) = (Expected::new()?, Position::load(mirror)?);
    let (mut failed, mut marks) = (None, Marks::known(position.marks(), &[]));
    let mut admission = Admission::new(&start.first, &options.allow_hosts, options.allow_downgrade);
    let mut refused = Refused::default();
    let downloads = Some(downloads).filter(|_| !options.dry_run);
    let has_list = driver.each_resource(requests, options, downloads, &mut |resource| {
        match admission.check(resource.href()) {
            Err(refusal) if resource.body.is_none() => {
                refused.note(resource, refusal);
            }
            _ if failed.is_none() => failed = note(&listed, resource).err(),
            _ => {}
        }
        if let Some(time) = resource.changed {
            marks.note(time, resource, resource.fingerprint());
        }
    })?;
    failed.map_or(Ok(()), Err)?;
    let change = Change::find(mirror, &listed, options)?;
    refused.check(&change, has_list)?;
    let base = change.prefixes.as_ref();
    if old == options.url && base.is_none() {
        // The address has not changed.
        return Ok(None);
    }
    let is_rebased = base.is_some() && options.sink.has_paths();
    let is_copied_again = base.is_some() && !is_rebased;
    // A copy that contains URIs gets other bytes.
    change.check(options, &start.first, has_list, is_copied_again)?;
    if let Some((_, new)) = base.filter(|_| is_copied_again && !has_list) {
        let message = format!(
            "the URIs of the resources begin with {new} now, a copy of this kind has the old ones in itself, and there \
             is no list of all resources to copy them again"
        );
        return Err(Error::new("folder.source", ExitCode::Usage, message)
            .with_help("make a new copy in another place"));
    }
    if !options.dry_run {
        mirror.begin()?;
    }
    if let Some((old, new)) = base.filter(|_| is_rebased) {
        mirror.rebase(old, new)?;
        mirror.forget_gone(None)?;
        mirror.set_meta(key::BASE, Some(new))?;
        mirror.set_meta(key::COMMON, None)?;
    }
    mirror.forget_documents()?;
    mirror.set_meta(key::SOURCE_URL, None)?;
    mirror.set_meta(MOVED, Some(&options.url))?;
    // A feed without a list of all resources is followed from the position on, since no comparison
    // is possible.
    let moved = has_list.then(|| Due {
        why: format!("the Source has moved to {}", options.url),
        // Nothing is newer than a list of other URIs.
        is_uncertain: is_copied_again || position.due.as_ref().is_some_and(|due| due.is_uncertain),
        lost_until: None,
    });
    position.move_to(moved, marks.renamed());
    position.store(mirror)?;
    if let (false, Some(from), Some(to)) =
        (has_list, authority_root(&old), authority_root(&options.url))
    {
        mirror.rebase_addresses(&from, &to)?;
    }
    if !options.dry_run {
        mirror.commit()?;
    }
    let kept = count(change.kept, "resource");
    let what = match base {
        Some((old, new)) if is_rebased => {
            format!("{kept} are kept, and their URIs begin with {new} in place of {old}")
        }
        Some((old, new)) => format!(
            "the URIs begin with {new} in place of {old}, which a copy of this kind has in itself; all are copied again, \
             and {kept} with the old URIs deleted\n  help: `--max-delete 100%` allows that, if they are held"
        ),
        None => format!("{kept} are kept, and their URIs are the same"),
    };
    Ok(Some(format!("the copy of {old} is one of {} now: {what}", options.url)))
}

/// Records the resources at the new address; the first entry if a resource occurs twice.
fn note(listed: &Expected, resource: &Listed<'_>) -> Result<(), Error> {
    if !listed.contains(resource.uri)? {
        let row = ExpectedRow {
            uri: resource.uri.to_owned(),
            length: resource.length,
            digests: resource.digests.to_bytes(),
            ..ExpectedRow::default()
        };
        listed.put(&row, (0, 0), false)?;
    }
    Ok(())
}

/// Listed resources that must not be requested.
#[derive(Debug, Default)]
struct Refused {
    count: u64,
    first: Option<(String, Refusal)>,
}

impl Refused {
    fn note(&mut self, resource: &Listed<'_>, refusal: Refusal) {
        if resource.change != Some(Kind::Delete) {
            self.count += 1;
            self.first.get_or_insert_with(|| (resource.uri.to_owned(), refusal));
        }
    }

    /// # Errors
    /// Little of the copy is listed, and more is refused.
    fn check(self, change: &Change, has_list: bool) -> Result<(), Error> {
        let is_most = self.count > change.listed && !change.are_listed(has_list);
        let Some((uri, refusal)) = self.first.filter(|_| is_most) else { return Ok(()) };
        // A URI with a user or a backslash is refused on any host.
        let is_plain = refusal == Refusal::Authority && !uri.contains(['@', '\\']);
        let host = authority_root(&uri).filter(|_| is_plain);
        let Some(host) = host else {
            let message = format!("nothing was changed; {uri}: {}", refusal.message());
            return Err(Error::new(refusal.code(), ExitCode::SourceInvalid, message));
        };
        let message =
            format!("nothing was changed; {uri} is not on the host of the list that names it");
        let host = host.trim_end_matches('/');
        let name = host.split_once("://").map_or(host, |(_, name)| name);
        let help = format!(
            "if the Source is at {host} now, run with `--moved` and its address there; if only its resources are, and you trust \
             that host, add `--allow-host {name}` to this command"
        );
        Err(Error::new(refusal.code(), ExitCode::SourceInvalid, message).with_help(help))
    }
}

/// The change of a copy's URIs, and the number of resources that the new address then lists.
#[derive(Debug, Default)]
struct Change {
    /// The old and the new start of the URIs; `None` if they remain the same.
    prefixes: Option<(String, String)>,
    /// Number of resources in the copy.
    kept: u64,
    /// Number of resources in the copy that are listed.
    listed: u64,
    /// Number of resources that are listed with the same digest, or with the same length if digests
    /// cannot be compared.
    same: u64,
    /// Number of resources that are listed with another digest or length.
    other: u64,
}

impl Change {
    /// The change after which most resources of the copy are listed.
    fn find(mirror: &Mirror, listed: &Expected, options: &SyncOptions) -> Result<Self, Error> {
        let mut best = Self::of(mirror, listed, None)?;
        if best.listed == best.kept {
            return Ok(best);
        }
        let Some(base) = base_of(mirror)? else { return Ok(best) };
        for new in new_bases(mirror, listed, &base, options)? {
            let change = Self::of(mirror, listed, Some((base.clone(), new)))?;
            if change.same > best.same || change.same == best.same && change.listed > best.listed {
                best = change;
            }
        }
        Ok(best)
    }

    fn of(
        mirror: &Mirror,
        listed: &Expected,
        prefixes: Option<(String, String)>,
    ) -> Result<Self, Error> {
        let mut change = Self { prefixes, ..Self::default() };
        let mut compare = |row: &Row| -> Result<(), Error> {
            change.kept += 1;
            let uri = match &change.prefixes {
                Some((old, new)) => {
                    row.uri.strip_prefix(old.as_str()).map(|rest| [new, rest].concat())
                }
                None => None,
            };
            let Some(found) = listed.row(uri.as_deref().unwrap_or(&row.uri))? else {
                return Ok(());
            };
            change.listed += 1;
            let [stated, kept] = [&found.digests, &row.digests].map(|bytes| {
                let mut digests = Digests::default();
                digests.set_from_bytes(bytes);
                digests
            });
            let by_length = || found.length.map(|length| length == row.length);
            match stated.agree(&kept).or_else(by_length) {
                Some(true) => change.same += 1,
                Some(false) => change.other += 1,
                None => {}
            }
            Ok(())
        };
        mirror.each_batch(|rows| rows.iter().try_for_each(&mut compare))?;
        Ok(change)
    }

    /// Whether enough resources of the copy are listed. A feed need not list resources without
    /// recent changes.
    const fn are_listed(&self, has_list: bool) -> bool {
        if has_list { self.listed * 2 >= self.kept } else { self.listed > 0 || self.kept == 0 }
    }

    /// # Errors
    /// The list belongs to another set: most resources of the copy are not listed, or are listed
    /// with other bytes although the bytes should be the same.
    fn check(
        &self,
        options: &SyncOptions,
        first: &str,
        has_list: bool,
        may_differ: bool,
    ) -> Result<(), Error> {
        if self.kept == 0 || self.are_listed(has_list) && (may_differ || self.same >= self.other) {
            return Ok(());
        }
        let message = format!(
            "{first} is not the set that this copy is of: of {} kept here, it lists {}, and {} of these with other \
             bytes; nothing was changed",
            count(self.kept, "resource"),
            self.listed,
            self.other
        );
        Err(Error::new("folder.source", ExitCode::Usage, message).with_help(format!(
            "check the address {}, or make a new copy in another folder",
            options.url
        )))
    }
}

/// The start of the copy's URIs: its base, or the server if the copy has no base.
fn base_of(mirror: &Mirror) -> Result<Option<String>, Error> {
    let known = mirror.meta(key::BASE)?;
    let mut first = Vec::new();
    mirror.rows_after("", 1, &mut first)?;
    Ok(known.or_else(|| authority_root(&first.first()?.uri)))
}

/// The possible new bases: addresses at which the list contains the paths of some resources of the
/// copy. A base in the options is the only candidate.
fn new_bases(
    mirror: &Mirror,
    listed: &Expected,
    base: &str,
    options: &SyncOptions,
) -> Result<Vec<String>, Error> {
    if let Some(chosen) = &options.base {
        return Ok(vec![chosen.clone()]);
    }
    let mut paths: Vec<String> = Vec::new();
    let (total, mut number) = (mirror.count_rows()?, 0);
    let step = (total / SAMPLE as u64).max(1);
    mirror.each_batch(|rows| {
        for row in rows {
            number += 1;
            if number % step == 0
                && let Some(path) = row.uri.strip_prefix(base).filter(|path| !path.is_empty())
            {
                paths.push(path.to_owned());
            }
        }
        Ok::<(), Error>(())
    })?;
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    listed.each_batch(|rows| {
        for (row, path) in rows.iter().flat_map(|row| paths.iter().map(move |path| (row, path))) {
            let new = row.uri.strip_suffix(path.as_str()).filter(|new| new.ends_with('/'));
            if let Some(new) = new {
                *found.entry(new.to_owned()).or_default() += 1;
            }
        }
        Ok::<(), Error>(())
    })?;
    let usable = |new: &String| PathMap::new(new, NameRules::default()).is_ok() && new != base;
    let mut found: Vec<(String, usize)> =
        found.into_iter().filter(|(new, _)| usable(new)).collect();
    found.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    Ok(found.into_iter().map(|(new, _)| new).take(BASES_MAX).collect())
}
