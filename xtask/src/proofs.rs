//! `cargo xtask proofs`: several nodes under faults, longer than in a run of all tests.

use anyhow::{Context, Result, bail};

use crate::process::ALL_TESTS;
use crate::test;

/// What runs, of all packages, so that nothing is compiled again after a run of all tests: processes
/// first, then the stores, one test at a time.
const RUNS: [(&[&str], &[&str]); 2] = [
    (
        &["--test", "it"],
        &[
            "serve_nodes::a_source_stays_exact_while_its_nodes_fail",
            "serve_nodes::documents_that_are_known_are_served_during_outages",
            "serve_nodes::partitions::nodes_continue_while_the_network_of_others_is_cut",
            "hub_nodes::notifications_arrive_in_order_while_nodes_fail",
            "hub_nodes::a_node_that_is_cut_off_delivers_nothing",
            "hub_nodes::a_failover_is_noticed_although_another_node_recorded_more",
            "an_object_store_in_memory_holds_the_contract",
            "a_bucket_in_s3_holds_the_contract",
            "two_nodes_put_the_same_bytes_at_once",
            "a_content_that_is_renewed_during_its_removal_stays",
        ],
    ),
    (&["--test", "postgres", "--test", "postgres_hub", "--test", "postgres_leases"], &[]),
];
/// Faults without another number.
const FAULTS: &str = "20";

/// Runs the proofs with `--faults N` or `--minutes N`, `--seed N`, and `--former PROGRAM`, from which nodes
/// are upgraded. Returns whether all passed.
pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    let mut settings = vec![("ABREAST_TEST_KILLS", FAULTS.to_owned())];
    for pair in arguments.chunks(2) {
        let [option, value] = pair else { bail!("`{}` needs a value", pair[0]) };
        let variable = match option.as_str() {
            "--faults" => "ABREAST_TEST_KILLS",
            "--minutes" => "ABREAST_TEST_MINUTES",
            "--seed" => "ABREAST_TEST_SEED",
            "--former" => "ABREAST_TEST_FORMER",
            _ => bail!(
                "there is no option `{option}`\n  help: use --faults N, --minutes N, --seed N and --former PROGRAM"
            ),
        };
        let value = if option == "--former" {
            let program = std::path::absolute(value)?;
            program.to_str().context("the path of the program is not UTF-8")?.to_owned()
        } else {
            let _: u64 =
                value.parse().with_context(|| format!("`{option} {value}`: not a number"))?;
            value.clone()
        };
        settings.push((variable, value));
    }
    let mut passed = true;
    for (targets, names) in RUNS {
        let all = [&ALL_TESTS, targets, &["--", "--test-threads=1", "--nocapture"], names].concat();
        let arguments: Vec<String> = all.into_iter().map(str::to_owned).collect();
        passed &= test::run_with(&arguments, &settings);
    }
    Ok(passed)
}
