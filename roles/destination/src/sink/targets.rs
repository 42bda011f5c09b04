//! Finding the kind of copy by the text of a target.

use super::target::{Target, TargetError, TargetOptions, word_of};
use crate::report::options::SyncOptions;
use crate::report::sinks::SinkOptions;
use abreast_webtypes::{nearest, without_login};
use std::path::{Path, PathBuf};

/// The place in the text of a target, without the options of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TargetPlace<'t> {
    /// A folder, or a file in a folder.
    Folder(&'t Path),
    /// An address, with the word of the kind if it has one.
    Address(&'t str),
    /// The name of a published set.
    Set(&'t str),
    /// A stream of lines on standard output.
    Stream,
}

impl<'t> TargetPlace<'t> {
    /// The place of a target, right or wrong.
    ///
    /// ```
    /// use abreast_destination::TargetPlace;
    /// use std::path::Path;
    ///
    /// assert_eq!(TargetPlace::of("warc:./archive"), TargetPlace::Folder(Path::new("./archive")));
    /// assert_eq!(TargetPlace::of("set:papers"), TargetPlace::Set("papers"));
    /// ```
    pub fn of(target: &'t str) -> Self {
        if target == STREAM {
            return Self::Stream;
        }
        match target.strip_prefix("set:") {
            Some(name) => Self::Set(name),
            None if target.contains("://") => Self::Address(target),
            None => Self::Folder(target_folder(target)),
        }
    }
}

/// The folder or file of a target, without the word for its kind; other targets as they are.
///
/// ```
/// use std::path::Path;
///
/// assert_eq!(abreast_destination::target_folder("nquads:./graph"), Path::new("./graph"));
/// assert_eq!(abreast_destination::target_folder("./papers"), Path::new("./papers"));
/// ```
pub fn target_folder(target: &str) -> &Path {
    let is_file = |form: &&&str| form.ends_with(":DIR") || form.ends_with(":FILE");
    let place = SinkOptions::targets()
        .iter()
        .find_map(|row| row.forms.iter().filter(is_file).find_map(|form| place_of(form, target)));
    Path::new(place.unwrap_or(target))
}

impl SyncOptions {
    /// Sets the kind and the place of the copy from the text of a target: a folder, or a word for
    /// another kind and its place, such as `warc:DIR`, `nquads:DIR`, `sparql:URL` or
    /// `s3://BUCKET/PREFIX`; `-` is a stream of lines. A copy that is not in a folder has its database
    /// in [`SyncOptions::state`].
    ///
    /// ```
    /// use abreast_destination::{SyncOptions, TargetOptions};
    ///
    /// let mut options = SyncOptions::new("https://example.org/", "");
    /// let target = TargetOptions { segment_bytes: Some(64 << 20), ..TargetOptions::default() };
    /// options.set_target("warc:./archive", &target)?;
    /// assert_eq!(options.folder.to_str(), Some("./archive"));
    ///
    /// let error = options.set_target("wrac:./archive", &target).unwrap_err();
    /// assert!(error.to_string().contains("did you mean `warc:./archive`?"));
    /// # Ok::<(), abreast_destination::TargetError>(())
    /// ```
    ///
    /// # Errors
    /// The text does not contain a place of a kind of copy, or an option has no effect on the kind.
    pub fn set_target(&mut self, text: &str, given: &TargetOptions) -> Result<(), TargetError> {
        let found = SinkOptions::targets().iter().find_map(|row| {
            let place = row.forms.iter().find_map(|form| place_of(form, text))?;
            Some((row, place))
        });
        let mut has: &[&str] = &[];
        if let Some((row, place)) = found {
            has = row.options;
            self.sink = (row.read)(&mut Target { text, place, given, options: self })?;
        } else if let Some(word) = word_of(text) {
            return Err(unknown_kind(text, word));
        } else {
            (self.folder, self.sink) = (PathBuf::from(text), SinkOptions::default());
        }
        let mut given = given.given().into_iter().filter(|(_, is_given)| *is_given);
        match given.find(|(option, _)| !has.contains(option)) {
            None => Ok(()),
            Some((option, _)) => {
                let target = without_login(text).into_owned();
                Err(TargetError::OptionWithoutEffect(option, target, kinds_with(option)))
            }
        }
    }
}

/// The target for a stream.
const STREAM: &str = "-";

/// The text after the word of a form, if a target has this form.
fn place_of<'t>(form: &str, target: &'t str) -> Option<&'t str> {
    let word = start_of(form);
    target.strip_prefix(word).filter(|place| word != STREAM || place.is_empty())
}

/// The part of a form before the place: `warc:` of `warc:DIR`.
fn start_of(form: &str) -> &str {
    form.trim_end_matches(|last: char| last.is_ascii_uppercase())
}

/// The kinds that have an option, as a list.
fn kinds_with(option: &str) -> String {
    let kinds = SinkOptions::targets().iter().filter(|row| row.options.contains(&option));
    kinds.map(|row| start_of(row.forms[0])).collect::<Vec<_>>().join(", ")
}

/// The forms of the targets of all kinds, in the order of the kinds, for which `is_listed` is true.
fn forms(is_listed: impl Fn(&&str) -> bool) -> Vec<&'static str> {
    SinkOptions::targets().iter().flat_map(|row| row.forms).copied().filter(is_listed).collect()
}

/// The error for a target with an unknown word before a colon.
fn unknown_kind(target: &str, word: &str) -> TargetError {
    let rest = without_login(&target[word.len() + 1..]);
    let target = without_login(target).into_owned();
    let word = word.to_ascii_lowercase();
    if matches!(&*word, "http" | "https") {
        let kinds = listed(&forms(|form| form.ends_with(":URL")), "or");
        return TargetError::ServerWithoutKind(target, kinds);
    }
    let forms = forms(|_| true);
    let words: Vec<&str> = forms.iter().filter_map(|form| word_of(form)).collect();
    let help = match nearest(&word, &words) {
        Some(kind) if forms.iter().any(|form| is_scheme(form, kind)) => {
            format!("did you mean `{kind}://{}`?", rest.trim_start_matches('/'))
        }
        Some(kind) => format!("did you mean `{kind}:{rest}`?"),
        None => format!("the kinds are {}", listed(&forms, "and")),
    };
    TargetError::UnknownKind(word, help, target)
}

/// Whether a form is the URL of an object store with this scheme.
fn is_scheme(form: &str, word: &str) -> bool {
    form.strip_prefix(word).is_some_and(|rest| rest.starts_with("://"))
}

/// A list with commas, and a word before the last item.
fn listed(items: &[&str], before_last: &str) -> String {
    match items {
        [items @ .., last] => format!("{} {before_last} {last}", items.join(", ")),
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sinks::{
        Graph, GraphStoreOptions, LabelsOptions, NQuadsOptions, OxigraphOptions, PushOptions,
        SparqlOptions, WarcOptions,
    };

    fn set(
        given: &TargetOptions,
        target: &str,
        state: Option<&str>,
    ) -> Result<SyncOptions, TargetError> {
        let mut options = SyncOptions::new("http://h/", "");
        options.state = state.map(PathBuf::from);
        options.set_target(target, given).map(|()| options)
    }

    fn graph(iri: &str) -> TargetOptions {
        TargetOptions { graph: Some(iri.to_owned()), ..TargetOptions::default() }
    }

    fn content(most: u64) -> TargetOptions {
        TargetOptions { content_bytes_max: Some(most), ..TargetOptions::default() }
    }

    #[test]
    fn target_word_selects_the_kind() {
        let none = &TargetOptions::default();
        let folder = set(none, "./papers", None).unwrap();
        assert_eq!((folder.folder, folder.sink), (PathBuf::from("./papers"), SinkOptions::Folder));
        let given = TargetOptions { segment_bytes: Some(2 << 20), compression: 6, ..none.clone() };
        let warc = set(&given, "warc:./papers", None).unwrap();
        assert_eq!(warc.folder, PathBuf::from("./papers"));
        let expected = WarcOptions { segment_bytes: 2 << 20, compression: 6, block_digest: false };
        assert_eq!(warc.sink, SinkOptions::Warc(expected));
        let lines = set(&content(1 << 10), "-", Some("./state")).unwrap();
        assert_eq!((lines.folder.clone(), lines.state.clone()), (PathBuf::from("./state"), None));
        assert!(lines.sink.is_stream());
        let nquads = set(&graph("resource"), "nquads:./graph", None).unwrap();
        assert_eq!(nquads.folder, PathBuf::from("./graph"));
        let expected = NQuadsOptions { graph: Graph::OfResource, ..NQuadsOptions::default() };
        assert_eq!(nquads.sink, SinkOptions::NQuads(expected));
        let oxigraph = set(&graph("http://h/g"), "oxigraph:./store", None);
        if cfg!(feature = "rocksdb") {
            let graph = Graph::Named("http://h/g".to_owned());
            let expected = SinkOptions::Oxigraph(OxigraphOptions { graph, store: None });
            assert_eq!(oxigraph.unwrap().sink, expected);
        } else {
            let text = oxigraph.unwrap_err().to_string();
            assert!(text.contains("--features oxigraph"), "{text}");
        }
        let given = TargetOptions {
            label_languages: vec!["de".to_owned(), "en".to_owned()],
            label_predicates: vec!["http://h/p".to_owned()],
            ..none.clone()
        };
        let labels = set(&given, "labels:./labels.csv", Some("./state")).unwrap();
        let expected = LabelsOptions {
            path: PathBuf::from("./labels.csv"),
            is_csv: true,
            predicates: given.label_predicates,
            languages: given.label_languages,
        };
        assert_eq!(labels.sink, SinkOptions::Labels(expected));
        let query_url = Some("http://h/query".to_owned());
        let given = TargetOptions { query_url: query_url.clone(), ..graph("http://h/g") };
        let sparql = set(&given, "sparql:http://h/update", Some("./state")).unwrap();
        let expected = SparqlOptions {
            url: "http://h/update".to_owned(),
            query_url,
            graph: Graph::Named("http://h/g".to_owned()),
        };
        assert_eq!(sparql.sink, SinkOptions::Sparql(expected));
        let store = set(none, "graphstore:http://h/data", Some("./state")).unwrap();
        let expected = GraphStoreOptions { url: "http://h/data".to_owned() };
        assert_eq!(store.sink, SinkOptions::GraphStore(expected));
        let push = set(&graph("http://h/g"), "push:http://h/p", Some("./s")).unwrap();
        let graph = Some("http://h/g".to_owned());
        let expected = PushOptions { url: "http://h/p".to_owned(), graph };
        assert_eq!(push.sink, SinkOptions::Push(expected));
        let given = TargetOptions { set_folder: Some(PathBuf::from("/srv/p")), ..none.clone() };
        let again = set(&given, "set:papers", None).unwrap();
        assert_eq!((again.folder, again.republish), (PathBuf::from("/srv/p"), true));
    }

    #[test]
    fn a_misprinted_kind_is_no_folder() {
        let languages =
            TargetOptions { label_languages: vec!["de".to_owned()], ..TargetOptions::default() };
        for (target, help) in [
            ("lables:x.csv", "did you mean `labels:x.csv`"),
            ("label:./x.csv", "did you mean `labels:./x.csv`"),
            ("nquad:x", "did you mean `nquads:x`"),
            ("WARC:x", "did you mean `warc:x`"),
            ("s3:bucket/a", "did you mean `s3://bucket/a`"),
            ("graph-store:http://h/", "did you mean `graphstore:http://h/`"),
            (
                "foo:bar",
                "the kinds are warc:DIR, nquads:DIR, labels:FILE, oxigraph:DIR, sparql:URL, graphstore:URL, push:URL, \
                 set:NAME, s3://BUCKET, file://DIR and -;",
            ),
            ("http://x/y", "the kind of server: sparql:URL, graphstore:URL or push:URL;"),
            ("HTTPS://x/y", "sparql:URL"),
        ] {
            for given in [&languages, &TargetOptions::default()] {
                let text = set(given, target, Some("./s")).unwrap_err().to_string();
                assert!(text.contains(help) && text.contains(&format!("./{target}")), "{text}");
            }
        }
        for path in ["./lables:x", "/a/foo:bar", "a/b:c", "papers", "-x"] {
            let options = set(&TargetOptions::default(), path, None).unwrap();
            assert_eq!(options.folder, PathBuf::from(path));
        }
    }

    #[test]
    fn options_of_other_kinds_are_refused() {
        let none = TargetOptions::default();
        let text = || "http://h/".to_owned();
        let languages = TargetOptions { label_languages: vec!["de".to_owned()], ..none.clone() };
        let predicates = TargetOptions { label_predicates: vec![text()], ..none.clone() };
        let segments = TargetOptions { segment_bytes: Some(1), ..none.clone() };
        let compressed = TargetOptions { compression: 3, ..none.clone() };
        let digests = TargetOptions { block_digest: true, ..none.clone() };
        let query = TargetOptions { query_url: Some(text()), ..none };
        for (option, kinds, given, target) in [
            ("--label-language", "labels:", &languages, "./x"),
            ("--label-predicate", "labels:", &predicates, "nquads:x"),
            (
                "--graph",
                "nquads:, oxigraph:, sparql:, graphstore:, push:",
                &graph("http://h/g"),
                "labels:x.db",
            ),
            ("--graph", "nquads:", &graph("http://h/g"), "./x"),
            ("--segment-size", "warc:, nquads:", &segments, "./x"),
            ("--compress", "warc:", &compressed, "nquads:x"),
            ("--block-digest", "warc:", &digests, "-"),
            ("--content", "-", &content(1 << 10), "warc:x"),
            ("--query-url", "sparql:", &query, "graphstore:http://h/"),
        ] {
            let text = set(given, target, Some("./s")).unwrap_err().to_string();
            let expected = format!("`{option}` has no effect on a copy in `{target}` (help");
            assert!(text.starts_with(&expected), "{text}");
            assert!(text.contains(&format!("it is for {kinds}")), "{text}");
        }
    }

    #[test]
    fn impossible_targets_are_refused_with_help() {
        let none = &TargetOptions::default();
        for (given, target) in [
            (none, "-"),
            (&content(2 << 20), "-"),
            (none, "warc:"),
            (none, "nquads:"),
            (none, "labels:./labels"),
            (none, "labels:./labels.db"),
            (none, "oxigraph:"),
            (none, "sparql:http://h/update"),
            (none, "graphstore:http://h/data"),
            (&graph("http://h/g"), "graphstore:http://h/data"),
            (none, "push:http://h/push"),
            (&graph("resource"), "push:http://h/push"),
            (none, "s3://b/p"),
            (none, "set:papers"),
        ] {
            let text = set(given, target, None).unwrap_err().to_string();
            assert!(text.contains("help") || text.contains("at most"), "{text}");
        }
    }

    #[test]
    fn the_place_of_a_target_needs_no_options() {
        for (target, place) in [
            ("-", TargetPlace::Stream),
            ("set:x", TargetPlace::Set("x")),
            ("s3://b/p", TargetPlace::Address("s3://b/p")),
            ("sparql:http://h/", TargetPlace::Address("sparql:http://h/")),
            ("labels:./x.db", TargetPlace::Folder(Path::new("./x.db"))),
            ("oxigraph:x", TargetPlace::Folder(Path::new("x"))),
            ("./warc:x", TargetPlace::Folder(Path::new("./warc:x"))),
        ] {
            assert_eq!(TargetPlace::of(target), place, "{target}");
        }
    }
}
