//! A dump as a ZIP file: the unchanged members of the package, with the manifest of version 0.1.

use super::manifest::Manifest;
use crate::made::MadeFile;
use abreast_resourcesync::package::MANIFEST;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write as _};
use std::path::Path;
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

/// Bytes read and written at a time.
const BUFFER: usize = 256 * 1024;

/// Writes a part of a package.
pub(super) fn write(
    package: &Path,
    manifest: &Manifest<'_>,
    part: u64,
    out: &mut MadeFile,
) -> io::Result<()> {
    let package = BufReader::with_capacity(BUFFER, File::open(package)?);
    let mut package = ZipArchive::new(package)?;
    let mut zip = ZipWriter::new(BufWriter::with_capacity(BUFFER, out));
    manifest.of_part(part, &mut |entry, _| {
        let Some(path) = &entry.path else { return Ok(()) };
        Ok(zip.raw_copy_file(package.by_name(path)?)?)
    })?;
    let options = SimpleFileOptions::default().unix_permissions(0o644);
    zip.start_file(MANIFEST, options)?;
    zip.write_all(&manifest.document(part)?)?;
    zip.finish()?.flush()
}
