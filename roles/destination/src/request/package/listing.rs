//! Packages and dumps as a Source lists them.

use crate::report::error::{Error, ExitCode};
use abreast_webtypes::{Digests, Moment, Timestamp};

const WARC: &str = "WARC";

/// One package as listed in a dump.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListedPackage {
    pub(crate) url: String,
    pub(crate) length: Option<u64>,
    pub(crate) digests: Digests,
    pub(crate) media_type: Option<String>,
    /// The URL of the package's manifest, if the dump lists it. It is read instead of the manifest
    /// in the package.
    pub(crate) manifest: Option<String>,
    /// Whether the package may be a WARC file.
    pub(crate) may_be_warc: bool,
    /// Start of the interval whose changes are in the package.
    pub(crate) from: Option<Moment>,
    /// End of the interval whose changes are in the package.
    pub(crate) until: Option<Moment>,
    /// Set if the Source creates the package on demand.
    pub(crate) made: Option<Made>,
}

/// The contents of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packaged {
    /// All resources at an instant.
    Snapshot,
    /// The changes of a span of time.
    Changes,
}

/// Packages that resources may be taken out of.
#[derive(Debug)]
pub(crate) struct Dump {
    pub(crate) packages: Vec<ListedPackage>,
    /// The kind of contents of the packages.
    pub(crate) packaged: Packaged,
    /// The instant of the snapshot that the packages contain, if they are one.
    pub(crate) at: Option<Timestamp>,
    /// The latest instant on any clock at the time of listing, if known.
    pub(crate) latest: Option<Timestamp>,
    /// The plan was made from the manifests of these packages, which replace the list.
    pub(crate) is_plan: bool,
}

/// A dump that a Source offers.
#[derive(Debug)]
pub(crate) struct Offered {
    /// The document with the list of packages.
    pub(crate) url: String,
    /// The dump, or the error that occurred when reading its document.
    pub(crate) dump: Result<Dump, Error>,
}

/// Estimates for a package that the Source creates on demand; its length is not known before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Made {
    /// Expected length in bytes.
    pub(crate) bytes: u64,
    /// Maximum acceptable length, in bytes.
    pub(crate) bytes_max: u64,
    /// Expected time in seconds until the Source has created the package.
    pub(crate) seconds: f64,
}

impl Dump {
    /// Records that a package was not used. In a dump of changes, older packages may contain earlier
    /// changes of the same resources, so the entries of the dump are then not the plan.
    pub(crate) fn passed_over(&mut self) {
        self.is_plan &= self.packaged == Packaged::Snapshot;
    }
}

impl ListedPackage {
    /// Whether the media type or the name shows that the package is a WARC file.
    pub(crate) fn is_warc(&self) -> bool {
        self.other_format().is_some_and(|format| format == WARC)
    }

    /// Checks the format of the package, as far as its media type or name shows the format: ZIP, or
    /// WARC if allowed. A package of unknown format is accepted.
    ///
    /// # Errors
    /// `dump.format`, with the name of the format.
    pub(crate) fn check_format(&self) -> Result<(), Error> {
        let Some(format) = self.other_format() else { return Ok(()) };
        if self.may_be_warc && format == WARC {
            return Ok(());
        }
        let message = format!("{} is a package of another kind: {format}", self.url);
        let read = if self.may_be_warc { "ZIP or WARC" } else { "ZIP" };
        let help =
            format!("packages in {read} are read; resources are asked for one by one instead");
        Err(Error::new("dump.format", ExitCode::SourceInvalid, message).with_help(help))
    }

    /// The name of the format, unless it is ZIP.
    fn other_format(&self) -> Option<String> {
        let media_type = self.media_type.as_deref().unwrap_or_default();
        let media_type =
            media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let path = self.url.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
        let named = |endings: &[&str]| endings.iter().any(|ending| path.ends_with(ending));
        let format = match media_type.as_str() {
            "application/warc" | "application/warc+gzip" => WARC,
            // Some servers send the media type of the compressed file.
            "application/gzip" | "application/x-gzip" if named(&[".warc.gz"]) => WARC,
            "application/x-xz" | "application/x-xz-compressed-tar" => "tar packed with xz",
            "application/x-tar" => "tar",
            "application/gzip" | "application/x-gzip" | "application/x-gtar"
            | "application/x-tgz" => "tar packed with gzip",
            "application/zstd" => "packed with zstd",
            "application/x-7z-compressed" => "7z",
            "" | "application/octet-stream" if named(&[".warc", ".warc.gz"]) => WARC,
            "" | "application/octet-stream" if named(&[".tar.xz", ".txz"]) => "tar packed with xz",
            "" | "application/octet-stream" if named(&[".tar.gz", ".tgz"]) => {
                "tar packed with gzip"
            }
            "" | "application/octet-stream" if named(&[".tar"]) => "tar",
            ""
            | "application/octet-stream"
            | "application/zip"
            | "application/x-zip-compressed"
            | "application/x-zip" => {
                return None;
            }
            other => other,
        };
        Some(format.to_owned())
    }
}

/// Adds which package cannot be used.
pub(crate) fn unusable(package: &ListedPackage, error: &Error) -> Error {
    let message = format!("cannot use the package {}: {error}", package.url);
    Error::new(error.code(), error.exit_code(), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_other_kinds_are_named() {
        let listed = |url: &str, media_type: Option<&str>| ListedPackage {
            url: url.to_owned(),
            media_type: media_type.map(str::to_owned),
            ..ListedPackage::default()
        };
        for (url, media_type) in [
            ("http://h/p.zip", None),
            ("http://h/p", None),
            ("http://h/p.tar.xz", Some("application/zip")),
            ("http://h/p", Some("application/ZIP; x=y")),
            ("http://h/p", Some("application/octet-stream")),
        ] {
            assert!(listed(url, media_type).check_format().is_ok(), "{url} {media_type:?}");
        }
        for (url, media_type, format) in [
            ("http://h/p.tar.xz?x", None, "tar packed with xz"),
            ("http://h/p.warc.gz", Some("application/octet-stream"), "WARC"),
            ("http://h/p", Some("application/warc"), "WARC"),
            ("http://h/p.zip", Some("application/x-rar"), "application/x-rar"),
        ] {
            let error = listed(url, media_type).check_format().unwrap_err();
            assert_eq!(error.code(), "dump.format");
            assert!(error.to_string().contains(format), "{error}");
        }
    }
}
