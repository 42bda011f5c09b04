//! `abreast config`: all faults at once, and every setting that holds.

use crate::world::{abreast, run};
use std::fs;
use std::path::Path;

/// The lines that say what is wrong.
fn faults(words: &[&str], file: &Path, code: i32) -> Vec<String> {
    let output = run(abreast().args(words).arg(file));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{words:?}: {text}");
    let lines =
        text.lines().map(|line| line.trim_start().trim_start_matches("because: ").trim_start_matches("abreast: "));
    lines.filter(|line| line.starts_with("line ")).map(str::to_owned).collect()
}

fn assert_all(found: &[String], expected: &[(&str, &str)]) {
    for (line, part) in expected {
        let is_it = |fault: &&String| fault.starts_with(line) && fault.contains(part) && fault.contains("help: ");
        assert_eq!(found.iter().filter(is_it).count(), 1, "{line} {part} in\n{}", found.join("\n"));
    }
    assert_eq!(found.len(), expected.len(), "{}", found.join("\n"));
}

const FAULTY: &str = r#"listen = 8080
base_ulr = "https://example.org/"
data = "store"
[hub]
signature = "md5"
lease = true
hubs = ["no URL"]
[notify]
most = 0
[api]
reed = "anyone"
[[set]]
name = "one"
folder = "/nowhere/at/all"
rescan = "often"
dumps = { evry = "1d", keep = 0 }
[[set]]
name = "one"
foldr = "/tmp"
events = "yes"
[[set.links]]
match = "*.pdf"
rel = 3
[[mirror]]
url = "http://h.example/"
folder = "f"
conections = 3
retries = "many"
follow = "yes"
interval = [1]
[[mirror]]
url = "http://h.example/"
folder = "other/f"
follow = true
max_bytes = "1G"
ca_file = "/nowhere/at/all.pem"
[[mirror]]
name = "third"
url = 7
"#;

#[test]
fn every_fault_is_reported_at_once_with_its_line() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("abreast.toml");
    fs::write(&file, FAULTY).unwrap();
    let served: &[(&str, &str)] = &[
        ("line 1: ", "`listen`: invalid type: integer"),
        ("line 2: ", "unknown key `base_ulr` (help: did you mean `base_url`?)"),
        ("line 5: ", "`hub.signature`: `md5`"),
        ("line 6: ", "`hub.lease`: invalid type: boolean"),
        ("line 7: ", "`hub.hubs`: `no URL`"),
        ("line 9: ", "`notify.most`: 0"),
        ("line 11: ", "unknown key `reed` in `[api]` (help: did you mean `read`?)"),
        ("line 14: ", "`folder`: cannot open `/nowhere/at/all`"),
        ("line 15: ", "`rescan`: `often`"),
        ("line 16: ", "unknown key `evry` in `dumps` (help: did you mean `every`?)"),
        ("line 16: ", "`dumps.keep`: 0"),
        ("line 18: ", "`name`: two sets are called `one`"),
        ("line 19: ", "unknown key `foldr` in `[[set]]` (help: did you mean `folder`?)"),
        ("line 20: ", "`set.events`: invalid type: string"),
        ("line 21: ", "`href`: missing in `[[set.links]]`"),
        ("line 23: ", "`set.links.rel`: invalid type: integer"),
    ];
    let copied: &[(&str, &str)] = &[
        ("line 27: ", "unknown key `conections` in `[[mirror]]` (help: did you mean `connections`?)"),
        ("line 28: ", "job `f`: `retries`: invalid value 'many'"),
        ("line 29: ", "job `f`: `follow` is \"yes\""),
        ("line 30: ", "job `f`: `interval` is [1]"),
        ("line 31: ", "`name`: two jobs are called `f`"),
        ("line 34: ", "cannot be used with '--max-bytes"),
        ("line 36: ", "job `f`: `ca_file`: cannot open `/nowhere/at/all.pem`"),
        ("line 37: ", "`folder`: missing in `[[mirror]]` number 3"),
        ("line 39: ", "`url`: 7 is no text"),
    ];
    assert_all(&faults(&["config", "check"], &file, 2), &[served, copied].concat());
    assert_all(&faults(&["serve", "--config"], &file, 2), served);
    let of_file: Vec<_> = served
        .iter()
        .filter(|(_, part)| part.contains("unknown") || part.contains("invalid") || part.contains("missing"))
        .copied()
        .collect();
    assert_all(&faults(&["sync", "--all", "--config"], &file, 2), &[&of_file, copied].concat());
}

#[test]
fn an_audit_leaves_the_other_options_of_a_job_alone() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("abreast.toml");
    let folder = temporary.path().join("none");
    fs::write(
        &file,
        format!("[[mirror]]\nurl = \"http://127.0.0.1:1/\"\nfolder = {folder:?}\nfollow = true\nfolow = true\n"),
    )
    .unwrap();
    let expected = [("line 5: ", "unknown key `folow` in `[[mirror]]` (help: did you mean `follow`?)")];
    assert_all(&faults(&["audit", "--all", "--config"], &file, 2), &expected);
}

#[test]
fn what_is_no_toml_is_reported_with_the_rest() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("abreast.toml");
    fs::write(&file, "listen = 127.0.0.1\nlisten = \"127.0.0.1:1\"\n[hub]\nenabled = yes\n[notify]\nmosst = 1\n[api\n")
        .unwrap();
    let found = faults(&["config", "check"], &file, 2);
    for line in ["line 1: ", "line 2: ", "line 4: ", "line 6: unknown key `mosst`", "line 7: "] {
        assert!(found.iter().any(|fault| fault.starts_with(line)), "{line} in {found:#?}");
    }
    assert_eq!(found.len(), 5, "{found:#?}");
}

#[test]
fn what_is_shown_can_be_read_back() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path();
    let file = root.join("abreast.toml");
    let example = include_str!("../../../../abreast.example.toml");
    let strange = "data = \"a\\tb\\\"c\\\\ \\u202e'\"\n[hub]\nhubs = [\"https://me:hush@hub.example/\"]\n[[set]]\nfolder = \"f\"\n\
                   archives = { every = \"7d\" }\ndumps = { changes = true }\n[[set.set_links]]\nrel = \"license\"\nhref = \"x\"\n";
    for (number, text) in
        [example, "", strange, "[hub]\n", "[[mirror]]\nurl = \"http://h/\"\nfolder = \"f\"\n"].iter().enumerate()
    {
        fs::write(&file, text).unwrap();
        let show = |words: &[&str]| {
            let output = run(abreast().args(["config", "show"]).arg(&file).args(words));
            assert_eq!(output.status.code(), Some(0), "{number}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let shown = show(&[]);
        assert!(!shown.contains("hush"), "{shown}");
        let read: toml::Table = toml::from_str(&shown).unwrap();
        let written: toml::Table = toml::from_str(text).unwrap();
        for (key, value) in &written {
            match value {
                toml::Value::Table(table) => {
                    assert!(table.keys().all(|inner| read[key].get(inner).is_some()), "{shown}");
                }
                toml::Value::String(_) => assert_eq!(&read[key], value),
                _ => assert_eq!(read[key].as_array().unwrap().len(), value.as_array().unwrap().len()),
            }
        }
        if number < 4 {
            for key in ["listen", "private_callbacks", "open_lists", "max_content", "# ca_file", "redirect_permanent"] {
                assert!(shown.lines().any(|line| line.starts_with(key)), "{key} in\n{shown}");
            }
        } else {
            assert!(shown.contains("connections = \"8\"") && !shown.contains("[hub]"), "{shown}");
        }
        fs::write(&file, &shown).unwrap();
        assert_eq!(show(&[]), shown, "{number}");
        assert!(show(&["--origin"]).contains("  # file"));
    }
}
