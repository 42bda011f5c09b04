//! Fetching a package into the state folder: continued where it was interrupted, whole and
//! verified, by what is listed and by what its server states [rfc9530 §3].

use crate::copy::fingerprint::Fingerprint;
use crate::copy::state_folder::{StateFolder, open_begun, read_text, write_text};
use crate::report::error::{Error, ExitCode};
use crate::request::diagnostics::{Diagnostics, Remark};
use crate::request::package::background::BackgroundDigest;
use crate::request::package::listing::ListedPackage;
use crate::request::requests::{Requests, answered_else, net_error};
use crate::request::verify::{Hasher, Verdict, hash_into, judge};
use abreast_folder::Dir;
use abreast_net::{Request, Response, UnaskedEncoding};
use abreast_webtypes::{Algorithm, Digests, count};
use std::collections::HashMap;
use std::fs::File;
use std::hash::{Hash as _, Hasher as _};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The folder of packages in the state.
const FOLDER: &str = "packages";
/// Space that stays free beside a package.
const SPARE_BYTES: u64 = 64 << 20;
/// Largest package.
const PACKAGE_BYTES_MAX: u64 = 1 << 40;
/// Longest wait that a server may ask for, once, before a package that it makes on demand.
const MAKING_PATIENCE: Duration = Duration::from_secs(5);
/// Retries of one: its resources can be fetched otherwise.
const MADE_RETRIES: u32 = 1;
/// Longest note read.
const NOTE_BYTES_MAX: u64 = 32 << 10;

/// A package on its way.
struct Arriving {
    file: File,
    digest: BackgroundDigest,
    length: u64,
    etag: Option<String>,
    /// What the server states about the whole package.
    stated: Digests,
    /// Where it came from, after redirects.
    address: String,
}

/// The packages in the state folder.
#[derive(Clone, Debug)]
pub(crate) struct Downloads {
    state: StateFolder,
    /// Those that this run received and verified, with the addresses that they came from.
    received: Arc<Mutex<HashMap<Vec<u8>, Received>>>,
}

/// A package that was received whole.
#[derive(Debug)]
struct Received {
    /// What was listed of it.
    length: Option<u64>,
    digests: Digests,
    /// Where it came from, after redirects.
    address: String,
}

impl Downloads {
    pub(crate) fn new(state: StateFolder) -> Self {
        Self { state, received: Arc::default() }
    }

    fn received(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Received>> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address that a package came from in this run, after redirects: relative IRIs in it are
    /// resolved against that [rfc3986 §5.1.3].
    pub(crate) fn address_of(&self, package: &ListedPackage) -> Option<String> {
        self.received().get(&name_of(package)).map(|received| received.address.clone())
    }

    /// The state folder that they are in.
    pub(crate) fn path(&self) -> &Path {
        self.state.path()
    }

    /// How many bytes of a package are still to come, when its length is listed.
    pub(crate) fn to_come(&self, package: &ListedPackage) -> Option<u64> {
        let folder = self.state.existing_folder(FOLDER);
        let here = folder
            .and_then(|folder| folder.stat(&name_of(package)).ok())
            .map_or(0, |stat| stat.size);
        package.length.map(|length| length.saturating_sub(here))
    }

    /// Fetches a package, or the rest of it, and verifies it.
    ///
    /// # Errors
    /// `dump.space`, `fixity.mismatch`, `dump.size`, and those of any transfer.
    pub(crate) fn fetch(
        &self,
        requests: &Requests<'_>,
        package: &ListedPackage,
    ) -> Result<File, Error> {
        package.check_format()?;
        let fetched = requests.documents.download(requests, self, package, None);
        fetched.map_err(|error| match error.code() {
            "dump.space" => error.with_help("free space, or run with `--dumps never`"),
            _ => error,
        })
    }

    /// As [`Downloads::fetch`], for a file of any type.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn fetch_any(
        &self,
        requests: &Requests<'_>,
        package: &ListedPackage,
        accept: Option<&str>,
    ) -> Result<File, Error> {
        let shown = self.state.path().join(FOLDER);
        let io = |cause: std::io::Error| {
            let full = matches!(
                cause.kind(),
                std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded
            );
            let code = if full { "dump.space" } else { "io" };
            Error::new(
                code,
                ExitCode::Io,
                format!("cannot keep a package in {}: {cause}", shown.display()),
            )
            .with_cause(cause)
        };
        let folder = self.state.folder(FOLDER)?;
        let name = name_of(package);
        let is_received = self.received().get(&name).is_some_and(|received| {
            received.length == package.length && received.digests == package.digests
        });
        if is_received && let Some((file, _)) = open_begun(&folder, &name) {
            return Ok(file);
        }
        self.received().remove(&name);
        if let Some(file) = begun_whole(&folder, package).map_err(io)? {
            return Ok(file);
        }
        let to_come =
            package.made.map(|made| made.bytes_max).or(self.to_come(package)).unwrap_or(0);
        check_space(&package.url, to_come, folder.free_bytes(), &shown)?;
        let mut arriving = begun(&folder, package).map_err(io)?;
        let authorization = requests
            .authorization
            .as_ref()
            .filter(|_| crate::request::admit::same_origin(&package.url, &requests.authorized_url));
        let client = match package.made {
            Some(_) => requests.client.with_retries(requests.retries.min(MADE_RETRIES)),
            None => requests.client.clone(),
        };
        let work = abreast_net::with_retries(&client, &package.url, async |attempt| {
            let resume = arriving
                .as_ref()
                .and_then(|arriving| Some((arriving.length, arriving.etag.clone()?)));
            let request = Request {
                range_from: resume.as_ref().map(|(from, etag)| (*from, etag.as_str())),
                unasked_encoding: UnaskedEncoding::Refuse,
                authorization,
                accept,
                ..Request::new(&package.url)
            };
            let answered = match package.made {
                // Its resources can be fetched otherwise.
                Some(_) => client.send(&request).await?,
                None => requests.send(&client, &request).await?,
            };
            let mut response = match answered.require_success() {
                Err(error) if package.made.is_some() && !is_worth_waiting(&error, attempt) => {
                    return Ok(Err(net_error(error)));
                }
                // As for documents, which it may stand for.
                answered => answered.map_err(|error| match error.status() {
                    Some(500..) if package.made.is_none() => error.passing(),
                    _ => error,
                })?,
            };
            if !resume.as_ref().is_some_and(|(from, etag)| response.is_partial_from(*from, etag)) {
                arriving = None;
                if !response.is_whole() {
                    return Ok(Err(answered_else(&package.url, response.status())));
                }
            }
            if arriving.is_none() {
                let stated = stated_by(&response, package, &requests.diagnostics);
                arriving = match begin(&folder, package, &response, stated) {
                    Ok(begun) => Some(begun),
                    Err(cause) => return Ok(Err(io(cause))),
                };
            }
            let Some(arriving) = &mut arriving else { return Ok(Ok(())) };
            response.url().clone_into(&mut arriving.address);
            let most = package.made.map_or(PACKAGE_BYTES_MAX, |made| made.bytes_max);
            if response
                .content_length()
                .is_some_and(|length| length.saturating_add(arriving.length) > most)
            {
                return Ok(Err(too_large(package, most)));
            }
            response.set_limit(PACKAGE_BYTES_MAX);
            while let Some(chunk) = response.chunk().await? {
                arriving.length += chunk.len() as u64;
                if package.length.is_some_and(|length| arriving.length > length) {
                    return Ok(Err(different(package, "it is longer than listed")));
                }
                if arriving.length > most {
                    return Ok(Err(too_large(package, most)));
                }
                if let Err(error) = requests.allowance.check() {
                    return Ok(Err(error));
                }
                if let Err(cause) = arriving.file.write_all(&chunk) {
                    return Ok(Err(io(cause)));
                }
                arriving.digest.update(chunk);
            }
            Ok(Ok(()))
        });
        match requests.run(work)? {
            Ok(done) => done.inspect_err(|error| {
                if error.code() == "fixity.mismatch" {
                    forget(&folder, package);
                }
            })?,
            Err(error) => return Err(net_error(error)),
        }
        let Some(Arriving { file, digest, length, stated, address, .. }) = arriving else {
            return Err(different(package, "nothing was sent"));
        };
        let digests = digest.finish();
        let what = if judge(&package.digests, package.length, &digests, length) == Verdict::Mismatch
        {
            "its length or digest is not the one listed"
        } else if stated.agree(&digests) == Some(false) {
            "its digest is not the one that its server states (`Repr-Digest`)"
        } else {
            let (length, digests) = (package.length, package.digests.clone());
            self.received().insert(name, Received { length, digests, address });
            return Ok(file);
        };
        forget(&folder, package);
        Err(different(package, what))
    }

    /// Removes a package that is of no more use.
    pub(crate) fn discard(&self, package: &ListedPackage) {
        if let Some(folder) = self.state.existing_folder(FOLDER) {
            forget(&folder, package);
        }
    }

    /// Removes what earlier runs left of packages.
    pub(crate) fn sweep(&self) {
        self.state.remove_folder(FOLDER);
    }
}

/// # Errors
/// `dump.space`: the file does not fit into a folder with so many bytes free, and others have to.
fn check_space(url: &str, to_come: u64, free: Option<u64>, folder: &Path) -> Result<(), Error> {
    let Some(free) = free.filter(|free| *free < to_come.saturating_add(SPARE_BYTES)) else {
        return Ok(());
    };
    let length = match to_come {
        0 => "its length is not stated".to_owned(),
        to_come => format!("it needs {}", count(to_come, "byte")),
    };
    let message = format!(
        "cannot download {url}: {length}, {SPARE_BYTES} bytes have to remain free, and {} has {free}",
        folder.display()
    );
    Err(Error::new("dump.space", ExitCode::Io, message)
        .with_help("free space, or keep the state in another place with `--state DIR`"))
}

fn different(package: &ListedPackage, what: &str) -> Error {
    Error::new(
        "fixity.mismatch",
        ExitCode::SourceInvalid,
        format!("cannot use the package {}: {what}", package.url),
    )
}

fn too_large(package: &ListedPackage, most: u64) -> Error {
    let message = format!("cannot use the package {}: it has more than {most} bytes", package.url);
    Error::new("dump.size", ExitCode::SourceInvalid, message)
}

/// Whether it is better to wait for a package that is being made than to do without.
fn is_worth_waiting(error: &abreast_net::Error, attempt: u32) -> bool {
    attempt == 0 && error.retry_after().is_some_and(|pause| pause <= MAKING_PATIENCE)
}

fn name_of(package: &ListedPackage) -> Vec<u8> {
    let mut hasher = Fingerprint::new();
    package.url.hash(&mut hasher);
    format!("{:016x}.zip", hasher.finish()).into_bytes()
}

fn note_of(package: &ListedPackage) -> Vec<u8> {
    let mut name = name_of(package);
    name.truncate(name.len() - 3);
    name.extend_from_slice(b"note");
    name
}

fn forget(folder: &Dir, package: &ListedPackage) {
    let _ = folder.unlink(&name_of(package));
    let _ = folder.unlink(&note_of(package));
}

/// A package that is here whole, and is the one listed.
fn begun_whole(folder: &Dir, package: &ListedPackage) -> std::io::Result<Option<File>> {
    let (Some(length), Some(_)) = (package.length, package.digests.strongest()) else {
        return Ok(None);
    };
    let Some((mut file, stat)) = open_begun(folder, &name_of(package)) else { return Ok(None) };
    if stat.size != length {
        return Ok(None);
    }
    let mut hasher = Hasher::for_listed(&package.digests);
    hash_into(&mut file, &mut hasher)?;
    let whole =
        judge(&package.digests, Some(length), &hasher.finish(), length) == Verdict::Verified;
    Ok(whole.then_some(file))
}

/// The part of a package that an earlier run received, when its version is known.
fn begun(folder: &Dir, package: &ListedPackage) -> std::io::Result<Option<Arriving>> {
    let Some(note) = read_text(folder, &note_of(package), NOTE_BYTES_MAX) else { return Ok(None) };
    let mut lines = note.lines();
    let (Some(etag), Some(url)) = (lines.next(), lines.next()) else { return Ok(None) };
    if url != package.url {
        return Ok(None);
    }
    let mut stated = Digests::default();
    stated.parse_leniently_into(lines.next().unwrap_or_default().as_bytes());
    let Some((mut file, stat)) = open_begun(folder, &name_of(package)) else { return Ok(None) };
    let size = stat.size;
    if size == 0 || package.length.is_some_and(|length| size > length) {
        return Ok(None);
    }
    if package.length.is_none_or(|length| length == size) {
        // All of it, perhaps: the last byte is asked for again, since nothing cannot be.
        file.set_len(size - 1)?;
        file.seek(SeekFrom::Start(0))?;
    }
    let mut hasher = hasher_of(package, &stated);
    let length = hash_into(&mut file, &mut hasher)?;
    Ok((length > 0).then(|| Arriving {
        file,
        digest: BackgroundDigest::new(hasher),
        length,
        etag: Some(etag.to_owned()),
        stated,
        address: String::new(),
    }))
}

/// For what is listed and what is stated.
fn hasher_of(package: &ListedPackage, stated: &Digests) -> Hasher {
    let mut all = package.digests.clone();
    for algorithm in Algorithm::ALL {
        if let Some(bytes) = stated.bytes_of(algorithm) {
            all.set(algorithm, bytes);
        }
    }
    Hasher::for_no_others(&all)
}

/// The digests of the whole package that its server states. `Content-Digest` is about the same bytes,
/// since an answer that begins a package is whole and has no coding.
fn stated_by(response: &Response, package: &ListedPackage, diagnostics: &Diagnostics) -> Digests {
    let mut stated = Digests::default();
    for name in ["content-digest", "repr-digest"] {
        let lines = response.headers().get_all(name).iter();
        let lines: Vec<_> = lines.map(|line| String::from_utf8_lossy(line.as_bytes())).collect();
        if let Err(error) = stated.parse_field(&lines.join(",")) {
            let message = format!("the header `{name}` is ignored: {error}");
            let remark = Remark { code: "http.digest", line: 0, message, count: 1 };
            diagnostics.note(&package.url, remark);
        }
    }
    stated
}

/// Begins a package from its first byte.
fn begin(
    folder: &Dir,
    package: &ListedPackage,
    response: &Response,
    stated: Digests,
) -> std::io::Result<Arriving> {
    forget(folder, package);
    let file = folder.create_new(&name_of(package))?;
    let etag = response.header("etag").filter(|etag| etag.starts_with('"')).map(str::to_owned);
    if let Some(etag) = &etag {
        let note = format!("{etag}\n{}\n{stated}\n", package.url);
        write_text(folder, &note_of(package), &note)?;
    }
    let digest = BackgroundDigest::new(hasher_of(package, &stated));
    Ok(Arriving { file, digest, length: 0, etag, stated, address: String::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named_with_the_address_and_what_is_needed() {
        let (url, folder) = ("http://h.example/a/very/long/download.nt", Path::new("/s/packages"));
        let check = |to_come, free| check_space(url, to_come, free, folder);
        for (to_come, free) in [(0, SPARE_BYTES), (7, SPARE_BYTES + 7)] {
            assert!(check(to_come, Some(free)).is_ok() && check(to_come, None).is_ok());
            assert_eq!(check(to_come, Some(free - 1)).unwrap_err().code(), "dump.space");
        }
        let message = |to_come, free| check(to_come, Some(free)).unwrap_err().to_string();
        let help = "  help: free space, or keep the state in another place with `--state DIR`";
        for (to_come, free, needs) in [
            (0, 65_847_296, "its length is not stated"),
            (4_000_000, 5, "it needs 4000000 bytes"),
            (u64::MAX, 5, "it needs 18446744073709551615 bytes"),
        ] {
            assert_eq!(
                message(to_come, free),
                format!(
                    "cannot download {url}: {needs}, 67108864 bytes have to remain free, and /s/packages has {free}\n{help}"
                )
            );
        }
    }
}
