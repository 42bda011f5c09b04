//! Inputs in any syntax, compressed or not, as sorted statements.

use crate::compressed::unpacked;
use crate::{Error, LineSorter, SortedStatements};
use abreast_rdf::{FileSyntax, ReadOptions, Syntax};
use oxrdf::GraphNameRef;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How statements are sorted.
#[derive(Clone, Debug)]
pub struct SortOptions {
    /// A folder for temporary files: about as large as the input.
    pub temporary: PathBuf,
    /// Most bytes of statements that are sorted in memory. Default 64 MiB.
    pub memory: usize,
    /// The graphs whose statements count, `default` for statements in none; empty for all.
    pub graphs: Vec<String>,
    /// Set to end it early.
    pub stop: Arc<AtomicBool>,
}

impl SortOptions {
    /// Defaults, with a folder for temporary files.
    pub fn new(temporary: impl Into<PathBuf>) -> Self {
        let (graphs, stop) = (Vec::new(), Arc::default());
        Self { temporary: temporary.into(), memory: 64 << 20, graphs, stop }
    }

    /// Whether a statement of this graph counts.
    pub fn counts(&self, graph: GraphNameRef<'_>) -> bool {
        let is_named = |known: &String| match graph {
            GraphNameRef::DefaultGraph => known == "default",
            GraphNameRef::NamedNode(node) => known == node.as_str(),
            GraphNameRef::BlankNode(_) => false,
        };
        self.graphs.is_empty() || self.graphs.iter().any(is_named)
    }

    /// Returns an error when it is to end.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub fn check_stop(&self) -> Result<(), Error> {
        if self.stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    }
}

/// One input.
pub struct Input {
    /// Its name in errors.
    pub name: String,
    /// Its syntax.
    pub syntax: Syntax,
    /// The IRI against which relative IRIs are resolved; without one, they are errors.
    pub base: Option<String>,
    /// Its bytes.
    pub bytes: Bytes,
}

/// The bytes of an input.
pub enum Bytes {
    /// A file that is not compressed: it is read in place when it is sorted.
    File(File),
    /// Any others.
    Stream(Box<dyn Read>),
}

impl Input {
    /// A file whose name ends as is usual for its syntax, perhaps compressed: `dump.nt`, `x.ttl.gz`.
    ///
    /// # Errors
    /// The name is of no known syntax, or the file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let name = path.display().to_string();
        let Some(FileSyntax { syntax, compression }) = Syntax::of_file_name(&name) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, UNKNOWN));
        };
        let file = File::open(path)?;
        let bytes = match compression {
            None => Bytes::File(file),
            Some(compression) => Bytes::Stream(
                unpacked(file, compression)
                    .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, UNKNOWN))?,
            ),
        };
        Ok(Self { name, syntax, base: None, bytes })
    }
}

const UNKNOWN: &str = "its name has no ending of a known syntax\n  help: .nt, .nq, .ttl, .trig, .rdf, .owl or .jsonld, also with .gz, .bz2, .xz or .zst";

/// Reads all inputs, and sorts their statements. Nothing of them is used when one is wrong.
///
/// # Errors
/// An input is wrong or cannot be read, or the disk failed.
pub fn sorted(
    options: &SortOptions,
    inputs: impl IntoIterator<Item = Input>,
) -> Result<SortedStatements, Error> {
    // Apart from each other: documents often have entities in order, and blank nodes between them.
    let sorter = || LineSorter::new(&options.temporary, options.memory / 2);
    let (mut entities, mut blank) = (sorter(), sorter());
    let mut line = Vec::with_capacity(256);
    for (number, input) in inputs.into_iter().enumerate() {
        let Input { name, syntax, base, bytes } = input;
        // Labels of blank nodes belong to their document.
        let mut read = ReadOptions::default().with_document(number as u64);
        read.base = base;
        let bytes: Box<dyn Read> = match bytes {
            Bytes::File(mut file) => {
                file.rewind()?;
                Box::new(file)
            }
            Bytes::Stream(bytes) => bytes,
        };
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
        let done = if syntax == Syntax::NTriples && options.counts(GraphNameRef::DefaultGraph) {
            abreast_rdf::read_lines(bytes, &read, &mut push)
        } else {
            abreast_rdf::read(syntax, bytes, &read, &mut |quad| {
                if !options.counts(quad.graph_name) {
                    return ControlFlow::Continue(());
                }
                line.clear();
                abreast_rdf::write_statement(quad.into(), &mut line);
                line.pop();
                push(&line)
            })
        };
        done.map_err(|cause| Error::Input { name, cause })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        options.check_stop()?;
    }
    let (mut file, mut blank) = (entities.finish()?, blank.finish()?);
    file.seek(SeekFrom::End(0))?;
    io::copy(&mut blank, &mut file)?;
    file.rewind()?;
    Ok(SortedStatements::new(file, true)?)
}
