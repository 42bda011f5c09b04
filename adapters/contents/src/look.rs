//! How are kept bytes looked at without holding the folder, beside the process that does?

use abreast_core::ContentId;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Bytes read at a time.
const CHUNK: usize = 256 * 1024;

/// Where bytes are, in the folder of kept contents.
pub fn path_of(id: &ContentId) -> PathBuf {
    let text = id.to_string();
    let (folder, name) = text.split_at(2);
    Path::new(folder).join(name)
}

/// The address of the bytes of a file, and how many they are.
///
/// # Errors
/// It cannot be read.
pub fn digest(path: &Path) -> io::Result<(ContentId, u64)> {
    let mut file = File::open(path)?;
    let (mut hasher, mut chunk, mut length) = (blake3::Hasher::new(), vec![0; CHUNK], 0);
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Ok((ContentId(*hasher.finalize().as_bytes()), length)),
            Ok(read) => {
                hasher.update(&chunk[..read]);
                length += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Visits every file that is named as kept bytes are, with its length, in no order. A folder that is not there has none.
///
/// # Errors
/// The folder cannot be listed, or what the visit says.
pub fn visit_all(folder: &Path, visit: &mut dyn FnMut(ContentId, u64) -> io::Result<()>) -> io::Result<()> {
    for first in 0..=u8::MAX {
        let prefix = format!("{first:02x}");
        let entries = match std::fs::read_dir(folder.join(&prefix)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let Some(id) = entry.file_name().to_str().and_then(|name| format!("{prefix}{name}").parse().ok()) else {
                continue;
            };
            // One that was removed since the folder was listed is none.
            if let Ok(metadata) = entry.metadata()
                && metadata.is_file()
            {
                visit(id, metadata.len())?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Contents;

    #[test]
    fn what_is_kept_is_found_at_its_path_with_its_digest() {
        let place = tempfile::tempdir().unwrap();
        let contents = Contents::open(place.path()).unwrap();
        let kept = contents.put_bytes(b"abc").unwrap();
        let path = place.path().join(path_of(&kept.id()));
        assert_eq!(digest(&path).unwrap(), (kept.id(), 3));
        let mut seen = Vec::new();
        visit_all(place.path(), &mut |id, length| {
            seen.push((id, length));
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, [(kept.id(), 3)]);
    }
}
