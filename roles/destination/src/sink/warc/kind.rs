//! Packed copies: how one is opened, read back and repaired.

use super::kept::{WarcKept, whole_length};
use super::spelling::write_error;
use super::{WarcSink, archive_of, forget_beyond};
use crate::report::error::Error;
use crate::report::reporter::Reporter;
use crate::report::sinks::WarcOptions;
use crate::sink::Sink;
use crate::sink::kept::ReadBack;
use crate::sink::kind::{KeptCopy, Opening, SinkKind, short_segments};
use crate::sink::target::{BLOCK_DIGEST, COMPRESS, SEGMENT_SIZE, Target, TargetError, TargetKind};
use abreast_store::mirror::{Mirror, Segment};
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl TargetKind for WarcOptions {
    const FORMS: &'static [&'static str] = &["warc:DIR"];
    const OPTIONS: &'static [&'static str] = &[SEGMENT_SIZE, COMPRESS, BLOCK_DIGEST];

    fn read(target: &mut Target<'_>) -> Result<Self, TargetError> {
        target.use_folder(Self::FORMS[0])?;
        let given = target.given;
        Ok(Self {
            segment_bytes: given.segment_bytes.unwrap_or(Self::default().segment_bytes),
            compression: given.compression,
            block_digest: given.block_digest,
        })
    }
}

impl SinkKind for WarcOptions {
    fn open(
        &self,
        opening: Opening<'_>,
        report: &mut Reporter<'_>,
    ) -> Result<Option<Arc<dyn Sink>>, Error> {
        let Opening { options, mirror, state, epoch, .. } = opening;
        let adopted = WarcSink::adopted(mirror)?;
        let sink = WarcSink::open(&options.folder, state, mirror, self, epoch, &options.url)?;
        if let (None, Some(count)) =
            (adopted, WarcSink::adopted(mirror)?.filter(|count| *count > 0))
        {
            let message = format!(
                "the state was missing; resources found in the archive, which are kept: {count}"
            );
            report.notice("state.missing", &options.url, &message);
        }
        Ok(Some(Arc::new(sink)))
    }

    fn kept(&self, copy: &KeptCopy<'_>) -> Result<Option<Box<dyn ReadBack>>, Error> {
        Ok(Some(Box::new(WarcKept::open(copy.folder, copy.mirror)?)))
    }

    fn segments(&self, folder: &Path) -> Option<PathBuf> {
        Some(archive_of(folder))
    }

    fn lost_ends(&self, folder: &Path, mirror: &Mirror) -> Result<Vec<(Segment, u64)>, Error> {
        let archive = archive_of(folder);
        let mut cut = short_segments(&archive, mirror)?;
        for (segment, length) in &mut cut {
            *length = whole_length(&archive.join(&segment.name)).map_err(write_error)?;
        }
        Ok(cut)
    }

    fn forget_end(&self, copy: &KeptCopy<'_>, end: (&Segment, u64)) -> Result<(), Error> {
        forget_beyond(copy.folder, copy.state, copy.mirror, end)
    }
}
