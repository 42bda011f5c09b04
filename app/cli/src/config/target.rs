//! The target after the URL, and the options of each kind of copy.

use crate::config::File;
use crate::program::errors::UsageError;
use abreast_destination::{Output, SyncOptions, TargetOptions, TargetPlace};
use anyhow::{Context as _, Result};
use clap::Args;
use std::path::Path;

pub(crate) use abreast_destination::target_folder as folder_of;

/// Options of copies other than folders of files.
#[derive(Clone, Debug, Args)]
#[command(
    next_help_heading = "Packed copies (warc:DIR), streams (-) and RDF (nquads:DIR, labels:FILE, oxigraph:DIR, sparql:URL, graphstore:URL, push:URL)"
)]
pub(crate) struct TargetArgs {
    /// Start another file after this many bytes [default: 1G for WARC, 64M for N-Quads]
    #[arg(long, value_name = "SIZE", value_parser = crate::values::sizes::parse_size)]
    pub(crate) segment_size: Option<u64>,
    /// Compression of WARC records, from 1 (fast) to 9 (small); 0 for none
    #[arg(long, value_name = "LEVEL", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=9))]
    pub(crate) compress: u8,
    /// Also write digests of the whole block of WARC responses, not only of the payload
    #[arg(long)]
    pub(crate) block_digest: bool,
    /// Include contents up to this length (at most 1M) in the lines, as base 64
    #[arg(long, value_name = "SIZE", value_parser = crate::values::sizes::parse_size)]
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
    #[arg(long, value_name = "IRI", value_parser = crate::values::address::property)]
    pub(crate) label_predicate: Vec<String>,
    /// One label for each entity, in the first of these languages that it has: de,en [default: all
    /// labels]
    #[arg(long, value_name = "LANGUAGES", value_delimiter = ',')]
    pub(crate) label_language: Vec<String>,
}

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
        let set_folder = match TargetPlace::of(target) {
            TargetPlace::Set(name) => {
                let file = sets.unwrap_or(Path::new(SETS_FILE));
                let folder = File::read(file).and_then(|file| file.folder_of(name));
                Some(folder.with_context(|| {
                    format!(
                        "while searching for the set `{name}` (help: name the file of `abreast serve` by ABREAST_CONFIG)"
                    )
                })?)
            }
            _ => None,
        };
        let given = TargetOptions {
            segment_bytes: self.segment_size,
            compression: self.compress,
            block_digest: self.block_digest,
            content_bytes_max: self.content,
            graph: self.graph.clone(),
            query_url: self.query_url.clone(),
            label_predicates: self.label_predicate.clone(),
            label_languages: self.label_language.clone(),
            set_folder,
            output: Some(|| Output::new(crate::program::terminal::output())),
        };
        let set = options.set_target(target, &given);
        set.map_err(|error| UsageError(error.to_string()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command, FromArgMatches as _};
    use std::path::PathBuf;

    fn applied(words: &[&str], target: &str, sets: Option<&Path>) -> Result<SyncOptions> {
        let command = TargetArgs::augment_args(Command::new("x").no_binary_name(true));
        let args = TargetArgs::from_arg_matches(&command.get_matches_from(words)).unwrap();
        let mut options = SyncOptions::new("http://h/", target);
        options.state = Some(PathBuf::from("./state"));
        args.apply(target, sets, &mut options).map(|()| options)
    }

    #[test]
    fn each_flag_is_an_option_of_the_kind() {
        for (words, target, expected) in [
            (
                &["--segment-size", "2M", "--compress", "6", "--block-digest"][..],
                "warc:./papers",
                "segment_bytes: 2097152, compression: 6, block_digest: true",
            ),
            (&["--content", "1K"], "-", "content_bytes_max: Some(1024)"),
            (
                &["--graph", "http://h/g", "--query-url", "http://h/query"],
                "sparql:http://h/update",
                r#"query_url: Some("http://h/query"), graph: Named("http://h/g")"#,
            ),
            (
                &["--label-predicate", "http://h/p", "--label-language", "de,en"],
                "labels:./labels.csv",
                r#"predicates: ["http://h/p"], languages: ["de", "en"]"#,
            ),
        ] {
            let sink = format!("{:?}", applied(words, target, None).unwrap().sink);
            assert!(sink.contains(expected), "{sink}");
            let error = applied(words, "./papers", None).unwrap_err().to_string();
            assert!(error.contains(words[0]) && error.contains("no effect"), "{error}");
        }
    }

    #[test]
    fn a_set_of_the_configuration_is_a_folder_to_publish_again() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("abreast.toml");
        let text = "[[set]]\nfolder = \"/srv/Papers\"\n[[set]]\nname = \"maps\"\nfolder = \"/srv/m\"\n\
                    [[set]]\nname = \"elsewhere\"\nrecords = true\n";
        std::fs::write(&file, text).unwrap();
        let of = |target: &str| {
            applied(&[], target, Some(&file)).map(|options| (options.folder, options.republish))
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
}
