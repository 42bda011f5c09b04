//! Inputs in any syntax, compressed or not, as sorted statements.

use crate::input::compressed::{compression_of, unpacked};
use crate::{Error, LineSorter, SortedStatements};
use abreast_rdf::{Contexts, FileSyntax, LeftOut, ReadOptions, Syntax};
use abreast_webtypes::visible;
use oxrdf::GraphNameRef;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Options for reading and sorting statements.
#[derive(Clone, Debug)]
pub struct SortOptions {
    /// A folder for temporary files: about as large as the input.
    pub temporary: PathBuf,
    /// Most bytes of statements that are sorted in memory. Default 64 MiB.
    pub memory: usize,
    /// IRIs of the graphs to read, `default` for the default graph; empty for all.
    pub graphs: Vec<String>,
    /// Whether invalid statements are left out ([`SortedStatements::left_out`]); otherwise the
    /// first one is an error.
    pub leave_out_invalid: bool,
    /// Whether inputs may be truncated, as responses of endpoints are. Then invalid lines of
    /// N-Triples and N-Quads are errors even with `leave_out_invalid`.
    pub may_break_off: bool,
    /// The contexts that JSON-LD may use.
    pub contexts: Contexts,
    /// Set to true to stop early.
    pub stop: Arc<AtomicBool>,
}

impl SortOptions {
    /// Defaults, with a folder for temporary files.
    pub fn new(temporary: impl Into<PathBuf>) -> Self {
        Self {
            temporary: temporary.into(),
            memory: 64 << 20,
            graphs: Vec::new(),
            leave_out_invalid: false,
            may_break_off: false,
            contexts: Contexts::default(),
            stop: Arc::default(),
        }
    }

    /// Checks whether to stop.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub fn check_stop(&self) -> Result<(), Error> {
        if self.stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    }
}

/// Selects statements by their graphs.
pub struct GraphFilter<'o> {
    wanted: &'o [String],
    /// Graphs of `wanted` that have statements.
    seen: BTreeSet<&'o str>,
    others: BTreeSet<String>,
}

impl<'o> GraphFilter<'o> {
    /// A filter for all inputs of a dataset.
    pub fn new(options: &'o SortOptions) -> Self {
        Self { wanted: &options.graphs, seen: BTreeSet::new(), others: BTreeSet::new() }
    }

    /// Whether statements of this graph are wanted.
    pub fn counts(&mut self, graph: GraphNameRef<'_>) -> bool {
        if self.wanted.is_empty() {
            return true;
        }
        let name = match graph {
            GraphNameRef::DefaultGraph => DEFAULT_GRAPH,
            GraphNameRef::NamedNode(node) => node.as_str(),
            GraphNameRef::BlankNode(_) => "a blank node",
        };
        let wanted = self.wanted.iter().find(|wanted| *wanted == name);
        if let Some(wanted) = wanted {
            self.seen.insert(wanted);
        } else if self.others.len() < MAX_GRAPHS && !self.others.contains(name) {
            self.others.insert(name.to_owned());
        }
        wanted.is_some()
    }

    /// Checks, after all inputs are read, that each wanted graph has statements: a typing error in
    /// an IRI would delete the whole copy.
    ///
    /// # Errors
    /// [`Error::Graph`], unless the inputs are empty.
    pub fn check(self) -> Result<(), Error> {
        let missing =
            |graph: &&String| *graph != DEFAULT_GRAPH && !self.seen.contains(graph.as_str());
        let found =
            self.seen.iter().map(|graph| (*graph).to_owned()).chain(self.others.iter().cloned());
        let found: Vec<_> = found.take(MAX_GRAPHS).collect();
        match self.wanted.iter().find(missing) {
            Some(graph) if !found.is_empty() => Err(Error::Graph { graph: graph.clone(), found }),
            _ => Ok(()),
        }
    }
}

/// One document with statements to sort.
pub struct Input {
    /// Name of the input in messages.
    pub name: String,
    /// The RDF syntax of the input.
    pub syntax: Syntax,
    /// The IRI against which relative IRIs are resolved; if `None`, relative IRIs are rejected.
    pub base: Option<String>,
    /// The source of the input's bytes.
    pub bytes: Bytes,
}

/// The bytes of an input.
pub enum Bytes {
    /// An uncompressed file, which is read while it is sorted.
    File(File),
    /// Any other source of bytes.
    Stream(Box<dyn Read>),
}

impl Bytes {
    /// A file whose compression is detected by its first bytes.
    pub fn of_file(mut file: File) -> Self {
        let mut start = [0; 10];
        let read = file.read_at(&mut start, 0).unwrap_or_default();
        let packed = compression_of(&start[..read]).and_then(|compression| {
            file.rewind().ok()?;
            unpacked(file.try_clone().ok()?, compression)
        });
        packed.map_or(Self::File(file), Self::Stream)
    }
}

impl Input {
    /// A file with the usual extension of its syntax, with or without compression: `dump.nt`,
    /// `x.ttl.gz`.
    ///
    /// # Errors
    /// The extension is not that of a known syntax, or the file cannot be opened.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let name = visible(&path.to_string_lossy()).into_owned();
        let syntax =
            syntax_of_file(path).map_err(|cause| Error::Open { name: name.clone(), cause })?;
        match syntax {
            Some(FileSyntax { syntax, compression: None }) => Self::open_as(path, syntax),
            Some(FileSyntax { syntax, compression: Some(compression) }) => {
                let file =
                    File::open(path).map_err(|cause| Error::Open { name: name.clone(), cause })?;
                let bytes =
                    unpacked(file, compression).ok_or_else(|| Error::Unknown(name.clone()))?;
                Ok(Self { name, syntax, base: None, bytes: Bytes::Stream(bytes) })
            }
            None => Err(Error::Unknown(name)),
        }
    }

    /// An uncompressed file with this syntax. The file name is not checked.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open_as(path: &Path, syntax: Syntax) -> Result<Self, Error> {
        let name = visible(&path.to_string_lossy()).into_owned();
        match File::open(path) {
            Ok(file) => Ok(Self { name, syntax, base: None, bytes: Bytes::File(file) }),
            Err(cause) => Err(Error::Open { name, cause }),
        }
    }
}

/// The syntax of a file by its extension; for `.xml` by the root element.
///
/// # Errors
/// An XML file cannot be read.
pub fn syntax_of_file(path: &Path) -> io::Result<Option<FileSyntax>> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if let Some(found) = Syntax::of_file_name(&name) {
        return Ok(Some(found));
    }
    // With or without compression, this is RDF/XML with another extension.
    let lower = name.to_ascii_lowercase();
    let as_rdf = lower.rsplit_once(".xml").map(|(stem, ending)| format!("{stem}.rdf{ending}"));
    let Some(FileSyntax { compression, .. }) = as_rdf.and_then(|name| Syntax::of_file_name(&name))
    else {
        return Ok(None);
    };
    let file = File::open(path)?;
    let mut start = Vec::new();
    match compression.and_then(|compression| unpacked(file.try_clone().ok()?, compression)) {
        Some(bytes) => bytes.take(XML_START).read_to_end(&mut start)?,
        None => file.take(XML_START).read_to_end(&mut start)?,
    };
    let is_rdf = abreast_rdf::is_rdf_xml(&start);
    Ok(is_rdf.then_some(FileSyntax { syntax: Syntax::RdfXml, compression }))
}

/// The name of the default graph.
const DEFAULT_GRAPH: &str = "default";
/// Most graphs that an error lists.
const MAX_GRAPHS: usize = 10;
/// Bytes of an XML file that must contain the start of its root element.
const XML_START: u64 = 64 * 1024;

/// Reads all inputs, and sorts their statements. If one input is invalid, the others are not used
/// either.
///
/// # Errors
/// An input is wrong or cannot be read, or the disk failed.
pub fn sorted(
    options: &SortOptions,
    inputs: impl IntoIterator<Item = Input>,
) -> Result<SortedStatements, Error> {
    // Separate sorters: documents often have entities in order, with blank nodes between them.
    let sorter = || LineSorter::new(&options.temporary, options.memory / 2);
    let (mut entities, mut blank) = (sorter(), sorter());
    let mut line = Vec::with_capacity(256);
    let mut graphs = GraphFilter::new(options);
    let mut left_out = LeftOut::default();
    if options.may_break_off {
        left_out = left_out.of_statements();
    }
    for (number, input) in inputs.into_iter().enumerate() {
        let Input { name, syntax, base, bytes } = input;
        // Labels of blank nodes are valid within their document only.
        let mut read = ReadOptions::default()
            .with_document(number as u64)
            .with_contexts(options.contexts.clone());
        read.base = base;
        read.left_out = options.leave_out_invalid.then(|| left_out.of(&name));
        let bytes: Box<dyn Read> = match bytes {
            Bytes::File(mut file) => {
                file.rewind()?;
                Box::new(file)
            }
            Bytes::Stream(bytes) => bytes,
        };
        let bytes = Stoppable { bytes, stop: &options.stop };
        let mut failed = None;
        let mut push = |line: &[u8]| {
            let sorter = if line.starts_with(b"_") { &mut blank } else { &mut entities };
            if let Err(error) = sorter.push(line) {
                failed = Some(error);
                return ControlFlow::Break(());
            }
            let stopped = options.stop.load(Ordering::Relaxed);
            if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let done = if syntax == Syntax::NTriples && options.graphs.is_empty() {
            abreast_rdf::read_lines(bytes, &read, &mut push)
        } else {
            abreast_rdf::read(syntax, bytes, &read, &mut |quad| {
                if !graphs.counts(quad.graph_name) {
                    return ControlFlow::Continue(());
                }
                line.clear();
                abreast_rdf::write_statement(quad.into(), &mut line);
                line.pop();
                push(&line)
            })
        };
        options.check_stop()?;
        done.map_err(|cause| Error::Input { name, cause })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
    }
    graphs.check()?;
    let (mut file, mut blank) = (entities.finish()?, blank.finish()?);
    file.seek(SeekFrom::End(0))?;
    io::copy(&mut blank, &mut file)?;
    file.rewind()?;
    let mut sorted = SortedStatements::new(file, true)?;
    sorted.left_out = left_out;
    Ok(sorted)
}

/// An input that fails as soon as it is to stop, also while statements are left out.
struct Stoppable<'s> {
    bytes: Box<dyn Read>,
    stop: &'s AtomicBool,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.load(Ordering::Relaxed) { Ok(0) } else { self.bytes.read(buffer) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Statements without end, none of which is valid; all is to stop after the first of them.
    struct Invalid(Arc<AtomicBool>);

    impl Read for Invalid {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            assert!(!self.0.swap(true, Ordering::Relaxed), "reading goes on");
            let statement = b"<http://h/a|b> <http://h/p> <http://h/b> .\n";
            buffer[..statement.len()].copy_from_slice(statement);
            Ok(statement.len())
        }
    }

    #[test]
    fn reading_stops_at_statements_that_are_left_out() {
        for syntax in [Syntax::NTriples, Syntax::NQuads, Syntax::Turtle] {
            let folder = tempfile::tempdir().unwrap();
            let options =
                SortOptions { leave_out_invalid: true, ..SortOptions::new(folder.path()) };
            let bytes =
                Bytes::Stream(Box::new(io::BufReader::new(Invalid(Arc::clone(&options.stop)))));
            let input = Input { name: "d".to_owned(), syntax, base: None, bytes };
            assert!(matches!(sorted(&options, [input]), Err(Error::Stopped)), "{syntax:?}");
        }
    }
}
