//! Plan of a comparison, stored on disk until the comparison is complete.

use crate::origin::rdf::error::RdfError;
use crate::scan::guard::HELD_NAMES;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read as _, Seek as _, Write as _};
use std::path::Path;

/// First 16 bytes of a digest.
pub(in crate::origin) type Fingerprint = [u8; 16];

/// Planned change of an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::origin) struct Planned {
    pub(in crate::origin) iri: String,
    pub(in crate::origin) step: Step,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::origin) enum Step {
    /// Set this new description and fingerprint.
    Put {
        lines: Vec<u8>,
        witness: Vec<u8>,
    },
    /// Set a new fingerprint; the description is unchanged.
    Refresh(Vec<u8>),
    Delete,
}

/// A plan that is being written to a temporary file.
pub(in crate::origin) struct PlanWriter {
    out: BufWriter<File>,
    pub(in crate::origin) puts: u64,
    pub(in crate::origin) deletions: u64,
    /// The first entities to delete.
    deleted: Vec<String>,
}

impl PlanWriter {
    pub(in crate::origin) fn new(folder: &Path) -> io::Result<Self> {
        let out = BufWriter::with_capacity(1 << 18, tempfile::tempfile_in(folder)?);
        Ok(Self { out, puts: 0, deletions: 0, deleted: Vec::new() })
    }

    pub(in crate::origin) fn put(
        &mut self,
        iri: &str,
        lines: &[u8],
        witness: impl AsRef<[u8]>,
    ) -> io::Result<()> {
        self.puts += 1;
        self.write(b'P', iri, witness.as_ref(), lines)
    }

    pub(in crate::origin) fn refresh(
        &mut self,
        iri: &str,
        witness: impl AsRef<[u8]>,
    ) -> io::Result<()> {
        self.write(b'R', iri, witness.as_ref(), b"")
    }

    pub(in crate::origin) fn delete(&mut self, iri: &str) -> io::Result<()> {
        self.deletions += 1;
        if self.deleted.len() < HELD_NAMES {
            self.deleted.push(iri.to_owned());
        }
        self.write(b'D', iri, b"", b"")
    }

    /// Number of entities to delete, and some of their IRIs.
    pub(in crate::origin) fn deletions(&self) -> (u64, Vec<String>) {
        (self.deletions, self.deleted.clone())
    }

    fn write(&mut self, step: u8, iri: &str, witness: &[u8], lines: &[u8]) -> io::Result<()> {
        self.out.write_all(&[step])?;
        for bytes in [iri.as_bytes(), witness, lines] {
            self.out.write_all(&(bytes.len() as u32).to_le_bytes())?;
            self.out.write_all(bytes)?;
        }
        Ok(())
    }

    /// Ends the plan, and returns a reader for it.
    pub(in crate::origin) fn finish(self) -> io::Result<Plan> {
        let mut file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        Ok(Plan { input: BufReader::with_capacity(1 << 18, file) })
    }
}

/// A complete plan that is being read.
pub(in crate::origin) struct Plan {
    input: BufReader<File>,
}

impl Plan {
    pub(in crate::origin) fn read(&mut self) -> Result<Option<Planned>, RdfError> {
        let mut step = [0];
        if self.input.read(&mut step)? == 0 {
            return Ok(None);
        }
        let iri = String::from_utf8(self.bytes()?).map_err(io::Error::other)?;
        let (witness, lines) = (self.bytes()?, self.bytes()?);
        let step = match step[0] {
            b'P' => Step::Put { lines, witness },
            b'R' => Step::Refresh(witness),
            _ => Step::Delete,
        };
        Ok(Some(Planned { iri, step }))
    }

    fn bytes(&mut self) -> io::Result<Vec<u8>> {
        let mut length = [0; 4];
        self.input.read_exact(&mut length)?;
        let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
        self.input.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}
