//! Processes that hold locks.

use std::path::Path;

/// The process that holds a lock file, according to the kernel.
pub fn holder_of(lock: &Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt as _;
    let inode = std::fs::metadata(lock).ok()?.ino().to_string();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, pid, file, ..] = words.as_slice() else { return None };
        if file.rsplit(':').next() == Some(inode.as_str()) { pid.parse().ok() } else { None }
    })
}
