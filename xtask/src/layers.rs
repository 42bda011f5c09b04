//! The layers: which crate may depend on which, which may do IO, and where the documents of a
//! protocol may be named.
//!
//! Dev-dependencies are free: a test may use a store, a server or a runtime.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use toml::{Table, Value};

use crate::circles;
use crate::process::root;
use crate::rooms;
use crate::tree;

/// The layers, lowest first. What is in none of these folders may use everything and is used by
/// nothing.
const LAYERS: [&str; 5] = ["formats", "core", "adapters", "roles", "app"];

/// Crates and modules that the pure layers may not use.
const IMPURE: [&str; 9] = [
    "tokio",
    "reqwest",
    "rusqlite",
    "sqlx",
    "object_store",
    "hyper",
    "std::fs",
    "std::net",
    "std::process",
];

/// Formats that others may use: they depend on no crate of the workspace.
const SHARED_FORMATS: [&str; 2] = ["abreast-webtypes", "rdf-patch"];

/// What tests share. Only the benchmarks, which are tests themselves, depend on it other than for
/// development.
const TESTKIT: &str = "abreast-testkit";

/// Change logs a role may only know through the trait.
const LOG_IMPLEMENTATIONS: [&str; 2] = ["SqliteLog", "PostgresLog"];

/// Module of a format, and the files and folders of roles and apps that may name it: its readers
/// and projections.
const PROTOCOLS: [(&str, &[&str]); 4] = [
    (
        "abreast_emm",
        &[
            "roles/destination/src/read/emm/",
            "roles/source/src/projection/emm/",
            "roles/documents/src/protocol/emm.rs",
            "roles/validator/src/emm/",
        ],
    ),
    (
        "v0_1",
        &[
            "roles/destination/src/read/resourcesync_0_1/",
            "roles/source/src/projection/resourcesync_0_1/",
            "roles/documents/src/protocol/resourcesync_0_1.rs",
            "roles/validator/src/resourcesync_0_1/",
        ],
    ),
    (
        "v1_1",
        &[
            "roles/destination/src/read/resourcesync/",
            "roles/source/src/projection/resourcesync/",
            // Dumps of version 0.1 are made of packages of version 1.1.
            "roles/source/src/projection/resourcesync_0_1/dump/",
            "roles/documents/src/protocol/resourcesync.rs",
            "roles/validator/src/resourcesync/",
        ],
    ),
    (
        "abreast_sdshare",
        &[
            "roles/destination/src/read/sdshare/",
            "roles/source/src/projection/sdshare/",
            "roles/documents/src/protocol/sdshare.rs",
            "roles/validator/src/sdshare/",
        ],
    ),
];

/// Module of the Destination's readers, which all others know through the trait `Reader`, and where
/// it may be named.
const READERS: (&str, &[&str]) = (
    "read::resourcesync",
    // The simulation runs each reader.
    &["roles/destination/src/read/", "roles/destination/src/run/simulation/"],
);

/// The Destination's kinds of sinks, which all others know through the traits `Facts`, `SinkKind` and
/// `TargetKind`, and the files that list them. The default is in the options of a run.
const SINKS: (&str, &[&str]) = (
    "SinkOptions::",
    &[
        "roles/destination/src/report/sinks.rs",
        "roles/destination/src/report/options.rs",
        "roles/destination/src/sink/kind.rs",
        "roles/destination/src/run/simulation/",
        "roles/destination/src/read/text/",
        "app/cli/src/command/demo/",
    ],
);

/// The command line names kinds only in texts for users and in demonstrations: targets are parsed by the Destination.
const TARGET_WORDS: [&str; 10] = [
    "warc:",
    "nquads:",
    "labels:",
    "oxigraph:",
    "sparql:",
    "graphstore:",
    "push:",
    "set:",
    "s3:",
    "file:",
];

const WAY_OUT: &str = "help: move the shared part down a layer, or wire it in app/";

/// One crate of the workspace.
struct Member {
    name: String,
    /// Folder from the root, such as `roles/source`.
    folder: PathBuf,
    dependencies: BTreeSet<String>,
    features: Vec<String>,
}

/// `cargo xtask layers`.
pub(crate) fn run() -> Result<()> {
    let members = members(&root())?;
    let mut faults = dependency_faults(&members);
    for member in &members {
        for file in tree::files(&root().join(&member.folder).join("src"), &[".rs"])? {
            let text = fs::read_to_string(&file)?;
            faults.extend(code_faults(member, &tree::shown(&file), &text));
            faults.extend(protocol_faults(member, &tree::shown(&file), &text));
            faults.extend(sink_faults(&tree::shown(&file), &text));
        }
    }
    let folders: Vec<&Path> = members.iter().map(|member| member.folder.as_path()).collect();
    faults.extend(rooms::faults()?);
    faults.extend(circles::faults(&folders)?);
    if faults.is_empty() {
        println!("{} crates in order", members.len());
        return Ok(());
    }
    bail!("the layers are broken in {} places\n{}", faults.len(), faults.join("\n"))
}

/// The crates that have features, with their names (without `default`).
pub(crate) fn features() -> Result<Vec<(String, Vec<String>)>> {
    let members = members(&root())?.into_iter().filter(|member| !member.features.is_empty());
    Ok(members.map(|member| (member.name, member.features)).collect())
}

fn members(root: &Path) -> Result<Vec<Member>> {
    let workspace = manifest(&root.join("Cargo.toml"))?;
    let folders = workspace["workspace"]["members"]
        .as_array()
        .context("Cargo.toml lists no workspace members")?;
    folders
        .iter()
        .filter_map(Value::as_str)
        .map(|folder| {
            let manifest = manifest(&root.join(folder).join("Cargo.toml"))?;
            let name = manifest["package"]["name"]
                .as_str()
                .with_context(|| format!("{folder} has no name"))?;
            Ok(Member {
                name: name.to_owned(),
                folder: PathBuf::from(folder),
                dependencies: dependencies(&manifest),
                features: manifest
                    .get("features")
                    .and_then(Value::as_table)
                    .map(|table| table.keys().filter(|name| *name != "default").cloned().collect())
                    .unwrap_or_default(),
            })
        })
        .collect()
}

fn manifest(path: &Path) -> Result<Table> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    text.parse().with_context(|| format!("cannot read {} as TOML", path.display()))
}

/// Normal and build dependencies, those for one platform included.
fn dependencies(manifest: &Table) -> BTreeSet<String> {
    let mut tables = vec![manifest];
    if let Some(targets) = manifest.get("target").and_then(Value::as_table) {
        tables.extend(targets.values().filter_map(Value::as_table));
    }
    tables
        .into_iter()
        .flat_map(|table| ["dependencies", "build-dependencies"].map(|kind| table.get(kind)))
        .flatten()
        .filter_map(Value::as_table)
        .flat_map(|table| {
            table.iter().map(|(name, value)| {
                value.get("package").and_then(Value::as_str).unwrap_or(name).to_owned()
            })
        })
        .collect()
}

fn dependency_faults(members: &[Member]) -> Vec<String> {
    let by_name: BTreeMap<&str, &Member> =
        members.iter().map(|member| (member.name.as_str(), member)).collect();
    let mut faults = Vec::new();
    for member in members {
        if member.dependencies.contains(TESTKIT) && member.folder != Path::new("bench") {
            faults.push(format!(
                "  {} depends on {TESTKIT}, which is for tests\n    help: name it under [dev-dependencies]",
                member.name
            ));
        }
        let Some(layer) = layer(member) else { continue };
        for dependency in &member.dependencies {
            let name = &member.name;
            if layer <= 1 && IMPURE.contains(&dependency.as_str()) {
                faults.push(format!(
                    "  {name} depends on {dependency}: formats/ and core/ do no IO\n    {WAY_OUT}"
                ));
            }
            let Some(other) =
                by_name.get(dependency.as_str()).filter(|other| other.name != TESTKIT)
            else {
                continue;
            };
            if let Some(rule) = broken_rule(member, layer, other) {
                faults.push(format!("  {name} depends on {dependency}: {rule}\n    {WAY_OUT}"));
            }
        }
    }
    faults
}

fn broken_rule(member: &Member, layer: usize, other: &Member) -> Option<String> {
    let folder = LAYERS[layer];
    match self::layer(other) {
        None => {
            Some(format!("{}/ is for checking the product, not part of it", other.folder.display()))
        }
        Some(below) if below < layer => {
            // The Destination stores its own state there, and maintenance works on all data; roles
            // use change logs and stores of hubs through the traits.
            let has_state =
                ["destination", "maintenance"].iter().any(|role| member.folder.ends_with(role));
            (other.name == "abreast-store" && folder == "roles" && !has_state).then(|| {
                "roles use change logs and stores of hubs through the traits in core/".to_owned()
            })
        }
        Some(same) if same == layer => match folder {
            "app" => None,
            // It works on the state of every role, and no role depends on it.
            "roles" if member.folder.ends_with("maintenance") => None,
            "formats" if SHARED_FORMATS.contains(&other.name.as_str()) => None,
            "formats" => Some("formats share only abreast-webtypes and rdf-patch".to_owned()),
            _ => Some(format!("crates in {folder}/ do not depend on each other")),
        },
        Some(above) => Some(format!("{folder}/ is below {}/", LAYERS[above])),
    }
}

fn code_faults(member: &Member, file: &str, text: &str) -> Vec<String> {
    let folder = layer(member).map(|layer| LAYERS[layer]);
    let (names, rule): (&[&str], _) = match folder {
        Some("formats" | "core") => (&IMPURE, "formats/ and core/ do no IO"),
        Some("roles") => {
            (&LOG_IMPLEMENTATIONS, "roles know a change log only as the trait `ChangeLog`")
        }
        _ => return Vec::new(),
    };
    let mut faults = Vec::new();
    for (number, line) in tree::before_tests(text).lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        let grouped = code.contains("std::{")
            && ["fs", "net", "process"].iter().any(|name| has_word(code, name));
        let named = names.iter().find(|name| has_word(code, name));
        if let Some(name) =
            named.or_else(|| (grouped && folder != Some("roles")).then_some(&"std::{…}"))
        {
            faults.push(format!("  {file}:{} names `{name}`: {rule}\n    {WAY_OUT}", number + 1));
        }
    }
    faults
}

/// Where code outside a protocol's own files names its documents.
fn protocol_faults(member: &Member, file: &str, text: &str) -> Vec<String> {
    if !matches!(
        layer(member).map(|layer| LAYERS[layer]),
        Some("core" | "adapters" | "roles" | "app")
    ) {
        return Vec::new();
    }
    let mut faults = Vec::new();
    for (module, allowed) in PROTOCOLS.into_iter().chain([READERS]) {
        if allowed.iter().any(|place| file.starts_with(place)) {
            continue;
        }
        for (number, line) in tree::before_tests(text).lines().enumerate() {
            if has_word(line.split("//").next().unwrap_or_default(), module) {
                faults.push(format!(
                    "  {file}:{} names `{module}`: only its readers and projections know a protocol's documents\n    \
                     help: take what the reader yields (`plan/listed.rs`), or move the code to the reader or projection",
                    number + 1
                ));
            }
        }
    }
    faults
}

/// Where code of the Destination or the command line names a kind of sink.
fn sink_faults(file: &str, text: &str) -> Vec<String> {
    let (kinds, allowed) = SINKS;
    let is_cli = file.starts_with("app/cli/src/");
    if !(is_cli || file.starts_with("roles/destination/src/"))
        || allowed.iter().any(|place| file.starts_with(place))
    {
        return Vec::new();
    }
    let names_kind = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        code.match_indices(kinds).any(|(at, _)| {
            code[at + kinds.len()..].starts_with(|first: char| first.is_ascii_uppercase())
        }) || (is_cli && TARGET_WORDS.iter().any(|word| code.contains(&format!("\"{word}"))))
    };
    let lines = tree::before_tests(text).lines().enumerate();
    let lines = lines.filter(|(_, line)| names_kind(line));
    lines
        .map(|(number, _)| {
            format!(
                "  {file}:{} names a kind of sink\n    help: add a method to `Facts` (`report/sinks.rs`), `SinkKind` \
                 (`sink/kind.rs`) or `TargetKind` (`sink/target.rs`), with a default for the other kinds",
                number + 1
            )
        })
        .collect()
}

/// Whether `word` stands in `code` as a whole path or identifier.
fn has_word(code: &str, word: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(start, _)| {
        !code[..start].ends_with(part_of_name)
            && !code[start + word.len()..].starts_with(part_of_name)
    })
}

fn layer(member: &Member) -> Option<usize> {
    let first = member.folder.iter().next()?;
    LAYERS.iter().position(|layer| first == *layer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(folder: &str, name: &str, dependencies: &[&str]) -> Member {
        Member {
            name: name.to_owned(),
            folder: PathBuf::from(folder),
            dependencies: dependencies.iter().map(|name| (*name).to_owned()).collect(),
            features: Vec::new(),
        }
    }

    fn faults_of(folder: &str, dependencies: &[&str]) -> String {
        let members = [
            member("formats/webtypes", "abreast-webtypes", &[]),
            member("formats/sdshare", "abreast-sdshare", &[]),
            member("core", "abreast-core", &[]),
            member("adapters/store", "abreast-store", &[]),
            member("adapters/net", "abreast-net", &[]),
            member("roles/hub", "abreast-hub", &[]),
            member("roles/maintenance", "abreast-maintenance", &["abreast-hub", "abreast-store"]),
            member("app/server", "abreast-server", &[]),
            member("bench", "abreast-bench", &["abreast-server"]),
            member("testkit", TESTKIT, &["abreast-core"]),
            member(folder, "subject", dependencies),
        ];
        dependency_faults(&members).join("\n")
    }

    #[test]
    fn kinds_of_sinks_are_known_through_their_traits() {
        let line = "if let SinkOptions::Warc(_) = &options.sink {";
        assert_eq!(sink_faults("roles/destination/src/run/audit.rs", line).len(), 1);
        assert_eq!(sink_faults("roles/destination/src/sink/kind.rs", line).len(), 0);
        let method = "SinkOptions::of_files(word) // SinkOptions::Warc";
        assert_eq!(sink_faults("roles/destination/src/run/check.rs", method).len(), 0);
        assert_eq!(sink_faults("app/cli/src/command/sync.rs", line).len(), 1);
        assert_eq!(
            sink_faults("app/cli/src/command/sync.rs", "target.strip_prefix(\"warc:\")").len(),
            1
        );
        assert_eq!(
            sink_faults("app/cli/src/command/sync.rs", "/// warc:DIR, or \"warc:DIR\"").len(),
            0
        );
    }

    #[test]
    fn a_crate_may_depend_on_the_folders_below() {
        assert_eq!(
            faults_of("roles/source", &["abreast-core", "abreast-net", "abreast-sdshare"]),
            ""
        );
        assert_eq!(faults_of("app/cli", &["abreast-server", "abreast-store", "tokio"]), "");
    }

    #[test]
    fn a_crate_may_not_depend_on_the_folders_above() {
        assert!(faults_of("core", &["abreast-store"]).contains("core/ is below adapters/"));
        assert!(faults_of("adapters/net", &["abreast-hub"]).contains("adapters/ is below roles/"));
    }

    #[test]
    fn roles_do_not_know_each_other_nor_a_store() {
        assert!(
            faults_of("roles/source", &["abreast-hub"]).contains("do not depend on each other")
        );
        for role in ["roles/source", "roles/hub"] {
            assert!(faults_of(role, &["abreast-store"]).contains("through the traits"));
        }
        assert!(
            faults_of("roles/source", &["abreast-maintenance"])
                .contains("do not depend on each other")
        );
        assert_eq!(faults_of("roles/destination", &["abreast-store"]), "");
    }

    #[test]
    fn formats_share_only_what_depends_on_nothing() {
        assert_eq!(faults_of("formats/emm", &["abreast-webtypes", "rdf-patch"]), "");
        assert!(faults_of("formats/emm", &["abreast-sdshare"]).contains("share only"));
    }

    #[test]
    fn nothing_depends_on_benches() {
        assert!(faults_of("app/cli", &["abreast-bench"]).contains("not part of it"));
    }

    #[test]
    fn the_testkit_is_a_dev_dependency_only() {
        for folder in ["core", "roles/hub", "app/cli", "conformance", "xtask"] {
            assert!(faults_of(folder, &[TESTKIT]).contains("[dev-dependencies]"), "{folder}");
        }
        assert_eq!(faults_of("bench", &[TESTKIT]), "");
        let members = super::members(&root()).unwrap();
        assert!(members.iter().any(|member| member.name == TESTKIT));
    }

    #[test]
    fn pure_layers_do_no_io() {
        assert!(faults_of("formats/emm", &["tokio"]).contains("do no IO"));
        let core = member("core", "abreast-core", &[]);
        assert_eq!(code_faults(&core, "core/src/a.rs", "use std::{collections, fs};").len(), 1);
        assert_eq!(
            code_faults(&core, "core/src/a.rs", "fn f() {}\n  std::fs::read(path)").len(),
            1
        );
        assert!(
            code_faults(&core, "core/src/a.rs", "// tokio is not named here\nlet tokio_like = 1;")
                .is_empty()
        );
        assert!(
            code_faults(&core, "core/src/a.rs", "#[cfg(test)]\nmod tests { use std::fs; }")
                .is_empty()
        );
    }

    #[test]
    fn roles_do_not_name_an_implementation_of_the_log() {
        let role = member("roles/destination", "abreast-destination", &[]);
        assert_eq!(code_faults(&role, "a.rs", "use abreast_store::SqliteLog;").len(), 1);
        assert!(code_faults(&role, "a.rs", "use abreast_store::mirror::Mirror;").is_empty());
    }

    #[test]
    fn documents_are_named_by_their_reader_and_projection_only() {
        let text = "// v1_1 in a comment\nuse abreast_resourcesync::v1_1::Entry;\nlet v1_1_like = 1;\n\
             #[cfg(test)]\nmod tests { use abreast_resourcesync::v1_1::Ln; }";
        let faults = |folder: &str, file: &str| {
            protocol_faults(&member(folder, "subject", &[]), file, text).len()
        };
        assert_eq!(faults("roles/destination", "roles/destination/src/run/audit.rs"), 1);
        assert_eq!(
            faults("roles/destination", "roles/destination/src/read/resourcesync/discover.rs"),
            0
        );
        assert_eq!(faults("roles/source", "roles/source/src/watch.rs"), 1);
        assert_eq!(faults("roles/source", "roles/source/src/notify/notifier.rs"), 1);
        assert_eq!(faults("roles/source", "roles/source/src/projection/pages/sitemap.rs"), 1);
        assert_eq!(faults("roles/source", "roles/source/src/projection/resourcesync/lists.rs"), 0);
        assert_eq!(faults("roles/validator", "roles/validator/src/walk/mod.rs"), 1);
        assert_eq!(faults("roles/validator", "roles/validator/src/resourcesync/doc.rs"), 0);
        assert_eq!(faults("app/server", "app/server/src/run/route.rs"), 1);
        assert_eq!(faults("app/cli", "app/cli/src/command/import.rs"), 1);
        assert_eq!(faults("formats/resourcesync", "formats/resourcesync/src/v1_1/parser.rs"), 0);
        let text = "use crate::read::resourcesync::reader::ResourceSync;";
        let faults = |file: &str| {
            protocol_faults(&member("roles/destination", "subject", &[]), file, text).len()
        };
        assert_eq!(faults("roles/destination/src/run/sync.rs"), 1);
        assert_eq!(faults("roles/destination/src/read/mod.rs"), 0);
    }

    #[test]
    fn dev_dependencies_are_free_and_renamed_ones_are_seen() {
        let manifest: Table = "[dependencies]\nq = { package = \"tokio\", version = \"1\" }\n\
             [dev-dependencies]\nrusqlite = \"1\"\n[target.'cfg(unix)'.dependencies]\nrustix = \"1\""
            .parse()
            .unwrap();
        assert_eq!(
            dependencies(&manifest),
            BTreeSet::from(["tokio".to_owned(), "rustix".to_owned()])
        );
    }
}
