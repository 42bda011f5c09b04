//! Dumps: packages of resources and of changes, made in the background and published when complete
//! [rs-core §11, §13].
//!
//! | file | subject |
//! |---|---|
//! | `keeper.rs`, `retire.rs` | when each dump is made, and when it is removed |
//! | `resources.rs`, `changes.rs`, `since.rs` | the contents of each kind |
//! | `copy.rs` | copying of verified bytes into a package |
//! | `parts.rs`, `package.rs` | writing a package, and starting the next |
//! | `manifest.rs` | check and restoration of manifests |
//! | `derived.rs` | files made from packages on request |
//! | `dump_folder.rs`, `record.rs` | complete dumps on the disk, and recovery after a crash |
//! | `shared_dumps.rs` | dumps that several nodes share |
//! | `files.rs`, `lookup.rs` | paths of packages, and their files |
//! | `check.rs` | checking complete dumps for damage |

mod changes;
mod check;
mod copy;
mod derived;
mod dump_folder;
mod error;
mod files;
pub(crate) mod keeper;
mod lookup;
mod manifest;
mod options;
mod package;
mod parts;
mod permit;
mod record;
mod resources;
mod retire;
mod shared_dumps;
mod since;

pub use changes::Which;
pub use check::{RepairedDumps, check_dumps, repair_dumps};
pub(crate) use derived::Derived;
pub use error::SinceError;
pub(super) use files::FilePath;
pub use keeper::Dumper;
pub use keeper::{DumpSet, Dumps, SetDumps};
pub use options::{Compression, DumpOptions};
pub(crate) use package::is_packed;
pub use record::{Dump, DumpKind, Package};
pub use since::Since;
pub(crate) use since::time_of;

use crate::{DigestPolicy, Naming, Representations};
use abreast_core::{ChangeLog, Meter};
use abreast_resourcesync::package::bitstream_path;
use abreast_webtypes::Digests;
use error::DumpError;
use md5::{Digest as _, Md5};
use sha2::Sha256;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Flags that end the making of a dump: one for the set, and one for all sets.
#[derive(Clone, Copy)]
struct Cancel<'a>([&'a AtomicBool; 2]);

impl Cancel<'_> {
    fn is_wanted(self) -> bool {
        self.0.iter().any(|flag| flag.load(Ordering::Relaxed))
    }
}

/// A set whose dump is made, and the options.
struct Job<'a> {
    log: &'a dyn ChangeLog,
    set: &'a DumpSet,
    bytes: Representations,
    options: &'a DumpOptions,
    cancel: Cancel<'a>,
    /// Shows how far the dump is.
    meter: &'a Meter,
}

/// Path of a bitstream in a package. A URI is encoded as one path segment, because segments of a
/// URI may be empty or `..`.
fn path_in_package(folder: &str, key: &str) -> String {
    if Naming::is_own(key) {
        return bitstream_path(folder, key);
    }
    let mut path = format!("/elsewhere/{folder}/");
    abreast_webtypes::encode_segment(key.as_bytes(), &mut path);
    path
}

/// Length and digests of a file that was just written, and is therefore still in the page cache.
fn digest_of(path: &Path, policy: DigestPolicy) -> io::Result<(u64, Digests)> {
    let mut file = File::open(path)?;
    let (mut md5, mut sha256) = (policy.md5().then(Md5::new), policy.sha256().then(Sha256::new));
    let mut chunk = vec![0; 512 * 1024];
    let mut length = 0;
    loop {
        let read = match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        length += read as u64;
        if let Some(md5) = &mut md5 {
            md5.update(&chunk[..read]);
        }
        if let Some(sha256) = &mut sha256 {
            sha256.update(&chunk[..read]);
        }
    }
    let digests = Digests {
        md5: md5.map(|md5| md5.finalize().into()),
        sha256: sha256.map(|sha256| sha256.finalize().into()),
        ..Digests::default()
    };
    Ok((length, digests))
}
