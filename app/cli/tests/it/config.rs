//! `abreast config`: all faults at once, and every setting that holds.

use crate::world::abreast;
use abreast_testkit::run;
use std::fs;
#[cfg(feature = "postgres")]
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// The lines that say what is wrong.
fn faults(words: &[&str], file: &Path, code: i32) -> Vec<String> {
    let output = run(abreast().args(words).arg(file));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{words:?}: {text}");
    let lines = text.lines().map(|line| {
        line.trim_start().trim_start_matches("because: ").trim_start_matches("abreast: ")
    });
    let place = format!("{}:", file.display());
    lines
        .filter_map(|line| line.strip_prefix(&place))
        .map(|fault| format!("line {fault}"))
        .collect()
}

fn assert_all(found: &[String], expected: &[(&str, &str)]) {
    for (line, part) in expected {
        let is_it = |fault: &&String| {
            fault.starts_with(line) && fault.contains(part) && fault.contains("help: ")
        };
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
        (
            "line 1: ",
            "`listen`: found integer `8080`, expected a text (help: write HOST:PORT in quotes: listen = \"127.0.0.1:8080\")",
        ),
        ("line 2: ", "unknown key `base_ulr` (help: did you mean `base_url`?)"),
        ("line 5: ", "`hub.signature`: `md5`"),
        ("line 6: ", "`hub.lease`: found boolean `true`, expected a text"),
        ("line 7: ", "`hub.hubs`: `no URL`"),
        ("line 9: ", "`notify.most`: 0"),
        ("line 11: ", "unknown key `reed` in `[api]` (help: did you mean `read`?)"),
        ("line 14: ", "`folder`: cannot open `/nowhere/at/all`"),
        ("line 15: ", "`rescan`: `often`"),
        ("line 16: ", "unknown key `evry` in `dumps` (help: did you mean `every`?)"),
        ("line 16: ", "`dumps.keep`: 0"),
        ("line 18: ", "`name`: two sets are called `one`"),
        ("line 19: ", "unknown key `foldr` in `[[set]]` (help: did you mean `folder`?)"),
        ("line 20: ", "`set.events`: found string \"yes\", expected `true` or `false`"),
        ("line 21: ", "`href`: missing in `[[set.links]]`"),
        ("line 23: ", "`set.links.rel`: found integer `3`, expected a text"),
    ];
    let copied: &[(&str, &str)] = &[
        (
            "line 27: ",
            "unknown key `conections` in `[[mirror]]` (help: did you mean `connections`?)",
        ),
        ("line 28: ", "job `f`: `retries`: `many` cannot be used: "),
        ("line 29: ", "job `f`: `follow` is \"yes\""),
        ("line 30: ", "job `f`: `interval` is [1]"),
        ("line 31: ", "`name`: two jobs are called `f`"),
        ("line 34: ", "cannot be used with '--max-bytes"),
        ("line 36: ", "job `f`: `ca_file`: cannot read `/nowhere/at/all.pem`"),
        ("line 37: ", "`folder`: missing in `[[mirror]]` number 3"),
        ("line 39: ", "`url`: 7 is not text"),
    ];
    assert_all(&faults(&["config", "check"], &file, 2), &[served, copied].concat());
    assert_all(&faults(&["serve", "--config"], &file, 2), served);
    let of_file: Vec<_> = served
        .iter()
        .filter(|(_, part)| {
            part.contains("unknown") || part.contains("found ") || part.contains("missing")
        })
        .copied()
        .collect();
    assert_all(&faults(&["sync", "--all", "--config"], &file, 2), &[&of_file, copied].concat());
}

#[test]
fn equal_faults_of_several_tables_have_lines_of_their_own() {
    let temporary = tempfile::tempdir().unwrap();
    let (file, folder) = (temporary.path().join("abreast.toml"), temporary.path().join("folder"));
    fs::create_dir(&folder).unwrap();
    let set = |name: &str| {
        format!("[[set]]\nname = \"{name}\"\nfolder = {:?}\ncolour = 1\n", folder.join(name))
    };
    for name in ["one", "two"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    let rule = "[[set.links]]\nmatch = \"*\"\nrel = \"x\"\nhref = \"http://h/\"\ncolour = 1\n";
    let mirror =
        |name: &str| format!("[[mirror]]\nurl = \"http://h/\"\nfolder = {name:?}\ncolour = 1\n");
    let text = [
        set("one"),
        rule.repeat(2),
        "archives = 1\n".to_owned(),
        set("two"),
        "archives = { evry = \"7d\" }\nversions = -1\n".to_owned(),
        "[api]\ncolour = 1\n[hub]\ncolour = 1\n".to_owned(),
        mirror("a"),
        mirror("b"),
    ]
    .concat();
    fs::write(&file, &text).unwrap();
    let mut expected: Vec<(String, &str)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("colour") {
            expected.push((format!("line {}: ", number + 1), "unknown key `colour`"));
        }
    }
    let line_of = |part: &str| {
        format!("line {}: ", text.lines().position(|line| line.starts_with(part)).unwrap() + 1)
    };
    // The key is in the second rule for links, as TOML reads it.
    expected.push((line_of("archives = 1"), "unknown key `archives` in `[[set.links]]`"));
    expected.push((
        line_of("archives = {"),
        "unknown key `evry` in `archives` (help: did you mean `every`?)",
    ));
    expected.push((
        line_of("versions"),
        "`set.versions`: expected a number of 1 or more, `\"all\"`, or a table",
    ));
    // What several sets need, and no key says.
    let second = text.match_indices("[[set]]").nth(1).unwrap().0;
    expected
        .push((format!("line {}: ", text[..second].lines().count() + 1), "`data`: several sets"));
    let expected: Vec<_> = expected.iter().map(|(line, part)| (line.as_str(), *part)).collect();
    let found = faults(&["config", "check"], &file, 2);
    assert_all(&found, &expected);
    assert!(
        !found.iter().any(|fault| fault.contains("`callback_url`")),
        "a key that is not near is not proposed"
    );
}

#[test]
fn values_of_a_wrong_type_are_reported_without_names_of_types() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("abreast.toml");
    let keys = [
        "archives",
        "dumps",
        "versions",
        "links",
        "set_links",
        "include",
        "changes_per_list",
        "events",
        "name",
    ];
    for key in keys {
        for value in ["true", "-1", "1.5", "\"x\"", "[1]", "[[1]]", "{ a = 1 }", "1979-05-27"] {
            fs::write(
                &file,
                format!("[[set]]\nfolder = {:?}\n{key} = {value}\n", temporary.path()),
            )
            .unwrap();
            let output = run(abreast().args(["config", "check"]).arg(&file));
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            for words in [
                "struct",
                "File",
                "enum",
                "variant",
                "u32",
                "usize",
                "invalid type",
                "a map",
                "a sequence",
            ] {
                assert!(!text.contains(words), "{key} = {value}: {words} in {text}");
            }
            let is_fault = |line: &str| line.contains("abreast.toml:") && line.contains("help: ");
            assert!(
                output.status.code() == Some(0) || text.lines().any(is_fault),
                "{key} = {value}: {text}"
            );
        }
    }
}

#[test]
fn mirrors_that_disturb_each_other_or_a_set_are_faults() {
    let temporary = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temporary.path()).unwrap();
    let (file, published) = (root.join("abreast.toml"), root.join("published"));
    fs::create_dir(&published).unwrap();
    std::os::unix::fs::symlink(&published, root.join("alias")).unwrap();
    let mirror = |name: &str, url: &str, target: &str| {
        let target = target.replace("ROOT", root.to_str().unwrap());
        format!("[[mirror]]\nname = {name:?}\nurl = {url:?}\n{target}\n")
    };
    let url = "https://h.example/";
    let check = |mirrors: &[String], expected: &[(&str, &str)]| {
        let set = format!("[[set]]\nfolder = {published:?}\n");
        fs::write(&file, set + &mirrors.concat()).unwrap();
        assert_all(
            &faults(&["config", "check"], &file, if expected.is_empty() { 0 } else { 2 }),
            expected,
        );
    };
    let first = mirror("a", url, "folder = 'ROOT/copy'");
    for (target, is_fault) in [
        ("folder = 'ROOT/copy'", true),
        ("folder = 'ROOT/copy/below'", true),
        ("folder = 'ROOT/./copy/'", true),
        ("folder = 'ROOT'", true),
        ("folder = 'warc:ROOT/copy'", true),
        ("folder = 'ROOT/copy2'", false),
        ("folder = '-'\nstate = 'ROOT/copy'", true),
        ("folder = '-'\nstate = 'ROOT/state'", false),
    ] {
        let second = mirror("b", url, target);
        check(
            &[first.clone(), second],
            if is_fault { &[("line ", "job `b` and job `a` overlap")] } else { &[] },
        );
    }
    for (target, is_fault) in [
        ("folder = 'ROOT/published'", true),
        ("folder = 'ROOT/alias/below'", true),
        ("folder = 'warc:ROOT/published/warc'", true),
        ("folder = 'ROOT/published'\nrepublish = true", false),
        ("folder = 'set:published'", false),
        ("folder = 'ROOT/elsewhere'", false),
    ] {
        check(
            &[mirror("a", url, target)],
            if is_fault { &[("line 6: ", "which is published")] } else { &[] },
        );
    }
    for wrong in ["h.example/papers", "http:/h.example/", "ftp://h.example/", "http://"] {
        check(&[mirror("a", wrong, "folder = 'ROOT/copy'")], &[("line 5: ", "`url`: `")]);
    }
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
    let expected =
        [("line 5: ", "unknown key `folow` in `[[mirror]]` (help: did you mean `follow`?)")];
    assert_all(&faults(&["audit", "--all", "--config"], &file, 2), &expected);
}

#[test]
fn invalid_toml_is_reported_with_other_errors() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("abreast.toml");
    fs::write(&file, "listen = 127.0.0.1\nlisten = \"127.0.0.1:1\"\n[hub]\nenabled = yes\n[notify]\nmosst = 1\n[api\n")
        .unwrap();
    let found = faults(&["config", "check"], &file, 2);
    for line in [
        "line 1: ",
        "line 2: ",
        "line 3: `data`",
        "line 4: ",
        "line 6: unknown key `mosst`",
        "line 7: ",
    ] {
        assert!(found.iter().any(|fault| fault.starts_with(line)), "{line} in {found:#?}");
    }
    assert_eq!(found.len(), 6, "{found:#?}");
}

#[test]
fn shown_configuration_can_be_read_back() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path();
    let file = root.join("abreast.toml");
    let example = include_str!("../../../../abreast.example.toml");
    let strange = "data = \"a\\tb\\\"c\\\\ \\u202e'\"\n[hub]\nhubs = [\"https://me:hush@hub.example/\"]\n[[set]]\nfolder = \"f\"\n\
                   archives = { every = \"7d\" }\ndumps = { changes = true }\n[[set.set_links]]\nrel = \"license\"\nhref = \"x\"\n";
    for (number, text) in
        [example, "", strange, "[hub]\n", "[[mirror]]\nurl = \"http://h/\"\nfolder = \"f\"\n"]
            .iter()
            .enumerate()
    {
        fs::write(&file, text).unwrap();
        let show = |words: &[&str]| {
            let output = run(abreast().args(["config", "show"]).arg(&file).args(words));
            assert_eq!(
                output.status.code(),
                Some(0),
                "{number}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
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
                toml::Value::Array(all) => {
                    assert_eq!(read[key].as_array().unwrap().len(), all.len());
                }
                _ => assert_eq!(&read[key], value),
            }
        }
        if number < 4 {
            for key in [
                "listen",
                "private_callbacks",
                "open_lists",
                "max_content",
                "# ca_file",
                "redirect_permanent",
            ] {
                assert!(shown.lines().any(|line| line.starts_with(key)), "{key} in\n{shown}");
            }
        } else {
            assert!(shown.contains("retries = \"5\"") && !shown.contains("[hub]"), "{shown}");
        }
        fs::write(&file, &shown).unwrap();
        assert_eq!(show(&[]), shown, "{number}");
        assert!(show(&["--origin"]).contains("  # file"));
    }
}

#[test]
fn types_that_are_no_names_are_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("abreast.toml");
    for (name, is_type) in
        [("Manifest", true), ("http://e.example/T", true), ("Man ifest", false), ("", false)]
    {
        let folder = temporary.path();
        fs::write(&file, format!("[[set]]\nfolder = {folder:?}\nobject_type = {name:?}\n"))
            .unwrap();
        let expected = [("line 3: ", "`object_type`")];
        let expected = if is_type { &[][..] } else { &expected };
        assert_all(&faults(&["config", "check"], &file, if is_type { 0 } else { 2 }), expected);
    }
}

#[cfg(feature = "xmpp")]
#[test]
fn a_wrong_service_is_reported_once() {
    let temporary = tempfile::tempdir().unwrap();
    let (file, folder) = (temporary.path().join("abreast.toml"), temporary.path());
    let text = format!(
        "base_url = \"http://h.example/\"\ndata = {folder:?}\n[xmpp]\njid = \"a@h.example\"\npassword_command = \"true\"\n\
         service = \"x y\"\n[[set]]\nname = \"one\"\nfolder = {folder:?}\n[[set]]\nname = \"two\"\nfolder = {folder:?}\n"
    );
    fs::write(&file, text).unwrap();
    let found = faults(&["config", "check"], &file, 2);
    assert_eq!(found.iter().filter(|fault| fault.contains("idna")).count(), 1, "{found:?}");
}

#[test]
fn relative_paths_are_those_of_the_current_folder() {
    let place = tempfile::tempdir().unwrap();
    let (here, beside) = (place.path().join("here"), place.path().join("beside"));
    for (folder, name) in [(&here, "of-here"), (&beside, "of-config")] {
        std::fs::create_dir(folder).unwrap();
        std::fs::create_dir(folder.join(name)).unwrap();
        std::fs::write(folder.join(format!("{name}.txt")), "{\"@context\": {}}").unwrap();
    }
    let config = beside.join("abreast.toml");
    let mirror = "[[mirror]]\nurl = \"http://127.0.0.1:9/\"\nfolder = \"copy\"\n";
    let keys = [
        (mirror, "context = [\"urn:x=FILE.txt\"]"),
        (mirror, "uris_from = \"FILE.txt\""),
        (mirror, "filter_from = [\"FILE.txt\"]"),
        (mirror, "token_file = \"FILE.txt\""),
        (mirror, "user = \"u\"\npassword_file = \"FILE.txt\""),
        (mirror, "netrc = \"FILE.txt\""),
        (mirror, "ca_file = \"FILE.txt\""),
        (mirror, "client_cert = \"FILE.txt\""),
        ("[[set]]\nfolder = \"of-here\"\n", "filter_from = [\"FILE.txt\"]"),
        ("[[set]]\n", "folder = \"FILE\""),
    ];
    for (table, key) in keys {
        for (name, is_found) in [("of-here", true), ("of-config", false)] {
            let text = format!("data = \"store\"\n{table}{}\n", key.replace("FILE", name));
            std::fs::write(&config, &text).unwrap();
            let mut doctor = abreast();
            doctor.args(["doctor", "--config", "../beside/abreast.toml"]).current_dir(&here);
            let output = run(&mut doctor);
            let printed = String::from_utf8_lossy(&output.stdout);
            let is_missing =
                printed.contains("No such file or directory") || printed.contains("no folder");
            assert_eq!(is_missing, !is_found, "{text}{printed}");
        }
    }
}

#[test]
fn files_for_containers_are_valid_and_agree() {
    let source = include_str!("../../../../packaging/container/source.toml");
    let hub = include_str!("../../../../packaging/container/hub.toml");
    let compose = include_str!("../../../../packaging/container/compose.yaml");
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path();
    let quoted = |name: &str| format!("\"{}\"", root.join(name).display());
    fs::create_dir(root.join("papers")).unwrap();
    for (name, text) in [("source.toml", source), ("hub.toml", hub)] {
        let here =
            text.replace("\"/papers\"", &quoted("papers")).replace("\"/data\"", &quoted("data"));
        assert_ne!(here, text, "{name}");
        fs::write(root.join(name), here).unwrap();
        assert_all(&faults(&["config", "check"], &root.join(name), 0), &[]);
        assert!(compose.contains(&format!("\"./{name}:/etc/")), "{name}");
    }
    let (source, hub): (toml::Table, toml::Table) = (source.parse().unwrap(), hub.parse().unwrap());
    let topic = source["base_url"].as_str().unwrap();
    assert_eq!(hub["hub"]["allow_topics"][0].as_str(), Some(topic));
    assert!(compose.contains(&format!("--follow, \"{topic}\",")));
    let address = format!("{}hub", hub["base_url"].as_str().unwrap());
    assert_eq!(source["hub"]["hubs"][0].as_str(), Some(&*address));
}

#[cfg(feature = "postgres")]
#[test]
fn files_for_containers_of_nodes_are_valid_and_agree() {
    let nodes = include_str!("../../../../packaging/container/nodes/nodes.toml");
    let compose = include_str!("../../../../packaging/container/nodes/compose.yaml");
    let proxy = include_str!("../../../../packaging/container/nodes/Caddyfile");
    let guide = include_str!("../../../../docs/nodes.md");
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path();
    let quoted = |name: &str| format!("\"{}\"", root.join(name).display());
    fs::create_dir(root.join("papers")).unwrap();
    let secret = "/run/secrets/database";
    fs::write(root.join("secret"), "a secret\n").unwrap();
    fs::set_permissions(root.join("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    let here = [("/papers", "papers"), ("/data", "data"), (secret, "secret")];
    let here = here.iter().fold(nodes.to_owned(), |text, (path, name)| {
        text.replace(&format!("\"{path}\""), &quoted(name))
    });
    assert!(!here.contains("/run/secrets/"), "{here}");
    fs::write(root.join("nodes.toml"), here).unwrap();
    assert_all(&faults(&["config", "check"], &root.join("nodes.toml"), 0), &[]);
    let settings: toml::Table = nodes.parse().unwrap();
    let has = |text: &str| assert!(compose.contains(text), "{text}");
    has("\"./nodes.toml:/etc/abreast.toml:ro\"");
    has("\"./Caddyfile:/etc/caddy/Caddyfile:ro\"");
    let data = settings["data"].as_str().unwrap();
    let (user, database) =
        data.strip_prefix("postgres://").unwrap().split_once("@database/").unwrap();
    has(&format!(
        "{{POSTGRES_USER: {user}, POSTGRES_DB: {database}, POSTGRES_PASSWORD_FILE: {secret}}}"
    ));
    let contents = settings["contents"].as_str().unwrap().strip_prefix("s3://").unwrap();
    has(&format!("mkdir -p /data/{} &&", contents.split('/').next().unwrap()));
    // Each password is in a file, and in no variable.
    for name in ["database", "bucket", "credentials"] {
        has(&format!("\n  {name}: {{file: ./secrets/{name}}}\n"));
        has(&format!("/run/secrets/{name}"));
    }
    let commands: Vec<_> = compose.lines().filter_map(|line| line.strip_prefix("#     ")).collect();
    assert!(commands.len() == 5 && guide.contains(&commands.join("\n")), "{commands:?}");
    for node in ["a", "b", "c"] {
        has(&format!("\n  {node}: {{<<: *node, hostname: {node}}}\n"));
    }
    has("\"8080:8080\"");
    assert!(
        proxy.contains("http://:8080 {") && settings["listen"].as_str() == Some("0.0.0.0:8080")
    );
    assert!(proxy.contains("reverse_proxy a:8080 b:8080 c:8080 {"));
}

#[test]
fn the_load_balancer_of_the_nodes_is_configured_correctly() {
    let name = "config::the_load_balancer_of_the_nodes_is_configured_correctly";
    let Some(caddy) = abreast_testkit::provided(name, "ABREAST_TEST_CADDY") else { return };
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/container/nodes/Caddyfile");
    let mut check = Command::new(caddy);
    check.args(["validate", "--adapter", "caddyfile", "--config"]).arg(file);
    let output = run(check.env("HOME", tempfile::tempdir().unwrap().path()));
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
}

#[test]
fn the_file_is_an_argument_or_that_of_config() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("a.toml");
    fs::write(&file, "[[mirror]]\nname = \"one\"\nurl = \"http://h.example/\"\nfolder = \"x\"\n")
        .unwrap();
    let file = file.to_str().unwrap();
    let missing = place.path().join("missing.toml");
    let missing = missing.to_str().unwrap();
    for (words, environment, expected) in [
        (&["check", file][..], None, 0),
        (&["check", "--config", file], None, 0),
        (&["check"], Some(file), 0),
        (&["check", "--config", file], Some(missing), 0),
        (&["check", file], Some(missing), 0),
        (&["check", "--config", file, missing], None, 2),
        (&["check"], None, 2),
        (&["show", file, "one"], None, 0),
        (&["show", "--config", file, "one"], None, 0),
        (&["show", "one", "--config", file], Some(missing), 0),
        (&["show", "--config", file, "two"], None, 2),
        (&["show", "--config", file], Some(file), 0),
    ] {
        let mut command = abreast();
        command.arg("config").args(words);
        environment.map(|path| command.env("ABREAST_CONFIG", path));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(expected), "{words:?} {environment:?}: {output:?}");
        if expected == 0 && words[0] == "show" {
            let shown = String::from_utf8(output.stdout).unwrap();
            assert!(shown.contains("name = \"one\""), "{words:?}: {shown}");
        }
    }
}
