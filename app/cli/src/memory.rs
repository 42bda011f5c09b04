//! The memory of a server: two heaps for all of its threads.
//!
//! glibc gives threads that allocate at the same time heaps of their own (up to eight for each
//! core), and what is free in one serves no other. A server whose threads read, render and compress
//! large documents in turn then keeps a multiple of what it uses.

/// Starts the program again, in the same process, with two heaps for all threads, unless the
/// environment states otherwise. If that is not possible, the program continues, and needs more
/// memory.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn use_few_heaps() {
    use std::os::unix::process::CommandExt as _;
    const HEAPS: &str = "MALLOC_ARENA_MAX";

    let (Ok(program), mut arguments) = (std::env::current_exe(), std::env::args_os()) else {
        return;
    };
    let Some(name) = arguments.next() else { return };
    if std::env::var_os(HEAPS).is_none() {
        let mut command = std::process::Command::new(program);
        let error = command.arg0(name).args(arguments).env(HEAPS, "2").exec();
        tracing::debug!(%error, "cannot start again with two heaps");
    }
}

/// Other systems and C libraries have no such heaps.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn use_few_heaps() {}
