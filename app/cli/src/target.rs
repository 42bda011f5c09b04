//! Kinds of copies: the target after the URL, and the options of each kind.

use crate::config::File;
use crate::errors::UsageError;
use abreast_destination::{
    Graph, GraphStoreOptions, LabelsOptions, LinesOptions, NQuadsOptions, Output, OxigraphOptions,
    PushOptions, SinkOptions, SparqlOptions, SyncOptions, WarcOptions,
};
use abreast_webtypes::without_login;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use std::path::{Path, PathBuf};

/// Most bytes of a content in a line.
const CONTENT_MAX: u64 = 1 << 20;

/// Options of copies other than folders of files.
#[derive(Clone, Debug, Args)]
#[command(
    next_help_heading = "Packed copies (warc:DIR), streams (-) and RDF (nquads:DIR, labels:FILE, oxigraph:DIR, sparql:URL, graphstore:URL, push:URL)"
)]
pub(crate) struct TargetArgs {
    /// Start another file after this many bytes [default: 1G for WARC, 64M for N-Quads]
    #[arg(long, value_name = "SIZE", value_parser = crate::sizes::parse_size)]
    pub(crate) segment_size: Option<u64>,
    /// Compression of WARC records, from 1 (fast) to 9 (small); 0 for none
    #[arg(long, value_name = "LEVEL", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=9))]
    pub(crate) compress: u8,
    /// Also write digests of the whole block of WARC responses, not only of the payload
    #[arg(long)]
    pub(crate) block_digest: bool,
    /// Include contents up to this length (at most 1M) in the lines, as base 64
    #[arg(long, value_name = "SIZE", value_parser = crate::sizes::parse_size)]
    pub(crate) content: Option<u64>,
    /// Graph that the statements of RDF copies are in; `resource` gives each resource its own,
    /// named by its URI [default: the default graph]
    #[arg(long, value_name = "IRI")]
    pub(crate) graph: Option<String>,
    /// Address of the SPARQL endpoint that answers queries [default: from that for updates]
    #[arg(long, value_name = "URL")]
    pub(crate) query_url: Option<String>,
    /// Predicate of labels for labels:FILE, an IRI or a name such as skos:prefLabel; repeatable, the best first [default: those of SKOS, RDF
    /// Schema, MADS/RDF, schema.org, DCMI and FOAF]
    #[arg(long, value_name = "IRI", value_parser = crate::address::property)]
    pub(crate) label_predicate: Vec<String>,
    /// One label for each entity, in the first of these languages that it has: de,en [default: all
    /// labels]
    #[arg(long, value_name = "LANGUAGES", value_delimiter = ',')]
    pub(crate) label_language: Vec<String>,
}

/// Words before the colon that select the kind of copy. URLs of object stores have `//` after the colon.
const KINDS: [&str; 10] =
    ["warc", "nquads", "labels", "oxigraph", "sparql", "graphstore", "push", "set", "s3", "file"];
/// The word for a graph of each resource.
const OF_RESOURCE: &str = "resource";
/// Default configuration file of sets.
const SETS_FILE: &str = "abreast.toml";

impl TargetArgs {
    /// Sets the options for the kind and the place of the copy from its argument.
    /// `sets` is the configuration file of `abreast serve`.
    pub(crate) fn apply(
        &self,
        target: &str,
        sets: Option<&Path>,
        options: &mut SyncOptions,
    ) -> Result<()> {
        if let Some(name) = target.strip_prefix("set:") {
            let file = sets.unwrap_or(Path::new(SETS_FILE));
            options.folder = File::read(file).and_then(|file| file.folder_of(name)).with_context(|| {
                format!(
                    "while searching for the set `{name}` (help: name the file of `abreast serve` by ABREAST_CONFIG)"
                )
            })?;
            options.republish = true;
        } else if target == "-" {
            if self.content.is_some_and(|most| most > CONTENT_MAX) {
                bail!(UsageError(
                    "`--content` is at most 1M: larger contents do not fit a line".to_owned()
                ));
            }
            self.keep_state_apart(options, "a stream")?;
            let output = Output::new(crate::terminal::output());
            options.sink =
                SinkOptions::Lines(LinesOptions { output, content_bytes_max: self.content });
        } else if let Some(folder) = target.strip_prefix("warc:") {
            if folder.is_empty() {
                bail!(UsageError(
                    "`warc:` needs a folder (help: abreast sync URL warc:DIR)".to_owned()
                ));
            }
            options.folder = PathBuf::from(folder);
            let defaults = WarcOptions::default();
            options.sink = SinkOptions::Warc(WarcOptions {
                segment_bytes: self.segment_size.unwrap_or(defaults.segment_bytes),
                compression: self.compress,
                block_digest: self.block_digest,
            });
        } else if let Some(folder) = target.strip_prefix("nquads:") {
            if folder.is_empty() {
                bail!(UsageError(
                    "`nquads:` needs a folder (help: abreast sync URL nquads:DIR)".to_owned()
                ));
            }
            options.folder = PathBuf::from(folder);
            let defaults = NQuadsOptions::default();
            options.sink = SinkOptions::NQuads(NQuadsOptions {
                graph: self.graph(),
                file_bytes: self.segment_size.unwrap_or(defaults.file_bytes),
            });
        } else if let Some(folder) = target.strip_prefix("oxigraph:") {
            if cfg!(not(feature = "oxigraph")) {
                bail!(UsageError(format!(
                    "cannot keep a copy in {target}: this program was built without Oxigraph (help: cargo install --locked abreast --features oxigraph)"
                )));
            }
            if folder.is_empty() {
                bail!(UsageError(
                    "`oxigraph:` needs a folder (help: abreast sync URL oxigraph:DIR)".to_owned()
                ));
            }
            options.folder = PathBuf::from(folder);
            options.sink =
                SinkOptions::Oxigraph(OxigraphOptions { graph: self.graph(), store: None });
        } else if let Some(file) = target.strip_prefix("labels:") {
            let path = PathBuf::from(file);
            let is_csv = match path.extension().and_then(|end| end.to_str()) {
                Some("csv") => true,
                Some("db" | "sqlite" | "sqlite3") => false,
                _ => bail!(UsageError(
                    "`labels:` needs a file that ends in .db or .csv (help: abreast sync URL labels:FILE.db --state DIR)"
                        .to_owned()
                )),
            };
            self.keep_state_apart(options, "a table of labels")?;
            options.sink = SinkOptions::Labels(LabelsOptions {
                path,
                is_csv,
                predicates: self.label_predicate.clone(),
                languages: self.label_language.clone(),
            });
        } else if let Some(url) = target.strip_prefix("sparql:") {
            self.keep_state_apart(options, "a SPARQL endpoint")?;
            options.sink = SinkOptions::Sparql(SparqlOptions {
                url: url.to_owned(),
                query_url: self.query_url.clone(),
                graph: self.graph(),
            });
        } else if let Some(url) = target.strip_prefix("graphstore:") {
            if self.graph.as_deref().is_some_and(|graph| graph != OF_RESOURCE) {
                bail!(UsageError(
                    "in a graph store each resource has a graph of its own (help: leave `--graph` out, or use sparql:URL)"
                        .to_owned()
                ));
            }
            self.keep_state_apart(options, "a graph store")?;
            options.sink = SinkOptions::GraphStore(GraphStoreOptions { url: url.to_owned() });
        } else if let Some(url) = target.strip_prefix("push:") {
            if self.graph.as_deref() == Some(OF_RESOURCE) {
                bail!(UsageError(
                    "what is pushed has no graph for each resource (help: name one graph, or leave `--graph` out)"
                        .to_owned()
                ));
            }
            self.keep_state_apart(options, "a receiver")?;
            let graph = self.graph.clone();
            options.sink = SinkOptions::Push(PushOptions { url: url.to_owned(), graph });
        } else if target.starts_with("s3://") || target.starts_with("file://") {
            self.apply_objects(target, options)?;
        } else if let Some(word) = word_of(target) {
            bail!(UsageError(unknown_kind(target, word)));
        }
        self.check_options(target)
    }

    /// Refuses options that have no effect for this kind of copy.
    fn check_options(&self, target: &str) -> Result<()> {
        let kind = if target == "-" { "-" } else { word_of(target).unwrap_or_default() };
        let graphs = &["nquads", "oxigraph", "sparql", "graphstore", "push"][..];
        for (option, is_given, kinds) in [
            ("--segment-size", self.segment_size.is_some(), &["warc", "nquads"][..]),
            ("--compress", self.compress > 0, &["warc"]),
            ("--block-digest", self.block_digest, &["warc"]),
            ("--content", self.content.is_some(), &["-"]),
            ("--graph", self.graph.is_some(), graphs),
            ("--query-url", self.query_url.is_some(), &["sparql"]),
            ("--label-predicate", !self.label_predicate.is_empty(), &["labels"]),
            ("--label-language", !self.label_language.is_empty(), &["labels"]),
        ] {
            if is_given && !kinds.contains(&kind) {
                let named = |kind: &&str| match *kind {
                    "-" => "-".to_owned(),
                    kind => format!("{kind}:"),
                };
                let of = kinds.iter().map(named).collect::<Vec<_>>().join(", ");
                bail!(UsageError(format!(
                    "`{option}` has no effect on a copy in `{}` (help: leave it out; it is for {of})",
                    without_login(target)
                )));
            }
        }
        Ok(())
    }

    fn graph(&self) -> Graph {
        match self.graph.as_deref() {
            None => Graph::Default,
            Some(OF_RESOURCE) => Graph::OfResource,
            Some(iri) => Graph::Named(iri.to_owned()),
        }
    }

    #[cfg(feature = "s3")]
    fn apply_objects(&self, url: &str, options: &mut SyncOptions) -> Result<()> {
        self.keep_state_apart(options, "an object store")?;
        let objects =
            abreast_destination::ObjectsOptions { url: url.to_owned(), settings: Vec::new() };
        options.sink = SinkOptions::Objects(objects);
        Ok(())
    }

    #[cfg(not(feature = "s3"))]
    #[expect(clippy::unused_self, reason = "as with the feature")]
    fn apply_objects(&self, url: &str, _: &mut SyncOptions) -> Result<()> {
        bail!(UsageError(format!(
            "cannot keep a copy in {}: this program was built without object stores (help: build it with the default features)",
            without_login(url)
        )));
    }

    /// Uses the folder of `--state` for copies that are not in a folder.
    #[expect(clippy::unused_self, reason = "reads as a part of it")]
    fn keep_state_apart(&self, options: &mut SyncOptions, what: &str) -> Result<()> {
        let Some(state) = options.state.take() else {
            bail!(UsageError(format!(
                "{what} has no folder for its state (help: name one with `--state DIR`)"
            )));
        };
        options.folder = state;
        Ok(())
    }
}

/// The word before the first colon of a target, unless that is a part of a path.
fn word_of(target: &str) -> Option<&str> {
    target.split_once(':').map(|(word, _)| word).filter(|word| !word.contains('/'))
}

/// The error for a target with an unknown word before a colon.
fn unknown_kind(target: &str, word: &str) -> String {
    let rest = without_login(&target[word.len() + 1..]);
    let target = without_login(target);
    let word = word.to_ascii_lowercase();
    let path = format!("a folder whose name has a colon is written with its path: ./{target}");
    if matches!(&*word, "http" | "https") {
        return format!(
            "`{target}` is a URL; the second argument must be a folder (help: name a folder, or the kind of server: sparql:URL, \
             graphstore:URL or push:URL; {path})"
        );
    }
    let help = match crate::faults::nearest(&word, &KINDS) {
        Some(kind @ ("s3" | "file")) => format!("did you mean `{kind}://{}`?", rest.trim_start_matches('/')),
        Some(kind) => format!("did you mean `{kind}:{rest}`?"),
        None => "the kinds are warc:DIR, nquads:DIR, labels:FILE, oxigraph:DIR, sparql:URL, graphstore:URL, push:URL, set:NAME, s3://BUCKET, file://DIR and -"
            .to_owned(),
    };
    format!("`{word}:` is not a kind of copy (help: {help}; {path})")
}

/// The folder of a copy, without the word for its kind.
pub(crate) fn folder_of(target: &str) -> &Path {
    let kinds = ["warc:", "nquads:", "oxigraph:", "labels:"];
    Path::new(kinds.iter().find_map(|kind| target.strip_prefix(kind)).unwrap_or(target))
}

/// True if standard output is used by the copy, so that nothing else may be printed there.
pub(crate) fn takes_output(options: &SyncOptions) -> bool {
    matches!(options.sink, SinkOptions::Lines(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command, FromArgMatches as _};

    fn applied(words: &[&str], target: &str, state: Option<&str>) -> Result<SyncOptions> {
        let command = TargetArgs::augment_args(Command::new("x").no_binary_name(true));
        let args = TargetArgs::from_arg_matches(&command.get_matches_from(words)).unwrap();
        let mut options = SyncOptions::new("http://h/", target);
        options.state = state.map(PathBuf::from);
        args.apply(target, None, &mut options).map(|()| options)
    }

    #[test]
    fn a_set_of_the_configuration_is_a_folder_to_publish_again() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("abreast.toml");
        let text = "[[set]]\nfolder = \"/srv/Papers\"\n[[set]]\nname = \"maps\"\nfolder = \"/srv/m\"\n\
                    [[set]]\nname = \"elsewhere\"\nrecords = true\n";
        std::fs::write(&file, text).unwrap();
        let of = |target: &str| {
            let command = TargetArgs::augment_args(Command::new("x").no_binary_name(true));
            let args = TargetArgs::from_arg_matches(&command.get_matches_from([""; 0])).unwrap();
            let mut options = SyncOptions::new("http://h/", target);
            args.apply(target, Some(&file), &mut options)
                .map(|()| (options.folder, options.republish))
        };
        assert_eq!(of("set:papers").unwrap(), (PathBuf::from("/srv/Papers"), true));
        assert_eq!(of("set:maps").unwrap(), (PathBuf::from("/srv/m"), true));
        for (target, told) in
            [("set:map", "there is no set `map`"), ("set:elsewhere", "set of records")]
        {
            let error = format!("{:#}", of(target).unwrap_err());
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn target_word_selects_the_kind() {
        assert_eq!(applied(&[], "./papers", None).unwrap().sink, SinkOptions::Folder);
        let warc =
            applied(&["--segment-size", "2M", "--compress", "6"], "warc:./papers", None).unwrap();
        assert_eq!(warc.folder, PathBuf::from("./papers"));
        let expected = WarcOptions { segment_bytes: 2 << 20, compression: 6, block_digest: false };
        assert_eq!(warc.sink, SinkOptions::Warc(expected));
        let lines = applied(&["--content", "1K"], "-", Some("./state")).unwrap();
        assert_eq!((lines.folder.clone(), lines.state.clone()), (PathBuf::from("./state"), None));
        assert!(takes_output(&lines));
        let nquads = applied(&["--graph", "resource"], "nquads:./graph", None).unwrap();
        assert_eq!(nquads.folder, PathBuf::from("./graph"));
        let expected = NQuadsOptions { graph: Graph::OfResource, ..NQuadsOptions::default() };
        assert_eq!(nquads.sink, SinkOptions::NQuads(expected));
        let oxigraph = applied(&["--graph", "http://h/g"], "oxigraph:./store", None);
        if cfg!(feature = "oxigraph") {
            let graph = Graph::Named("http://h/g".to_owned());
            let expected = SinkOptions::Oxigraph(OxigraphOptions { graph, store: None });
            assert_eq!(oxigraph.unwrap().sink, expected);
        } else {
            let text = oxigraph.unwrap_err().to_string();
            assert!(text.contains("--features oxigraph"), "{text}");
        }
        let words = ["--label-language", "de,en", "--label-predicate", "http://h/p"];
        let labels = applied(&words, "labels:./labels.csv", Some("./state")).unwrap();
        let expected = LabelsOptions {
            path: PathBuf::from("./labels.csv"),
            is_csv: true,
            predicates: vec!["http://h/p".to_owned()],
            languages: vec!["de".to_owned(), "en".to_owned()],
        };
        assert_eq!(labels.sink, SinkOptions::Labels(expected));
        let words = ["--graph", "http://h/g", "--query-url", "http://h/query"];
        let sparql = applied(&words, "sparql:http://h/update", Some("./state")).unwrap();
        let expected = SparqlOptions {
            url: "http://h/update".to_owned(),
            query_url: Some("http://h/query".to_owned()),
            graph: Graph::Named("http://h/g".to_owned()),
        };
        assert_eq!(sparql.sink, SinkOptions::Sparql(expected));
        let store = applied(&[], "graphstore:http://h/data", Some("./state")).unwrap();
        let expected = GraphStoreOptions { url: "http://h/data".to_owned() };
        assert_eq!(store.sink, SinkOptions::GraphStore(expected));
        let push = applied(&["--graph", "http://h/g"], "push:http://h/p", Some("./s")).unwrap();
        let graph = Some("http://h/g".to_owned());
        let expected = PushOptions { url: "http://h/p".to_owned(), graph };
        assert_eq!(push.sink, SinkOptions::Push(expected));
    }

    #[test]
    fn a_misprinted_kind_is_no_folder() {
        for (target, help) in [
            ("lables:x.csv", "did you mean `labels:x.csv`"),
            ("label:./x.csv", "did you mean `labels:./x.csv`"),
            ("nquad:x", "did you mean `nquads:x`"),
            ("WARC:x", "did you mean `warc:x`"),
            ("s3:bucket/a", "did you mean `s3://bucket/a`"),
            ("graph-store:http://h/", "did you mean `graphstore:http://h/`"),
            ("foo:bar", "the kinds are"),
            ("http://x/y", "sparql:URL"),
            ("HTTPS://x/y", "sparql:URL"),
        ] {
            let words = ["--label-language", "de"];
            for words in [&words[..], &[]] {
                let text = applied(words, target, Some("./s")).unwrap_err().to_string();
                assert!(text.contains(help) && text.contains(&format!("./{target}")), "{text}");
            }
        }
        for path in ["./lables:x", "/a/foo:bar", "a/b:c", "papers"] {
            assert_eq!(applied(&[], path, None).unwrap().folder, PathBuf::from(path));
        }
    }

    #[test]
    fn options_of_other_kinds_are_refused() {
        for (words, target) in [
            (&["--label-language", "de"][..], "./x"),
            (&["--label-predicate", "http://h/p"], "nquads:x"),
            (&["--graph", "http://h/g"], "labels:x.db"),
            (&["--graph", "http://h/g"], "./x"),
            (&["--segment-size", "1M"], "./x"),
            (&["--compress", "3"], "nquads:x"),
            (&["--block-digest"], "-"),
            (&["--content", "1K"], "warc:x"),
            (&["--query-url", "http://h/"], "graphstore:http://h/"),
        ] {
            let text = applied(words, target, Some("./s")).unwrap_err().to_string();
            assert!(text.contains(words[0]) && text.contains("no effect"), "{text}");
        }
    }

    #[test]
    fn impossible_targets_are_refused_with_help() {
        for (words, target) in [
            (&[][..], "-"),
            (&["--content", "2M"], "-"),
            (&[], "warc:"),
            (&[], "nquads:"),
            (&[], "labels:./labels"),
            (&[], "labels:./labels.db"),
            (&[], "oxigraph:"),
            (&[], "sparql:http://h/update"),
            (&[], "graphstore:http://h/data"),
            (&["--graph", "http://h/g"], "graphstore:http://h/data"),
            (&[], "push:http://h/push"),
            (&["--graph", "resource"], "push:http://h/push"),
            (&[], "s3://b/p"),
        ] {
            let text = applied(words, target, None).unwrap_err().to_string();
            assert!(text.contains("help") || text.contains("at most"), "{text}");
        }
    }
}
