//! The file of planned bytes: bytes that lists contain themselves, and patches that came with
//! changes.
//!
//! The file belongs to the plan that was made with it. A run that continues the plan uses the file
//! again. The file is removed when no planned item refers to it.

pub(crate) mod chain;

use crate::copy::key;
use crate::copy::state_folder::StateFolder;
use crate::report::error::{Error, ExitCode};
use crate::report::failure::Failure;
use abreast_folder::ErrorKind;
use abreast_store::mirror::{Mirror, Pending};
use chain::{Chain, Places};
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Mutex, PoisonError};

/// The folder of these files in the state folder.
const FOLDER: &str = "bodies";
/// Size of the write buffer, in bytes.
const WRITTEN_BYTES: usize = 256 << 10;
/// Length of the file in bytes from which on no patches are added.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// The file of the plan that is carried out.
#[derive(Debug)]
pub(crate) struct Bodies {
    state: StateFolder,
    file: Mutex<Option<Arc<File>>>,
}

impl Bodies {
    /// With the file of an earlier run, if its plan is to be continued.
    pub(crate) fn open(state: StateFolder, mirror: &Mirror) -> Result<Self, Error> {
        let name = mirror.meta(key::BODIES)?;
        let folder = state.existing_folder(FOLDER);
        let file = name.zip(folder).and_then(|(name, folder)| {
            folder.open_read(name.as_bytes()).ok().map(|(file, _)| Arc::new(file))
        });
        Ok(Self { state, file: Mutex::new(file) })
    }

    /// Creates the file of a new plan.
    pub(crate) fn begin(&self, mirror: &Mirror, is_dry_run: bool) -> Result<NewBodies, Error> {
        if is_dry_run {
            return Ok(NewBodies { file: None, name: String::new(), length: 0 });
        }
        let before = mirror.meta(key::BODIES)?.and_then(|name| name.parse::<u64>().ok());
        let name = before.map_or(1, |before| before.wrapping_add(1)).to_string();
        let folder = self.state.folder(FOLDER)?;
        // Removes the file of a plan that was not committed.
        let _ = folder.unlink(name.as_bytes());
        let file = BufWriter::with_capacity(WRITTEN_BYTES, folder.create_new(name.as_bytes())?);
        Ok(NewBodies { file: Some(file), name, length: 0 })
    }

    /// Opens the file of an unfinished plan to append bytes, or creates a file.
    pub(crate) fn go_on(&self, mirror: &Mirror, is_dry_run: bool) -> Result<NewBodies, Error> {
        let name = mirror.meta(key::BODIES)?.filter(|_| !is_dry_run);
        let Some((name, folder)) = name.zip(self.state.existing_folder(FOLDER)) else {
            return self.begin(mirror, is_dry_run);
        };
        match folder.open_append(name.as_bytes()) {
            // A run that was killed may have left more than the plan knows.
            Ok((file, stat)) => {
                let file = Some(BufWriter::with_capacity(WRITTEN_BYTES, file));
                Ok(NewBodies { file, name, length: stat.size })
            }
            Err(error) if error.kind() == ErrorKind::NotFound => self.begin(mirror, is_dry_run),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes the file durable, and that of the plan, whose transaction the caller holds.
    pub(crate) fn keep(&self, mirror: &Mirror, new: NewBodies) -> Result<(), Error> {
        let Some(file) = new.file else { return Ok(()) };
        let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
        file.sync_data().map_err(failed)?;
        mirror.set_meta(key::BODIES, Some(&new.name))?;
        let (file, _) = self.state.folder(FOLDER)?.open_read(new.name.as_bytes())?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(file));
        Ok(())
    }

    fn file(&self) -> Option<Arc<File>> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the offsets of the parts of a chain of patches.
    pub(crate) fn read_places(&self, at: u64) -> io::Result<Places> {
        Places::read(&*self.file().ok_or(io::ErrorKind::NotFound)?, at)
    }

    /// Reads a chain of patches.
    pub(crate) fn read_chain(&self, at: u64) -> io::Result<Chain> {
        let file = self.file().ok_or(io::ErrorKind::NotFound)?;
        Places::read(&file, at)?.parts(&file)
    }

    /// Reads the bytes of an item at offset `at`, and replaces the content of `into`.
    pub(crate) fn read(&self, item: &Pending, at: u64, into: &mut Vec<u8>) -> Result<(), Failure> {
        let file = self.file();
        let lost = |cause: String| {
            Failure::new(
                "state.bodies",
                format!(
                    "its bytes are not in the state any more: {cause}\n  help: run once with `--baseline`"
                ),
            )
        };
        let Some(file) = file else { return Err(lost("the file is not there".to_owned())) };
        into.clear();
        into.resize(item.length.unwrap_or_default() as usize, 0);
        file.read_exact_at(into, at).map_err(|cause| lost(cause.to_string()))
    }

    /// After a run: removes the file if nothing planned is in it. What failed is fetched by the next
    /// run, so that patches do not stay for it.
    pub(crate) fn sweep(&self, mirror: &Mirror) -> Result<(), Error> {
        if mirror.meta(key::BODIES)?.is_some() {
            mirror.forget_failed_patches()?;
            if !mirror.has_bodies()? {
                mirror.set_meta(key::BODIES, None)?;
                self.state.remove_folder(FOLDER);
            }
        }
        Ok(())
    }
}

/// The file of a plan that is being made.
pub(crate) struct NewBodies {
    /// `None` in a dry run.
    file: Option<BufWriter<File>>,
    name: String,
    length: u64,
}

impl NewBodies {
    /// The offset of the next bytes.
    pub(crate) const fn next(&self) -> u64 {
        self.length
    }

    /// Whether the file is so long that no more patches may be added.
    pub(crate) const fn is_full(&self) -> bool {
        self.length >= FILE_BYTES_MAX
    }

    /// Appends bytes.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.length += bytes.len() as u64;
        self.file.as_mut().map_or(Ok(()), |file| file.write_all(bytes)).map_err(failed)
    }
}

fn failed(cause: io::Error) -> Error {
    let is_full = matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let code = if is_full { "disk.full" } else { "io" };
    let message = format!("cannot keep the bytes of a list in the state folder: {cause}");
    let error = Error::new(code, ExitCode::Io, message).with_cause(cause);
    if is_full { error.with_help("free space, then run the same command again") } else { error }
}
