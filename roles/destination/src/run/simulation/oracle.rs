//! The life of a copy, and the resources that it may lack at the end.

use super::copy::{Bench, Copy, MakeReader};
use super::found::seeds_of;
use super::world::{self, note, provider};
use super::{BASE, SEEDS};
use crate::report::error::{Error, ExitCode};
use abreast_testkit::providers::{Fault, Protocol, Provider};
use abreast_testkit::{Random, seeds};
use std::collections::BTreeMap;

/// Runs of a consumer before the provider is quiet.
const RUNS_MAX: u64 = 5;
/// Number of runs with a quiet provider.
const QUIET_RUNS: usize = 2;
/// Maximum number of requests of a run; a run with more requests does not end.
const REQUESTS_MAX: usize = 2_000;

/// The errors of a copy at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wrong {
    /// Entities that are missing.
    pub(super) lost: usize,
    /// Entities that the provider has deleted.
    pub(super) revived: usize,
    /// Entities of an earlier version.
    pub(super) stale: usize,
}

impl Wrong {
    pub(super) fn of(kept: &BTreeMap<String, String>) -> Self {
        let is_compared = world::gaps() > 0 || world::baselines() > 1;
        provider(|provider| {
            let there = provider.entities();
            let is_knowable =
                |iri: &String| !provider.has_forgotten(iri) && !provider.has_missed(iri);
            let is_lost = |iri: &&String| !kept.contains_key(*iri) && is_knowable(iri);
            let lost = there.keys().filter(is_lost).count();
            let is_revived = |iri: &&String| !there.contains_key(*iri) && is_knowable(iri);
            let revived = kept.keys().filter(is_revived).count();
            let is_stale = |(iri, version): &(&String, &String)| {
                kept.get(*iri).is_some_and(|kept| kept != *version)
                    && is_knowable(iri)
                    && !(is_compared && provider.is_hidden(iri))
            };
            Self { lost, revived, stale: there.iter().filter(is_stale).count() }
        })
    }
}

/// Runs a consumer with a provider: at any time, sometimes killed, and then with the quiet
/// provider. Returns the outcome of the last run.
///
/// # Errors
/// A run does not end.
pub(super) fn live(
    made: Provider,
    seed: u64,
    run: &mut dyn FnMut() -> Result<ExitCode, Error>,
) -> Result<ExitCode, String> {
    let (faults, mut random) = (made.faults, Random::new(seed));
    world::begin(made);
    let mut run = |requests: usize| {
        world::allow(requests);
        note(|| "a run begins".to_owned());
        let ended = run();
        note(|| format!("a run ends: {ended:?}"));
        let is_killed = |error: &Error| error.exit_code() == ExitCode::Cancelled;
        provider(|provider| provider.note_kept(!ended.as_ref().is_err_and(is_killed)));
        ended.unwrap_or_else(|error| error.exit_code())
    };
    let no_end = || Err("a run has no end".to_owned());
    for _ in 0..=random.below(RUNS_MAX) {
        let is_killed = faults.has(Fault::Kills) && random.below(2) == 0;
        let ended = run(if is_killed { random.index(25) } else { REQUESTS_MAX });
        if !is_killed && ended == ExitCode::Cancelled {
            return no_end();
        }
        provider(Provider::live);
    }
    provider(Provider::quieten);
    let mut ended = ExitCode::Ok;
    for _ in 0..QUIET_RUNS {
        ended = run(REQUESTS_MAX);
        if ended == ExitCode::Cancelled {
            return no_end();
        }
        provider(Provider::wait);
    }
    Ok(ended)
}

/// The life of a copy; returns its errors at the end.
pub(super) fn simulate(
    bench: &Bench,
    seed: u64,
    made: Provider,
    make: MakeReader,
) -> Result<(), String> {
    let mut copy = Copy::new(bench, made.url(), make);
    let lived = live(made, seed, &mut || copy.run());
    let wrong = Wrong::of(&copy.kept);
    // Entities that no document contains any more are reported permanently, and so are versions
    // that a restored server lacks.
    let may_fail = provider(|provider| {
        let is_lost = |uri: &String| provider.has_forgotten(uri);
        !provider.is_knowable() || !copy.failed.is_empty() && copy.failed.iter().all(is_lost)
    });
    let what = match lived {
        Err(what) => what,
        Ok(_) if !copy.wrongly_deleted.is_empty() => {
            format!("{:?} were never deleted", copy.wrongly_deleted)
        }
        Ok(ExitCode::Ok) if wrong != Wrong::default() => {
            format!("{wrong:?}, and it is not reported")
        }
        Ok(exit) if exit != ExitCode::Ok && !may_fail => {
            format!("a run that should be right ends with {exit:?}; {wrong:?}")
        }
        Ok(_) => return Ok(()),
    };
    provider(|provider| {
        Err(format!(
            "{what}: ABREAST_TEST_SEED={seed}, {}, {:?}\n  there {:?}\n  here  {:?}",
            provider.rendering.name(),
            provider.faults,
            provider.entities(),
            copy.kept
        ))
    })
}

/// Does something for each seed, on two threads; the results are in the order of the seeds.
pub(super) fn each_seed<T: Send>(seeds: &[u64], each: impl Fn(&Bench, u64) -> T + Sync) -> Vec<T> {
    let each = &each;
    std::thread::scope(|scope| {
        let half = |offset: usize| {
            move || {
                let bench = Bench::new();
                let own = seeds.iter().enumerate().skip(offset).step_by(2);
                own.map(|(at, seed)| (at, each(&bench, *seed))).collect::<Vec<_>>()
            }
        };
        let threads = [scope.spawn(half(0)), scope.spawn(half(1))];
        let done = threads.into_iter().flat_map(|thread| thread.join().unwrap());
        let mut done: Vec<(usize, T)> = done.collect();
        done.sort_unstable_by_key(|it| it.0);
        done.into_iter().map(|it| it.1).collect()
    })
}

/// Copies of providers of a protocol are right.
pub(super) fn assert_right(test: &str, (protocol, make): (Protocol, MakeReader), is_calm: bool) {
    let made = |seed| Some(Provider::new(protocol, seed, BASE, is_calm));
    let seeds = with_found(SEEDS, protocol);
    assert_seeds(test, &seeds, made, |bench, seed, made| simulate(bench, seed, made, make));
}

/// The first seeds, and seeds that once found a fault; or the chosen seed.
fn with_found(count: u64, protocol: Protocol) -> Vec<u64> {
    let mut all = seeds(count);
    if let Some(last) = all.last().copied().filter(|last| all.len() as u64 == *last) {
        all.extend(seeds_of(protocol).iter().filter(|seed| **seed > last));
    }
    all
}

/// Something holds for each of so many seeds that have a provider.
pub(super) fn assert_each(
    test: &str,
    count: u64,
    made: impl Fn(u64) -> Option<Provider> + Sync,
    holds: impl Fn(&Bench, u64, Provider) -> Result<(), String> + Sync,
) {
    assert_seeds(test, &seeds(count), made, holds);
}

fn assert_seeds(
    test: &str,
    seeds: &[u64],
    made: impl Fn(u64) -> Option<Provider> + Sync,
    holds: impl Fn(&Bench, u64, Provider) -> Result<(), String> + Sync,
) {
    let results =
        each_seed(seeds, |bench, seed| made(seed).map_or(Ok(()), |made| holds(bench, seed, made)));
    let failed: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    let shown = failed.iter().take(20).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(
        failed.is_empty(),
        "{} of {} seeds fail; repeat one with\n  \
         ABREAST_TEST_SEED=SEED cargo test -p abreast-destination --lib simulation::{test}\n{shown}",
        failed.len(),
        seeds.len()
    );
}
