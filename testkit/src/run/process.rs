//! Programs that run for a test.

use std::process::{Child, Command, Output, Stdio};

/// A program that is killed when the test ends.
pub struct Running(pub Child);

impl Running {
    /// Starts a program.
    pub fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}")))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command to its end, with no input.
pub fn run(command: &mut Command) -> Output {
    command
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"))
}
