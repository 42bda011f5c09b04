//! The shell blocks of guides run, each in a session of its own, and no block of a page for users is left out.
//!
//! A guide shows commands for the servers and folders of the reader: `URL`, `https://papers.example.org/`,
//! `/var/lib/abreast`. [`NAMES`] replaces these names by servers and folders of the test. The stage of a guide, in the
//! shell's language with the functions of `guides.sh`, makes them before each block. A command that keeps running
//! without `&`, such as `abreast serve` or `--follow`, runs until it prints that it works, and is ended before the next.

use crate::documented::{
    Block, CURL, JQ, PYTHON, Page, blocks, reason_against, text_of, unused_ports,
};
use abreast_testkit::endpoint::Endpoint;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Pages and sections whose blocks run in order, in one shell, in [`crate::documented`] and [`crate::recipes`].
pub(crate) const SESSIONS: &[(&str, Option<&str>)] = &[
    ("README.md", Some("A short session")),
    ("README.md", Some("A session with RDF")),
    ("docs/tutorial.md", None),
    ("docs/tutorial-rdf.md", None),
    ("docs/follow-in-shell.md", None),
    ("docs/push.md", Some("An example")),
    ("docs/versions.md", Some("An example")),
    ("docs/maintenance.md", Some("An example")),
    ("docs/recipes/jobs.md", None),
    ("docs/recipes/queues.md", None),
    ("docs/recipes/search.md", None),
    ("docs/recipes/static-feed.md", None),
    ("docs/recipes/tables.md", None),
    ("docs/recipes/triple-stores.md", None),
];

/// Blocks, or commands of guides, that do not run: the page, the start of the commands, and the reason.
pub(crate) const NOT_RUN: &[(&str, &str, &str)] = &[
    (
        "README.md",
        "cargo run --release",
        "compiles the program with optimization; session.rs runs `demo`",
    ),
    ("README.md", "cargo install", "installs the program"),
    ("docs/tutorial.md", "cargo install", "installs the program"),
    (
        "docs/installing.md",
        "tar -xzf",
        "installs the program for all users; `cargo xtask package` checks the archive",
    ),
    ("docs/installing.md", "apt install", "installs the program; package.rs installs the package"),
    ("docs/installing.md", "podman load", "needs podman"),
    (
        "docs/push.md",
        "abreast sync https://papers.example.org/papers/v0.1",
        "needs accounts of an XMPP server; xmpp.rs has them",
    ),
    ("docs/python.md", "pip install target", "downloads packages and measures for minutes"),
    (
        "docs/nodes.md",
        "sudo -u postgres",
        "needs an installed PostgreSQL; hub_nodes.rs has a server",
    ),
    (
        "docs/nodes.md",
        "podman load --input",
        "needs images of other programs; config.rs checks the files",
    ),
    (
        "docs/nodes.md",
        "python3 -m venv moto",
        "needs an installed PostgreSQL; serve_nodes.rs runs such nodes",
    ),
    (
        "docs/nodes.md",
        "abreast config check",
        "needs that database and a bucket; serve_nodes.rs runs the commands",
    ),
    (
        "docs/nodes.md",
        "abreast migrate",
        "needs that database and a bucket; migrate.rs runs the commands",
    ),
    (
        "docs/nodes.md",
        "abreast status --config",
        "needs that database; database_status.rs runs both commands",
    ),
    (
        "docs/nodes.md",
        "abreast check --config",
        "needs that database and a bucket; serve_nodes.rs runs the command",
    ),
    (
        "docs/nodes.md",
        "abreast repair --config",
        "needs that database and a bucket; serve_nodes.rs runs the command",
    ),
    ("docs/emm.md", "ABREAST_TEST_SEEDS", "runs the tests"),
    ("docs/resourcesync-0.1.md", "ABREAST_TEST_PROSODY", "runs the tests"),
    ("docs/simulation.md", "cargo ", "runs the tests"),
    (
        "docs/sinks.md",
        "abreast sync URL oxigraph:",
        "needs a build with the feature `oxigraph`; oxigraph.rs has it",
    ),
    (
        "docs/sinks.md",
        "abreast sync https://authorities.example.org/ oxigraph:",
        "needs a build with the feature `oxigraph`; oxigraph.rs has it",
    ),
    (
        "docs/sinks.md",
        "pip install pywb",
        "installs a package; the tests of the Destination replay with pywb",
    ),
    ("docs/static-sites.md", "B=s3:", "needs an account of Amazon"),
    ("docs/recipes/queues.md", "pip install", "the test has the package"),
    ("docs/recipes/tables.md", "pip install", "the test has the packages"),
];

/// An answer of curl that is not a success fails.
const CURL_FAILS: &str = r#"curl() { command curl --fail-with-body "$@"; }"#;

/// Names in guides, and the servers and folders of the tests.
const NAMES: &[(&str, &str)] = &[
    ("https://papers.example.org/", "http://127.0.0.1:8180/"),
    ("https://data.example.org/", "http://127.0.0.1:8180/"),
    ("https://original.example.org/", "http://127.0.0.1:8180/"),
    ("https://old.example.org/", "http://127.0.0.1:8180/"),
    ("https://a.example.org/", "http://127.0.0.1:8180/"),
    ("https://repo.example/", "http://127.0.0.1:8180/"),
    ("https://authorities.example.org/", "http://127.0.0.1:8190/"),
    ("https://id.example.org/authorities/", "http://127.0.0.1:8190/authorities/"),
    (" URL", " http://127.0.0.1:8180/"),
    (" NEW-URL", " http://localhost:8180/"),
    ("--config FILE", "--config /etc/abreast.toml"),
    ("config check FILE", "config check /etc/abreast.toml"),
    ("config show FILE", "config show /etc/abreast.toml"),
    (" /var/", " $HOME/var/"),
    (" /etc/", " $HOME/etc/"),
    (" /srv/", " $HOME/srv/"),
    (" /mnt/", " $HOME/mnt/"),
    ("file:///srv/", "file://$HOME/srv/"),
];

const SQLITE: (&str, &str) = ("sqlite3", "ABREAST_TEST_SQLITE3");
const OPENSSL: (&str, &str) = ("openssl", "ABREAST_TEST_OPENSSL");
const MOTO: (&str, &str) = ("moto_server", "ABREAST_TEST_S3");

/// A page whose blocks run one by one.
struct Guide {
    path: &'static str,
    /// Programs that the commands use besides curl and jq.
    programs: &'static [(&'static str, &'static str)],
    /// Names that only this page has.
    names: &'static [(&'static str, &'static str)],
    /// Commands before a block, by the start of its commands; the first row that fits.
    stages: &'static [(&'static str, &'static str)],
}

include!("guides_list.rs");

impl Guide {
    fn check(&self) {
        let endpoint = Endpoint::start();
        let programs: Vec<_> =
            [CURL, JQ].into_iter().chain(self.programs.iter().copied()).collect();
        let port = endpoint.port();
        let page = Page { programs: &programs, ports: &[("7878", port)], ..Page::of(self.path) };
        let Some(tools) = page.tools() else { return };
        for block in alone(self.path) {
            let (stage, names) = (self.stage(&block), [self.names, NAMES].concat());
            let ports = unused_ports();
            let in_test = |text: &str| {
                let text =
                    names.iter().fold(text.to_owned(), |it, (name, own)| it.replace(name, own));
                page.with_ports(&text, ports)
            };
            let script =
                |_: &[Block], output: &Path| script(self.path, &block, stage, output, &in_test);
            page.run(std::slice::from_ref(&block), &tools, ports[0], script);
        }
    }

    fn stage(&self, block: &Block) -> &'static str {
        let mut stages = self.stages.iter();
        let found = stages.find(|(start, _)| block.commands.starts_with(start));
        found.map(|(_, stage)| *stage).unwrap_or_default()
    }
}

/// Blocks of a page that are not part of a session.
fn alone(path: &str) -> Vec<Block> {
    let text = text_of(path);
    let sessions = SESSIONS.iter().filter(|(page, _)| *page == path);
    let taken: Vec<usize> =
        sessions.flat_map(|(_, section)| blocks(&text, *section)).map(|block| block.line).collect();
    let mut alone = blocks(&text, None);
    alone.retain(|block| {
        !taken.contains(&block.line) && reason_against(path, &block.commands).is_none()
    });
    alone
}

/// The single commands of a block. A loop is one command.
fn commands(block: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let (mut depth, mut continues) = (0, false);
    for line in block.lines() {
        match commands.last_mut() {
            Some(last) if depth > 0 || continues => {
                last.push('\n');
                last.push_str(line);
            }
            _ => commands.push(line.to_owned()),
        }
        let code = without_comment(line);
        let words: Vec<&str> = code.split([' ', ';']).collect();
        let count = |word: &str| words.iter().filter(|it| **it == word).count();
        depth = depth + count("do") + count("case") - count("done") - count("esac");
        continues = [r"\", "|", "&&"].iter().any(|end| code.ends_with(end));
    }
    commands.retain(|command| {
        let code = without_comment(command);
        !code.is_empty() && !code.starts_with('#')
    });
    commands
}

fn without_comment(line: &str) -> &str {
    line.split(" #").next().unwrap_or_default().trim_end()
}

fn is_endless(command: &str) -> bool {
    let has = |words: &str| command.contains(words);
    let is_watched = has(" --follow") || command.starts_with("abreast subscribe");
    let starts =
        ["abreast serve", "abreast hub --", "curl -N", "python3 -m http.server", "while true"];
    !command.ends_with('&')
        && (is_watched && !has("--limit") && !has("--dry-run")
            || starts.iter().any(|start| command.starts_with(start)))
}

fn script(
    path: &str,
    block: &Block,
    stage: &str,
    output: &Path,
    in_test: &dyn Fn(&str) -> String,
) -> String {
    let file = output.join("0").display().to_string();
    let mut script = format!(
        "set -eu -o pipefail\nexec 2>'{file}.err'\n{}\n{{ :\n{}\n}} > '{file}.stage'\nexec >'{file}.out'\n{CURL_FAILS}\nset -ax\n",
        in_test(include_str!("guides.sh")),
        in_test(stage)
    );
    for command in commands(&block.commands) {
        if reason_against(path, &command).is_some() {
            continue;
        }
        let code = in_test(&command);
        let own = in_test(without_comment(&command));
        let _ = if is_endless(without_comment(&command)) {
            writeln!(script, "endless '{}'", own.replace('\'', r"'\''"))
        } else if own.ends_with('&') {
            writeln!(
                script,
                "{code}\n{}",
                if own.contains("serve") {
                    in_test("ready http://127.0.0.1:8080/readyz")
                } else {
                    String::new()
                }
            )
        } else {
            writeln!(script, "{code}")
        };
    }
    script
}

/// Pages for users: the README, and all pages of the documentation except decisions.
fn pages() -> Vec<String> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec!["README.md".to_owned()];
    for folder in ["docs", "docs/recipes", "docs/specs"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if Path::new(&name).extension().is_some_and(|it| it == "md") {
                pages.push(format!("{folder}/{name}"));
            }
        }
    }
    pages
}

#[test]
fn every_shell_block_of_pages_runs_or_is_listed() {
    let mut unused: Vec<_> = NOT_RUN.iter().collect();
    let mut problems = String::new();
    for path in pages() {
        let text = text_of(&path);
        for language in ["console", "bash", "shell", "shell-session"] {
            if text.contains(&format!("```{language}\n")) {
                let _ =
                    writeln!(problems, "{path}: write a block of `{language}` as `sh` and `text`");
            }
        }
        let all = blocks(&text, None);
        unused.retain(|(page, start, _)| {
            let is_used = |block: &Block| {
                block.commands.starts_with(start)
                    || commands(&block.commands).iter().any(|it| it.starts_with(start))
            };
            *page != path || !all.iter().any(is_used)
        });
        if !GUIDES.iter().any(|guide| guide.path == path) {
            for block in alone(&path) {
                let _ = writeln!(problems, "{path}:{}: no test runs the block", block.line);
            }
        }
    }
    assert!(problems.is_empty(), "{problems}");
    assert!(unused.is_empty(), "NOT_RUN has rows without a block: {unused:?}");
}

#[test]
fn commands_of_a_block_are_separated() {
    let block = "a | b \\\n  c\nwhile x; do\n  y\ndone\n# no command\nd   # why &\n";
    let found = commands(block);
    assert_eq!(found, ["a | b \\\n  c", "while x; do\n  y\ndone", "d   # why &"]);
    assert!(is_endless("abreast serve x") && !is_endless("abreast serve x &"));
    assert!(
        is_endless("abreast sync x y --follow") && !is_endless("abreast log x --follow --limit 1")
    );
}
