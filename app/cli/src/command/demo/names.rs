//! The demonstration with RDF: an authority file of people, published as entities and copied into N-Quads.

use super::parts::{Follower, audit, end, new_folder, serve, sync};
use crate::admin::ask::{Access, ask_url, base_of};
use crate::config::SetFile;
use crate::config::settings::VersionsFile;
use crate::program::terminal::line;
use abreast_destination::{SyncOptions, TargetOptions};
use abreast_webtypes::count_of;
use anyhow::{Context as _, Result, ensure};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Preferred labels of the people 1, 2, 3 ….
const NAMES: [&str; 24] = [
    "Astrid Lindgren",
    "Tove Jansson",
    "Selma Lagerlof",
    "T. Jansson",
    "Karen Blixen",
    "Sigrid Undset",
    "Virginia Woolf",
    "George Eliot",
    "Jane Austen",
    "Mary Shelley",
    "Emily Dickinson",
    "Toni Morrison",
    "Ursula K. Le Guin",
    "Octavia E. Butler",
    "Wisława Szymborska",
    "Olga Tokarczuk",
    "Anna Akhmatova",
    "Marina Tsvetaeva",
    "Gabriela Mistral",
    "Clarice Lispector",
    "Elena Ferrante",
    "Colette",
    "Marguerite Duras",
    "Christa Wolf",
];
/// Number of the person whose label is corrected.
const CORRECTED: usize = 3;
/// Number of the duplicate, and of the person to use instead.
const DUPLICATE: (usize, usize) = (4, 2);

const SKOS: &str = "http://www.w3.org/2004/02/skos/core#";
/// Limit of the time for the answer of the server, which is in this process.
const ANSWER: Duration = Duration::from_secs(10);

/// Runs the demonstration in `place`; fails if the copy is not equal at any step.
pub(super) fn run(place: &Path, is_kept: bool) -> Result<ExitCode> {
    let [original, graph, labels] = ["names", "graph", "labels"].map(|it| new_folder(place, it));
    let (original, graph, labels) = (original?, graph?, labels?);
    fs::create_dir_all(&original)
        .with_context(|| format!("cannot create `{}`", original.display()))?;
    let mut names = NAMES;
    let mut file = authority_file(&names);

    line("1. A library has an authority file in RDF: people, each with a preferred name.");
    publish(&original, &file)?;
    line(&format!(
        "   {} about {} in {}",
        count_of(file.lines().count(), "statement"),
        count_of(names.len(), "entity"),
        original.join("people.nt").display()
    ));

    line(
        "2. It publishes the entities and their earlier versions:  abreast serve names --origin rdf --versions 10",
    );
    let source = serve(SetFile {
        name: Some("names".into()),
        title: Some("Names of people".into()),
        folder: original.clone(),
        origin: Some("rdf".into()),
        versions: Some(VersionsFile::Count(10)),
        ..SetFile::default()
    })?;
    let url = source.base_url.clone();
    line(&format!(
        "   {url} has each description in N-Triples, Turtle, RDF/XML and JSON-LD, and as a page"
    ));

    line(
        "3. An archive copies them into files of N-Quads and follows:  abreast sync URL nquads:graph --follow",
    );
    let copy = options(&url, &format!("nquads:{}", graph.display()), None)?;
    let follower = Follower::start(copy.clone())?;
    let wait_until_equal = |file: &str| {
        follower.wait_until(|| Ok(statements(&graph) == file.lines().map(str::to_owned).collect()))
    };
    let seconds = wait_until_equal(&file)?;
    line(&format!(
        "   {} copied and verified in {seconds:.1} s; the library's hub pushes changes from now on",
        count_of(file.lines().count(), "statement")
    ));

    line("4. The library corrects a name.");
    names[CORRECTED - 1] = "Selma Lagerlöf";
    file = authority_file(&names);
    publish(&original, &file)?;
    let seconds = wait_until_equal(&file)?;
    line(&format!("   pushed: the copy followed {seconds:.1} s later, with one description"));

    // The entities are the first changes of the set.
    let position = names.len() + 1;
    let patch = format!("/names/emm/0.1/activity/{position}/instrument/1.rdfp");
    line(&format!("5. The change is published as an entity patch:  curl URL{patch}"));
    let (status, text) = ask_url(base_of(&url), &patch, Access::default(), ANSWER)?;
    let rows: Vec<_> =
        text.lines().filter(|row| row.starts_with("D ") || row.starts_with("A ")).collect();
    ensure!(status == 200 && rows.len() == 2, "the patch was not published ({status}): {text}");
    for row in rows {
        line(&format!("   {row}"));
    }

    line(
        "6. Two entries are one person; the second is deprecated. A catalogue reads another protocol of the same log, Entity Metadata \
         Management, into a table of labels:  abreast sync URL/names/emm/1.0 labels:labels.csv",
    );
    let _ = write!(
        file,
        "{0} <http://purl.org/dc/terms/isReplacedBy> {1} .\n{0} <http://www.w3.org/2002/07/owl#deprecated> \
         \"true\"^^<http://www.w3.org/2001/XMLSchema#boolean> .\n",
        iri(DUPLICATE.0),
        iri(DUPLICATE.1)
    );
    publish(&original, &file)?;
    let seconds = wait_until_equal(&file)?;
    line(&format!("   pushed: the copy followed {seconds:.1} s later"));
    fs::create_dir(&labels).with_context(|| format!("cannot create `{}`", labels.display()))?;
    let table = labels.join("labels.csv");
    let target = format!("labels:{}", table.display());
    let of_feed = options(&format!("{url}names/emm/1.0"), &target, Some(labels.join("state")))?;
    sync(&of_feed)?;
    let text =
        fs::read_to_string(&table).with_context(|| format!("cannot read `{}`", table.display()))?;
    let start = iri(DUPLICATE.0);
    let row = text.lines().find(|row| row.starts_with(start.trim_matches(['<', '>'])));
    let header = text.lines().next().unwrap_or_default();
    line(&format!("   {header}"));
    line(&format!("   {}", row.context("the table lacks the deprecated entity")?));

    line(
        "7. An audit compares the N-Quads with the library:  abreast audit URL nquads:graph --full",
    );
    let same = audit(copy, "description")?;
    line(&format!("   equal: {same}, each with the digest that the library lists"));

    let kept = is_kept.then(|| {
        [
            format!("published  {}", original.display()),
            format!("copy       {}", graph.display()),
            format!("addresses  {url}names/  {url}names/emm/1.0  {url}names/sdshare"),
        ]
    });
    let next =
        "abreast serve FOLDER --origin rdf   and, anywhere else:   abreast sync URL nquads:FOLDER";
    end(source, follower, kept.as_ref().map(<[_; 3]>::as_slice), next)?;
    Ok(ExitCode::SUCCESS)
}

/// The options of a copy. Targets other than folders need a folder for the database.
fn options(url: &str, target: &str, state: Option<PathBuf>) -> Result<SyncOptions> {
    let mut options = SyncOptions { state, ..SyncOptions::new(url, "") };
    options.set_target(target, &TargetOptions::default())?;
    Ok(options)
}

fn iri(number: usize) -> String {
    format!("<https://id.example.org/person/{number}>")
}

/// The statements about all people, in N-Triples.
fn authority_file(names: &[&str]) -> String {
    let mut text = String::new();
    for (number, name) in (1..).zip(names) {
        let person = iri(number);
        let _ = write!(
            text,
            "{person} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{SKOS}Concept> .\n\
             {person} <{SKOS}inScheme> <https://id.example.org/people> .\n\
             {person} <{SKOS}prefLabel> \"{name}\" .\n"
        );
    }
    text
}

/// Moves the complete file into place, so that the server never reads an incomplete file.
fn publish(folder: &Path, text: &str) -> Result<()> {
    let new = folder.join(".people.nt");
    fs::write(&new, text).with_context(|| format!("cannot write `{}`", new.display()))?;
    fs::rename(&new, folder.join("people.nt"))
        .with_context(|| format!("cannot replace the file in `{}`", folder.display()))
}

/// The statements of a copy in N-Quads, which may change during the call.
fn statements(graph: &Path) -> BTreeSet<String> {
    let files = fs::read_dir(graph).into_iter().flatten().flatten().map(|entry| entry.path());
    let texts = files
        .filter(|path| path.extension().is_some_and(|ending| ending == "nq"))
        .filter_map(|path| fs::read_to_string(path).ok());
    let text: String = texts.collect();
    text.lines().filter(|line| line.starts_with('<')).map(str::to_owned).collect()
}
