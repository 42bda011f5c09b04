//! How large, how often and where is measured?

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};

/// Rounds when not told otherwise.
const ROUNDS: usize = 3;

/// What the command line chose.
pub(crate) struct Settings {
    /// How often each thing is measured.
    pub(crate) rounds: usize,
    /// Small collections, nothing written.
    pub(crate) quick: bool,
    /// The repository.
    pub(crate) root: PathBuf,
    /// Cargo's target folder.
    pub(crate) target: PathBuf,
    /// Where collections and copies live.
    pub(crate) folder: PathBuf,
}

impl Settings {
    pub(crate) fn from_arguments(arguments: &[String]) -> Result<(Self, Vec<String>)> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the crate is in no repository")?.to_owned();
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let (mut rounds, mut quick, mut names) = (ROUNDS, false, Vec::new());
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--quick" => quick = true,
                "--rounds" => {
                    let number = arguments.next().and_then(|text| text.parse().ok()).filter(|number| *number > 0);
                    rounds = number.context("--rounds needs a number above 0")?;
                }
                option if option.starts_with('-') => bail!("there is no option `{option}`\n  help: see --help"),
                name => names.push(name.to_owned()),
            }
        }
        let folder = target.join("bench");
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok((Self { rounds, quick, root, target, folder }, names))
    }

    /// The size to measure: `full`, or `quick` when in a hurry.
    pub(crate) fn size(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }

    /// An empty folder for one run, beneath [`Self::folder`].
    pub(crate) fn empty_folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.folder.join(name);
        remove(&path)?;
        std::fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(path)
    }
}

/// Removes a folder that may not be there.
pub(crate) fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
