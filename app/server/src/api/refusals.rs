//! Problems that several operations use.

use super::problem::{Problem, ProblemKind, disk_full, full_disk, out_of_reach};
use abreast_core::ErrorKind;
use abreast_source::origin::rdf::RdfError;

/// Whether statements were not recorded because the disk is full.
pub(super) fn is_of_full_disk(error: &RdfError) -> bool {
    match error {
        RdfError::Log(inner) => full_disk(inner).is_some(),
        RdfError::Contents(inner) => full_disk(inner).is_some(),
        RdfError::Io(inner) | RdfError::Temporary { cause: inner, .. } => {
            full_disk(inner).is_some()
        }
        _ => false,
    }
}

/// The problem for a failure because a store is out of reach; `None` for other causes.
pub(super) fn passing(error: &RdfError) -> Option<Problem> {
    match error {
        RdfError::Contents(inner) => out_of_reach(inner),
        RdfError::Io(inner) => out_of_reach(inner),
        RdfError::Log(inner) if inner.kind() == ErrorKind::Unavailable => {
            let away = Problem::new(ProblemKind::Unavailable, "the store is out of reach");
            Some(away.help("send it again in a while"))
        }
        RdfError::Log(inner) if inner.kind() == ErrorKind::Busy => {
            let busy = Problem::new(ProblemKind::Busy, "too much is waiting for the store");
            Some(busy.help("send it again in a while"))
        }
        _ => None,
    }
}

/// The problem for a failed or refused import.
pub(super) fn failed(error: &RdfError) -> Problem {
    let cause =
        std::error::Error::source(error).map_or(String::new(), |cause| format!(": {cause}"));
    if let Some(problem) = passing(error) {
        return problem;
    }
    match error {
        RdfError::Importing => Problem::new(ProblemKind::Importing, error.to_string())
            .help("send it again in a while"),
        RdfError::Deletions { .. } => Problem::new(ProblemKind::Conflict, error.to_string())
            .help("if that is right, use `abreast import --confirm-deletions` while no server has the store open"),
        error if is_of_full_disk(error) => disk_full(),
        error if error.is_of_input() => Problem::new(ProblemKind::Field, format!("{error}{cause}")),
        _ => {
            tracing::error!("cannot import RDF: {error}{cause}");
            Problem::new(ProblemKind::Store, "the RDF cannot be imported")
                .help("the server's log has the reason")
        }
    }
}

/// The problem for changes of a set whose files are the source.
pub(super) fn follows_files() -> Problem {
    Problem::new(
        ProblemKind::Conflict,
        "this set follows the RDF files of its folder, or an endpoint",
    )
    .help("change these, or leave `folder` and `endpoint` out of the set's configuration")
}

/// The problem for changes of files that several nodes publish.
pub(super) fn files_of_nodes() -> Problem {
    Problem::new(
        ProblemKind::Conflict,
        "several nodes publish the files of this set, which change in its folder only",
    )
    .help("write the file into the folder that a node watches")
}

/// The problem for content in a set without content.
pub(super) fn elsewhere_only() -> Problem {
    Problem::new(
        ProblemKind::Conflict,
        "this set has records of resources elsewhere, and no content of its own",
    )
    .help("name the resource by its absolute URI")
}
