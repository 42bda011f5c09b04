//! A folder in memory for the files of tests.
//!
//! Stores write to disk before they acknowledge a change, and most of the time of the long tests is
//! spent there. Tests end processes, not the machine, so files in memory survive just as well; power
//! loss and full disks have file systems of their own in the tests.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::run_quietly;

/// Where Linux has a file system in memory.
const MEMORY: &str = "/dev/shm";

/// The name of a folder, before the number of the process that uses the folder.
const NAME: &str = "abreast-tests-";

/// Least size of free space and of available memory, in KiB: the tests use at most half of it.
const LEAST_KIB: u64 = 8 << 20;

/// The folder; removed with its contents when dropped.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// A new folder in memory, if the machine has enough and `TMPDIR` is not set.
    pub(crate) fn in_memory() -> Option<Self> {
        if std::env::var_os("TMPDIR").is_some() {
            return None;
        }
        let mounts = fs::read_to_string("/proc/mounts").ok()?;
        let memory = fs::read_to_string("/proc/meminfo").ok()?;
        if !may_run_programs(&mounts) || available(&memory)? < LEAST_KIB || free()? < LEAST_KIB {
            return None;
        }
        remove_abandoned();
        let folder = Path::new(MEMORY).join(format!("{NAME}{}", std::process::id()));
        fs::create_dir(&folder).ok()?;
        let scratch = Self(folder);
        // As the system's folder for temporary files: some tests run programs as another user.
        fs::set_permissions(&scratch.0, fs::Permissions::from_mode(0o1777)).ok()?;
        Some(scratch)
    }

    /// The value of `TMPDIR` for the tests.
    pub(crate) fn path(&self) -> &OsStr {
        self.0.as_os_str()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            println!("cannot remove {}: {error}", self.0.display());
        }
    }
}

/// Removes the folders of processes that were killed: their files take memory until the machine restarts.
fn remove_abandoned() {
    for entry in fs::read_dir(MEMORY).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(NAME)?.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether the file system is mounted, and without `noexec`: tests run scripts that they write.
fn may_run_programs(mounts: &str) -> bool {
    mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).any(|fields| {
        matches!(fields[..], [_, MEMORY, "tmpfs", options, ..]
            if !options.split(',').any(|option| option == "noexec"))
    })
}

/// Available memory in KiB, of `/proc/meminfo`.
fn available(memory: &str) -> Option<u64> {
    let line = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// Free space of the file system in KiB.
fn free() -> Option<u64> {
    let output = run_quietly(Command::new("df").args(["--output=avail", "-k", MEMORY])).ok()?;
    output.lines().nth(1)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_that_run_no_programs_are_not_used() {
        assert!(may_run_programs("tmpfs /dev/shm tmpfs rw,relatime,size=24684092k 0 0\n"));
        assert!(!may_run_programs("shm /dev/shm tmpfs rw,nosuid,nodev,noexec,size=65536k 0 0\n"));
        assert!(!may_run_programs("tmpfs /run tmpfs rw 0 0\n"));
    }

    #[test]
    fn available_memory_is_read_in_kib() {
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:   24684092 kB\n"), Some(24_684_092));
        assert_eq!(available(""), None);
    }
}
