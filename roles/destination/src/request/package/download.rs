//! Downloads packages into the state folder: continues an interrupted download, and verifies length
//! and digests from the list and from the server [rfc9530 §3].

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

/// The folder of packages, below the state folder.
const FOLDER: &str = "packages";
/// Disk space that must remain free after a download, in bytes.
const SPARE_BYTES: u64 = 64 << 20;
/// Maximum length of a package, in bytes.
const PACKAGE_BYTES_MAX: u64 = 1 << 40;
/// Longest pause that a server may require once before it sends a package that it creates on
/// demand.
const MAKING_PATIENCE: Duration = Duration::from_secs(5);
/// Retries of a package that is created on demand; its resources can be fetched individually.
const MADE_RETRIES: u32 = 1;
/// Maximum length of a note, in bytes.
const NOTE_BYTES_MAX: u64 = 32 << 10;

/// A package whose download has started.
struct Arriving {
    file: File,
    digest: BackgroundDigest,
    length: u64,
    etag: Option<String>,
    /// The digests of the whole package, according to the server.
    stated: Digests,
    /// The URL that sent the package, after redirects.
    address: String,
}

/// The downloaded packages in the state folder.
#[derive(Clone, Debug)]
pub(crate) struct Downloads {
    state: StateFolder,
    /// Packages that this run received and verified, with their addresses.
    received: Arc<Mutex<HashMap<Vec<u8>, Received>>>,
}

/// A package that was received completely.
#[derive(Debug)]
struct Received {
    /// The listed length of the package.
    length: Option<u64>,
    digests: Digests,
    /// The URL that sent the package, after redirects.
    address: String,
}

impl Downloads {
    pub(crate) fn new(state: StateFolder) -> Self {
        Self { state, received: Arc::default() }
    }

    fn received(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Received>> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The URL from which a package was received in this run, after redirects: relative IRIs in the
    /// package are resolved against it [rfc3986 §5.1.3].
    pub(crate) fn address_of(&self, package: &ListedPackage) -> Option<String> {
        self.received().get(&name_of(package)).map(|received| received.address.clone())
    }

    /// The state folder that contains the packages.
    pub(crate) fn path(&self) -> &Path {
        self.state.path()
    }

    /// Number of bytes that are still to be received, if the length of the package is listed.
    pub(crate) fn to_come(&self, package: &ListedPackage) -> Option<u64> {
        let folder = self.state.existing_folder(FOLDER);
        let here = folder
            .and_then(|folder| folder.stat(&name_of(package)).ok())
            .map_or(0, |stat| stat.size);
        package.length.map(|length| length.saturating_sub(here))
    }

    /// Downloads a package, or the rest of an interrupted download, and verifies its digests.
    ///
    /// # Errors
    /// `dump.space`, `fixity.mismatch`, `dump.size`, and the errors of any transfer.
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
                // No waiting for packages created on demand: their resources can be fetched
                // individually.
                Some(_) => client.send(&request).await?,
                None => requests.send(&client, &request).await?,
            };
            let mut response = match answered.require_success() {
                Err(error) if package.made.is_some() && !is_worth_waiting(&error, attempt) => {
                    return Ok(Err(net_error(error)));
                }
                // Status codes mean the same as for documents.
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
/// `dump.space`: the free space of the folder is too small for the file and other files.
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

/// Whether to wait for a package that the server is creating, instead of fetching its resources
/// individually.
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

/// A package that is completely downloaded and agrees with the list.
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
        // The package may be complete. The last byte is requested again, since a request for zero
        // bytes is not possible.
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

/// A hasher for the digests in the list and from the server.
fn hasher_of(package: &ListedPackage, stated: &Digests) -> Hasher {
    let mut all = package.digests.clone();
    for algorithm in Algorithm::ALL {
        if let Some(bytes) = stated.bytes_of(algorithm) {
            all.set(algorithm, bytes);
        }
    }
    Hasher::for_no_others(&all)
}

/// The digests of the whole package, from the header of the server. `Content-Digest` and
/// `Repr-Digest` describe the same bytes, since the response with the start of a package is
/// complete and without a content coding.
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

/// Starts a download at the first byte of the package.
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
