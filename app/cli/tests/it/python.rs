//! The package for Python: its tests, on a wheel that is installed into an empty environment.

use abreast_testkit::provided;
use std::path::Path;
use std::process::Command;

#[test]
fn the_wheel_is_installed_and_its_tests_pass() {
    let test = "the_wheel_is_installed_and_its_tests_pass";
    let (Some(python), Some(wheel)) =
        (provided(test, "ABREAST_TEST_PYTHON"), provided(test, "ABREAST_TEST_WHEEL"))
    else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let run = |command: &mut Command| {
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{command:?}: {text}");
        (String::from_utf8_lossy(&output.stdout).trim().to_owned(), text)
    };
    let (packages, _) = run(Command::new(&python)
        .args(["-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"]));
    let environment = place.path().join("venv");
    run(Command::new(&python).args(["-m", "venv"]).arg(&environment));
    let own = environment.join("bin/python");
    run(Command::new(&own).args(["-m", "pip", "install", "--quiet", "--no-index"]).arg(wheel));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (_, told) = run(Command::new(&own)
        .args(["-m", "unittest", "discover", "-v"])
        .current_dir(root.join("app/python/tests"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("ABREAST_TEST_PYTHON", &python)
        // The notebook, and the tests of tables, use packages of that environment.
        .env("ABREAST_TEST_PACKAGES", packages)
        .env("ABREAST_TEST_GUIDE", root.join("docs/python.md")));
    assert!(!told.contains("skipped"), "{told}");
}
