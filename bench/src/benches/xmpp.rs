//! The time from a changed file to a copy that follows by XMPP, and a burst of changes.

use crate::abreast::{self, Source};
use crate::peers::find_or_install;
use crate::report::Report;
use crate::run::{Server, log_path, settle, wait_until};
use crate::samples::Samples;
use crate::settings::Settings;
use abreast_testkit::xmpp::{DOMAIN, PASSWORD, Prosody};
use anyhow::{Result, bail};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Single changes have this distance.
const QUIET: Duration = Duration::from_millis(300);
/// A copy that needs longer does not follow.
const LIMIT: Duration = Duration::from_secs(60);
/// Files of a burst in one folder.
const TOGETHER: usize = 1_000;

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let program = abreast::binary(settings)?;
    let server = Prosody::start(&find_or_install("prosody")?);
    let count = settings.size(300, 50);
    let burst = settings.size(10_000, 1_000);
    let (mut p50, mut p99) = (Samples::default(), Samples::default());
    let (mut seconds, mut source_memory, mut copy_memory) =
        (Samples::default(), Samples::default(), Samples::default());
    for round in 0..settings.rounds {
        let place = settings.empty_folder("xmpp")?;
        let mut pair = Pair::start(settings, &program, &server, &place, round)?;
        let mut single = Samples::default();
        for number in 0..count {
            std::thread::sleep(QUIET);
            single.push(pair.change(&format!("file-{number}"))?);
        }
        settle();
        let took = pair.burst(burst)?;
        let memory = (pair.source.server.peak_memory_mib()?, pair.sync.peak_memory_mib()?);
        report.raw(
            &json!({ "round": round, "p50_ms": single.median(), "p99_ms": single.quantile(0.99),
            "burst": burst, "burst_seconds": took, "source_mib": memory.0, "copy_mib": memory.1 }),
        );
        p50.push(single.median());
        p99.push(single.quantile(0.99));
        seconds.push(took);
        source_memory.push(memory.0);
        copy_memory.push(memory.1);
    }
    report.at_most(
        "a file changed until it is in a copy that follows by XMPP, p99",
        &p99,
        1_000.0,
        " ms",
    );
    report.text(&format!(
        "`abreast sync --follow --xmpp-jid` next to `abreast serve` with `[xmpp]`, and Prosody between, all with their defaults, with \
         TLS: {count} files written, each {} ms after the copy has the previous file, timed until the copy has its content (debounce of \
         Source and notifications included). Then {burst} files, {TOGETHER} in a folder, as fast as one program can write them.",
        QUIET.as_millis(),
    ));
    report.table(
        &["", ""],
        &[
            vec!["a single change until it is in the copy, p50, ms".into(), p50.text()],
            vec!["the same, p99, ms".into(), p99.text()],
            vec!["burst: until all are in the copy, s".into(), seconds.text()],
            vec!["peak memory of the Source, MiB".into(), source_memory.text()],
            vec!["peak memory of the copy, MiB".into(), copy_memory.text()],
        ],
    );
    Ok(())
}

/// A Source that publishes to a node, and a copy that follows it.
struct Pair {
    source: Source,
    sync: Server,
    folder: std::path::PathBuf,
    copy: std::path::PathBuf,
}

impl Pair {
    fn start(
        settings: &Settings,
        program: &Path,
        server: &Prosody,
        place: &Path,
        round: usize,
    ) -> Result<Self> {
        let (folder, copy) = (place.join("folder"), place.join("copy"));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("first"), "first")?;
        let password = place.join("password");
        fs::write(&password, PASSWORD)?;
        let (address, ca) = (server.address(), server.ca_file());
        let text = format!(
            "data = \"{}\"\n[xmpp]\njid = \"source@{DOMAIN}\"\npassword_file = \"{}\"\nserver = \"{address}\"\nca_file = \"{}\"\n\
             [[set]]\nname = \"data\"\nfolder = \"{}\"\nxmpp_node = \"round-{round}\"\n",
            place.join("data").display(),
            password.display(),
            ca.display(),
            folder.display(),
        );
        let config = place.join("abreast.toml");
        fs::write(&config, text)?;
        let config = config.to_string_lossy();
        let source =
            Source::start(settings, program, "serve-xmpp", &["--config", config.as_ref()])?;
        source.wait_ready()?;
        let mut command = Command::new(program);
        command.arg("sync").arg(format!("{}data/v0.1/sitemap.xml", source.url())).arg(&copy);
        // Without what is pushed it would poll again after an hour.
        command.args(["--follow", "--interval", "1h", "--quiet"]);
        command.args(["--xmpp-jid", &format!("reader@{DOMAIN}"), "--xmpp-server", &address]);
        command.arg("--xmpp-password-file").arg(&password).arg("--ca-file").arg(&ca);
        let sync = Server::start(&mut command, &log_path(&settings.folder, "sync-xmpp")?)?;
        let mut pair = Self { source, sync, folder, copy };
        pair.wait_for("first", "first", LIMIT)?;
        // Once the node is there and it listens, changes come one by one.
        let mut number = 0;
        wait_until("the copy listens", LIMIT, || {
            number += 1;
            let name = format!("second-{number}");
            fs::write(pair.folder.join(&name), &name)?;
            Ok(pair.wait_for(&name, &name, Duration::from_secs(3)).is_ok())
        })?;
        settle();
        Ok(pair)
    }

    /// Milliseconds from closing a file until the copy has it.
    fn change(&mut self, name: &str) -> Result<f64> {
        let begun = Instant::now();
        fs::write(self.folder.join(name), name)?;
        self.wait_for(name, name, LIMIT)?;
        Ok(begun.elapsed().as_secs_f64() * 1e3)
    }

    /// Seconds from the first of many files until the copy has them all.
    fn burst(&mut self, files: usize) -> Result<f64> {
        let begun = Instant::now();
        for number in 0..files {
            let inner = self.folder.join(format!("d{}", number / TOGETHER));
            if number % TOGETHER == 0 {
                fs::create_dir(&inner)?;
            }
            fs::write(inner.join(format!("f{number}")), format!("content {number}"))?;
        }
        for number in 0..files {
            let name = format!("d{}/f{number}", number / TOGETHER);
            self.wait_for(&name, &format!("content {number}"), LIMIT)?;
        }
        Ok(begun.elapsed().as_secs_f64())
    }

    fn wait_for(&mut self, name: &str, content: &str, limit: Duration) -> Result<()> {
        let path = self.copy.join(name);
        let begun = Instant::now();
        while fs::read(&path).ok().as_deref() != Some(content.as_bytes()) {
            if begun.elapsed() > limit || self.sync.has_ended() {
                bail!("{name} did not come; see logs/sync-xmpp.log");
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }
}
