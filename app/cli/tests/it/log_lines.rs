//! Each line of the log has the set or the job that it is of, as a field.

use crate::world::{Source, abreast};
use abreast_testkit::eventually;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Two folders with files, and a set of RDF with a file that is not valid.
fn config(place: &Path) -> String {
    for name in ["a", "b", "c"] {
        fs::create_dir(place.join(name)).unwrap();
    }
    fs::write(place.join("a/one.txt"), "one").unwrap();
    fs::write(place.join("b/two.txt"), "two").unwrap();
    fs::write(place.join("c/ok.nt"), "<http://h/a> <http://h/p> \"x\" .\n").unwrap();
    fs::write(place.join("c/bad.nt"), "no statement\n").unwrap();
    let text = format!(
        "data = \"{}\"\n\
         [[set]]\nname = \"first\"\nfolder = \"{}\"\ndumps = {{ every = \"1d\" }}\n\
         [[set]]\nname = \"second\"\nfolder = \"{}\"\n\
         [[set]]\nname = \"third\"\norigin = \"rdf\"\nfolder = \"{}\"\n",
        place.join("data").display(),
        place.join("a").display(),
        place.join("b").display(),
        place.join("c").display(),
    );
    let file = place.join("abreast.toml");
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

fn serve(place: &Path, config: &str, format: &str) -> Source {
    let mut command = abreast();
    command.args(["serve", "--listen", "127.0.0.1:0", "--config", config]);
    command.env("ABREAST_LOG_FORMAT", format).env("ABREAST_LOG", "info");
    Source::run_logged(&mut command, &place.join("log"))
}

#[test]
fn each_line_has_its_set_as_a_field() {
    let place = tempfile::tempdir().unwrap();
    let file = config(place.path());
    let source = serve(place.path(), &file, "text");
    let log = || fs::read_to_string(place.path().join("log")).unwrap();
    eventually("the dump", || log().contains("is complete"));
    drop(source);
    for part in ["the dump `", "making the dump", "bad.nt"] {
        let log = log();
        let line = log.lines().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{log}"));
        let set = if part == "bad.nt" { "third" } else { "first" };
        assert!(line.contains(&format!("set=\"{set}\"")), "{line}");
        assert_eq!(line.matches("set=").count(), 1, "{line}");
        assert!(part != "bad.nt" || line.contains("; help: "), "{line}");
    }
}

#[test]
fn a_line_of_json_has_its_job_among_the_fields() {
    let place = tempfile::tempdir().unwrap();
    let file = config(place.path());
    let source = serve(place.path(), &file, "text");
    let jobs = place.path().join("jobs.toml");
    let target = place.path().join("copy");
    let text = format!(
        "[[mirror]]\nname = \"nightly\"\nurl = \"{}\"\nset = \"first\"\nfolder = {target:?}\n",
        source.url()
    );
    fs::write(&jobs, text).unwrap();
    let mut sync = abreast();
    sync.args(["sync", "--config"]).arg(&jobs).arg("nightly");
    sync.env("ABREAST_LOG_FORMAT", "json").env("ABREAST_LOG", "abreast_net=debug,info");
    let output = abreast_testkit::run(&mut sync);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let lines: Vec<_> = lines.filter(|line| line["fields"]["message"] == "answered").collect();
    // Threads that connect, that read lists and that fetch resources request them.
    for part in ["/robots.txt", "/resourcelist", "/one.txt"] {
        let has_part = |line: &Value| line["fields"]["url"].as_str().unwrap().contains(part);
        assert!(lines.iter().any(has_part), "{part}: {text}");
    }
    for line in lines {
        assert_eq!(line["fields"]["job"], "nightly", "{line}");
        assert_eq!(line["level"], "DEBUG");
        assert!(line["timestamp"].as_str().unwrap().ends_with('Z'), "{line}");
        assert!(line["target"].as_str().unwrap().starts_with("abreast_net"), "{line}");
    }
}
