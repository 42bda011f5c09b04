//! `abreast init`: the configuration that it writes, and the commands that it prints.

use crate::world::{Source, abreast};
use abreast_testkit::folder::assert_equal;
use abreast_testkit::run;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs `init` in a folder; returns the exit code and everything it prints.
fn init(place: &Path, arguments: &[&str]) -> (i32, String) {
    let output = run(abreast().arg("init").args(arguments).current_dir(place).stdin(Stdio::null()));
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

/// Makes a setting of each line that is a setting in a comment.
fn with_all_settings(text: &str) -> String {
    let setting = |line: &&str| line.starts_with('#') && !line.starts_with("# ");
    text.lines()
        .map(|line| if setting(&line) { &line[1..] } else { line })
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn every_kind_of_configuration_can_be_used() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    fs::create_dir(place.join("papers")).unwrap();
    let kinds: [&[&str]; 6] = [
        &["--folder", "papers"],
        &[
            "--folder",
            "papers",
            "--base-url",
            "https://papers.example.org/",
            "--title",
            "The \"papers\"",
        ],
        &["--rdf", "papers", "--name", "authorities"],
        &["--records", "--name", "catalogue", "--data", "store"],
        &[
            "--records",
            "--name",
            "catalogue",
            "--data",
            "public",
            "--base-url",
            "https://papers.example.org/",
        ],
        &["--mirror", "https://papers.example.org/", "--into", "copy"],
    ];
    for (number, kind) in kinds.iter().enumerate() {
        let file = format!("{number}.toml");
        let (code, printed) = init(place, &[&[file.as_str()], *kind].concat());
        assert_eq!(code, 0, "{kind:?}\n{printed}");
        let commands = printed.lines().filter(|line| line.starts_with("  abreast "));
        let (tokens, next): (Vec<_>, Vec<_>) = commands.partition(|line| line.contains(" token "));
        assert_eq!(next.len(), 3, "{printed}");
        // A public API that writes needs a token.
        let is_public = kind.contains(&"--records") && kind.contains(&"--base-url");
        assert_eq!(tokens.len(), usize::from(is_public), "{printed}");
        for token in tokens {
            let words = token.split_whitespace().skip(1);
            assert!(run(abreast().args(words).current_dir(place)).status.success(), "{token}");
        }
        let path = place.join(&file);
        let text = fs::read_to_string(&path).unwrap();
        let settings = with_all_settings(&text);
        // Without a public address, records need no token.
        let is_open = kind.contains(&"--records") && !is_public;
        let settings = if is_open { settings.replace("base_url", "#base_url") } else { settings };
        fs::write(&path, settings).unwrap();
        let check = run(abreast().args(["config", "check"]).arg(&path).current_dir(place));
        assert!(
            check.status.success(),
            "{kind:?}\n{}\n{text}",
            String::from_utf8_lossy(&check.stderr)
        );
    }
}

#[test]
fn the_printed_commands_publish_and_copy() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    fs::create_dir(place.join("papers")).unwrap();
    fs::write(place.join("papers/a.txt"), "a").unwrap();
    let (code, printed) = init(place, &["--folder", "papers"]);
    assert_eq!(code, 0, "{printed}");
    let source = Source::start_config(place.join("abreast.toml").to_str().unwrap());
    let (code, printed) =
        init(place, &["mirror.toml", "--mirror", &source.url(), "--into", "copy"]);
    assert_eq!(code, 0, "{printed}");
    for line in
        printed.lines().filter(|line| line.starts_with("  abreast ") && !line.contains("--follow"))
    {
        let words = line.split_whitespace().skip(1);
        let output = run(abreast().args(words).current_dir(place));
        assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_equal(&place.join("papers"), &place.join("copy"));
}

#[test]
fn nothing_is_replaced_published_or_guessed() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    fs::create_dir(place.join("papers")).unwrap();
    fs::write(place.join("there.toml"), "mine").unwrap();
    for (arguments, what) in [
        (&["there.toml", "--folder", "papers"][..], "--force"),
        (&["new.toml"], "--folder DIR"),
        (&["new.toml", "--folder", "papers", "--records"], "cannot be used with"),
        (&["new.toml", "--mirror", "https://papers.example.org/"], "--into"),
        (&["papers/new.toml", "--folder", "papers"], "another folder"),
        (&["new.toml", "--folder", "missing"], "missing"),
    ] {
        let (code, printed) = init(place, arguments);
        assert_eq!(code, 2, "{arguments:?}\n{printed}");
        assert!(printed.contains(what), "{arguments:?}: no `{what}`\n{printed}");
    }
    assert_eq!(fs::read_to_string(place.join("there.toml")).unwrap(), "mine");
    let (code, printed) = init(place, &["there.toml", "--folder", "papers", "--force"]);
    assert_eq!(code, 0, "{printed}");
}

/// Runs `init` on a pseudo terminal; returns whether it succeeds, and everything that the terminal shows.
fn init_on_terminal(place: &Path, arguments: &str, answers: &str) -> (bool, String) {
    let command = format!("{} init {arguments}", env!("CARGO_BIN_EXE_abreast"));
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).current_dir(place);
    let mut script = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = script.stdin.take().unwrap();
    input.write_all(answers.as_bytes()).unwrap();
    let output = script.wait_with_output().unwrap();
    drop(input);
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The settings of a file, which `config check` accepts.
fn checked(file: &Path) -> toml::Table {
    let check = run(abreast().args(["config", "check"]).arg(file));
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
    fs::read_to_string(file).unwrap().parse().unwrap()
}

#[test]
fn questions_are_asked_on_a_terminal() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    fs::create_dir(place.join("papers")).unwrap();
    // An unknown kind, a missing folder and wrong addresses are asked for again.
    let answers = "shelf\nfolder\nmissing\npapers\nThe \"papers\"\nCC0\nnobody\ndata@example.org\n\
         Example Library\nlibrary\nhttps://library.example.org/\npapers\nhttps://papers.example.org/\n";
    let (is_written, printed) = init_on_terminal(place, "", answers);
    assert!(is_written, "{printed}");
    for shown in
        ["answer one of", "`missing` is not a folder", "not a contact", "wrote abreast.toml; next:"]
    {
        assert!(printed.contains(shown), "no `{shown}`\n{printed}");
    }
    let next = printed.lines().filter(|line| line.starts_with("  abreast "));
    assert_eq!(next.count(), 3, "{printed}");
    let settings = checked(&place.join("abreast.toml"));
    let text = |table: &toml::Table, key: &str| table[key].as_str().unwrap().to_owned();
    let institution = settings["institution"].as_table().unwrap();
    let set = settings["set"][0].as_table().unwrap();
    assert_eq!(text(&settings, "base_url"), "https://papers.example.org/");
    assert_eq!(text(institution, "name"), "Example Library");
    assert_eq!(text(institution, "url"), "https://library.example.org/");
    assert_eq!(text(institution, "contact"), "data@example.org");
    assert_eq!(text(set, "name"), "papers");
    assert_eq!(text(set, "title"), "The \"papers\"");
    assert_eq!(text(set, "licence"), "CC0");
    assert_eq!(text(set, "contact"), "data@example.org");
}

#[test]
fn enter_accepts_all_defaults_of_init() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    let papers = place.join("papers");
    fs::create_dir(&papers).unwrap();
    // The default file would be in the default folder: the next question has a file outside.
    let (is_written, printed) = init_on_terminal(&papers, "", &"\n".repeat(8));
    assert!(is_written, "{printed}");
    let settings = checked(&place.join("abreast.toml"));
    assert!(!settings.contains_key("institution") && !settings.contains_key("base_url"));
    assert_eq!(settings["set"][0]["title"].as_str(), Some("papers"));
    assert!(fs::read_dir(&papers).unwrap().next().is_none(), "{printed}");
    // A file that exists is not replaced.
    let (is_written, printed) = init_on_terminal(&papers, "", &"\n".repeat(8));
    assert!(!is_written && printed.contains("exists"), "{printed}");
}

#[test]
fn options_answer_the_questions_of_init() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    let options = "a.toml --title Names --licence CC0 --contact data@example.org --institution Library \
         --institution-url https://library.example.org/ --name names --base-url https://names.example.org/";
    let (is_written, printed) = init_on_terminal(place, options, "records\n");
    assert!(is_written && printed.matches('?').count() == 1, "{printed}");
    // Without a terminal, the same options need no answers.
    let options = options.replace("a.toml", "b.toml --records");
    let (code, printed) = init(place, &options.split_whitespace().collect::<Vec<_>>());
    assert_eq!(code, 0, "{printed}");
    let [asked, given] =
        ["a.toml", "b.toml"].map(|name| fs::read_to_string(place.join(name)).unwrap());
    assert_eq!(asked, given);
    assert!(given.contains("[institution]\nname = \"Library\"\n"), "{given}");
}

#[test]
fn root_is_told_to_run_as_the_owner_of_the_store() {
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    let store = place.join("store");
    fs::create_dir(&store).unwrap();
    if std::os::unix::fs::chown(&store, Some(12_345), Some(12_346)).is_err() {
        return abreast_testkit::skipped(module_path!(), "only root can change owners");
    }
    let mut command = abreast();
    command.args(["init", "--records", "--name", "catalogue", "--data", "store"]);
    let output = abreast_testkit::run(command.current_dir(place));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let serve = "  setpriv --reuid 12345 --regid 12346 --clear-groups -- abreast serve ";
    assert!(text.contains(serve), "{text}");
    assert!(text.contains("\n  abreast sync "), "{text}");
}
