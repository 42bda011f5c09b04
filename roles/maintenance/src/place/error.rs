//! Errors of all commands.
//!
//! A failure at a path or during a task is an [`Error::During`] around its cause, so that the whole chain of causes can be
//! printed. Help is a line of the message that begins with `help: `.

use std::io;
use thiserror::Error;

/// A result with the error of this crate.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// A command that could not be carried out.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The options cannot be used: a path does not exist, or its folder contains something else.
    #[error("{0}")]
    Usage(String),
    /// Another process uses the store, the copy or the folder of backups.
    #[error("{0}")]
    InUse(String),
    /// Data is damaged or missing, so that the command cannot continue.
    #[error("{0}")]
    Damaged(String),
    /// The caller stopped the command.
    #[error("stopped")]
    Cancelled,
    /// A step failed, with the cause.
    #[error("{task}")]
    During {
        /// The step and its path, such as ``cannot read `PATH` ``.
        task: String,
        /// The reason for the failure.
        #[source]
        cause: Box<Self>,
    },
    /// The database of a store or of a hub failed.
    #[error("{0}")]
    Log(#[from] abreast_core::LogError),
    /// The stored contents cannot be read or written.
    #[error("{0}")]
    Contents(#[from] abreast_contents::Error),
    /// The copy or its database cannot be used.
    #[error("{0}")]
    Copy(#[from] abreast_destination::Error),
    /// A folder cannot be opened, or a file in it.
    #[error("{0}")]
    Folder(#[from] abreast_folder::Error),
    /// A request to a server failed.
    #[error("{0}")]
    Net(#[from] abreast_net::Error),
    /// A file or folder cannot be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Kinds of errors that callers distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The options cannot be used as given.
    Usage,
    /// Another process uses the store or copy.
    InUse,
    /// The disk failed or is full, or permission is denied.
    Disk,
    /// Any other failure, such as damaged data.
    Failed,
}

impl Error {
    /// The kind of the error, determined by its first cause.
    pub fn kind(&self) -> ErrorKind {
        use abreast_contents::ErrorKind as OfContents;
        use abreast_core::ErrorKind as OfLog;
        match self {
            Self::During { cause, .. } => cause.kind(),
            Self::Usage(_) => ErrorKind::Usage,
            Self::InUse(_) => ErrorKind::InUse,
            Self::Log(error) => match error.kind() {
                OfLog::Busy | OfLog::Unavailable => ErrorKind::InUse,
                OfLog::Io | OfLog::Full => ErrorKind::Disk,
                _ => ErrorKind::Failed,
            },
            Self::Copy(_) => ErrorKind::Failed,
            _ if self.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some()) => {
                ErrorKind::Disk
            }
            Self::Contents(error) => match error.kind() {
                OfContents::Busy => ErrorKind::InUse,
                OfContents::Full => ErrorKind::Disk,
                _ => ErrorKind::Failed,
            },
            _ => ErrorKind::Failed,
        }
    }

    /// The error and its causes as separate messages.
    pub fn messages(&self) -> Vec<String> {
        let mut messages: Vec<String> = self.chain().map(ToString::to_string).collect();
        // The variants of this type have the messages of their causes.
        messages.dedup();
        messages
    }

    /// The error with its causes and help in one line: the causes divided by colons, further lines of a message by
    /// semicolons.
    pub fn text(&self) -> String {
        let on_one_line =
            |text: String| text.split('\n').map(str::trim).collect::<Vec<_>>().join("; ");
        self.messages().into_iter().map(on_one_line).collect::<Vec<_>>().join(": ")
    }

    /// The error with its causes in one line, and its help, if it has some, after it.
    pub(crate) fn text_and_help(&self) -> (String, Option<String>) {
        let (mut texts, mut help) = (Vec::new(), None);
        for message in self.messages() {
            let (text, own) = abreast_destination::without_help(&message);
            texts.push(text.split('\n').map(str::trim).collect::<Vec<_>>().join("; "));
            help = help.or_else(|| own.map(str::to_owned));
        }
        (texts.join(": "), help)
    }

    /// The error and its causes, from the outermost to the first cause.
    pub(crate) fn chain(&self) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
        std::iter::successors(Some(self as &(dyn std::error::Error + 'static)), |error| {
            error.source()
        })
    }
}

/// Adds the failed step to an error.
pub(crate) trait Context<T> {
    /// Adds a step that is known beforehand.
    fn context(self, task: &str) -> Result<T>;
    /// Adds a step whose text is made only for an error.
    fn with_context(self, task: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<Error>> Context<T> for Result<T, E> {
    fn context(self, task: &str) -> Result<T> {
        self.with_context(|| task.to_owned())
    }

    fn with_context(self, task: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Error::During { task: task(), cause: Box::new(error.into()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_an_error_is_that_of_its_cause() {
        let io = || io::Error::from(io::ErrorKind::PermissionDenied);
        let log = |kind| abreast_core::LogError::new(kind, "the store");
        for (error, kind) in [
            (Error::Usage("no".to_owned()), ErrorKind::Usage),
            (io().into(), ErrorKind::Disk),
            (log(abreast_core::ErrorKind::Busy).into(), ErrorKind::InUse),
            (log(abreast_core::ErrorKind::Corrupt).into(), ErrorKind::Failed),
            (log(abreast_core::ErrorKind::Full).into(), ErrorKind::Disk),
            (Error::Damaged("damaged".to_owned()), ErrorKind::Failed),
        ] {
            let outer = Err::<(), _>(error).context("cannot read `a`").unwrap_err();
            assert_eq!(outer.kind(), kind, "{outer:?}");
        }
    }

    #[test]
    fn each_cause_is_in_the_text_once() {
        let error = io::Error::from(io::ErrorKind::PermissionDenied);
        let outer = Err::<(), _>(error).context("cannot read `a`").unwrap_err();
        assert_eq!(outer.text(), "cannot read `a`: permission denied");
        let error = Error::Damaged("it is old\n  help: use another".to_owned());
        let outer = Err::<(), _>(error).context("cannot read `a`").unwrap_err();
        assert_eq!(outer.text(), "cannot read `a`: it is old; help: use another");
        let (text, help) = outer.text_and_help();
        assert_eq!(
            (text.as_str(), help.as_deref()),
            ("cannot read `a`: it is old", Some("use another"))
        );
    }
}
