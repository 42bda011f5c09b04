//! Pictures of terminals in `docs/images/`, recorded from the sessions of the README: text in SVG, for light and dark
//! pages, which appears command by command once.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::process::{cargo, root, run, run_quietly, target};

/// The sections of the README, and the names of their pictures.
const SESSIONS: [(&str, &str); 2] =
    [("A short session", "session"), ("A session with RDF", "session-rdf")];

/// Characters in a line of the terminal.
const COLUMNS: usize = 100;
/// Sizes in the picture, in pixels.
const CHARACTER: f32 = 7.8;
const LINE: f32 = 18.0;
const MARGIN: f32 = 16.0;
/// Seconds from one command to the next, and from a command to its output.
const PACE: f32 = 1.0;
const ANSWER: f32 = 0.4;

/// Marks the lines of commands in the recorded text.
const MARK: char = '\u{1}';

/// A command, and its output in lines.
#[derive(Debug, PartialEq)]
struct Step {
    command: String,
    output: Vec<String>,
}

/// Records all sessions again.
pub(crate) fn record() -> Result<()> {
    run(&mut cargo(&["build", "--package", "abreast"]))?;
    let readme = fs::read_to_string(root().join("README.md")).context("cannot read README.md")?;
    for (section, name) in SESSIONS {
        let commands = commands(&readme, section);
        ensure!(!commands.is_empty(), "README.md has no commands in `{section}`");
        let path = root().join("docs/images").join(name).with_extension("svg");
        let picture = picture(section, &steps(&play(&commands)?));
        fs::write(&path, picture).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The commands of a section's blocks of `sh` that tests run.
fn commands(page: &str, section: &str) -> Vec<String> {
    let after = page.split_once(&format!("\n## {section}\n")).map_or("", |(_, after)| after);
    let section = after.split("\n## ").next().unwrap_or_default();
    let mut found = Vec::new();
    for (before, block) in section.split("```sh\n").zip(section.split("```sh\n").skip(1)) {
        let is_run = !before.lines().last().is_some_and(|line| line.starts_with("<!-- not run"));
        let lines = block.split("\n```").next().unwrap_or_default().lines();
        found.extend(lines.filter(|line| is_run && !line.is_empty()).map(str::to_owned));
    }
    found
}

/// Runs the commands in an empty folder, and returns their standard output with marked commands, as the README shows it.
fn play(commands: &[String]) -> Result<String> {
    let place = target().join("recording");
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(&place).with_context(|| format!("cannot create {}", place.display()))?;
    let free = TcpListener::bind("127.0.0.1:0").context("cannot find a free port")?;
    let port = free.local_addr()?.port().to_string();
    drop(free);
    let mut script = "set -eu\n".to_owned();
    for command in commands {
        let shown = command.replace('\'', r"'\''");
        // A server prints whenever it likes: its output is left out. Files must be unchanged for a second before it starts.
        let played =
            match command.split("  #").next().unwrap_or_default().trim_end().strip_suffix('&') {
                Some(server) => format!("sleep 1.1; {server} > /dev/null 2>&1 &"),
                None => command.clone(),
            };
        let _ = writeln!(script, "printf '{MARK}%s\\n' '{shown}'\n{played}");
    }
    let script = script.replace(":8080", &format!(":{port}"));
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", target().join("debug").display());
    let mut shell = Command::new("bash");
    shell.arg("-c").arg(script).current_dir(&place).env("PATH", path).env("LC_ALL", "C.UTF-8");
    shell.env("ABREAST_LISTEN", format!("127.0.0.1:{port}"));
    let text = run_quietly(&mut shell)?;
    Ok(text.replace(&format!(":{port}"), ":8080"))
}

/// The commands, without their comments, with their outputs.
fn steps(text: &str) -> Vec<Step> {
    let parts = text.split(MARK).skip(1).filter_map(|part| part.split_once('\n'));
    let step = |(command, output): (&str, &str)| Step {
        command: command.split("  #").next().unwrap_or_default().trim_end().to_owned(),
        output: output.lines().map(str::to_owned).collect(),
    };
    parts.map(step).collect()
}

/// The lines that a terminal shows for a text.
fn wrapped(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(COLUMNS).map(|line| line.iter().collect()).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn picture(title: &str, steps: &[Step]) -> String {
    let (mut body, mut line, mut start) = (String::new(), 0.0_f32, 0.0_f32);
    for step in steps {
        let texts = [(format!("$ {}", step.command), "c"), (step.output.join("\n"), "o")];
        for (text, class) in texts {
            if !text.is_empty() {
                let _ =
                    writeln!(body, "<g class=\"{class}\" style=\"animation:hidden {start:.1}s\">");
                for text in text.lines().flat_map(wrapped) {
                    line += 1.0;
                    let y = MARGIN + line * LINE;
                    let _ =
                        writeln!(body, "<text x=\"{MARGIN}\" y=\"{y}\">{}</text>", escaped(&text));
                }
                body.push_str("</g>\n");
            }
            start += if class == "c" { ANSWER } else { PACE - ANSWER };
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let width = COLUMNS as f32 * CHARACTER + 2.0 * MARGIN;
    let height = line * LINE + 2.0 * MARGIN;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"title\">\n\
         <title id=\"title\">{title}: a terminal with the commands of the README and their output</title>\n\
         <style>\n\
         rect {{ fill: #f6f8fa; stroke: #d1d9e0 }}\n\
         text {{ font: 13px ui-monospace, 'DejaVu Sans Mono', monospace; white-space: pre; fill: #59636e }}\n\
         .c text {{ fill: #0550ae; font-weight: 600 }}\n\
         @keyframes hidden {{ from, to {{ opacity: 0 }} }}\n\
         @media (prefers-reduced-motion: reduce) {{ g {{ animation: none !important }} }}\n\
         @media (prefers-color-scheme: dark) {{\n\
         rect {{ fill: #151b23; stroke: #3d444d }}\n\
         text {{ fill: #d1d7e0 }}\n\
         .c text {{ fill: #79c0ff }}\n\
         }}\n\
         </style>\n\
         <rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n{body}</svg>\n",
        width - 1.0,
        height - 1.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_a_section_are_found() {
        let page = "# A\n## S\n<!-- not run: why -->\n```sh\nx\n```\nText.\n```sh\na &    # why\n\nb\n```\n```text\nc\n```\n## T\n```sh\nd\n```\n";
        assert_eq!(commands(page, "S"), ["a &    # why", "b"]);
    }

    #[test]
    fn recorded_text_is_divided_into_steps() {
        let found = steps("\u{1}a  # why\n\u{1}b\n1\n2\n");
        let expected = [("a", vec![]), ("b", vec!["1".to_owned(), "2".to_owned()])];
        let step = |(command, output): (&str, _)| Step { command: command.to_owned(), output };
        assert_eq!(found, expected.map(step));
    }

    #[test]
    fn pictures_contain_escaped_and_wrapped_text() {
        let step = Step { command: "a <b>".into(), output: vec!["é".repeat(101)] };
        let picture = picture("S", &[step]);
        assert!(picture.contains(">$ a &lt;b&gt;</text>"), "{picture}");
        assert_eq!(picture.matches("<text").count(), 3);
    }
}
