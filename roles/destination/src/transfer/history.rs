//! Earlier versions of resources, stored in the state folder: mementos to which the Source links
//! [rs-core §14.6].
//!
//! A version is a file `%@TIME` in a folder with the name of its resource, below `history` in the
//! state folder. Only versions have such paths, since paths of resources do not start with `%@`.
//! The newest versions are retained, up to the number from the options. Versions never change, so a
//! stored version is not requested again.

use crate::copy::fingerprint::Fingerprint;
use crate::copy::key;
use crate::copy::names::temporary_name;
use crate::copy::path_map::{Form, NameRules, PathMap};
use crate::copy::place::{create_temporary, make_all};
use crate::copy::state_folder::StateFolder;
use crate::plan::alternates::is_public_only;
use crate::plan::history::Version;
use crate::plan::planner::PlanContext;
use crate::report::error::{Error, ExitCode};
use crate::report::reporter::Reporter;
use crate::request::requests::Requests;
use crate::request::verify::{Hasher, Verdict, judge};
use crate::transfer::rules::Rules;
use abreast_folder::{Dir, set_modified};
use abreast_net::{Request, UnaskedEncoding};
use abreast_webtypes::{Timestamp, parse_link_header, resolve};
use std::collections::{HashMap, HashSet};
use std::hash::{Hash as _, Hasher as _};
use std::io::Write as _;

/// Maximum number of versions that are fetched in a run.
const FETCHES_MAX: usize = 10_000;
/// Largest version.
const VERSION_BYTES_MAX: u64 = 4 << 30;
/// Largest list of versions.
const TIMEMAP_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of failures that are reported individually.
const REPORTED_MAX: usize = 100;
/// Prefix of the names of versions.
const MARK: &[u8] = b"%@";

impl Version {
    /// The name of the version's file.
    fn name(&self) -> Vec<u8> {
        let mut name = MARK.to_vec();
        if let Some(time) = self.time {
            name.extend(time.to_string().bytes().filter(|byte| !matches!(byte, b'-' | b':')));
        } else {
            let mut hasher = Fingerprint::new();
            self.url.hash(&mut hasher);
            name.extend_from_slice(format!("-{:016x}", hasher.finish()).as_bytes());
        }
        name
    }
}

/// Fetches the recorded versions that are not stored.
pub(crate) fn fetch_versions(
    run: &mut PlanContext<'_, '_>,
    state: &StateFolder,
    rules: &Rules,
) -> Result<(), Error> {
    let (options, mirror, requests) = (run.planner.options, run.planner.mirror, run.requests);
    let report = &mut *run.report;
    let Some(most) = options.history else { return Ok(()) };
    let noted = std::mem::take(&mut run.planner.history.noted);
    if !noted.is_empty() && !options.sink.has_paths() {
        let message =
            "earlier versions are kept beside a folder or objects only; none was asked for";
        report.notice("history.sink", &options.url, message);
        return Ok(());
    }
    let is_wanted = !noted.is_empty() && !options.dry_run;
    let Some(base) = mirror.meta(key::BASE)?.filter(|_| is_wanted) else { return Ok(()) };
    let map = PathMap::new(&base, NameRules { ascii_only: true, ..NameRules::default() })
        .map_err(|cause| Error::new("folder.base", ExitCode::Usage, cause.to_string()))?;
    let folder = state.folder("history")?;
    report.begin_phase("fetching");
    let (mut fetched, mut failures) = (0, 0);
    for noted in noted {
        requests.check_cancelled()?;
        let mut versions = noted.versions;
        if let Some(timemap) = &noted.timemap {
            match read_timemap((requests, rules), timemap) {
                Ok(listed) => versions.extend(listed),
                Err(error) => version_failed(report, &error, timemap, &mut failures)?,
            }
        }
        // Links need not contain times. The times in the list of versions have precedence, so that
        // each version has a unique name.
        let times: HashMap<String, Timestamp> = versions
            .iter()
            .filter_map(|version| Some((version.url.clone(), version.time?)))
            .collect();
        for version in &mut versions {
            version.time = version.time.or_else(|| times.get(&version.url).copied());
        }
        // Versions from lists are first, since they may have a digest.
        let mut urls = HashSet::new();
        versions.retain(|version| urls.insert(version.url.clone()));
        versions.sort_by(|one, two| (two.time, &two.url).cmp(&(one.time, &one.url)));
        versions.dedup_by_key(|version| version.name());
        versions.truncate(most as usize);
        let mut path = Vec::new();
        if map.path_into(&noted.uri, Form::Plain, &mut path).is_err() {
            continue;
        }
        let dir = make_all(&folder, path.split(|byte| *byte == b'/'), &mut None)?;
        for version in &versions {
            let name = version.name();
            if is_kept(&dir, version, &name)? {
                continue;
            }
            if fetched >= FETCHES_MAX {
                break;
            }
            fetched += 1;
            if let Err(error) = fetch_version((requests, rules), version, &dir, &name) {
                version_failed(report, &error, &version.url, &mut failures)?;
            }
        }
        forget_oldest(&dir, most as usize)?;
    }
    if failures > REPORTED_MAX {
        let message = format!("more versions that cannot be fetched: {}", failures - REPORTED_MAX);
        report.notice("history", &options.url, &message);
    }
    Ok(())
}

/// Whether a version is stored; a version whose time was not known before is renamed.
fn is_kept(dir: &Dir, version: &Version, name: &[u8]) -> Result<bool, Error> {
    let timeless = Version { time: None, url: version.url.clone(), ..Version::default() }.name();
    let (is_here, is_timeless) = (dir.stat(name).is_ok(), dir.stat(&timeless).is_ok());
    if is_timeless && timeless != name {
        if is_here {
            dir.unlink(&timeless)?;
        } else {
            dir.rename(&timeless, dir, name)?;
        }
    }
    Ok(is_here || is_timeless)
}

fn version_failed(
    report: &mut Reporter<'_>,
    error: &Error,
    url: &str,
    failures: &mut usize,
) -> Result<(), Error> {
    if matches!(error.exit_code(), ExitCode::Cancelled | ExitCode::Io | ExitCode::Limit) {
        return Err(Error::new(error.code(), error.exit_code(), error.to_string()));
    }
    *failures += 1;
    if *failures <= REPORTED_MAX {
        report.notice(error.code(), url, &format!("cannot fetch an earlier version: {error}"));
    }
    Ok(())
}

/// The versions in a TimeMap [rfc7089 §5].
fn read_timemap(via: (&Requests<'_>, &Rules), url: &str) -> Result<Vec<Version>, Error> {
    let mut text = Vec::new();
    get(via, url, None, TIMEMAP_BYTES_MAX, &mut |chunk| {
        text.extend_from_slice(chunk);
        Ok(())
    })?;
    let text = String::from_utf8_lossy(&text).replace(['\n', '\r'], " ");
    let links = parse_link_header(text.trim().trim_end_matches(',')).map_err(|cause| {
        Error::new("history.timemap", ExitCode::SourceInvalid, format!("cannot read {url}"))
            .with_cause(cause)
    })?;
    Ok(links
        .into_iter()
        .filter(|link| {
            link.rel.split_ascii_whitespace().any(|rel| rel.eq_ignore_ascii_case("memento"))
        })
        .filter_map(|link| {
            let datetime =
                link.params.iter().find(|(name, _)| name.eq_ignore_ascii_case("datetime"));
            let time = datetime.and_then(|(_, value)| httpdate::parse_http_date(value).ok());
            let seconds = time.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
            let time = seconds.and_then(|seconds| i64::try_from(seconds.as_secs()).ok());
            let time = time.map(Timestamp::from_seconds);
            Some(Version { url: resolve(url, &link.target).ok()?, time, ..Version::default() })
        })
        .collect())
}

fn fetch_version(
    via: (&Requests<'_>, &Rules),
    version: &Version,
    dir: &Dir,
    name: &[u8],
) -> Result<(), Error> {
    let temporary = temporary_name(&version.url);
    let mut file = create_temporary(dir, &temporary)?;
    let (mut hasher, mut length) = (Hasher::for_listed(&version.digests), 0);
    let written = get(via, &version.url, version.length, VERSION_BYTES_MAX, &mut |chunk| {
        hasher.update(chunk);
        length += chunk.len() as u64;
        file.write_all(chunk).map_err(|cause| {
            Error::new("io", ExitCode::Io, format!("cannot keep a version: {cause}"))
                .with_cause(cause)
        })
    });
    let kept = written.and_then(|()| {
        if judge(&version.digests, version.length, &hasher.finish(), length) == Verdict::Mismatch {
            return Err(Error::new(
                "fixity.mismatch",
                ExitCode::SourceInvalid,
                "it is not as listed",
            ));
        }
        if let Some(time) = version.time {
            set_modified(&file, time.as_micros().saturating_mul(1_000))?;
        }
        Ok(dir.rename(&temporary, dir, name)?)
    });
    if kept.is_err() {
        let _ = dir.unlink(&temporary);
    }
    kept
}

/// Sends a GET request to the Source, or to a host that is as public as redirects require.
fn get(
    (requests, rules): (&Requests<'_>, &Rules),
    url: &str,
    length: Option<u64>,
    most: u64,
    each: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let refused = || {
        Error::new(
            "uri.authority",
            ExitCode::SourceInvalid,
            format!("{url} is on a host that may not be asked"),
        )
    };
    let mut rule = rules.admission.clone();
    let public_only = is_public_only(&mut rule, url).ok_or_else(refused)?;
    if let Some(robots) = rules.robots.clone() {
        let asked = requests.run(robots.check(&requests.client, url, public_only))?;
        asked.map_err(|failure| {
            Error::new(failure.code, ExitCode::SourceInvalid, failure.message)
        })?;
    }
    let authorized = crate::request::admit::same_origin(url, &requests.authorized_url);
    let request = Request {
        authorization: requests.authorization.as_ref().filter(|_| authorized),
        unasked_encoding: UnaskedEncoding::Decode,
        public_only,
        ..Request::new(url)
    };
    let work = async {
        let mut response = requests.client.send(&request).await?.require_success()?;
        response.refuse_challenge().await?;
        response.set_limit(length.unwrap_or(most).min(most));
        while let Some(chunk) = response.chunk().await? {
            if let Err(error) = requests.allowance.check().and_then(|()| each(&chunk)) {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    };
    match requests.run(work)? {
        Ok(done) => done,
        Err(error) => Err(crate::request::requests::net_error(error)),
    }
}

/// Removes all but the newest versions of a resource.
fn forget_oldest(dir: &Dir, most: usize) -> Result<(), Error> {
    let mut names: Vec<_> = dir
        .list()?
        .into_iter()
        .map(|entry| entry.name)
        .filter(|name| name.starts_with(MARK))
        .collect();
    names.sort();
    let surplus = names.len().saturating_sub(most);
    for name in &names[..surplus] {
        dir.unlink(name)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_folder::Folder;

    #[test]
    fn versions_are_named_by_their_time() {
        let version =
            Version { time: Some(Timestamp::from_seconds(1_735_689_600)), ..Version::default() };
        assert_eq!(version.name(), b"%@20250101T000000Z");
        let timeless = Version { url: "http://h/v".to_owned(), ..Version::default() };
        assert!(timeless.name().starts_with(b"%@-"));
    }

    #[test]
    fn only_the_newest_are_kept() {
        let place = tempfile::tempdir().unwrap();
        let dir = Folder::open(place.path()).unwrap().root();
        for name in
            [&b"%@20250101T000000Z"[..], b"%@20240101T000000Z", b"%@20230101T000000Z", b"other"]
        {
            drop(dir.create_new(name).unwrap());
        }
        forget_oldest(&dir, 2).unwrap();
        let mut left: Vec<_> = dir.list().unwrap().into_iter().map(|entry| entry.name).collect();
        left.sort();
        assert_eq!(left, [&b"%@20240101T000000Z"[..], b"%@20250101T000000Z", b"other"]);
    }
}
