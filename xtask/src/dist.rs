//! `cargo xtask dist`: what a release publishes, under `target/dist/out`.
//!
//! | File | Content |
//! |---|---|
//! | `abreast-VERSION-ARCH-linux.tar.gz` | program, manual pages, documentation, completions, units, licences |
//! | `abreast_VERSION-1_ARCH.deb` | the same as a package of Debian |
//! | `abreast-VERSION-ARCH.oci.tar` | container image, an archive of OCI |
//! | `abreast.cdx.json` | the libraries in the program with their licences, in CycloneDX |
//! | `SHA256SUMS` | digests of the others |
//!
//! Times in all files are the time of the commit, and paths of the machine are replaced, so two
//! builds of one commit with one toolchain are equal.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::apt;
use crate::process::{cargo, find_program, root, run, run_quietly, target};

const USAGE: &str = "\
usage: cargo xtask dist [--target TRIPLE] [--program FILE] [--folder DIR] [--only-package] [--twice]

  --target TRIPLE  build for this target of Rust [default: x86_64-unknown-linux-musl]
  --program FILE   pack this program, which was built before
  --folder DIR     build in this folder [default: target/dist]
  --only-package   build the Debian package alone
  --twice          build and pack a second time in another folder, and compare all files";

const TARGET: &str = "x86_64-unknown-linux-musl";
const MAINTAINER: &str = "The abreast authors <abreast@example.org>";
/// Programs of the steps, with their packages of Debian.
const PROGRAMS: [(&str, &str); 5] = [
    ("dpkg-buildpackage", "dpkg-dev"),
    ("dh", "debhelper"),
    ("buildah", "buildah"),
    ("fakeroot", "fakeroot"),
    ("readelf", "binutils"),
];
/// Name and architecture in Debian of each target, and the C compiler that it needs.
const TARGETS: [(&str, &str, &str, &str, &str); 2] = [
    ("x86_64-unknown-linux-musl", "x86_64", "amd64", "musl-gcc", "musl-tools"),
    (
        "aarch64-unknown-linux-musl",
        "aarch64",
        "arm64",
        "aarch64-linux-gnu-gcc",
        "gcc-aarch64-linux-gnu",
    ),
];

/// What is built, and where.
struct Dist {
    triple: String,
    /// Architecture in names of files.
    arch: &'static str,
    /// Architecture in Debian's names.
    debian: &'static str,
    compiler: &'static str,
    version: String,
    /// Seconds since 1970 of the commit.
    time: String,
    /// Folder of everything that is made.
    folder: PathBuf,
}

/// `cargo xtask dist`.
pub(crate) fn run_task(arguments: &[String]) -> Result<()> {
    let mut triple = TARGET.to_owned();
    let (mut program, mut is_twice, mut is_all) = (None, false, true);
    let mut folder = target().join("dist");
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value =
            || rest.next().with_context(|| format!("`{argument}` needs a value\n\n{USAGE}"));
        match argument.as_str() {
            "--target" => triple.clone_from(value()?),
            "--program" => program = Some(fs::canonicalize(value()?)?),
            "--folder" => folder = std::path::absolute(value()?)?,
            "--only-package" => is_all = false,
            "--twice" => is_twice = true,
            other => bail!("`dist` has no argument `{other}`\n\n{USAGE}"),
        }
    }
    prepare(is_all)?;
    let first = Dist::new(&triple, folder.clone())?;
    first.make(program.as_deref(), is_all)?;
    if is_twice {
        let second = Dist::new(&triple, folder.join("again"))?;
        second.make(program.as_deref(), is_all)?;
        let sums = |dist: &Dist| fs::read_to_string(dist.out().join("SHA256SUMS"));
        let (one, two) = (sums(&first)?, sums(&second)?);
        if one != two {
            bail!("two builds of one commit differ:\n{one}and\n{two}");
        }
        println!("two builds are equal");
    }
    println!("{}", fs::read_to_string(first.out().join("SHA256SUMS"))?);
    println!("in {}", first.out().display());
    Ok(())
}

/// Installs the programs that pack.
fn prepare(is_all: bool) -> Result<()> {
    let needed = PROGRAMS.iter().filter(|(program, _)| is_all || *program != "buildah");
    let missing = needed.filter(|(program, _)| find_program(program).is_none());
    let packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
    if packages.is_empty() { Ok(()) } else { apt::install(&packages) }
}

impl Dist {
    fn new(triple: &str, folder: PathBuf) -> Result<Self> {
        let known = TARGETS.iter().find(|(known, ..)| *known == triple);
        let Some((_, arch, debian, compiler, package)) = known else {
            let names: Vec<_> = TARGETS.iter().map(|(name, ..)| *name).collect();
            bail!("cannot build for `{triple}`\n  help: the targets are {}", names.join(", "));
        };
        if find_program(compiler).is_none() {
            apt::install(&[package])?;
        }
        let manifest: toml::Table = fs::read_to_string(root().join("Cargo.toml"))?.parse()?;
        let version = manifest["workspace"]["package"]["version"].as_str();
        let git = |arguments: &[&str]| {
            run_quietly(Command::new("git").args(arguments).current_dir(root()))
        };
        Ok(Self {
            triple: triple.to_owned(),
            arch,
            debian,
            compiler,
            version: version.context("Cargo.toml has no workspace.package.version")?.to_owned(),
            time: git(&["log", "-1", "--format=%ct"])?.trim().to_owned(),
            folder,
        })
    }

    fn out(&self) -> PathBuf {
        self.folder.join("out")
    }

    fn make(&self, program: Option<&Path>, is_all: bool) -> Result<()> {
        for name in ["out", "source", "stage", "debian", "image"] {
            let folder = self.folder.join(name);
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(&folder)
                .with_context(|| format!("cannot make {}", folder.display()))?;
        }
        self.export()?;
        let program = match program {
            Some(program) => program.to_owned(),
            None => self.build()?,
        };
        self.stage(&program)?;
        self.package()?;
        if is_all {
            self.archive()?;
            self.image(&program)?;
        }
        self.sums()
    }

    /// The files of the commit, without changes that are not committed.
    fn export(&self) -> Result<()> {
        let archive = self.folder.join("source.tar");
        run_quietly(
            Command::new("git")
                .args(["archive", "--output"])
                .arg(&archive)
                .arg("HEAD")
                .current_dir(root()),
        )?;
        run_quietly(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(self.source()))?;
        fs::remove_file(archive)?;
        Ok(())
    }

    fn source(&self) -> PathBuf {
        self.folder.join("source")
    }

    /// Compiles the program, and writes the list of its libraries.
    fn build(&self) -> Result<PathBuf> {
        let rustup = find_program("rustup").context(
            "rustup is not installed, which adds the standard library of other targets\n  help: https://rustup.rs",
        )?;
        run_quietly(Command::new(rustup).args(["target", "add", &self.triple]))?;
        let home = std::env::var_os("CARGO_HOME").map_or_else(
            || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo"),
            PathBuf::from,
        );
        let build = self.folder.join("build");
        // Panics and C code name source files by their paths.
        let places = [(self.source(), "/abreast"), (build.clone(), "/build"), (home, "/cargo")];
        let maps = |option: &str| {
            let map = |(from, to): &(PathBuf, &str)| format!("{option}={}={to}", from.display());
            places.iter().map(map).collect::<Vec<_>>()
        };
        let upper = self.triple.to_uppercase().replace('-', "_");
        let lower = self.triple.replace('-', "_");
        let mut flags = maps("--remap-path-prefix");
        flags.push("-Ctarget-feature=+crt-static".to_owned());
        let mut c_flags = maps("-ffile-prefix-map");
        c_flags.extend(self.musl_flags()?);
        let mut command =
            cargo(&["build", "--locked", "--profile", "dist", "-p", "abreast", "--target"]);
        command
            .arg(&self.triple)
            .current_dir(self.source())
            .env("CARGO_TARGET_DIR", &build)
            .env("SOURCE_DATE_EPOCH", &self.time)
            .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
            .env(format!("CFLAGS_{lower}"), c_flags.join(" "))
            .env(format!("CC_{lower}"), self.compiler);
        if self.arch != std::env::consts::ARCH {
            command.env(format!("CARGO_TARGET_{upper}_LINKER"), self.compiler);
        }
        run(&mut command)?;
        Ok(build.join(&self.triple).join("dist/abreast"))
    }

    /// Options of a compiler for glibc, so that C code of libraries uses the headers of musl: with
    /// those of glibc it calls functions that musl does not have, such as `open64`.
    fn musl_flags(&self) -> Result<Vec<String>> {
        if self.compiler == "musl-gcc" {
            return Ok(Vec::new());
        }
        let mut get_folder = Command::new(self.compiler);
        let own = run_quietly(get_folder.arg("-print-file-name=include"))?;
        let musl = musl_headers(self.arch, self.debian)?;
        Ok(vec![
            "-nostdinc".to_owned(),
            format!("-isystem {}", own.trim()),
            format!("-isystem {}", musl.display()),
            // Debian's libgcc has functions for atomics that call `__getauxval` of glibc.
            "-mno-outline-atomics".to_owned(),
        ])
    }

    /// The files of the archive, in the folder that it unpacks to.
    fn stage(&self, program: &Path) -> Result<()> {
        let stage = self.folder.join("stage").join(self.name());
        let source = self.source();
        fs::create_dir_all(stage.join("completions"))?;
        fs::create_dir_all(stage.join("man"))?;
        fs::copy(program, stage.join("abreast"))
            .with_context(|| format!("cannot copy {}", program.display()))?;
        // The setting of the profile leaves a table of symbols in this program.
        let strip = match self.compiler.strip_suffix("gcc") {
            Some(prefix) if self.arch != std::env::consts::ARCH => format!("{prefix}strip"),
            _ => "strip".to_owned(),
        };
        run_quietly(Command::new(strip).arg("--strip-all").arg(stage.join("abreast")))?;
        for name in [
            "README.md",
            "CHANGELOG.md",
            "LICENSE-MIT",
            "LICENSE-APACHE",
            "abreast.example.toml",
            "packaging/abreast.toml",
        ] {
            let file = Path::new(name).file_name().unwrap_or(OsStr::new(name));
            fs::copy(source.join(name), stage.join(file))
                .with_context(|| format!("cannot copy {name}"))?;
        }
        copy_all(&source.join("packaging/systemd"), &stage.join("systemd"))?;
        for folder in ["proxy", "monitoring", "container"] {
            copy_all(&source.join("packaging").join(folder), &stage.join(folder))?;
        }
        copy_all(&source.join("docs"), &stage.join("docs"))?;
        // The manual pages and completions are those of the source, made by a program that runs here.
        let own = self.runnable(program)?;
        run_quietly(Command::new(&own).args(["man", "--dir"]).arg(stage.join("man")))?;
        for (shell, name) in [("bash", "abreast"), ("zsh", "_abreast"), ("fish", "abreast.fish")] {
            let script = run_quietly(Command::new(&own).args(["completions", shell]))?;
            fs::write(stage.join("completions").join(name), script)?;
        }
        let libraries =
            crate::libraries::cyclone_dx(&source, &self.triple, &self.version, &self.time)?;
        fs::write(self.out().join("abreast.cdx.json"), &libraries)?;
        fs::write(stage.join("abreast.cdx.json"), libraries)?;
        Ok(())
    }

    /// The program, or for another processor the program that was built for this one.
    fn runnable(&self, program: &Path) -> Result<PathBuf> {
        if self.arch == std::env::consts::ARCH {
            return Ok(program.to_owned());
        }
        run(&mut cargo(&["build", "--locked", "-p", "abreast"]))?;
        Ok(target().join("debug/abreast"))
    }

    fn name(&self) -> String {
        format!("abreast-{}-{}-linux", self.version, self.arch)
    }

    fn archive(&self) -> Result<()> {
        let path = self.out().join(format!("{}.tar.gz", self.name()));
        let mut tar = self.tar("gzip -9n");
        run_quietly(
            tar.arg("-cf").arg(path).arg("-C").arg(self.folder.join("stage")).arg(self.name()),
        )?;
        Ok(())
    }

    /// `tar` that writes the same bytes for the same files.
    fn tar(&self, compressor: &str) -> Command {
        let mut tar = Command::new("tar");
        tar.args(["--sort=name", "--format=gnu", "--owner=0", "--group=0", "--numeric-owner"])
            .args(["--mode=u+rw,go+r-w,a+rX"])
            .arg(format!("--mtime=@{}", self.time))
            .arg(format!("--use-compress-program={compressor}"));
        tar
    }

    /// The package of Debian, made by debhelper from the files of the archive.
    fn package(&self) -> Result<()> {
        let folder = self.folder.join("debian/abreast");
        copy_all(&self.folder.join("stage").join(self.name()), &folder)?;
        copy_all(&self.source().join("packaging/debian"), &folder.join("debian"))?;
        let date =
            run_quietly(Command::new("date").args(["-uR", "-d", &format!("@{}", self.time)]))?;
        let changelog = format!(
            "abreast ({}-1) stable; urgency=medium\n\n  * The changes are in changelog.gz.\n\n -- {MAINTAINER}  {date}",
            self.version
        );
        fs::write(folder.join("debian/changelog"), changelog)?;
        run_quietly(
            Command::new("dpkg-buildpackage")
                .args(["--build=binary", "--no-sign", "-d", "--host-arch", self.debian])
                .current_dir(&folder)
                .env("SOURCE_DATE_EPOCH", &self.time)
                .env("DEB_BUILD_OPTIONS", "nocheck"),
        )?;
        let name = format!("abreast_{}-1_{}.deb", self.version, self.debian);
        fs::copy(self.folder.join("debian").join(&name), self.out().join(&name))
            .with_context(|| format!("the package {name} was not made"))?;
        Ok(())
    }

    /// The container image, made by buildah from the static program.
    fn image(&self, program: &Path) -> Result<()> {
        if is_dynamic(program)? {
            bail!(
                "{} needs libraries, which the image does not have\n  help: build it for {}, or use --only-package",
                program.display(),
                self.triple
            );
        }
        let context = self.folder.join("image");
        let storage = self.folder.join("containers");
        let _ = fs::remove_dir_all(&storage);
        for name in ["data", "tmp"] {
            fs::create_dir_all(context.join(name))?;
        }
        fs::copy(
            self.folder.join("stage").join(self.name()).join("abreast"),
            context.join("abreast"),
        )?;
        fs::write(context.join("passwd"), "abreast:x:65532:65532::/data:/nologin\n")?;
        let buildah = |arguments: &[&str]| {
            let mut command = Command::new("buildah");
            command
                .args(["--storage-driver", "vfs", "--root"])
                .arg(storage.join("images"))
                .arg("--runroot")
                .arg(storage.join("run"))
                .args(arguments);
            command
        };
        let tag = format!("localhost/abreast:{}", self.version);
        run_quietly(
            buildah(&[
                "build",
                "--isolation",
                "chroot",
                "--timestamp",
                &self.time,
                "--arch",
                self.debian,
                "--tag",
                &tag,
            ])
            .arg("--file")
            .arg(self.source().join("packaging/container/Containerfile"))
            .arg(&context),
        )?;
        let path = self.out().join(format!("abreast-{}-{}.oci.tar", self.version, self.arch));
        // buildah writes the archive with the time of this run.
        let layout = self.folder.join("layout");
        let _ = fs::remove_dir_all(&layout);
        run_quietly(buildah(&["push", &tag]).arg(format!("oci:{}:{tag}", layout.display())))?;
        run_quietly(self.tar("cat").arg("-cf").arg(path).arg("-C").arg(&layout).arg("."))?;
        // A builder without privileges leaves folders that only it may remove.
        let _ = fs::remove_dir_all(&storage);
        fs::remove_dir_all(layout)?;
        Ok(())
    }

    fn sums(&self) -> Result<()> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.out())? {
            names.push(entry?.file_name());
        }
        names.sort();
        let sums = run_quietly(Command::new("sha256sum").args(&names).current_dir(self.out()))?;
        fs::write(self.out().join("SHA256SUMS"), sums)?;
        Ok(())
    }
}

/// Whether an ELF file names an interpreter, which loads its libraries.
fn is_dynamic(program: &Path) -> Result<bool> {
    let headers = run_quietly(Command::new("readelf").arg("-lW").arg(program))?;
    Ok(headers.contains("INTERP"))
}

/// The headers of musl for another architecture: of the installed package of Debian, or of the
/// package unpacked in `target`.
fn musl_headers(arch: &str, debian: &str) -> Result<PathBuf> {
    let below = format!("usr/include/{arch}-linux-musl");
    let unpacked = target().join(format!("musl-dev-{debian}"));
    let places = [Path::new("/").join(&below), unpacked.join(&below)];
    let find = || places.iter().find(|place| place.join("stdio.h").is_file()).cloned();
    if let Some(found) = find() {
        return Ok(found);
    }
    let package = format!("musl-dev:{debian}");
    let known = Command::new("apt-config").args(["dump", "APT::Architectures"]).output();
    let is_known = known.is_ok_and(|known| {
        String::from_utf8_lossy(&known.stdout).contains(&format!("\"{debian}\""))
    });
    let mut reason = format!("APT has no packages for {debian} here");
    if is_known {
        match apt::unpack(&package, &unpacked) {
            Ok(()) => reason = format!("the package {package} does not have them"),
            Err(error) => reason = format!("{error:#}"),
        }
    }
    find().with_context(|| {
        format!(
            "the C headers of musl for {arch} are missing: {reason}\n  help: as root, `dpkg --add-architecture {debian}`, \
             `apt-get update`, `apt-get install {package}`; or unpack that package of Debian: `dpkg-deb -x FILE {}`",
            unpacked.display()
        )
    })
}

fn copy_all(from: &Path, to: &Path) -> Result<()> {
    run_quietly(Command::new("cp").arg("-a").arg(from).arg(to))?;
    Ok(())
}
