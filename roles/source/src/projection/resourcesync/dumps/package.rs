//! One package: bitstreams as they are read, then the manifest that lists them, in one ZIP file.
//!
//! Bytes go straight to the file; memory holds the manifest (at most [`MAX_MANIFEST`]) and the list
//! of members that a ZIP ends with. Members and archives of 4 GiB and more use ZIP64.

use super::Compression;
use crate::made::MadeFile;
use crate::projection::resourcesync_0_1::PartCounter;
use abreast_core::State;
use abreast_resourcesync::package::{MANIFEST, member_name};
use abreast_resourcesync::v1_1::{
    Entry, Head, Root, SPEC_MAX_ENTRIES, write_end, write_entry, write_head,
};
use abreast_webtypes::Timestamp;
use std::fs::File;
use std::io::{self, BufWriter, Seek as _, Write as _};
use std::path::Path;
use zip::write::{FullFileOptions, SimpleFileOptions};
use zip::{CompressionMethod, DateTime, PreparedZipFile, ZipWriter};

/// Bytes of a manifest, a little below what a Sitemap may have [rs-core §7].
const MAX_MANIFEST: usize = 40_000_000;
/// Bytes written to the file at a time.
const BUFFER: usize = 1024 * 1024;
/// Names of further types of compressed bytes.
const PACKED: &[&str] = &[
    "gzip",
    "java-archive",
    "pdf",
    "vnd.rar",
    "x-7z-compressed",
    "x-bzip",
    "x-bzip2",
    "x-gzip",
    "x-rar-compressed",
    "x-xz",
    "zip",
    "zstd",
];
/// Bytes that a member takes besides its content and its name, twice.
const MEMBER_OVERHEAD: u64 = 150;

/// The extra field with the time of a member in UTC, as Info-ZIP defines it, and its flag: only the
/// modification.
const EXTENDED_TIME: u16 = 0x5455;
const MODIFICATION_ONLY: u8 = 1;

/// A package that is being written.
pub(super) struct PackageWriter {
    zip: ZipWriter<BufWriter<MadeFile>>,
    /// Second handle of the file with the same position, for truncation.
    file: File,
    method: CompressionMethod,
    /// Rendered entries of the manifest.
    entries: Vec<u8>,
    count: u64,
    /// Counter of the dumps of ResourceSync 0.1 that the package becomes.
    parts: PartCounter,
    /// Total size of all bitstreams before compression.
    bytes: u64,
}

impl PackageWriter {
    pub(super) fn create(path: &Path, compression: Compression) -> io::Result<Self> {
        let made = MadeFile::create(path, 0)?;
        let method = match compression {
            Compression::Store => CompressionMethod::Stored,
            Compression::Deflate => CompressionMethod::Deflated,
        };
        let file = made.try_clone()?;
        let zip = ZipWriter::new(BufWriter::with_capacity(BUFFER, made));
        let (entries, parts) = (Vec::new(), PartCounter::default());
        Ok(Self { zip, file, method, entries, count: 0, parts, bytes: 0 })
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether one more entry with this number of bytes fits. An empty package accepts any entry.
    pub(super) fn has_room(&self, bytes: u64, part_size: u64) -> bool {
        self.is_empty()
            || (self.count < SPEC_MAX_ENTRIES
                && self.entries.len() < MAX_MANIFEST
                && self.bytes.saturating_add(bytes) <= part_size)
    }

    /// Adds a bitstream that is in memory as a whole.
    pub(super) fn add(&mut self, entry: &Entry, state: &State, bytes: &[u8]) -> io::Result<()> {
        if let Some(path) = &entry.path {
            let options = self.options(state, bytes.len() as u64)?;
            self.zip.add_prepared_file(PreparedZipFile::from_data(
                member_name(path),
                options,
                bytes,
            )?)?;
        }
        self.list(entry, bytes.len() as u64);
        Ok(())
    }

    /// Starts a bitstream in several pieces: call [`Self::write`] for each, then [`Self::end`] or
    /// [`Self::abort`].
    pub(super) fn begin(&mut self, entry: &Entry, state: &State) -> io::Result<()> {
        let options = self.options(state, state.length.unwrap_or(0))?;
        let path = entry.path.as_deref().unwrap_or_default();
        Ok(self.zip.start_file(member_name(path), options)?)
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.zip.write_all(bytes)
    }

    pub(super) fn end(&mut self, entry: &Entry, length: u64) {
        self.list(entry, length);
    }

    /// Removes the unfinished bitstream from the package.
    pub(super) fn abort(&mut self) -> io::Result<()> {
        self.zip.abort_file()?;
        // Otherwise written bytes would remain, possibly after the end of the package.
        let end = self.file.stream_position()?;
        self.file.set_len(end)
    }

    /// Adds an entry without a bitstream.
    pub(super) fn list(&mut self, entry: &Entry, bytes: u64) {
        write_entry(&mut self.entries, Root::UrlSet, entry);
        self.parts.add(entry);
        self.count += 1;
        self.bytes +=
            bytes + MEMBER_OVERHEAD + 2 * entry.path.as_ref().map_or(0, String::len) as u64;
    }

    /// Completes the package with its manifest, and writes the same manifest to the file `copy`.
    /// Both are durable on return. Returns the number of dumps of ResourceSync 0.1 that the package
    /// becomes.
    pub(super) fn finish(mut self, head: &Head, copy: &Path) -> io::Result<u64> {
        let (mut begin, mut end) = (Vec::new(), Vec::new());
        write_head(&mut begin, head);
        write_end(&mut end, Root::UrlSet);
        let options =
            SimpleFileOptions::default().compression_method(self.method).unix_permissions(0o644);
        self.zip.start_file(MANIFEST, options)?;
        let mut copy = MadeFile::create(copy, 0)?;
        for part in [&begin, &self.entries, &end] {
            self.zip.write_all(part)?;
            copy.write_all(part)?;
        }
        copy.sync()?;
        let zip = self.zip.finish()?;
        zip.into_inner().map_err(io::IntoInnerError::into_error)?.sync()?;
        Ok(self.parts.parts())
    }

    fn options(&self, state: &State, length: u64) -> io::Result<FullFileOptions<'static, 'static>> {
        let packed = state.encoding.is_some() || state.media_type.as_deref().is_some_and(is_packed);
        let mut options = FullFileOptions::default()
            .compression_method(if packed { CompressionMethod::Stored } else { self.method })
            .unix_permissions(0o644)
            .last_modified_time(dos_time(state.modified))
            // Compressed bytes can be slightly more than the uncompressed bytes.
            .large_file(length > u64::from(u32::MAX) - 16 * 1024 * 1024);
        if let Some(seconds) = extended_time(state.modified) {
            options.add_extra_field(EXTENDED_TIME, seconds, false)?;
        }
        Ok(options)
    }
}

/// Whether content of this type is already compressed. Compressing it again takes time and saves
/// nothing.
pub(crate) fn is_packed(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let (kind, name) = essence.split_once('/').unwrap_or((&essence, ""));
    match kind {
        "audio" | "video" => true,
        "image" => {
            !matches!(name, "bmp" | "x-ms-bmp" | "tiff" | "x-icon") && !name.ends_with("+xml")
        }
        "font" => matches!(name, "woff" | "woff2"),
        _ => {
            PACKED.contains(&name)
                || name.ends_with("+zip")
                || name.ends_with("+gzip")
                || name.starts_with("vnd.openxmlformats-officedocument.")
                || name.starts_with("vnd.oasis.opendocument.")
        }
    }
}

/// The extended timestamp of a member: seconds in UTC, where the plain time of a ZIP has no zone
/// and even seconds only. Change Dump Manifests state the time of the change as `lastmod`, so this
/// is where the time of the resource is.
fn extended_time(time: Timestamp) -> Option<[u8; 5]> {
    let seconds = i32::try_from(time.as_micros().div_euclid(1_000_000)).ok()?.to_le_bytes();
    let [a, b, c, d] = seconds;
    Some([MODIFICATION_ONLY, a, b, c, d])
}

/// The time as a ZIP states it, in UTC; the first it can state when it is outside 1980 to 2107.
fn dos_time(time: Timestamp) -> DateTime {
    let text = time.to_string();
    let number =
        |from: usize, to: usize| text.get(from..to).and_then(|digits| digits.parse::<u16>().ok());
    let parts = || {
        let small = |from, to| number(from, to).map(|part| part as u8);
        let date = DateTime::from_date_and_time(
            number(0, 4)?,
            small(5, 7)?,
            small(8, 10)?,
            small(11, 13)?,
            small(14, 16)?,
            small(17, 19)?,
        );
        date.ok()
    };
    parts().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_members_are_those_of_the_resources() {
        let time = dos_time(Timestamp::from_seconds(1_700_000_000));
        assert_eq!(
            (time.year(), time.month(), time.day(), time.hour(), time.minute()),
            (2023, 11, 14, 22, 13)
        );
        assert_eq!(dos_time(Timestamp::from_seconds(0)), DateTime::default());
    }

    #[test]
    fn members_state_the_time_of_the_resource_in_utc() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("package.zip");
        let mut package = PackageWriter::create(&path, Compression::Store).unwrap();
        // An odd second, a time before 1970, and a time outside the range of the extended timestamp,
        // for which this field is not written.
        let times = [1_700_000_001, -5, 1 << 33].map(Timestamp::from_seconds);
        for (number, modified) in times.into_iter().enumerate() {
            let entry = Entry { path: Some(format!("/{number}")), ..Entry::default() };
            package.add(&entry, &State { modified, ..State::default() }, b"bytes").unwrap();
            let entry = Entry { path: Some(format!("/large{number}")), ..Entry::default() };
            let state = State { modified, length: Some(1 << 40), ..State::default() };
            package.begin(&entry, &state).unwrap();
            package.write(b"bytes").unwrap();
            package.end(&entry, 5);
        }
        package.finish(&Head::default(), &folder.path().join("manifest.xml")).unwrap();
        let mut zip = zip::ZipArchive::new(File::open(&path).unwrap()).unwrap();
        for (number, stated) in [Some(1_700_000_001), Some(-5_i32), None].into_iter().enumerate() {
            for name in [number.to_string(), format!("large{number}")] {
                let member = zip.by_name(&name).unwrap();
                let times = member.extra_data_fields().find_map(|field| match field {
                    zip::ExtraField::ExtendedTimestamp(time) => time.mod_time(),
                    _ => None,
                });
                assert_eq!(times, stated.map(i32::cast_unsigned), "{name}");
            }
        }
    }

    #[test]
    fn what_is_compressed_already_is_stored() {
        for packed in [
            "image/jpeg",
            "video/mp4",
            "application/zip",
            "Application/PDF; x=y",
            "application/epub+zip",
        ] {
            assert!(is_packed(packed), "{packed}");
        }
        for plain in [
            "text/html",
            "application/json",
            "image/svg+xml",
            "image/tiff",
            "application/ld+json",
            "",
        ] {
            assert!(!is_packed(plain), "{plain}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.zip");
        let mut package = PackageWriter::create(&path, Compression::Deflate).unwrap();
        let typed =
            |media_type: &str| State { media_type: Some(media_type.into()), ..State::default() };
        let encoded = State { encoding: Some("gzip".into()), ..typed("text/plain") };
        for (name, state) in
            [("text", typed("text/plain")), ("zip", typed("application/zip")), ("encoded", encoded)]
        {
            package.add(&entry(&format!("/{name}")), &state, &[b'a'; 1_000]).unwrap();
        }
        package.finish(&Head::default(), &folder.path().join("a.xml")).unwrap();
        let mut zip = zip::ZipArchive::new(File::open(&path).unwrap()).unwrap();
        let mut size = |name| zip.by_name(name).unwrap().compressed_size();
        assert!(size("text") < 100);
        assert_eq!((size("zip"), size("encoded")), (1_000, 1_000));
    }

    fn entry(path: &str) -> Entry {
        Entry {
            loc: format!("http://example.org{path}"),
            path: Some(path.to_owned()),
            ..Entry::default()
        }
    }

    #[test]
    fn a_bitstream_taken_out_leaves_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.zip");
        let mut package = PackageWriter::create(&path, Compression::Store).unwrap();
        let state = State::default();
        package.add(&entry("/resources/a"), &state, b"aaa").unwrap();
        package.begin(&entry("/resources/b"), &state).unwrap();
        package.write(&vec![b'b'; 3_000_000]).unwrap();
        package.abort().unwrap();
        package.add(&entry("/resources/c"), &state, b"ccc").unwrap();
        package.begin(&entry("/resources/d"), &state).unwrap();
        package.write(b"dd").unwrap();
        package.end(&entry("/resources/d"), 2);
        let copy = folder.path().join("a.xml");
        package.finish(&Head::default(), &copy).unwrap();
        assert!(path.metadata().unwrap().len() < 4_000);
        let mut zip = zip::ZipArchive::new(File::open(&path).unwrap()).unwrap();
        let names: Vec<_> = zip.file_names().map(|name| name.unwrap().into_owned()).collect();
        assert_eq!(names, ["resources/a", "resources/c", "resources/d", "manifest.xml"]);
        let read = io::read_to_string(zip.by_name("resources/d").unwrap()).unwrap();
        assert_eq!(read, "dd");
        assert_eq!(
            io::read_to_string(zip.by_name("manifest.xml").unwrap()).unwrap().as_bytes(),
            std::fs::read(copy).unwrap()
        );
    }

    /// The listed length is above 4 GiB; the body has few bytes, so that the test is fast.
    #[test]
    fn a_member_that_may_have_more_than_4_gib_uses_zip64() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.zip");
        let mut package = PackageWriter::create(&path, Compression::Store).unwrap();
        let state = State { length: Some(5 << 30), ..State::default() };
        package.begin(&entry("/resources/a"), &state).unwrap();
        package.write(b"aaa").unwrap();
        package.end(&entry("/resources/a"), 3);
        package.finish(&Head::default(), &folder.path().join("a.xml")).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        // The field 0x0001 after the name contains both lengths in eight bytes.
        let extra = 30 + "resources/a".len();
        assert_eq!(bytes[extra..extra + 2], [1, 0]);
        assert_eq!(bytes[18..26], [0xff; 8]);
        let mut zip = zip::ZipArchive::new(File::open(&path).unwrap()).unwrap();
        assert_eq!(io::read_to_string(zip.by_name("resources/a").unwrap()).unwrap(), "aaa");
    }

    #[test]
    fn a_package_is_full_by_bytes_or_entries_after_its_first() {
        let folder = tempfile::tempdir().unwrap();
        let mut package =
            PackageWriter::create(&folder.path().join("a.zip"), Compression::Store).unwrap();
        assert!(package.has_room(1_000_000, 10));
        package.list(&entry("/a"), 5);
        assert!(package.has_room(1, 1_000) && !package.has_room(996, 1_000));
        for _ in 1..SPEC_MAX_ENTRIES {
            assert!(package.has_room(0, u64::MAX));
            package.list(&Entry::default(), 0);
        }
        assert!(!package.has_room(0, u64::MAX));
    }
}
