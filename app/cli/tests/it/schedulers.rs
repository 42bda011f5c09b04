//! The code of the page about schedulers runs in Airflow and Dagster as written, with another Source and folder.

use crate::documented::text_of;
use crate::world::{Source, without_settings};
use abreast_testkit::provided;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const PAGE: &str = "docs/recipes/jobs.md";

/// A server of one paper, and a folder with the code of the page.
struct Jobs {
    python: PathBuf,
    place: TempDir,
    source: Source,
}

impl Jobs {
    /// Writes `copy_job.py`, or returns nothing if the test has no schedulers.
    fn start(test: &str) -> Option<Self> {
        let python = provided(test, "ABREAST_TEST_SCHEDULERS")?;
        let place = tempfile::tempdir().unwrap();
        let papers = place.path().join("served");
        fs::create_dir(&papers).unwrap();
        fs::write(papers.join("one.txt"), "one\n").unwrap();
        let source = Source::start(&papers, 0, &[]);
        let jobs = Self { python, place, source };
        jobs.write("copy_job.py", "## The job\n", ["copy_job.py <<'END'\n", "\nEND\n"], "");
        Some(jobs)
    }

    fn copy(&self) -> PathBuf {
        self.place.path().join("copy")
    }

    /// Writes the code of a section, between two texts, with the Source at a path of the server.
    fn write(&self, name: &str, section: &str, [start, end]: [&str; 2], path: &str) {
        let page = text_of(PAGE);
        let (_, rest) = page.split_once(section).unwrap();
        let (_, rest) = rest.split_once(start).unwrap();
        let (code, _) = rest.split_once(end).unwrap();
        let url = format!("http://{}/{path}", self.source.address);
        let code = code.replace("https://papers.example.org/", &url);
        let code = code.replace("/srv/copies/papers", self.copy().to_str().unwrap());
        let file = self.place.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, code).unwrap();
    }

    /// Runs Python in the folder, and returns whether it succeeded, with all that it printed.
    fn python(&self, arguments: &[&str]) -> (bool, String) {
        let bin = Path::new(env!("CARGO_BIN_EXE_abreast")).parent().unwrap();
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let place = self.place.path();
        let mut command = Command::new(&self.python);
        without_settings(&mut command);
        command.args(arguments).current_dir(place).env("PATH", path).env("HOME", place);
        command.env("PYTHONPATH", place).env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("AIRFLOW_HOME", place.join("airflow"));
        command.env("AIRFLOW__CORE__LOAD_EXAMPLES", "false");
        command.env("AIRFLOW__USAGE_DATA_COLLECTION__ENABLED", "false");
        command.env("DAGSTER_DISABLE_TELEMETRY", "1");
        let output = command.output().unwrap();
        let [out, errors] =
            [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        (output.status.success(), format!("{out}{errors}"))
    }
}

/// A block of Python.
const BLOCK: [&str; 2] = ["```python\n", "```\n"];

#[test]
fn dag_of_airflow_copies_and_fails_without_retries() {
    let Some(jobs) = Jobs::start("dag_of_airflow_copies_and_fails_without_retries") else { return };
    let run = |path: &str| {
        jobs.write("airflow/dags/papers.py", "## Airflow\n", BLOCK, path);
        jobs.python(&["-m", "airflow", "dags", "test", "papers"])
    };
    let (is_made, text) = jobs.python(&["-m", "airflow", "db", "migrate"]);
    assert!(is_made, "{text}");
    let (_, text) = run("");
    let returned = text.lines().find(|line| line.contains("Returned value was: "));
    assert!(returned.is_some_and(|line| line.contains("'created': 1")), "{text}");
    assert!(text.contains("state=success"), "{text}");
    assert_eq!(fs::read(jobs.copy().join("one.txt")).unwrap(), b"one\n");
    let (_, text) = run("nothing");
    assert!(text.contains("exit code 4: ") && text.contains("state=failed"), "{text}");
    assert!(!text.contains("up_for_retry"), "{text}");
}

/// Runs the asset and its check in one process, and prints the outcome.
const MATERIALIZE: &str = r#"
import dagster as dg, definitions
run = dg.materialize([definitions.papers, definitions.equals_its_source], raise_on_error=False)
if run.success:
    metadata = run.asset_materializations_for_node("papers")[0].metadata
    print("created", metadata["created"].value, "equal", run.get_asset_check_evaluations()[0].passed)
retries = [event for event in run.all_events if event.is_step_up_for_retry]
print("success", run.success, "retries", len(retries))
"#;

#[test]
fn asset_of_dagster_copies_and_fails_without_retries() {
    let Some(jobs) = Jobs::start("asset_of_dagster_copies_and_fails_without_retries") else {
        return;
    };
    let run = |path: &str| {
        jobs.write("definitions.py", "## Dagster\n", BLOCK, path);
        jobs.python(&["-c", MATERIALIZE]).1
    };
    let text = run("");
    assert!(text.contains("created 1 equal True\nsuccess True retries 0\n"), "{text}");
    let text = run("nothing");
    assert!(text.contains("success False retries 0\n"), "{text}");
    assert!(text.contains("exit code 4: "), "{text}");
}
