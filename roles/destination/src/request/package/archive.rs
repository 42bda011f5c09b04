//! The members of a ZIP package, and their places in the file. The directory is read once, without
//! unpacking members. Packages that are WARC files are read by `records.rs`.
//!
//! Names of members are compared with the paths in the manifest, and never become names of files. A
//! member is refused if the directory and the header of the member differ. The package is refused
//! if members overlap or two members have the same name.

use crate::report::error::{Error, ExitCode};
use crate::report::failure::Failure;
use crate::request::package::buckets::Buckets;
use crate::request::package::record_kind::{RecordKind, Records, begins_as_records};
use abreast_webtypes::{count, excerpt};
use crc32fast::Hasher as Crc;
use flate2::{Decompress, FlushDecompress, Status};
use rawzip::time::ZipDateTimeKind;
use rawzip::{CompressionMethod, RECOMMENDED_BUFFER_SIZE, ZipArchive};
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

/// Maximum number of members in one package.
pub(crate) const MEMBERS_MAX: usize = 1_000_000;
/// Unpacked bytes of a member above which the ratio of compression is limited, and the largest
/// ratio.
pub(super) const RATIO_FREE_BYTES: u64 = 10 << 20;
pub(super) const RATIO_MAX: u64 = 200;
/// Length in bytes up to which a member is read in one step.
pub(crate) const SMALL_BYTES: u64 = 1 << 20;
/// Length in bytes of a member's header, without its name and extra field.
const HEADER_BYTES: usize = 30;
/// Number of bytes of an extra field that are read together with a small member, so that a single
/// read is usually sufficient.
const EXTRA_BYTES: usize = 64;
/// Bytes of a large member read at a time.
const BLOCK_BYTES: usize = 128 << 10;

/// A package whose directory was read and is consistent.
#[derive(Debug)]
pub(crate) struct Package {
    file: File,
    /// Offset of the directory, before which all members end.
    end: u64,
    /// Members, sorted by the hashes of their names.
    members: Vec<Member>,
    buckets: Buckets,
    hasher: RandomState,
    /// Additional properties of a package that is a WARC file.
    pub(super) records: Option<Records>,
}

/// The place and the length of a member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(super) name: u64,
    pub(super) offset: u64,
    pub(super) packed: u64,
    pub(crate) length: u64,
    pub(super) crc: u32,
    pub(super) name_length: u16,
    pub(super) kind: Kind,
    /// Time of the last modification, in seconds since 1970 in UTC, if the directory contains an
    /// extended timestamp or an NTFS time. The plain time of a ZIP member lacks a time zone.
    pub(super) modified: Option<i64>,
}

/// How a member is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Stored,
    Deflated,
    Encrypted,
    /// Packed another way.
    Other(u16),
    Folder,
    Symlink,
    /// A record of a WARC file.
    Record(RecordKind),
}

/// The target of a path in the manifest.
#[derive(Debug)]
pub(crate) enum Found {
    /// The number of the member, for [`Package::member`].
    Member(u32),
    Missing,
    /// The path leads out of the package, or is not a valid path.
    Escape,
}

/// Called regularly during long work; an error cancels the work.
pub(crate) type Check<'a> = &'a dyn Fn() -> Result<(), Error>;

impl Package {
    /// Reads the directory, or all records of a WARC file, which may take long: `check` is called for
    /// each block.
    ///
    /// # Errors
    /// That of `check`; else
    /// `dump.zip`, `dump.warc`, `dump.members`, `dump.overlap`, `dump.duplicate`, `dump.ratio`.
    pub(crate) fn open(file: File, check: Check<'_>) -> Result<Self, Error> {
        let io = |cause: io::Error| {
            Error::new("io", ExitCode::Io, "cannot read the package").with_cause(cause)
        };
        if begins_as_records(&file).map_err(io)? {
            return Self::open_records(file, check);
        }
        let broken = |cause: rawzip::Error| {
            Error::new(
                "dump.zip",
                ExitCode::SourceInvalid,
                format!("it is no whole ZIP file: {cause}"),
            )
        };
        let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
        let archive =
            ZipArchive::from_file(file.try_clone().map_err(io)?, &mut buffer).map_err(broken)?;
        let stated = archive.entries_hint();
        if stated > MEMBERS_MAX as u64 {
            return Err(too_many());
        }
        let end = archive.directory_offset();
        let hasher = RandomState::new();
        let mut members = Vec::with_capacity(stated as usize);
        let mut entries = archive.entries(&mut buffer);
        while let Some(entry) = entries.next_entry().map_err(broken)? {
            if members.len() == MEMBERS_MAX {
                return Err(too_many());
            }
            let path = entry.file_path();
            let name = path.as_bytes();
            let kind = if entry.flags().is_encrypted() || entry.flags().has_strong_encryption() {
                Kind::Encrypted
            } else if entry.mode().is_symlink() {
                Kind::Symlink
            } else if entry.is_dir() {
                Kind::Folder
            } else {
                match entry.compression_method() {
                    CompressionMethod::STORE => Kind::Stored,
                    CompressionMethod::DEFLATE => Kind::Deflated,
                    other => Kind::Other(other.as_u16()),
                }
            };
            members.push(Member {
                name: hasher.hash_one(name),
                offset: entry.local_header_offset(),
                packed: entry.compressed_size_hint(),
                length: entry.uncompressed_size_hint(),
                crc: entry.crc32(),
                name_length: name.len() as u16,
                kind,
                modified: match entry.last_modified() {
                    ZipDateTimeKind::Utc(time) => Some(time.to_unix()),
                    ZipDateTimeKind::Local(_) => None,
                },
            });
        }
        if members.len() as u64 != stated {
            let (stated, found) = (count(stated, "member"), members.len());
            let message = format!("its directory states {stated} and names {found}");
            return Err(Error::new("dump.zip", ExitCode::SourceInvalid, message));
        }
        check_overlap(&mut members, end)?;
        members.sort_unstable_by_key(|member| member.name);
        if members.windows(2).any(|pair| pair[0].name == pair[1].name) {
            let message = "one name stands in its directory twice: which of the two is meant?";
            return Err(Error::new("dump.duplicate", ExitCode::SourceInvalid, message));
        }
        Ok(Self::of_members(file, end, members, hasher))
    }

    /// A package whose `members` are sorted by the hashes of their names.
    pub(super) fn of_members(
        file: File,
        end: u64,
        members: Vec<Member>,
        hasher: RandomState,
    ) -> Self {
        let buckets = Buckets::of(members.len(), |at| members[at].name);
        Self { file, end, members, buckets, hasher, records: None }
    }

    /// How many members there are, folders not counted.
    pub(crate) fn count(&self) -> usize {
        self.members.iter().filter(|member| member.kind != Kind::Folder).count()
    }

    /// Number of members in the directory.
    pub(crate) fn members(&self) -> usize {
        self.members.len()
    }

    /// The member with the number in [`Found::Member`].
    pub(crate) fn member(&self, number: u32) -> &Member {
        &self.members[number as usize]
    }

    /// Finds the member for a path of the manifest.
    pub(crate) fn find(&self, path: &str) -> Found {
        // Lenient: `./a` is `a`, as tools write the paths of a folder that they packed.
        let name = path.strip_prefix("./").or(path.strip_prefix('/')).unwrap_or(path);
        if name.is_empty()
            || name.contains(['\\', '\0'])
            || name.split('/').any(|part| matches!(part, "" | "." | ".."))
        {
            return Found::Escape;
        }
        match self.named(name) {
            Some(member) => Found::Member(member),
            None if path.starts_with("./") => {
                self.named(path).map_or(Found::Missing, Found::Member)
            }
            // An absolute path, as in a file system.
            None if name.len() < path.len() && self.named(path).is_some() => Found::Escape,
            None => Found::Missing,
        }
    }

    /// The last member with this name; a WARC file may have several.
    pub(super) fn named(&self, name: &str) -> Option<u32> {
        let place = self.buckets.find(self.hash(name), |at| self.members[at].name).next_back()?;
        u32::try_from(place).ok()
    }

    pub(super) fn hash(&self, name: &str) -> u64 {
        self.hasher.hash_one(name.as_bytes())
    }

    /// Appends a small member to `into`; returns its range. Bytes of a stored member are read from
    /// the file directly to their place; `block` is the buffer for packed bytes.
    pub(crate) fn read_into(
        &self,
        member: &Member,
        into: &mut Vec<u8>,
        block: &mut Vec<u8>,
    ) -> Result<Range<usize>, Failure> {
        member.check()?;
        if matches!(member.kind, Kind::Record(_)) {
            let start = into.len();
            into.reserve_exact(member.length as usize);
            let read = self.record(member)?.read_to_end(into);
            read.map_err(|cause| Failure::new("dump.checksum", cause.to_string()))?;
            return Ok(start..into.len());
        }
        if member.kind == Kind::Deflated {
            block.clear();
            let packed = self.read_packed(member, block)?;
            let start = into.len();
            inflate(&block[packed], member.length, into)?;
            return Self::check_sum(member, into, start..into.len());
        }
        let packed = self.read_packed(member, into)?;
        Self::check_sum(member, into, packed)
    }

    fn check_sum(
        member: &Member,
        bytes: &[u8],
        range: Range<usize>,
    ) -> Result<Range<usize>, Failure> {
        if crc32fast::hash(&bytes[range.clone()]) != member.crc {
            return Err(Failure::new(
                "dump.checksum",
                "its bytes are not those that the package's directory states",
            ));
        }
        Ok(range)
    }

    /// Appends the unchanged bytes of a member, after its header; returns the range of its bytes.
    fn read_packed(&self, member: &Member, into: &mut Vec<u8>) -> Result<Range<usize>, Failure> {
        let before = into.len();
        let wanted =
            HEADER_BYTES + usize::from(member.name_length) + EXTRA_BYTES + member.packed as usize;
        let available = self.end.saturating_sub(member.offset).min(wanted as u64) as usize;
        into.resize(before + available, 0);
        self.file
            .read_exact_at(&mut into[before..], member.offset)
            .map_err(|cause| unreadable(&cause))?;
        let start = self.data_start(member, &into[before..])?;
        let end = start + member.packed as usize;
        if end > available {
            // A long extra field.
            if member.offset + end as u64 > self.end {
                return Err(disagree("it reaches into the directory"));
            }
            into.resize(before + end, 0);
            self.file
                .read_exact_at(&mut into[before..], member.offset)
                .map_err(|cause| unreadable(&cause))?;
        }
        Ok(before + start..before + end)
    }

    /// Reads a member of any length, a block at a time.
    pub(crate) fn reader(&self, member: &Member) -> Result<impl Read + use<'_>, Failure> {
        member.check()?;
        if matches!(member.kind, Kind::Record(_)) {
            return self.record(member);
        }
        let length = HEADER_BYTES + usize::from(member.name_length);
        let mut header = vec![0; length.min(self.end.saturating_sub(member.offset) as usize)];
        self.file.read_exact_at(&mut header, member.offset).map_err(|cause| unreadable(&cause))?;
        let at = member.offset + self.data_start(member, &header)? as u64;
        if at + member.packed > self.end {
            return Err(disagree("it reaches into the directory"));
        }
        let packed = self.bytes_at(at, member.packed);
        let bytes: Box<dyn Read + '_> = match member.kind {
            Kind::Deflated => Box::new(flate2::bufread::DeflateDecoder::new(packed)),
            _ => Box::new(packed),
        };
        Ok(Checked::of(member, bytes))
    }

    /// Reads unchanged bytes of the file.
    pub(super) fn bytes_at(&self, place: u64, left: u64) -> io::BufReader<At<'_>> {
        io::BufReader::with_capacity(BLOCK_BYTES, At { file: &self.file, place, left })
    }

    /// The offset of the member's bytes after its header, which must agree with the directory.
    fn data_start(&self, member: &Member, header: &[u8]) -> Result<usize, Failure> {
        let word = |at: usize| header.get(at..at + 2).map(|b| u16::from_le_bytes([b[0], b[1]]));
        let long = |at: usize| {
            header.get(at..at + 4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        };
        let (Some(signature), Some(flags), Some(method)) = (long(0), word(6), word(8)) else {
            return Err(disagree("it begins at the end of the package"));
        };
        let (crc, packed, length) = (long(14), long(18), long(22));
        let (Some(name_length), Some(extra_length)) = (word(26), word(28)) else {
            return Err(disagree("it begins at the end of the package"));
        };
        if signature != 0x0403_4b50 {
            return Err(disagree("there is no header before it"));
        }
        if flags & 1 != 0 {
            return Err(disagree("its own header marks it as encrypted"));
        }
        let same_method = method == if member.kind == Kind::Deflated { 8 } else { 0 };
        let own_name = header.get(HEADER_BYTES..HEADER_BYTES + usize::from(name_length));
        if !same_method
            || name_length != member.name_length
            || own_name.map(|name| self.hasher.hash_one(name)) != Some(member.name)
        {
            return Err(disagree("its own header and the directory name it differently"));
        }
        // The flags determine whether checksum and lengths are after the member, or in the header
        // and its extra field.
        let same = |short: Option<u32>, full: u64| {
            short == Some(u32::MAX) || short.map(u64::from) == Some(full)
        };
        let later = flags & 8 != 0;
        if !later
            && (crc != Some(member.crc)
                || !same(packed, member.packed)
                || !same(length, member.length))
        {
            return Err(disagree("its own header and the directory state other lengths"));
        }
        Ok(HEADER_BYTES + usize::from(name_length) + usize::from(extra_length))
    }
}

impl Member {
    /// Time of the last modification, in seconds since 1970 in UTC, if known.
    pub(crate) const fn modified(&self) -> Option<i64> {
        self.modified
    }

    /// Whether the bytes have a content coding. Such bytes are the resource only if a digest
    /// confirms that.
    pub(crate) const fn is_coded(&self) -> bool {
        matches!(self.kind, Kind::Record(RecordKind::Coded))
    }

    /// Whether the member is read in one step.
    pub(crate) const fn is_small(&self) -> bool {
        self.length <= SMALL_BYTES && self.packed <= SMALL_BYTES
    }

    /// Checks that the member can be read.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self.kind {
            Kind::Stored if self.packed != self.length => {
                Err(disagree("it is stored, with two lengths"))
            }
            Kind::Deflated | Kind::Record(_)
                if self.length > RATIO_FREE_BYTES
                    && self.length / self.packed.max(1) > RATIO_MAX =>
            {
                let message = format!(
                    "{} bytes unpack to {}: more than {RATIO_MAX} times as many",
                    self.packed, self.length
                );
                Err(Failure::refused("dump.ratio", message))
            }
            Kind::Stored | Kind::Deflated => Ok(()),
            Kind::Record(kind) => kind.check(),
            Kind::Encrypted => {
                Err(Failure::refused("dump.encrypted", "it is encrypted in the package"))
            }
            Kind::Symlink => {
                Err(Failure::refused("dump.symlink", "it is a symbolic link in the package"))
            }
            Kind::Folder => Err(Failure::refused("dump.missing", "it is a folder in the package")),
            Kind::Other(method) => {
                let name = CompressionMethod::new(method).name().unwrap_or("unknown");
                let message = format!(
                    "it is packed with method {method} ({name}); read are stored and deflated ones"
                );
                Err(Failure::refused("dump.method", message))
            }
        }
    }
}

/// Checks that each member ends before the next one starts, and the last one before the directory.
fn check_overlap(members: &mut [Member], end: u64) -> Result<(), Error> {
    members.sort_unstable_by_key(|member| member.offset);
    let mut free = 0;
    for member in members {
        let header = HEADER_BYTES as u64 + u64::from(member.name_length);
        let until = member.offset.checked_add(header).and_then(|at| at.checked_add(member.packed));
        match until {
            Some(until) if member.offset >= free && until <= end => free = until,
            Some(until) if until <= end => {
                let message = "its members overlap: a few bytes would be unpacked again and again";
                return Err(Error::new("dump.overlap", ExitCode::Limit, message));
            }
            _ => {
                let message = "a member reaches beyond the end: it was cut, or is broken";
                return Err(Error::new("dump.zip", ExitCode::SourceInvalid, message));
            }
        }
    }
    Ok(())
}

pub(super) fn too_many() -> Error {
    Error::new("dump.members", ExitCode::Limit, format!("it has more than {MEMBERS_MAX} members"))
}

fn disagree(what: &str) -> Failure {
    Failure::refused("dump.header", format!("the package contradicts itself: {}", excerpt(what)))
}

fn unreadable(cause: &io::Error) -> Failure {
    if cause.kind() == io::ErrorKind::UnexpectedEof {
        return disagree("it ends early");
    }
    Failure::fatal("io", format!("cannot read the package: {cause}"))
}

/// Unpacks a member of a known length; the buffer grows by that length only.
fn inflate(packed: &[u8], length: u64, out: &mut Vec<u8>) -> Result<(), Failure> {
    let before = out.len();
    out.reserve_exact(length as usize);
    let mut inflater = Decompress::new(false);
    let status = inflater.decompress_vec(packed, out, FlushDecompress::Finish);
    if !matches!(status, Ok(Status::StreamEnd)) || (out.len() - before) as u64 != length {
        return Err(Failure::new(
            "dump.length",
            "it does not unpack to the length that the directory states",
        ));
    }
    Ok(())
}

/// A reader of a part of a file, independent of the file's current offset.
pub(super) struct At<'a> {
    pub(super) file: &'a File,
    pub(super) place: u64,
    pub(super) left: u64,
}

impl Read for At<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.file.read_at(&mut buffer[..most], self.place)?;
        (self.place, self.left) = (self.place + count as u64, self.left - count as u64);
        Ok(count)
    }
}

/// A reader of unpacked bytes, which fails if their number or their checksum differs from the
/// directory.
pub(super) struct Checked<'a> {
    bytes: Box<dyn Read + 'a>,
    left: u64,
    crc: Crc,
    expected: u32,
}

impl<'a> Checked<'a> {
    pub(super) fn of(member: &Member, bytes: Box<dyn Read + 'a>) -> Self {
        Self { bytes, left: member.length, crc: Crc::new(), expected: member.crc }
    }
}

impl Read for Checked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wrong = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidData, what.to_owned()));
        let count = self.bytes.read(buffer)?;
        if count as u64 > self.left {
            return wrong("it unpacks to more than the directory states");
        }
        self.left -= count as u64;
        self.crc.update(&buffer[..count]);
        if count == 0 && !buffer.is_empty() {
            if self.left > 0 {
                return wrong("it unpacks to less than the directory states");
            }
            if self.crc.clone().finalize() != self.expected {
                return wrong("its bytes are not those that the directory states");
            }
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_testkit::zip::Zip;
    use std::io::Write as _;

    fn open(bytes: &[u8]) -> Result<Package, Error> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        Package::open(file, &|| Ok(()))
    }

    fn code(bytes: &[u8]) -> &'static str {
        open(bytes).unwrap_err().code()
    }

    /// A member's bytes read both ways, or the code.
    fn read(package: &Package, path: &str) -> Result<Vec<u8>, &'static str> {
        let member = match package.find(path) {
            Found::Member(number) => package.member(number),
            Found::Missing => return Err("missing"),
            Found::Escape => return Err("escape"),
        };
        let (mut into, mut block) = (b"before".to_vec(), Vec::new());
        let at_once =
            package.read_into(member, &mut into, &mut block).map_err(|failure| failure.code);
        let at_once = at_once.map(|range| into[range].to_vec());
        let mut bytes = Vec::new();
        let streamed = package
            .reader(member)
            .map_err(|failure| failure.code)
            .and_then(|mut reader| reader.read_to_end(&mut bytes).map(|_| bytes).map_err(|_| "io"));
        match (&at_once, &streamed) {
            (Ok(one), Ok(two)) => assert_eq!(one, two),
            (Err(_), Err(_)) => {}
            _ => panic!("{at_once:?} {streamed:?}"),
        }
        at_once
    }

    #[test]
    fn stored_and_deflated_members_are_read() {
        let long = "hello ".repeat(5_000);
        let mut zip = Zip::new();
        zip.add("manifest.xml", b"<x/>")
            .deflated("a/b", long.as_bytes())
            .add("empty", b"")
            .folder("a/");
        let package = open(&zip.finish()).unwrap();
        assert_eq!(package.count(), 3);
        assert_eq!(read(&package, "/manifest.xml").unwrap(), b"<x/>");
        assert_eq!(read(&package, "a/b").unwrap(), long.as_bytes());
        assert_eq!(read(&package, "/empty").unwrap(), b"");
        assert_eq!(read(&package, "/a/c"), Err("missing"));
    }

    #[test]
    fn paths_that_lead_out_are_refused() {
        let mut zip = Zip::new();
        zip.add("../../escape", b"x").add("/tmp/escape", b"x").add("ok", b"hello");
        let package = open(&zip.finish()).unwrap();
        for path in
            ["../../escape", "/../../escape", "/tmp/escape", "a\\b", "", "/", "a//b", "/./ok"]
        {
            assert_eq!(read(&package, path), Err("escape"), "{path}");
        }
        assert_eq!(read(&package, "/ok").unwrap(), b"hello");
    }

    #[test]
    fn paths_may_begin_with_the_folder_itself() {
        let mut zip = Zip::new();
        zip.add("a/b", b"one").add("./c", b"two");
        let package = open(&zip.finish()).unwrap();
        assert_eq!(read(&package, "./a/b").unwrap(), b"one");
        assert_eq!(read(&package, "./c").unwrap(), b"two");
        assert_eq!(read(&package, "./d"), Err("missing"));
        for path in ["./../a/b", "././a/b", ".//a/b"] {
            assert_eq!(read(&package, path), Err("escape"), "{path}");
        }
    }

    #[test]
    fn what_is_no_whole_zip_is_refused() {
        let mut zip = Zip::new();
        zip.add("a", b"hello").add("b", b"world");
        let whole = zip.finish();
        assert!(open(&whole).is_ok());
        assert_eq!(code(b""), "dump.zip");
        assert_eq!(code(b"PK\x03\x04 nothing"), "dump.zip");
        for cut in [whole.len() - 1, whole.len() - 30, 40, 10] {
            assert_eq!(code(&whole[..cut]), "dump.zip", "{cut}");
        }
        // Cut in front, as by a transfer that lost its beginning.
        assert!(open(&whole[20..]).is_err() || read(&open(&whole[20..]).unwrap(), "a").is_err());
    }

    #[test]
    fn overlapping_and_doubled_members_are_refused() {
        assert_eq!(code(&Zip::overlapping(1_000, &vec![0; 100_000])), "dump.overlap");
        let mut zip = Zip::new();
        zip.add("a", b"one").add("a", b"two");
        assert_eq!(code(&zip.finish()), "dump.duplicate");
    }

    #[test]
    fn members_with_contradicting_headers_are_not_read() {
        let bytes = || {
            let mut zip = Zip::new();
            zip.add("name", b"hello");
            zip.finish()
        };
        for at in [30, 8, 6, 18, 22, 14, 0] {
            let mut bytes = bytes();
            bytes[at] ^= if at == 8 { 8 } else { 1 };
            let package = open(&bytes).unwrap();
            assert_eq!(read(&package, "name"), Err("dump.header"), "byte {at}");
        }
        let mut changed = bytes();
        changed[34] ^= 1;
        assert_eq!(read(&open(&changed).unwrap(), "name"), Err("dump.checksum"));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let mut zip = Zip::new();
        zip.encrypted("secret", b"x")
            .method("strange", 14, b"x")
            .symlink("link", "/etc/passwd")
            .add("ok", b"hello");
        let package = open(&zip.finish()).unwrap();
        assert_eq!(read(&package, "secret"), Err("dump.encrypted"));
        assert_eq!(read(&package, "strange"), Err("dump.method"));
        assert_eq!(read(&package, "link"), Err("dump.symlink"));
        assert_eq!(read(&package, "ok").unwrap(), b"hello");
    }

    #[test]
    fn a_member_of_excessive_length_is_refused_before_unpacking() {
        let mut zip = Zip::new();
        zip.deflated("bomb", &vec![0; 20 << 20]).deflated("dense", &vec![0; 1 << 20]);
        let package = open(&zip.finish()).unwrap();
        assert_eq!(read(&package, "bomb"), Err("dump.ratio"));
        assert_eq!(read(&package, "dense").unwrap().len(), 1 << 20);
        // A member that is longer than its listed length ends at that length.
        let mut zip = Zip::new();
        zip.deflated_as("liar", &vec![0; 20 << 20], 1_000);
        assert_eq!(read(&open(&zip.finish()).unwrap(), "liar"), Err("dump.length"));
    }
}
