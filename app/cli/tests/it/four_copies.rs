//! One Source, four copies at once: by the lists of ResourceSync 1.1, by change sets of 0.1, over
//! XMPP and by callback. The Source with its hub, the XMPP server and the copies are killed at
//! random while files change, and the network between them fails. No copy loses a file that the
//! Source always had, and at the end each equals the Source.

mod copy;

use crate::crash::{assert_whole, path_of, spawn, write_version, writer};
use crate::faults::proxy::FaultProxy;
use crate::world::Source;
use crate::xmpp::{account_of, publishing};
use abreast_testkit::folder::{files, same};
use abreast_testkit::http::unused_address;
use abreast_testkit::xmpp::{PASSWORD, Prosody};
use abreast_testkit::{Random, kills, provided, seed};
use copy::Copy;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Kills of all programs together.
const KILLS: u64 = 12;
/// After so many kills all are left alone for a while, and another part is killed most.
const ROUND: u64 = 10;
/// The longest such while.
const REST: Duration = Duration::from_secs(15);
/// Files that the Source has from the beginning to the end; those before them come and go. The
/// first half is replaced all the time.
const STEADY: std::ops::Range<u64> = 100..140;
/// Of a hundred requests so many meet each fault.
const SHARE: u64 = 1;
/// How long the copies may take to come to rest at the end.
const PATIENCE: Duration = Duration::from_secs(180);
/// The first version of a file that is written when all is calm.
const LATER: u64 = 1_000_000;
/// In the logs of the copies.
const ITEM: &str = "an item was pushed over XMPP";
const DELIVERY: &str = "a callback delivered";
const APPLIED: &str = "pushed changes are applied";

/// All that runs.
struct World {
    config: String,
    source: Option<Source>,
    port: u16,
    server: Prosody,
    /// Between Source and copies, and between the hub and the callback.
    network: [FaultProxy; 2],
    copies: [Copy; 4],
    of_source: u64,
    of_server: u64,
}

#[test]
fn four_copies_equal_the_source_after_kills_and_faults() {
    let name = "four_copies_equal_the_source_after_kills_and_faults";
    let Some(program) = provided(name, "ABREAST_TEST_PROSODY") else { return };
    let (kills, seed) = (kills(KILLS), seed(1));
    let mut random = Random::new(seed);
    let temporary = tempfile::tempdir().unwrap();
    let (place, original) = (temporary.path(), temporary.path().join("folder"));
    fs::create_dir_all(&original).unwrap();
    for number in (0..60).chain(STEADY) {
        write_version(&original, number, 0);
    }
    let mut world = World::start(place, &program);
    world.wait("the first copies are made", |copies| {
        let has = |copy: &Copy, number| path_of(&copy.folder, number).exists();
        copies.iter().all(|copy| STEADY.clone().all(|number| has(copy, number)))
    });

    for (proxy, seed) in world.network.iter().zip(seed..) {
        proxy.seed(Some(seed));
    }
    let [still, stop] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let _at_the_end = Stop(Arc::clone(&stop));
    let changing = spawn(changes(&original, seed), &still);
    let watchers = world.copies.each_ref().map(|copy| spawn(watcher(copy.folder.clone()), &stop));
    world.wait("changes are pushed", |[_, _, xmpp, callback]| {
        xmpp.logged(ITEM) > 0 && callback.logged(DELIVERY) > 0
    });

    let (begun, mut next, mut focus, mut count) = (Instant::now(), 0, 2, 0);
    while world.kills() < kills {
        if world.kills() >= next {
            world.rest();
            (next, focus) = (world.kills() + ROUND, random.below(6));
        }
        std::thread::sleep(Duration::from_millis(random.below(1_500)));
        // Each part once, then at random.
        let part = match (count, focus) {
            (0..6, _) => count,
            (_, 0 | 1) => focus,
            _ => [0, 0, 0, 1, 1, 2, 3, 4, 5][random.below(9) as usize],
        };
        count += 1;
        world.kill(part, &mut random);
        assert!(
            watchers.iter().all(|watcher| !watcher.is_finished()),
            "a copy is not as it should be"
        );
    }
    eprintln!("{} kills in {} s", world.kills(), begun.elapsed().as_secs());

    // All is calm.
    let met = world.network.each_ref().map(FaultProxy::met);
    world.network.iter().for_each(|proxy| proxy.seed(None));
    still.store(true, Ordering::Relaxed);
    changing.join().unwrap();
    let (calm, mut level) = (Instant::now(), [None; 4]);
    let is_equal = |copies: &[Copy; 4], level: &mut [Option<u64>; 4]| {
        let original = files(&original);
        for (copy, level) in copies.iter().zip(&mut *level) {
            let is_same = same(&original, &files(&copy.folder)).is_ok();
            *level = is_same.then(|| level.unwrap_or(calm.elapsed().as_secs()));
        }
        level.iter().all(Option::is_some)
    };
    world.wait("each copy equals the Source", |copies| is_equal(copies, &mut level));
    eprintln!("faults {met:?}, equal after {level:?} s");
    // Changes without a deletion are applied as they are pushed, after all of this too. What made the copy
    // and the server slow is over: pauses after failures, and nodes with many large items.
    world.server.restart_without_nodes();
    world.kill(4, &mut random);
    let (applied, mut version) = (world.copies[2].logged(APPLIED), LATER);
    world.wait("a pushed change is applied", |copies| {
        if version % 10 == 0 {
            write_version(&original, STEADY.start, version);
        }
        version += 1;
        copies[2].logged(APPLIED) > applied
    });
    world.wait("each copy equals the Source again", |copies| is_equal(copies, &mut [None; 4]));
    stop.store(true, Ordering::Relaxed);
    for watcher in watchers {
        watcher.join().unwrap();
    }
    world.check();
}

/// Requests an end when the test ends early.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl World {
    fn start(place: &Path, program: &Path) -> Self {
        let server = Prosody::start(program);
        let [network, calls] = [(); 2].map(|()| FaultProxy::with_share(SHARE));
        let config = configure(place, &server, &network.url());
        let source = Source::start_config(&config);
        network.target(&source.address);
        let listen = unused_address().to_string();
        calls.target(&listen);
        let sitemap = format!("{}papers/v0.1/sitemap.xml", network.url());
        let account = account_of(&server, "reader", PASSWORD, place);
        let account: Vec<_> = account.iter().map(|text| &**text).collect();
        // Without pushes two copies would poll too rarely.
        let (polls, pushes) = (["--push", "off", "--interval", "2s"], ["--interval", "20s"]);
        let called = ["--callback-listen", &listen, "--callback-url", &calls.url()];
        let copies = [
            Copy::start("lists", place, &network.url(), &polls),
            Copy::start("change-sets", place, &sitemap, &polls),
            Copy::start("xmpp", place, &sitemap, &[&pushes, &*account].concat()),
            Copy::start("callback", place, &sitemap, &[&pushes[..], &called].concat()),
        ];
        Self {
            config,
            port: source.port(),
            source: Some(source),
            server,
            network: [network, calls],
            copies,
            of_source: 0,
            of_server: 0,
        }
    }

    fn kills(&self) -> u64 {
        self.of_source + self.of_server + self.copies.iter().map(|copy| copy.kills).sum::<u64>()
    }

    /// Kills the Source, the XMPP server or a copy, and starts it again.
    fn kill(&mut self, part: u64, random: &mut Random) {
        match part {
            0 => {
                self.source.take().unwrap().kill();
                self.of_source += 1;
                while random.below(4) == 0 {
                    let after = Duration::from_millis(random.below(250));
                    Source::kill_config_at_start(&self.config, self.port, after);
                    self.of_source += 1;
                }
                self.source = Some(Source::start_config_at(&self.config, self.port));
            }
            1 => {
                self.server.kill();
                self.of_server += 1;
                std::thread::sleep(Duration::from_millis(random.below(300)));
                self.server.restart();
            }
            copy => self.copies[copy as usize - 2].kill(),
        }
        self.copies.iter_mut().for_each(Copy::tend);
    }

    /// Waits until each copy completed another run, though not for long.
    fn rest(&mut self) {
        let (begun, before) = (Instant::now(), self.copies.each_ref().map(Copy::runs));
        while begun.elapsed() < REST
            && self.copies.iter().zip(before).any(|(copy, before)| copy.runs() == before)
        {
            self.copies.iter_mut().for_each(Copy::tend);
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn wait(&mut self, what: &str, mut holds: impl FnMut(&[Copy; 4]) -> bool) {
        let begun = Instant::now();
        while !holds(&self.copies) {
            self.copies.iter_mut().for_each(Copy::tend);
            let last = || self.copies.each_ref().map(Copy::last);
            assert!(begun.elapsed() < PATIENCE, "waited in vain until {what}: {:#?}", last());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Prints what each copy reported, and checks it.
    fn check(&self) {
        eprintln!("kills: {} of the Source, {} of the XMPP server", self.of_source, self.of_server);
        let steady: BTreeSet<_> = STEADY.map(|number| format!("f{number:03}.txt")).collect();
        for copy in &self.copies {
            eprintln!(
                "{}: {} kills; {} items, {} deliveries, pushed changes applied {} times; exits {:?}; {:?}",
                copy.name,
                copy.kills,
                copy.logged(ITEM),
                copy.logged(DELIVERY),
                copy.logged(APPLIED),
                copy.exits,
                copy.codes(),
            );
            assert_whole(&copy.folder);
            assert_eq!(copy.deleted().intersection(&steady).next(), None, "{}", copy.name);
            // The first run of a copy reports a Source that cannot be reached.
            assert!(copy.exits.iter().all(|code| *code == Some(5)), "{}", copy.name);
        }
        let accepted = self.network[1].accepted();
        eprintln!("{accepted} deliveries were accepted");
        assert!(accepted > 0);
    }
}

/// The Source behind the proxy, publishing to a node.
fn configure(place: &Path, server: &Prosody, base: &str) -> String {
    let config = publishing(server, place, "papers");
    let text = fs::read_to_string(&config).unwrap();
    let text = format!("base_url = \"{base}\"\n{text}changes_per_list = 40\n");
    fs::write(&config, text).unwrap();
    config
}

/// Changes files, slowly enough that copies follow.
fn changes(folder: &Path, seed: u64) -> impl FnMut() + Send + use<> {
    let mut others = writer(folder.to_owned(), seed);
    let (folder, mut random, mut version) = (folder.to_owned(), Random::new(seed + 2_000), 0);
    move || {
        version += 1;
        let replaced = (STEADY.end - STEADY.start) / 2;
        write_version(&folder, STEADY.start + random.below(replaced), version);
        others();
        std::thread::sleep(Duration::from_millis(80));
    }
}

/// Watches a copy: visible files are whole, and a steady one that was there stays.
fn watcher(folder: PathBuf) -> impl FnMut() + Send {
    let mut seen = BTreeSet::new();
    move || {
        for number in STEADY {
            let path = path_of(&folder, number);
            if path.exists() {
                seen.insert(number);
            } else {
                assert!(!seen.contains(&number), "{} was removed", path.display());
            }
        }
        assert_whole(&folder);
        std::thread::sleep(Duration::from_millis(100));
    }
}
