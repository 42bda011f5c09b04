//! The Debian package, installed in a minimal system.

use abreast_testkit::{provided, run, skipped};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

const TEST: &str = "package::the_package_can_be_installed_upgraded_and_removed";

/// A command in the system in a folder, without the environment of the test.
fn inside(system: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("chroot");
    command.arg(system).args(words).env_clear();
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// What a command prints; it must succeed.
fn printed(command: &mut Command) -> String {
    let output = run(command);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{text}\n{errors}");
    text
}

#[test]
fn the_package_can_be_installed_upgraded_and_removed() {
    let Some(xtask) = provided(TEST, "ABREAST_TEST_XTASK") else { return };
    let Some(debian) = provided(TEST, "ABREAST_TEST_DEBIAN_DIR") else { return };
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    if fs::metadata(place).unwrap().uid() != 0 {
        return skipped(TEST, "only root may install packages");
    }
    // Without its debugging information, the program is packed in a tenth of the time.
    let program = place.join("abreast");
    printed(Command::new("strip").arg("-o").arg(&program).arg(env!("CARGO_BIN_EXE_abreast")));
    let dist = place.join("dist");
    printed(
        Command::new(xtask)
            .args(["dist", "--only-package", "--program"])
            // The default compressor needs minutes for a program without optimisation.
            .env("DPKG_DEB_COMPRESSOR_TYPE", "gzip")
            // That of this crate; the task belongs to the workspace.
            .env_remove("CARGO_MANIFEST_DIR")
            .env("DPKG_DEB_COMPRESSOR_LEVEL", "1")
            .arg(&program)
            .arg("--folder")
            .arg(&dist),
    );
    let package = fs::read_dir(dist.join("out")).unwrap().map(|entry| entry.unwrap().path());
    let package = package.into_iter().find(|path| path.extension().is_some_and(|end| end == "deb"));
    let system = place.join("system");
    printed(Command::new("cp").arg("-a").arg(debian).arg(&system));
    fs::copy(package.unwrap(), system.join("abreast.deb")).unwrap();
    let installed = |words: &[&str]| printed(&mut inside(&system, words));

    installed(&["dpkg", "--install", "/abreast.deb"]);
    assert!(installed(&["abreast", "--version"]).starts_with("abreast "));
    let account = installed(&["getent", "passwd", "abreast"]);
    assert!(account.contains(":/var/lib/abreast:"), "{account}");
    for path in [
        "etc/abreast.toml",
        "usr/share/man/man1/abreast-serve.1.gz",
        "usr/share/bash-completion/completions/abreast",
        "usr/share/doc/abreast/examples/proxy/nginx.conf",
        "usr/share/doc/abreast/examples/monitoring/grafana.json",
    ] {
        assert!(system.join(path).is_file(), "{path}");
    }
    let units =
        ["abreast.service", "abreast.socket", "abreast-hub.service", "abreast-backup.timer"];
    let templates =
        ["abreast-sync@job.service", "abreast-sync@job.timer", "abreast-follow@job.service"];
    for unit in units.iter().chain(&templates) {
        installed(&[
            "systemd-analyze",
            "verify",
            "--man=no",
            &format!("/lib/systemd/system/{unit}"),
        ]);
    }
    // The units start no program that a minimal system does not have.
    for unit in fs::read_dir(system.join("lib/systemd/system")).unwrap() {
        let unit = unit.unwrap().path();
        if !unit.file_name().unwrap().to_string_lossy().starts_with("abreast") {
            continue;
        }
        for line in fs::read_to_string(&unit).unwrap().lines() {
            let Some((_, words)) = line.split_once('=').filter(|(key, _)| key.starts_with("Exec"))
            else {
                continue;
            };
            let program = words.split_whitespace().next().unwrap().trim_start_matches('/');
            assert!(system.join(program).exists(), "{}: {line}", unit.display());
        }
    }
    // Nothing starts by itself.
    let wanted = system.join("etc/systemd/system/multi-user.target.wants");
    let wanted = fs::read_dir(wanted).unwrap().map(|entry| entry.unwrap().file_name());
    let wanted: Vec<_> = wanted.filter(|name| name.to_string_lossy().contains("abreast")).collect();
    assert_eq!(wanted.len(), 0, "{wanted:?}");

    // The main job, as the user of the units.
    let copy = "mkdir /tmp/papers && echo text > /tmp/papers/a.txt && abreast build /tmp/papers --copy --out /tmp/site --base-url http://127.0.0.1/";
    installed(&["runuser", "-u", "abreast", "--", "sh", "-c", copy]);
    assert!(system.join("tmp/site/papers/capabilitylist.xml").is_file());

    // An upgrade leaves the configuration as it was changed, and stores where they are.
    let configuration = system.join("etc/abreast.toml");
    let shipped = fs::read_to_string(&configuration).unwrap();
    let changed = format!("{shipped}\n[[set]]\nname = \"papers\"\nfolder = \"/tmp/papers\"\n");
    fs::write(&configuration, &changed).unwrap();
    installed(&["abreast", "config", "check", "/etc/abreast.toml"]);
    fs::create_dir_all(system.join("var/lib/abreast")).unwrap();
    fs::write(system.join("var/lib/abreast/store"), "").unwrap();
    installed(&["dpkg", "--install", "--force-confold", "/abreast.deb"]);
    assert_eq!(fs::read_to_string(&configuration).unwrap(), changed);

    installed(&["dpkg", "--remove", "abreast"]);
    assert!(!system.join("usr/bin/abreast").exists());
    assert!(configuration.is_file());
    installed(&["dpkg", "--purge", "abreast"]);
    assert!(!configuration.exists());
    assert!(system.join("var/lib/abreast/store").is_file());
}
