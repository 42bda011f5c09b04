//! Inputs in any syntax, compressed or not, as sorted statements.

use super::sort::LineSorter;
use super::statements::SortedStatements;
use super::{RdfError, RdfOptions};
use abreast_rdf::{FileSyntax, ReadOptions, Syntax};
use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;

/// One input.
pub struct RdfInput {
    /// Its name in errors.
    pub name: String,
    /// Its syntax.
    pub syntax: Syntax,
    /// The IRI against which relative IRIs are resolved; without one, they are errors.
    pub base: Option<String>,
    /// Its bytes.
    pub bytes: RdfBytes,
}

/// The bytes of an input.
pub enum RdfBytes {
    /// A file that is not compressed: it is read in place when it is sorted.
    File(File),
    /// Any others.
    Stream(Box<dyn Read>),
}

impl RdfInput {
    /// A file whose name ends as its syntax says, perhaps compressed: `dump.nt`, `x.ttl.gz`.
    ///
    /// # Errors
    /// The name says no syntax that is known, or the file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let name = path.display().to_string();
        let Some(FileSyntax { syntax, compression }) = Syntax::of_file_name(&name) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, UNKNOWN));
        };
        let file = File::open(path)?;
        let bytes = match compression {
            None => RdfBytes::File(file),
            Some(compression) => RdfBytes::Stream(decompressed(file, compression)?),
        };
        Ok(Self { name, syntax, base: None, bytes })
    }
}

const UNKNOWN: &str = "its name does not say which syntax it has\n  help: .nt, .nq, .ttl, .trig, .rdf, .owl or .jsonld, also with .gz";

fn decompressed(file: File, compression: &str) -> io::Result<Box<dyn Read>> {
    match compression {
        "gz" => Ok(Box::new(flate2::read::MultiGzDecoder::new(file))),
        other => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("`.{other}` cannot be decompressed\n  help: decompress it first, or use .gz"),
        )),
    }
}

/// Reads all inputs, and sorts their statements. Nothing of them is used when one is wrong.
///
/// # Errors
/// An input is wrong or cannot be read, or the disk failed.
pub(super) fn sorted(
    options: &RdfOptions,
    inputs: impl IntoIterator<Item = RdfInput>,
) -> Result<SortedStatements, RdfError> {
    let mut sorter = LineSorter::new(&options.temporary, options.memory);
    let mut line = Vec::with_capacity(256);
    for (number, input) in inputs.into_iter().enumerate() {
        let RdfInput { name, syntax, base, bytes } = input;
        // Labels of blank nodes belong to their document.
        let mut read = ReadOptions::default().with_document(number as u64);
        read.base = base;
        let bytes: Box<dyn Read> = match bytes {
            RdfBytes::File(mut file) => {
                file.rewind()?;
                Box::new(file)
            }
            RdfBytes::Stream(bytes) => bytes,
        };
        let mut failed = None;
        abreast_rdf::read(syntax, bytes, &read, &mut |quad| {
            line.clear();
            abreast_rdf::write_statement(quad.into(), &mut line);
            line.pop();
            let stopped = options.stop.load(Ordering::Relaxed);
            match sorter.push(&line) {
                Ok(()) if stopped => ControlFlow::Break(()),
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        })
        .map_err(|source| RdfError::Input { name, source })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        options.check_stop()?;
    }
    Ok(SortedStatements::new(sorter.finish()?, true)?)
}
