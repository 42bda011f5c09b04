//! Limits the memory of a server: two heaps for all threads.
//!
//! glibc creates separate heaps for threads that allocate at the same time (up to eight for each
//! core), and free memory in one heap is not available to the others. A server whose threads read,
//! render and compress large documents in turn then occupies a multiple of its used memory.

/// Starts the program again, in the same process, with two heaps for all threads, unless the
/// environment sets the number of heaps. If that is not possible, the program continues, and needs more
/// memory. A process with other words than these, such as an interpreter that runs the command, does not start again.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn use_few_heaps(words: &[std::ffi::OsString]) {
    use std::os::unix::process::CommandExt as _;
    const HEAPS: &str = "MALLOC_ARENA_MAX";

    let (Ok(program), Some((name, arguments))) = (std::env::current_exe(), words.split_first())
    else {
        return;
    };
    if !std::env::args_os().eq(words.iter().cloned()) {
        return;
    }
    if std::env::var_os(HEAPS).is_none() {
        let mut command = std::process::Command::new(program);
        let error = command.arg0(name).args(arguments).env(HEAPS, "2").exec();
        tracing::debug!(%error, "cannot start again with two heaps");
    }
}

/// Does nothing, because this setting exists only in glibc on Linux.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn use_few_heaps(_: &[std::ffi::OsString]) {}
