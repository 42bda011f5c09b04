//! Manifests of packages, read from the packages themselves [rs-core §11.2, §13.2, rs-0.1 §4.2].

use super::document::{Part, at_earliest, is_zoneless, note_findings, syntax_error};
use crate::plan::manifest::Manifest;
use crate::report::error::{Error, ExitCode};
use crate::report::failure::Failure;
use crate::request::diagnostics::Diagnostics;
use crate::request::package::archive::Package;
use crate::request::pieces::Answered;
use abreast_resourcesync::sitemap::{Limits, Parser, Step, Version};
use std::io::Read as _;

/// The path of the manifest in each package.
const NAME: &str = "manifest.xml";
/// Bytes read at a time.
const BLOCK_BYTES: usize = 64 << 10;

/// Receives a part of a manifest, and adds the part.
type Each<'a, V> = &'a mut dyn FnMut(Part<'_, V>, &mut Manifest) -> Result<(), Error>;

/// Reads the manifest of a package, and passes on each part immediately.
///
/// # Errors
/// `dump.manifest` if the manifest is missing; the errors of `each`; otherwise the errors of any
/// document.
pub(crate) fn read_manifest<V: Version>(
    package: &Package,
    url: &str,
    diagnostics: &Diagnostics,
    each: Each<'_, V>,
) -> Result<Manifest, Error> {
    let failed = |failure: &Failure| {
        let exit =
            if failure.code == "dump.ratio" { ExitCode::Limit } else { ExitCode::SourceInvalid };
        let message = format!("cannot use the package {url}: its manifest: {}", failure.message);
        Error::new(failure.code, exit, message)
    };
    let Some(number) = package.manifest() else {
        return Err(refusal(
            url,
            if package.is_warc() {
                "there is no record `resource` whose URI ends with `manifest.xml`"
            } else {
                "there is no `manifest.xml` at its top"
            },
        ));
    };
    let mut reader = package.reader(package.member(number)).map_err(|failure| failed(&failure))?;
    let mut manifest = Manifest::new(package);
    manifest.name(number);
    let name = format!("{url}!/{NAME}");
    let mut parser = Parser::<V>::with_tolerance(Limits::of_manifest(), diagnostics.tolerance);
    // The manifest is not a response itself.
    let answered = Answered::default();
    let (mut entry, mut block) = (V::Entry::default(), vec![0; BLOCK_BYTES]);
    loop {
        let step = parser.next(&mut entry).map_err(|fault| syntax_error(&name, &fault))?;
        match (step, parser.head()) {
            (Step::NeedInput, _) => {
                let count = reader
                    .read(&mut block)
                    .map_err(|cause| failed(&Failure::new("dump.manifest", cause.to_string())))?;
                if count == 0 {
                    parser.finish();
                } else {
                    parser.feed(&block[..count]);
                }
            }
            (Step::Head, Some(head)) => each(Part::Begin(head, &answered), &mut manifest)?,
            (Step::Entry, Some(head)) => each(Part::Entry(head, &entry), &mut manifest)?,
            (Step::Head | Step::Entry, None) => {}
            (Step::End, _) => break,
        }
    }
    note_findings(diagnostics, &name, parser.findings());
    (manifest.skipped, manifest.zoneless) = (parser.skipped(), is_zoneless(parser.findings()));
    manifest.at = manifest.at.map(|at| at_earliest(manifest.zoneless, at));
    manifest.finish(package);
    Ok(manifest)
}

/// Why a package cannot be used.
pub(crate) fn refusal(url: &str, what: &str) -> Error {
    let message = format!("cannot use the package {url}: {what}");
    Error::new("dump.manifest", ExitCode::SourceInvalid, message)
}
