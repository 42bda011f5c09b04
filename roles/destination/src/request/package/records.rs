//! The records of a WARC file as members of a package. The whole file is read once, since a WARC
//! file lacks a directory; only the position and the properties of each record are stored in
//! memory.
//!
//! A member has its `WARC-Target-URI` and its `WARC-Record-ID` as names. If there are several
//! records for a URI, the record with the latest `WARC-Date` is used. A file with an incomplete
//! record is refused. A record that does not contain a whole resource is not read.

use crate::report::error::{Error, ExitCode};
use crate::report::failure::Failure;
use crate::request::package::archive::{
    At, Check, Checked, Found, Kind, MEMBERS_MAX, Member, Package, RATIO_FREE_BYTES, RATIO_MAX,
    too_many,
};
use crate::request::package::record_kind::{RecordKind, Records};
use crate::request::verify::Hasher;
use abreast_warc::{
    CountingReader, Kind as WarcKind, Payload, ReadError, parse_digest, read_record, skip_padding,
};
use abreast_webtypes::W3cDatetime;
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufReader, Read};
use std::time::UNIX_EPOCH;

/// Bytes read at a time.
const BLOCK_BYTES: usize = 128 << 10;
/// How the name of the manifest ends.
const MANIFEST: &str = "manifest.xml";

/// A member with what its order depends on.
struct Scanned {
    member: Member,
    date: i64,
    id: u64,
    is_manifest: bool,
}

impl Package {
    /// Reads all records.
    pub(super) fn open_records(file: File, check: Check<'_>) -> Result<Self, Error> {
        let io = |cause: io::Error| {
            Error::new("io", ExitCode::Io, "cannot read the package").with_cause(cause)
        };
        let end = file.metadata().map_err(io)?.len();
        let hasher = RandomState::new();
        let mut scanned = scan(&file, end, &hasher, check)?;
        scanned.sort_unstable_by_key(|it| (it.member.name, it.date, it.member.offset));
        for at in 1..scanned.len() {
            let (before, now) = (&scanned[at - 1], &scanned[at]);
            let is_same_time = (before.member.name, before.date) == (now.member.name, now.date);
            let bytes = |it: &Scanned| (it.member.length, it.member.crc);
            let is_ambiguous = before.member.kind == Kind::Record(RecordKind::Ambiguous);
            if is_same_time && (is_ambiguous || bytes(before) != bytes(now)) {
                scanned[at].member.kind = Kind::Record(RecordKind::Ambiguous);
            }
        }
        let numbered = || scanned.iter().zip(0_u32..);
        let mut ids: Vec<_> = numbered().map(|(it, number)| (it.id, number)).collect();
        ids.sort_unstable();
        let manifest = numbered()
            .filter(|(it, _)| it.is_manifest)
            .min_by_key(|(it, _)| it.member.offset)
            .map(|(_, number)| number);
        let members = scanned.into_iter().map(|it| it.member).collect();
        let mut package = Self::of_members(file, end, members, hasher);
        package.records = Some(Records { ids, manifest });
        Ok(package)
    }

    /// Whether the package is a WARC file, whose members are found by the URIs of resources.
    pub(crate) const fn is_warc(&self) -> bool {
        self.records.is_some()
    }

    /// The manifest of the package: the member `manifest.xml`, or the first record of type
    /// `resource` whose URI ends with that name.
    pub(crate) fn manifest(&self) -> Option<u32> {
        match (&self.records, self.find(MANIFEST)) {
            (Some(records), _) => records.manifest,
            (None, Found::Member(number)) => Some(number),
            (None, _) => None,
        }
    }

    /// The member with the resource of an entry of the manifest.
    pub(crate) fn place(&self, uri: &str, path: Option<&str>) -> Found {
        let Some(records) = &self.records else { return self.find(path.unwrap_or_default()) };
        let by_path = path.and_then(|path| {
            let hash = self.hash(without_brackets(path));
            let at = records.ids.binary_search_by_key(&hash, |(id, _)| *id).ok();
            at.map(|at| records.ids[at].1).or_else(|| self.named(path))
        });
        by_path.or_else(|| self.named(uri)).map_or(Found::Missing, Found::Member)
    }

    /// The resource in a record.
    pub(super) fn record(&self, member: &Member) -> Result<Checked<'_>, Failure> {
        let unreadable = |error: ReadError| Failure::new("dump.checksum", error.to_string());
        let input = self.bytes_at(member.offset, member.packed);
        let read = read_record(input).map_err(unreadable)?;
        let read = read.ok_or_else(|| unreadable(ReadError::Syntax("there is no record")))?;
        Ok(Checked::of(member, Box::new(read.payload().map_err(unreadable)?)))
    }
}

/// A record's id without the brackets around it.
fn without_brackets(id: &str) -> &str {
    id.trim().trim_start_matches('<').trim_end_matches('>')
}

/// Reads a file from its beginning to its end.
fn scan(
    file: &File,
    end: u64,
    hasher: &RandomState,
    check: Check<'_>,
) -> Result<Vec<Scanned>, Error> {
    let at = At { file, place: 0, left: end };
    let mut input = CountingReader::new(BufReader::with_capacity(BLOCK_BYTES, at));
    let allowance = RATIO_FREE_BYTES.saturating_add(end.saturating_mul(RATIO_MAX));
    let mut scanner = Scanner { hasher, check, buffer: vec![0; BLOCK_BYTES], allowance };
    let mut found = Vec::new();
    loop {
        skip_padding(&mut input).map_err(|error| broken(input.taken, &error))?;
        let offset = input.taken;
        let read = read_record(&mut input).map_err(|error| broken(offset, &error))?;
        let Some(read) = read else { return Ok(found) };
        let scanned = match read.head.kind() {
            Some(WarcKind::Response | WarcKind::Resource | WarcKind::Revisit)
                if read.head.target().is_some() =>
            {
                let payload = read.payload().map_err(|error| broken(offset, &error))?;
                scanner.payload(offset, payload).map(Some)
            }
            _ => scanner.pass(offset, read.block, &mut |_| {}).map(|_| None),
        }?;
        if let Some(mut scanned) = scanned {
            if found.len() == MEMBERS_MAX {
                return Err(too_many());
            }
            (scanned.member.offset, scanned.member.packed) = (offset, input.taken - offset);
            found.push(scanned);
        }
    }
}

fn broken(offset: u64, error: &ReadError) -> Error {
    if let ReadError::Io(cause) = error {
        return Error::new("io", ExitCode::Io, format!("cannot read the package: {cause}"));
    }
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    let cause = cause.unwrap_or_default();
    let message = format!("it is no whole WARC file: at byte {offset}: {error}{cause}");
    let broken = Error::new("dump.warc", ExitCode::SourceInvalid, message);
    if offset > 0 {
        return broken;
    }
    broken.with_help(
        "if it was compressed as a whole, compress each record by itself: for example `warcio recompress OLD NEW`",
    )
}

struct Scanner<'a> {
    hasher: &'a RandomState,
    check: Check<'a>,
    buffer: Vec<u8>,
    /// Bytes that may still be unpacked.
    allowance: u64,
}

impl Scanner<'_> {
    /// Passes on bytes up to their end; returns their number.
    fn pass(
        &mut self,
        offset: u64,
        bytes: impl Read,
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<u64, Error> {
        self.pass_some(offset, bytes, each)?.map_err(|cause| broken(offset, &cause.into()))
    }

    fn pass_some(
        &mut self,
        offset: u64,
        mut bytes: impl Read,
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<io::Result<u64>, Error> {
        let mut length = 0;
        loop {
            (self.check)()?;
            let count = match bytes.read(&mut self.buffer) {
                Ok(0) => return Ok(Ok(length)),
                Ok(count) => count as u64,
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => continue,
                Err(cause) => return Ok(Err(cause)),
            };
            each(&self.buffer[..count as usize]);
            length += count;
            self.allowance = self.allowance.checked_sub(count).ok_or_else(|| {
                let message = format!(
                    "it unpacks to more than {RATIO_MAX} times its length (at byte {offset})"
                );
                Error::new("dump.ratio", ExitCode::Limit, message)
            })?;
        }
    }

    /// Reads a record that may be of a resource.
    fn payload<R: io::BufRead>(
        &mut self,
        offset: u64,
        mut payload: Payload<R>,
    ) -> Result<Scanned, Error> {
        let head = std::mem::take(&mut payload.head);
        let http = payload.http.take();
        let is_chunked = payload.is_chunked();
        let stated = |name| head.field(name).map(parse_digest).filter(|it| !it.is_empty());
        let of_block = stated("WARC-Block-Digest");
        let digest =
            of_block.clone().or_else(|| stated("WARC-Payload-Digest")).filter(|_| !is_chunked);
        let digest = digest.unwrap_or_default();
        let mut hasher = Hasher::for_no_others(&digest);
        if let (Some(http), Some(_)) = (&http, of_block) {
            hasher.update(&http.bytes);
        }
        let mut crc = crc32fast::Hasher::new();
        let read = self.pass_some(offset, &mut payload, &mut |bytes| {
            crc.update(bytes);
            hasher.update(bytes);
        })?;
        let (length, is_cut) = match read {
            Ok(length) => (length, false),
            Err(_) if payload.is_broken() => {
                self.pass(offset, payload.into_block(), &mut |_| {})?;
                (0, true)
            }
            Err(cause) => return Err(broken(offset, &cause.into())),
        };
        let field = |name| http.as_ref().and_then(|http| http.field(name));
        let is_cut = is_cut
            || ["WARC-Truncated", "WARC-Segment-Number"].iter().any(|it| head.field(it).is_some());
        let is_other_length = !is_chunked
            && field("Content-Length")
                .and_then(|text| text.parse().ok())
                .is_some_and(|stated: u64| stated != length);
        let kind = match http.as_ref().map_or(200, |http| http.status) {
            _ if head.kind() == Some(WarcKind::Revisit) => RecordKind::Revisit,
            _ if is_cut => RecordKind::Cut,
            status if status != 200 => RecordKind::Status(status),
            _ if is_other_length => RecordKind::Length,
            _ if hasher.finish().agree(&digest) == Some(false) => RecordKind::Digest,
            _ if field("Content-Encoding")
                .is_some_and(|it| !it.eq_ignore_ascii_case("identity")) =>
            {
                RecordKind::Coded
            }
            _ => RecordKind::Whole,
        };
        let modified =
            field("Last-Modified").and_then(|text| httpdate::parse_http_date(&text).ok());
        let modified = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let target = head.target().unwrap_or_default();
        let target = target.split('#').next().unwrap_or_default();
        let id = head.field("WARC-Record-ID").unwrap_or_default();
        let date = head.field("WARC-Date").and_then(|it| W3cDatetime::parse(it.as_bytes()).ok());
        Ok(Scanned {
            member: Member {
                name: self.hasher.hash_one(target.as_bytes()),
                offset,
                packed: 0,
                length,
                crc: crc.finalize(),
                name_length: 0,
                kind: Kind::Record(kind),
                modified: modified.map(|since| since.as_secs() as i64),
            },
            date: date.map_or(i64::MIN, |date| date.instant.as_micros()),
            id: self.hasher.hash_one(without_brackets(id).as_bytes()),
            is_manifest: head.kind() == Some(WarcKind::Resource)
                && target.rsplit('/').next() == Some(MANIFEST),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_testkit::warc::Warc;
    use proptest::prelude::*;
    use std::io::Write as _;

    fn open(bytes: &[u8]) -> Result<Package, Error> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        Package::open(file, &|| Ok(()))
    }

    fn code(bytes: &[u8]) -> &'static str {
        open(bytes).unwrap_err().code()
    }

    /// The bytes in the package for a URI, read in both ways, or the code of the error.
    fn read(package: &Package, uri: &str, path: Option<&str>) -> Result<Vec<u8>, &'static str> {
        let Found::Member(number) = package.place(uri, path) else { return Err("missing") };
        let member = package.member(number);
        let mut into = b"before".to_vec();
        let at_once = package.read_into(member, &mut into, &mut Vec::new());
        let at_once = at_once.map(|range| into[range].to_vec()).map_err(|failure| failure.code);
        let mut bytes = Vec::new();
        let streamed = package.reader(member).map_err(|failure| failure.code);
        let streamed = streamed
            .and_then(|mut reader| reader.read_to_end(&mut bytes).map(|_| bytes).map_err(|_| "io"));
        assert_eq!(at_once, streamed);
        at_once
    }

    const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n";

    #[test]
    fn records_are_read_packed_and_as_they_stand() {
        for mut warc in [Warc::new(), Warc::plain()] {
            let long = "hello ".repeat(400_000);
            warc.info().resource("http://h/d/manifest.xml", b"<urlset/>").ok("http://h/a", b"one");
            let id = warc.last_id();
            warc.resource("http://h/b#part", b"two").ok("http://h/empty", b"");
            warc.response("http://h/c", CHUNKED, b"3\r\nthr\r\n2;x\r\nee\r\n0\r\n\r\n");
            warc.response("http://h/d", CHUNKED, b"joined").ok("http://h/long", long.as_bytes());
            let package = open(&warc.finish()).unwrap();
            assert_eq!((package.count(), package.is_warc()), (7, true));
            let of = |uri| read(&package, uri, None);
            assert_eq!(of("http://h/a").unwrap(), b"one");
            assert_eq!(of("http://h/b").unwrap(), b"two");
            assert_eq!(of("http://h/c").unwrap(), b"three");
            assert_eq!(of("http://h/d").unwrap(), b"joined");
            assert_eq!(of("http://h/empty").unwrap(), b"");
            assert_eq!(of("http://h/long").unwrap(), long.as_bytes());
            assert_eq!(of("http://h/none"), Err("missing"));
            let manifest = package.member(package.manifest().unwrap());
            assert_eq!(manifest.length, 9);
            // A path may be the id of a record, or a URI.
            for path in [id.clone(), format!("<{id}>"), "http://h/a".to_owned()] {
                assert_eq!(read(&package, "http://h/z", Some(&path)).unwrap(), b"one", "{path}");
            }
        }
    }

    #[test]
    fn folded_lines_and_zeros_at_the_end_are_read() {
        for mut warc in [Warc::new(), Warc::plain()] {
            let fields = warc.fields("resource", "http://h/a", "text/plain", b"one");
            let folded = fields.replace("WARC-Target-URI: ", "WARC-Target-URI:\r\n ");
            assert_ne!(fields, folded);
            let head =
                "HTTP/1.1 200 OK\r\nContent-Length:\r\n\t3\r\nTransfer-Encoding:\r\n chunked\r\n";
            warc.record(&folded, b"one").response("http://h/b", head, b"3\r\ntwo\r\n0\r\n\r\n");
            let package = open(&[&warc.finish()[..], &[0; 700]].concat()).unwrap();
            assert_eq!(read(&package, "http://h/a", None).unwrap(), b"one");
            assert_eq!(read(&package, "http://h/b", None).unwrap(), b"two");
        }
    }

    #[test]
    fn a_file_that_was_compressed_as_a_whole_is_named_so() {
        let mut warc = Warc::plain();
        warc.ok("http://h/a", b"one").ok("http://h/b", b"two");
        let mut whole = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        whole.write_all(&warc.finish()).unwrap();
        let error = open(&whole.finish().unwrap()).unwrap_err();
        assert_eq!(error.code(), "dump.warc");
        assert!(error.help().unwrap().contains("warcio recompress"), "{error:?}");
    }

    #[test]
    fn the_newest_record_of_a_uri_counts() {
        let mut warc = Warc::new();
        warc.date("2026-01-02T00:00:00Z").ok("http://h/a", b"new");
        warc.date("2026-01-01T00:00:00Z").ok("http://h/a", b"old").ok("http://h/b", b"one");
        warc.ok("http://h/b", b"two").ok("http://h/c", b"same").ok("http://h/c", b"same");
        warc.ok("http://h/e", b"A").ok("http://h/e", b"B").ok("http://h/e", b"B");
        warc.ok("http://h/d", b"kept").date("2026-01-03T00:00:00Z");
        let fields =
            warc.fields("revisit", "http://h/d", "application/http", b"HTTP/1.1 200 OK\r\n\r\n");
        warc.record(&fields, b"HTTP/1.1 200 OK\r\n\r\n");
        let package = open(&warc.finish()).unwrap();
        let of = |uri| read(&package, uri, None);
        assert_eq!(of("http://h/a").unwrap(), b"new");
        assert_eq!(of("http://h/b"), Err("dump.duplicate"));
        assert_eq!(of("http://h/c").unwrap(), b"same");
        assert_eq!(of("http://h/d"), Err("dump.revisit"));
        assert_eq!(of("http://h/e"), Err("dump.duplicate"));
    }

    #[test]
    fn records_without_the_whole_resource_are_named() {
        let mut warc = Warc::new();
        warc.response("http://h/status", "HTTP/1.1 404 Not Found\r\n", b"x");
        warc.response("http://h/length", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n", b"x");
        warc.response("http://h/chunks", CHUNKED, b"5\r\nhel");
        let cut = warc.fields("resource", "http://h/cut", "text/plain", b"x");
        warc.record(&(cut + "WARC-Truncated: length\r\n"), b"x");
        let other = warc.fields("resource", "http://h/digest", "text/plain", b"y");
        warc.record(&other, b"x");
        // A revisit needs no block (ISO 28500, section 6.7.2); a head that ends its lines with LF only.
        let revisit = warc.fields("revisit", "http://h/revisit", "", b"");
        warc.record(&revisit.replace("Content-Type: \r\n", ""), b"");
        let head = b"HTTP/1.1 200 OK\nContent-Length: 1\n\nx";
        for (uri, block) in [("http://h/head", &head[..]), ("http://h/none", b"")] {
            let fields = warc.fields("response", uri, "application/http", block);
            warc.record(&fields, block);
        }
        let package = open(&warc.ok("http://h/ok", b"x").finish()).unwrap();
        let of = |uri| read(&package, uri, None);
        assert_eq!(of("http://h/revisit"), Err("dump.revisit"));
        assert_eq!(of("http://h/head"), Err("dump.length"));
        assert_eq!(of("http://h/none"), Err("dump.length"));
        assert_eq!(of("http://h/status"), Err("dump.status"));
        assert_eq!(of("http://h/length"), Err("dump.length"));
        assert_eq!(of("http://h/chunks"), Err("dump.length"));
        assert_eq!(of("http://h/cut"), Err("dump.length"));
        assert_eq!(of("http://h/digest"), Err("dump.checksum"));
        assert_eq!(of("http://h/ok").unwrap(), b"x");
    }

    #[test]
    fn a_file_that_is_not_whole_records_is_refused() {
        for mut warc in [Warc::new(), Warc::plain()] {
            let first = warc.ok("http://h/a", b"hello").finish();
            let whole = warc.ok("http://h/b", b"world").finish();
            for cut in [8, first.len() - 1, first.len() + 10, whole.len() - 2] {
                assert_eq!(code(&whole[..cut]), "dump.warc", "{cut}");
            }
            for length in [4, 12] {
                let fields = warc.fields("resource", "http://h/c", "text/plain", b"hello");
                let bytes = [&whole[..], &{
                    let mut wrong =
                        if whole.starts_with(b"W") { Warc::plain() } else { Warc::new() };
                    wrong.record_as(&fields, b"hello", length).finish()
                }]
                .concat();
                assert_eq!(code(&bytes), "dump.warc", "{length}");
            }
            assert_eq!(code(&[&whole[..], b"more"].concat()), "dump.warc");
        }
        let plain = Warc::plain().ok("http://h/a", b"hello").ok("http://h/b", b"world").finish();
        let mut member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        member.write_all(&plain).unwrap();
        assert_eq!(code(&member.finish().unwrap()), "dump.warc", "one member for all");
    }

    #[test]
    fn reading_stops_when_it_is_to_stop() {
        let long = "hello ".repeat(400_000);
        let bytes = Warc::plain().resource("http://h/a", long.as_bytes()).finish();
        let calls = std::cell::Cell::new(0);
        let check = || {
            calls.set(calls.get() + 1);
            if calls.get() > 3 { Err(Error::cancelled()) } else { Ok(()) }
        };
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let error = Package::open(file, &check).unwrap_err();
        assert_eq!((error.exit_code(), calls.get()), (ExitCode::Cancelled, 4));
    }

    #[test]
    fn what_unpacks_to_too_much_is_refused() {
        let zeros = vec![0; 20 << 20];
        let mut warc = Warc::new();
        assert_eq!(code(&warc.resource("http://h/a", &zeros).finish()), "dump.ratio");
        let mut random = abreast_testkit::Random::new(1);
        let noise: Vec<u8> = (0..400_000).map(|_| random.below(256) as u8).collect();
        let package = open(&warc.resource("http://h/b", &noise).finish()).unwrap();
        assert_eq!(read(&package, "http://h/a", None), Err("dump.ratio"));
        assert_eq!(read(&package, "http://h/b", None).unwrap(), noise);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn no_change_of_a_file_breaks_what_is_promised(at in 0_usize..2_000, with: u8, cut in 0_usize..2_000, more: Vec<u8>) {
            for mut warc in [Warc::new(), Warc::plain()] {
                let chunks = b"3\r\nthr\r\n2;x\r\nee\r\n0\r\n\r\n";
                warc.info().ok("http://h/a", b"hello").response("http://h/b", CHUNKED, chunks);
                let mut bytes = warc.finish();
                let length = bytes.len();
                bytes[at % length] = with;
                let short = [&bytes[..cut % length], &more].concat();
                for bytes in [bytes, short] {
                    let Ok(package) = open(&bytes) else { continue };
                    for uri in ["http://h/a", "http://h/b"] {
                        let _ = read(&package, uri, None);
                    }
                }
            }
        }
    }
}
