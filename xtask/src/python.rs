//! The Python environments of peers written in Python, under `target/venv`, and of schedulers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::apt;
use crate::process::{find_program, is_set, run_quietly, target, with_retries};

/// Packages of the environment. `resync` imports `distutils`, which Python 3.12 dropped and
/// setuptools still brings, and `defusedxml`, which it does not declare. pywb brings warcio:
/// programs of archives, which read packed copies. memento_client asks for versions by date.
/// Flask-WebSub is a subscriber and a hub, which runs its tasks with Celery. pyoxigraph judges whether
/// two graphs are the same, oxigraph is a server of SPARQL, pyld whether documents are JSON-LD. slixmpp is a client of XMPP. maturin builds wheels.
/// nbclient executes the example notebook, with ipykernel. Playwright opens pages in Chromium, and axe checks them. The recipes use the others: duckdb, pandas and polars read lines, nats-py
/// is a client of NATS, and confluent-kafka has the mock cluster of librdkafka.
const REQUIREMENTS: [&str; 21] = [
    "setuptools<81",
    "resync==2.0.1",
    "defusedxml",
    "pywb==2.10.0",
    "moto[server]==5.2.5",
    "memento_client==0.6.1",
    "Flask-WebSub[celery]==0.4.1",
    "pyoxigraph==0.5.13",
    "oxigraph==0.5.13",
    "pyld==3.3.0",
    "slixmpp==1.17.0",
    "maturin==1.16.0",
    "nbclient==0.11.0",
    "ipykernel==7.4.0",
    "playwright==1.65.2",
    "axe-playwright-python==0.1.8",
    "duckdb==2.0.1",
    "pandas==3.1.1",
    "polars==2.1.0",
    "nats-py==2.16.0",
    "confluent-kafka==2.16.1",
];

/// Packages that run the recipes of schedulers, 244 MB. An environment of their own is installed while crates compile.
const SCHEDULERS: [&str; 2] = ["apache-airflow==3.3.2", "dagster==1.13.29"];

/// Interpreters in order of preference: the newest that still has `distutils` of its own first.
const INTERPRETERS: [&str; 3] = ["python3.11", "python3", "python3.13"];

/// The environment's `bin` folder, made when it is not there or holds something else than is
/// wanted.
pub(crate) fn environment() -> Result<PathBuf> {
    prepare("venv", &REQUIREMENTS, &["resync-sync", "resync-build"])
}

/// The same for the schedulers. Other threads may prepare [`environment`] meanwhile.
pub(crate) fn schedulers() -> Result<PathBuf> {
    prepare("venv-schedulers", &SCHEDULERS, &[])
}

/// The `bin` folder of an environment, whose programs must start.
fn prepare(name: &str, requirements: &[&str], programs: &[&str]) -> Result<PathBuf> {
    let folder = target().join(name);
    let bin = folder.join("bin");
    let stamp = folder.join("abreast-requirements");
    let wanted = requirements.join("\n");
    if fs::read_to_string(&stamp).is_ok_and(|text| text == wanted) {
        return Ok(bin);
    }
    if is_set("ABREAST_NO_INSTALL") {
        bail!(
            "installing is switched off by `ABREAST_NO_INSTALL` and target/{name} is not complete"
        );
    }
    let python = interpreter()?;
    eprintln!("preparing target/{name} with {}", requirements.join(", "));
    run_quietly(Command::new(&python).args(["-m", "venv", "--clear"]).arg(&folder))?;
    pip(&bin, "installing Python packages", &["install"], requirements)?;
    for program in programs {
        run_quietly(Command::new(bin.join(program)).arg("--help"))
            .with_context(|| format!("`{program}` was installed but does not start"))?;
    }
    fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(bin)
}

/// Downloads one package file into `folder` and returns its path; dependencies are left out.
pub(crate) fn download(requirement: &str, form: &str, folder: &Path) -> Result<PathBuf> {
    let bin = environment()?;
    let name = requirement.split("==").next().unwrap_or(requirement);
    let folder_text = folder.to_string_lossy();
    let arguments = ["download", "--no-deps", form, name, "--dest", folder_text.as_ref()];
    pip(&bin, &format!("downloading {requirement}"), &arguments, &[requirement])?;
    let file =
        fs::read_dir(folder)?.next().context("pip reported a download, but there is no file")??;
    Ok(file.path())
}

/// Installs further packages into the environment.
pub(crate) fn install(bin: &Path, what: &str, requirements: &[&str]) -> Result<()> {
    pip(bin, what, &["install"], requirements)
}

fn pip(bin: &Path, what: &str, arguments: &[&str], requirements: &[&str]) -> Result<()> {
    with_retries(what, || {
        let mut command = Command::new(bin.join("python"));
        command.args([
            "-m",
            "pip",
            "--quiet",
            "--disable-pip-version-check",
            "--retries",
            "5",
            "--timeout",
            "60",
        ]);
        run_quietly(command.args(arguments).args(requirements)).map(drop)
    })
}

fn interpreter() -> Result<PathBuf> {
    if let Some(python) = usable_interpreter() {
        return Ok(python);
    }
    apt::install(&["python3", "python3-venv"])
        .context("cannot find a Python that can make environments")?;
    usable_interpreter()
        .context("python3 and python3-venv are installed, and still no environment can be made")
}

fn usable_interpreter() -> Option<PathBuf> {
    INTERPRETERS.iter().filter_map(|name| find_program(name)).find(|python| {
        run_quietly(Command::new(python).args(["-c", "import ensurepip, venv"])).is_ok()
    })
}
