//! Exit codes, which have the same meaning in every command.
//!
//! 2 wrong usage, a path or set that is not there; 4 the Source's documents cannot be used; 5 the
//! network or a server failed temporarily; 6 no secure connection; 10 in use by another process; 12 not
//! authorised; 13 the disk failed or is full, or permission is denied on this machine; 1 anything else.
//! Permission denied is 13 for every kind of file: a secret, a configuration, an input, a store. A missing store is 2
//! in commands that open an existing store; commands that create a store exit with 13 if the folder is not writable.
//! A database is a server: 2 if it does not exist, 5 out of reach, 6 without a secure connection, 12 if the user, the password or the
//! permission is wrong, 13 if its disk is full.

use crate::program::errors::ExitCodeError;
use crate::program::errors::UsageError;
use crate::program::errors::{SecretError, SecretForSeveral};
use abreast_destination::{ExitCode, SetsError};
use abreast_net::ErrorKind;
use abreast_source::static_site::SiteError;

pub(crate) const USAGE: u8 = 2;
pub(crate) const SOURCE: u8 = 4;
pub(crate) const NETWORK: u8 = 5;
pub(crate) const TLS: u8 = 6;
pub(crate) const IN_USE: u8 = 10;
pub(crate) const AUTH: u8 = 12;
pub(crate) const DISK: u8 = 13;

/// The exit code of a failure, by the first cause that has one.
pub(crate) fn code(error: &anyhow::Error) -> u8 {
    if let Some(refused) = error.downcast_ref::<ExitCodeError>() {
        return refused.code;
    }
    let secret = error.downcast_ref::<SecretError>();
    if of_machine(error).any(is_denied) || secret.is_some_and(|error| error.is_denied) {
        return DISK;
    }
    if error.is::<UsageError>() || error.is::<SecretForSeveral>() || secret.is_some() {
        return USAGE;
    }
    #[cfg(feature = "postgres")]
    if let Some(cause) = error.chain().find_map(|cause| cause.downcast_ref()) {
        let full = || error.chain().any(is_full).then_some(DISK);
        return of_database(cause).or_else(full).unwrap_or(1);
    }
    error.chain().find_map(code_of).unwrap_or(1)
}

/// A database is a server on the network: none of its failures is one of a disk, or of a lock on this machine.
#[cfg(feature = "postgres")]
fn of_database(error: &abreast_store::DatabaseError) -> Option<u8> {
    use abreast_store::DatabaseProblem;
    match error.problem() {
        DatabaseProblem::Unreachable => Some(NETWORK),
        DatabaseProblem::Insecure => Some(TLS),
        DatabaseProblem::Denied => Some(AUTH),
        DatabaseProblem::Unusable => Some(USAGE),
        _ => None,
    }
}

/// The causes on this machine. Causes of network errors are left out: a connection that a firewall refuses is not a
/// denied permission for a file.
pub(crate) fn of_machine(
    error: &anyhow::Error,
) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    error.chain().take_while(|cause| !cause.is::<abreast_net::Error>())
}

fn code_of(cause: &(dyn std::error::Error + 'static)) -> Option<u8> {
    if let Some(refused) = cause.downcast_ref::<ExitCodeError>() {
        return Some(refused.code);
    }
    if let Some(error) = cause.downcast_ref::<abreast_destination::Error>() {
        return Some(error.exit_code().number());
    }
    // An error of the system has the code of its cause.
    if cause.downcast_ref::<SetsError>().is_some_and(|error| error.exit_code() == ExitCode::Usage) {
        return Some(USAGE);
    }
    match cause.downcast_ref().map(abreast_maintenance::Error::kind) {
        Some(abreast_maintenance::ErrorKind::Usage) => return Some(USAGE),
        Some(abreast_maintenance::ErrorKind::InUse) => return Some(IN_USE),
        _ => {}
    }
    if cause
        .downcast_ref::<abreast_core::LogError>()
        .is_some_and(abreast_core::LogError::is_passing)
        || cause
            .downcast_ref::<abreast_core::contents::Error>()
            .is_some_and(|error| error.kind() == abreast_core::contents::ErrorKind::Busy)
    {
        return Some(IN_USE);
    }
    if let Some(error) = cause.downcast_ref::<abreast_net::Error>() {
        return Some(of_net(error));
    }
    if is_full(cause) || is_log_of_kind(cause, abreast_core::ErrorKind::Io) {
        return Some(DISK);
    }
    #[cfg(feature = "xmpp")]
    if let Some(error) = cause.downcast_ref::<abreast_xmpp::Error>() {
        return Some(of_xmpp(error));
    }
    let is_missing = cause.downcast_ref::<std::io::Error>().is_some_and(is_other_place)
        || cause.downcast_ref::<abreast_folder::Error>().is_some_and(|e| {
            matches!(
                e.kind(),
                abreast_folder::ErrorKind::NotFound | abreast_folder::ErrorKind::NotFolder
            )
        });
    (is_missing || cause.is::<UsageError>()).then_some(USAGE)
}

/// Whether this user may not read or write a file, or nobody may write the file system.
pub(crate) fn is_denied(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause.downcast_ref::<std::io::Error>().is_some_and(crate::program::there::is_denied)
        || cause
            .downcast_ref::<abreast_folder::Error>()
            .is_some_and(|error| error.kind() == abreast_folder::ErrorKind::Denied)
}

fn is_log_of_kind(
    cause: &(dyn std::error::Error + 'static),
    kind: abreast_core::ErrorKind,
) -> bool {
    cause.downcast_ref::<abreast_core::LogError>().is_some_and(|error| error.kind() == kind)
}

/// Whether a disk is full, or a store on it.
pub(crate) fn is_full(cause: &(dyn std::error::Error + 'static)) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    is_log_of_kind(cause, abreast_core::ErrorKind::Full)
        || cause
            .downcast_ref::<abreast_core::contents::Error>()
            .is_some_and(|error| error.kind() == abreast_core::contents::ErrorKind::Full)
        || cause
            .downcast_ref::<abreast_folder::Error>()
            .is_some_and(|error| error.kind() == abreast_folder::ErrorKind::Full)
        || matches!(
            cause.downcast_ref(),
            Some(SiteError::Folder(error)) if error.kind() == abreast_folder::ErrorKind::Full
        )
        || cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| matches!(error.kind(), StorageFull | QuotaExceeded))
}

/// The given path does not exist, or is of another kind than expected (file or folder).
fn is_other_place(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{AlreadyExists, IsADirectory, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | IsADirectory | AlreadyExists)
}

fn of_net(error: &abreast_net::Error) -> u8 {
    match (error.kind(), error.status()) {
        (ErrorKind::Tls, _) => TLS,
        (ErrorKind::Scheme | ErrorKind::Url, _) => USAGE,
        (_, Some(401 | 403 | 407)) => AUTH,
        _ if error.is_transient() => NETWORK,
        // The server answers with something else.
        _ => SOURCE,
    }
}

#[cfg(feature = "xmpp")]
fn of_xmpp(error: &abreast_xmpp::Error) -> u8 {
    use abreast_xmpp::ErrorKind;
    match error.kind() {
        ErrorKind::Usage => USAGE,
        ErrorKind::Tls => TLS,
        ErrorKind::Login | ErrorKind::Forbidden => AUTH,
        _ if error.is_transient() => NETWORK,
        _ => SOURCE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn denied_connections_are_of_the_network() {
        #[derive(Debug, thiserror::Error)]
        #[error("while asking")]
        struct Outer(#[source] abreast_net::Error);
        let denied = || std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let of_net = || abreast_net::Error::needs_tls("http://h/");
        let outer = anyhow::Error::new(Outer(of_net())).context("while starting");
        assert_eq!(of_machine(&outer).count(), 2);
        assert_eq!(code(&outer), 6);
        // A cause within the network error is not looked at.
        let within = anyhow::Error::new(of_net().with_cause(denied()));
        assert!(!of_machine(&within).any(is_denied));
        assert_eq!(code(&within), 6);
    }

    #[test]
    fn a_cause_has_its_code_however_deep_it_lies() {
        let missing = || std::io::Error::from(std::io::ErrorKind::NotFound);
        let other = || std::io::Error::from(std::io::ErrorKind::IsADirectory);
        let unusable = || UsageError("no".to_owned());
        let busy = || abreast_core::LogError::new(abreast_core::ErrorKind::Busy, "in use");
        let denied = || std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let full = || abreast_core::LogError::new(abreast_core::ErrorKind::Full, "full");
        let refused = || ExitCodeError { message: "no".to_owned(), code: 10 };
        let codes = [
            (anyhow::Error::new(missing()), 2),
            (anyhow::Error::new(other()).context("while reading"), 2),
            (anyhow::Error::new(missing()).context("while reading").context("while starting"), 2),
            (anyhow::Error::new(unusable()).context("while starting"), 2),
            (anyhow::Error::new(missing()).context(unusable()), 2),
            (anyhow::Error::new(refused()).context("while starting"), 10),
            (anyhow::Error::new(busy()).context("while opening"), 10),
            (
                anyhow::Error::new(abreast_net::Error::needs_tls("http://h/"))
                    .context("while asking"),
                6,
            ),
            (anyhow::Error::new(denied()).context("while reading"), 13),
            (anyhow::Error::new(denied()).context(unusable()), 13),
            (anyhow::Error::new(full()).context("while opening"), 13),
            (anyhow::anyhow!("anything"), 1),
        ];
        for (error, expected) in codes {
            assert_eq!(code(&error), expected, "{error:?}");
        }
        let parsed: anyhow::Result<u32> = "x".parse::<u32>().context("while reading");
        assert_eq!(code(&parsed.unwrap_err()), 1);
    }
}
