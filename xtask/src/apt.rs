//! Debian packages: installed as root, or unpacked under `target/` by any other user.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{find_program, is_set, run_quietly, with_retries};

/// Installs packages; needs root and `apt-get`.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    let list = packages.join(" ");
    if is_set("ABREAST_NO_INSTALL") {
        bail!(
            "installing is switched off by `ABREAST_NO_INSTALL`\n  help: install the Debian package {list}"
        );
    }
    if find_program("apt-get").is_none() {
        bail!("this machine has no `apt-get`\n  help: install what Debian calls {list}");
    }
    if !is_root()? {
        bail!("only root may install packages\n  help: run `apt-get install {list}` as root");
    }
    eprintln!("installing {list}");
    with_retries(&format!("installing {list}"), || {
        run_quietly(apt_get("update").arg("-qq"))?;
        run_quietly(
            apt_get("install").args(["-qq", "-y", "--no-install-recommends"]).args(packages),
        )?;
        Ok(())
    })
}

/// Downloads one package and unpacks its files into `folder`; nothing is installed, root is not
/// needed.
pub(crate) fn unpack(package: &str, folder: &Path) -> Result<()> {
    if find_program("apt-get").is_none() || find_program("dpkg-deb").is_none() {
        bail!("this machine has no `apt-get` or no `dpkg-deb`\n  help: run this on Debian");
    }
    let download = folder.join("download");
    std::fs::create_dir_all(&download)
        .with_context(|| format!("cannot create {}", download.display()))?;
    with_retries(&format!("downloading the package {package}"), || {
        let fetch = || run_quietly(apt_get("download").arg(package).current_dir(&download));
        if fetch().is_err() {
            // A fresh machine has no package lists yet.
            if !is_root()? {
                bail!(
                    "apt-get cannot download {package}\n  help: run `apt-get update` as root first"
                );
            }
            run_quietly(apt_get("update").arg("-qq"))?;
            fetch()?;
        }
        Ok(())
    })?;
    for entry in std::fs::read_dir(&download)? {
        run_quietly(Command::new("dpkg-deb").arg("-x").arg(entry?.path()).arg(folder))?;
    }
    std::fs::remove_dir_all(&download)?;
    Ok(())
}

/// Makes a minimal system of a release, with systemd, in a folder; needs root.
pub(crate) fn system(release: &str, folder: &Path) -> Result<()> {
    if find_program("debootstrap").is_none() {
        install(&["debootstrap"])?;
    }
    let mut command = Command::new("debootstrap");
    command.args(["--variant=minbase", "--include=systemd", release]).arg(folder);
    if let Some(mirror) = mirror() {
        command.arg(mirror);
    }
    run_quietly(&mut command)?;
    Ok(())
}

/// The first server of packages that this machine uses.
fn mirror() -> Option<String> {
    let listed = run_quietly(apt_get("indextargets").args(["--format", "$(SITE)"])).ok()?;
    listed.lines().next().map(str::to_owned)
}

fn apt_get(action: &str) -> Command {
    let mut command = Command::new("apt-get");
    command
        .args([
            "-o",
            "Acquire::Retries=3",
            "-o",
            "Acquire::http::Timeout=30",
            "-o",
            "DPkg::Lock::Timeout=120",
        ])
        .arg(action)
        .env("DEBIAN_FRONTEND", "noninteractive")
        // A test run wants the programs, not their services started.
        .env("RUNLEVEL", "1");
    command
}

fn is_root() -> Result<bool> {
    Ok(run_quietly(Command::new("id").arg("-u"))?.trim() == "0")
}
