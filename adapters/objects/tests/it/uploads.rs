//! Uploads of large contents that break off.

use crate::moto::{Moto, node_at};
use crate::proxy::Proxy;
use crate::{bytes_of, keys, kind};
use abreast_core::contents::{ContentStore as _, ErrorKind, address_of};
use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::fd::AsFd as _;
use std::time::Duration;

const GRACE: Duration = Duration::from_secs(60);

#[test]
fn a_file_that_is_written_while_it_is_sent_leaves_nothing() {
    let Some(moto) = Moto::start("a_file_that_is_written_while_it_is_sent_leaves_nothing") else {
        return;
    };
    let contents = moto.node(GRACE);
    let bytes = bytes_of(20 << 20, 1);
    let changes: [fn(&mut File); 3] = [
        |file| {
            file.seek(SeekFrom::Start(18 << 20)).unwrap();
            file.write_all(b"other").unwrap();
        },
        |file| file.set_len(9 << 20).unwrap(),
        |file| file.set_len(100 << 20).unwrap(),
    ];
    for change in changes {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let (mut other, mut seen) = (file.try_clone().unwrap(), 0);
        let mut see = |part: &[u8]| {
            seen += part.len();
            if seen == bytes.len() {
                let offset = other.stream_position().unwrap();
                change(&mut other);
                other.seek(SeekFrom::Start(offset)).unwrap();
            }
            Ok(())
        };
        let limit = bytes.len() as u64;
        let put = kind(contents.put_file(file.as_fd(), limit, &mut see));
        assert!(matches!(put, Some(ErrorKind::Input | ErrorKind::TooLong)), "{put:?}");
        assert!(keys(&moto.backend(), "a").is_empty() && !moto.has_uploads());
    }
}

#[test]
fn a_connection_that_breaks_during_an_upload_leaves_nothing() {
    let Some(moto) = Moto::start("a_connection_that_breaks_during_an_upload_leaves_nothing") else {
        return;
    };
    let proxy = Proxy::to(moto.address);
    // After a failure, a node does not ask the store for some seconds.
    let new_node = || node_at(proxy.address(), "bucket", GRACE, Duration::from_secs(2));
    let bytes = bytes_of(20 << 20, 2);
    for sent in [1_000_000, 9_000_000, 18_000_000] {
        proxy.break_after(sent);
        let put = kind(new_node().put_reader(&mut bytes.as_slice(), u64::MAX));
        assert_eq!(put, Some(ErrorKind::Busy), "after {sent} bytes");
        assert!(!moto.node(GRACE).contains(&address_of(&bytes)).unwrap());
        assert!(keys(&moto.backend(), "a").is_empty(), "after {sent} bytes");
        proxy.repair();
    }
    let contents = new_node();
    let pin = contents.put_reader(&mut bytes.as_slice(), u64::MAX).unwrap();
    assert!(moto.node(GRACE).is_whole(&pin.id()).unwrap());
}

#[test]
fn a_reader_that_fails_leaves_nothing() {
    let Some(moto) = Moto::start("a_reader_that_fails_leaves_nothing") else { return };
    let contents = moto.node(GRACE);
    let fail = |length: u64| {
        let read =
            io::Read::chain(io::Read::take(io::repeat(1), length), io::Read::take(Broken, 1));
        kind(contents.put_reader(&mut { read }, u64::MAX))
    };
    for length in [0, 100, 9 << 20, 20 << 20] {
        assert_eq!(fail(length), Some(ErrorKind::Input));
    }
    assert!(keys(&moto.backend(), "a").is_empty() && !moto.has_uploads());
}

struct Broken;

impl io::Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("on purpose"))
    }
}
