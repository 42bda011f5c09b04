//! The shell commands of tutorials run as written, and print what their pages show.
//!
//! Blocks of `sh` of a page run in order, in one shell that starts in an empty folder and ends at the first command that
//! fails. A block of `text` directly after a block of `sh` is its standard output. In it, `…` stands for any text within
//! a line, and a line `…` for any lines. `<!-- run with the feature NAME -->` directly before a block limits it to a
//! build of the program with this feature. [`NOT_RUN`] lists the blocks that do not run, with reasons. Blocks of guides
//! that are alternatives run in [`crate::guides`]; its test fails for a block that neither runs nor is listed.

use crate::guides::{NOT_RUN, SESSIONS};
use crate::world::without_settings;
use abreast_testkit::http::unused_address;
use abreast_testkit::provided;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A page whose commands run, and their needs.
pub(crate) struct Page<'a> {
    /// Path in the repository.
    pub(crate) path: &'static str,
    /// Only the blocks below this heading.
    pub(crate) section: Option<&'static str>,
    /// Programs that the commands use, with the variables of their paths.
    pub(crate) programs: &'a [(&'static str, &'static str)],
    /// Ports of the page on which servers of the test listen, and the ports of these servers.
    pub(crate) ports: &'a [(&'static str, u16)],
}

pub(crate) const CURL: (&str, &str) = ("curl", "ABREAST_TEST_CURL");
pub(crate) const JQ: (&str, &str) = ("jq", "ABREAST_TEST_JQ");
pub(crate) const OXIGRAPH: (&str, &str) = ("oxigraph", "ABREAST_TEST_OXIGRAPH");
pub(crate) const PYTHON: (&str, &str) = ("python3", "ABREAST_TEST_PYTHON");

/// Ports of the pages, which a test replaces by unused ones. The program listens on the first by default.
const PORTS: [&str; 8] = ["8080", "8081", "4222", "8000", "8090", "8180", "8190", "8443"];

/// Limit of the time for all commands of a page.
const LIMIT: Duration = Duration::from_secs(240);

/// A pause before a server or a build starts, as readers make one: files must be unchanged for a second if the
/// program cannot see which of them other processes have opened.
const PAUSE: &str = "sleep 1.1; ";

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Block {
    /// Line of the page.
    pub(crate) line: usize,
    pub(crate) commands: String,
    /// The shown output.
    pub(crate) output: Option<String>,
}

/// The blocks of a page in a shell's language.
pub(crate) fn blocks(text: &str, section: Option<&str>) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let (mut is_in_section, mut is_after_commands, mut may_run) = (section.is_none(), false, true);
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let mut content = String::new();
            for (_, line) in lines.by_ref().take_while(|(_, line)| *line != "```") {
                content.push_str(line);
                content.push('\n');
            }
            match language {
                "sh" if is_in_section && may_run => {
                    found.push(Block { line: number + 2, commands: content, output: None });
                }
                "text" if is_after_commands => {
                    if let Some(block) = found.last_mut() {
                        block.output = Some(content);
                    }
                }
                _ => (),
            }
            is_after_commands = language == "sh" && is_in_section && may_run;
            may_run = true;
        } else if let Some(comment) = line.strip_prefix("<!-- ") {
            let feature = comment.strip_prefix("run with the feature ");
            let is_built =
                feature.is_some_and(|it| it == "oxigraph -->" && cfg!(feature = "oxigraph"));
            may_run = is_built || feature.is_none();
        } else if !line.is_empty() {
            if line.starts_with('#') && section.is_some() {
                is_in_section = line.trim_start_matches('#').trim() == section.unwrap_or_default();
            }
            (is_after_commands, may_run) = (false, true);
        }
    }
    found
}

/// Whether a printed line is the shown one, in which `…` stands for any text.
fn is_line(shown: &str, printed: &str) -> bool {
    let mut parts = shown.split('…');
    let Some(mut rest) = parts.next().and_then(|first| printed.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    false
}

/// Whether the printed lines are the shown ones.
fn is_output(shown: &[&str], printed: &[&str]) -> bool {
    match shown {
        [] => printed.is_empty(),
        ["…", rest @ ..] => {
            (0..=printed.len()).any(|skipped| is_output(rest, &printed[skipped..]))
        }
        [first, rest @ ..] => printed
            .split_first()
            .is_some_and(|(line, more)| is_line(first, line) && is_output(rest, more)),
    }
}

/// The shell of a page and everything that it started, which ends with it.
struct Shell(Child);

impl Drop for Shell {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
}

impl Shell {
    fn wait(&mut self, page: &str) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < LIMIT, "the commands of {page} did not end within {LIMIT:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Text of a page in the repository.
pub(crate) fn text_of(path: &str) -> String {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Reason why some commands of a page do not run.
pub(crate) fn reason_against(path: &str, commands: &str) -> Option<&'static str> {
    let mut listed = NOT_RUN.iter();
    listed.find(|(page, start, _)| *page == path && commands.starts_with(start)).map(|it| it.2)
}

/// The commands of all blocks, the output of each in files of its own.
fn script(blocks: &[Block], output: &Path) -> String {
    let mut script = "set -eu\n".to_owned();
    for (number, block) in blocks.iter().enumerate() {
        let file = output.join(number.to_string()).display().to_string();
        let _ = writeln!(script, "exec >'{file}.out' 2>'{file}.err'");
        for line in block.commands.lines() {
            let starts = ["abreast serve", "abreast build"].iter().any(|it| line.starts_with(it));
            let _ = writeln!(script, "{}{line}", if starts { PAUSE } else { "" });
        }
    }
    script
}

/// Ports for those of the pages.
pub(crate) fn unused_ports() -> [u16; PORTS.len()] {
    PORTS.map(|_| unused_address().port())
}

impl Page<'_> {
    /// A page of which all blocks run, with the program alone.
    pub(crate) const fn of(path: &'static str) -> Self {
        Self { path, section: None, programs: &[], ports: &[] }
    }

    pub(crate) fn check(&self) {
        let is_listed = SESSIONS.contains(&(self.path, self.section));
        assert!(is_listed, "SESSIONS has no row for {} {:?}", self.path, self.section);
        let Some(tools) = self.tools() else { return };
        let ports = unused_ports();
        let mut blocks = blocks(&self.with_ports(&text_of(self.path), ports), self.section);
        blocks.retain(|block| reason_against(self.path, &block.commands).is_none());
        assert!(!blocks.is_empty(), "{} has no commands", self.path);
        self.run(&blocks, &tools, ports[0], script);
    }

    /// The programs of the page, or nothing if one of them is missing.
    pub(crate) fn tools(&self) -> Option<Vec<PathBuf>> {
        self.programs.iter().map(|(_, it)| provided(self.path, it)).collect()
    }

    /// A text of the page with the ports of the test.
    pub(crate) fn with_ports(&self, text: &str, ports: [u16; PORTS.len()]) -> String {
        let mut text = text.to_owned();
        for (shown, port) in PORTS.into_iter().zip(ports).chain(self.ports.iter().copied()) {
            for before in [":", "--port ", "%3A"] {
                text = text.replace(&format!("{before}{shown}"), &format!("{before}{port}"));
            }
        }
        text
    }

    /// Runs the script of blocks, which writes the output of each to `NUMBER.out` and `NUMBER.err` in a folder.
    pub(crate) fn run(
        &self,
        blocks: &[Block],
        tools: &[PathBuf],
        port: u16,
        script: impl Fn(&[Block], &Path) -> String,
    ) {
        let place = tempfile::tempdir().unwrap();
        let (work, output, bin) =
            (place.path().join("work"), place.path().join("output"), place.path().join("bin"));
        for folder in [&work, &output, &bin] {
            fs::create_dir(folder).unwrap();
        }
        let own = [("abreast", PathBuf::from(env!("CARGO_BIN_EXE_abreast")))];
        let others = self.programs.iter().map(|(name, _)| *name).zip(tools.iter().cloned());
        for (name, program) in own.into_iter().chain(others) {
            // Not a link: a Python environment is found from the path of its program.
            let path = bin.join(name);
            fs::write(&path, format!("#!/bin/sh\nexec '{}' \"$@\"\n", program.display())).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let file = output.join("script");
        fs::write(&file, script(blocks, &output)).unwrap();
        let mut command = Command::new("bash");
        without_settings(&mut command);
        command.env("ABREAST_LISTEN", format!("127.0.0.1:{port}"));
        command.env("PATH", path).env("HOME", &work).env("LC_ALL", "C.UTF-8");
        command.env("BIN", &bin);
        command.arg(file).current_dir(&work).process_group(0);
        let errors = fs::File::create(output.join("errors")).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let mut shell = Shell(command.spawn().unwrap());
        let status = shell.wait(self.path);
        let read = |number: usize, ending: &str| {
            let name = output.join(format!("{number}.{ending}"));
            name.exists().then(|| String::from_utf8_lossy(&fs::read(name).unwrap()).into_owned())
        };
        for (number, block) in blocks.iter().enumerate() {
            let place = format!("{}:{}", self.path, block.line);
            let printed = read(number, "out").unwrap_or_default();
            let errors = read(number, "err").unwrap_or_default();
            let is_last = read(number + 1, "out").is_none();
            assert!(
                status.success() || !is_last,
                "{place}: a command failed ({status})\n{}\nit printed:\n{printed}{errors}{}",
                block.commands,
                fs::read_to_string(output.join("errors")).unwrap(),
            );
            if let Some(shown) = &block.output {
                let [shown_lines, lines] =
                    [shown, &printed].map(|it| it.lines().collect::<Vec<_>>());
                assert!(
                    is_output(&shown_lines, &lines),
                    "{place}: the output differs from the page, which shows:\n{shown}\nprinted was:\n{printed}{errors}"
                );
            }
        }
    }
}

#[test]
fn short_session_of_the_readme_works() {
    let section = Some("A short session");
    Page { section, programs: &[CURL], ..Page::of("README.md") }.check();
}

#[test]
fn session_with_rdf_of_the_readme_works() {
    let section = Some("A session with RDF");
    Page { section, programs: &[CURL], ..Page::of("README.md") }.check();
}

#[test]
fn tutorial_of_two_institutions_works() {
    Page { programs: &[CURL], ..Page::of("docs/tutorial.md") }.check();
}

#[test]
fn tutorial_of_names_in_rdf_works() {
    Page {
        programs: &[CURL, JQ, PYTHON, OXIGRAPH],
        ports: &[("7878", unused_address().port())],
        ..Page::of("docs/tutorial-rdf.md")
    }
    .check();
}

#[test]
fn client_in_shell_follows_a_set() {
    Page { programs: &[CURL, JQ, PYTHON], ..Page::of("docs/follow-in-shell.md") }.check();
}

#[test]
fn client_in_shell_has_thirty_lines_of_commands() {
    let text = text_of("docs/follow-in-shell.md");
    let (_, script) = text.split_once("cat > follow.sh <<'END'\n").unwrap();
    let (script, _) = script.split_once("\nEND\n").unwrap();
    let is_command = |line: &&str| !line.is_empty() && !line.starts_with('#');
    assert_eq!(script.lines().filter(is_command).count(), 30);
    assert!(script.lines().all(|line| line.len() <= 120), "a line is too long to read");
}

#[test]
fn example_of_notifications_works() {
    let section = Some("An example");
    Page { section, programs: &[CURL], ..Page::of("docs/push.md") }.check();
}

#[test]
fn example_of_versions_works() {
    let section = Some("An example");
    Page { section, programs: &[CURL], ..Page::of("docs/versions.md") }.check();
}

#[test]
fn example_of_maintenance_works() {
    let section = Some("An example");
    Page { section, programs: &[CURL], ..Page::of("docs/maintenance.md") }.check();
}

#[test]
fn blocks_of_a_page_are_found() {
    let page = "# A\n```sh\nx\n```\n\n```text\ny\n```\n# B\n```sh\na\nb\n```\n\nWords.\n\n```text\nc\n```\n<!-- run with the feature no -->\n```sh\nd\n```\n";
    let block = |line, commands: &str, output: Option<&str>| Block {
        line,
        commands: commands.to_owned(),
        output: output.map(str::to_owned),
    };
    assert_eq!(blocks(page, None), [block(3, "x\n", Some("y\n")), block(11, "a\nb\n", None)]);
    assert_eq!(blocks(page, Some("B")), [block(11, "a\nb\n", None)]);
}

#[test]
fn shown_output_matches_any_text_at_dots() {
    let matches = |shown: &str, printed: &str| {
        is_output(&shown.lines().collect::<Vec<_>>(), &printed.lines().collect::<Vec<_>>())
    };
    assert!(matches("a … b …\n…\nlast", "a 1 b 2\nmore\nmore\nlast"));
    assert!(matches("…", "") && matches("a\n…", "a") && matches("a…", "a"));
    assert!(!matches("a", "a\nb") && !matches("a\nb", "a") && !matches("a … b", "a 1 c"));
    assert!(!matches("a…a", "a") && !matches("a…bc", "abcd"));
}
