//! Copies of Sources that a test writes, on the loopback interface.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::format_collect,
    clippy::format_push_string,
    reason = "tests may stop, and need not be fast"
)]

mod adversities;
mod again;
mod agreement;
mod alternates;
mod audit;
mod audit_ages;
mod bad_lists;
mod challenge;
mod change_dumps;
mod changes_since;
mod choices;
mod contract;
mod copy;
mod cut_transfers;
mod damage;
mod deletion;
mod discovery;
mod dry_run;
mod dump_source;
mod dumps_only;
mod emm;
mod emm_download;
mod emm_files;
mod emm_hostile;
mod emm_order;
mod emm_patches;
mod emm_simulation;
mod emm_source;
mod first_run;
mod fixity;
mod guard_sinks;
mod held;
mod http2;
mod interrupted;
mod invalid_statements;
mod labels;
mod lasting_faults;
mod moved;
mod names;
#[cfg(feature = "s3")]
mod objects;
#[cfg(feature = "s3")]
mod objects_in_s3;
mod own_files;
#[cfg(feature = "rocksdb")]
mod oxigraph;
mod packages;
mod parts;
mod pipelining;
mod planted;
mod power_loss;
mod push;
mod rdf;
mod rdf_failures;
mod reading;
mod restored;
mod rs01;
mod rs01_callbacks;
mod rs01_kills;
mod rs01_nodes;
mod rs01_plain_index;
mod rs01_scenarios;
mod rs01_source;
mod rs01_warc;
#[cfg(feature = "xmpp")]
mod rs01_xmpp;
mod sdshare;
mod sdshare_pages;
mod sdshare_source;
mod shape;
mod sinks;
mod skolem;
mod source;
mod sync;
mod unnamed_lists;
mod uri_list;

/// The process that loses its power: `strace` records its calls.
#[test]
fn child() {
    power_loss::child();
}
