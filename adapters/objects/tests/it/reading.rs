//! Reading contents in ranges.

use crate::moto::{Moto, node_at};
use crate::proxy::Proxy;
use crate::{bytes_of, key_of, node, options, wait, write};
use abreast_core::contents::{ContentStore as _, Error, ErrorKind, address_of};
use abreast_objects::object_store::ObjectStoreExt as _;
use abreast_objects::object_store::memory::InMemory;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::sync::Arc;
use std::time::Duration;

const GRACE: Duration = Duration::from_secs(60);
const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn a_range_transfers_about_the_range() {
    let Some(moto) = Moto::start("a_range_transfers_about_the_range") else { return };
    let bytes = bytes_of(32 << 20, 1);
    let id = moto.node(GRACE).put_bytes(&bytes).unwrap().id();
    let proxy = Proxy::to(moto.address);
    let contents = node_at(proxy.address(), "bucket", GRACE, LIMIT);
    let start = 20 << 20;
    let mut content = contents.open_read(&id).unwrap();
    assert_eq!(content.length(), bytes.len() as u64);
    let opened = proxy.received();
    assert!(opened < 80_000, "{opened} bytes for opening");
    let mut part = vec![0; 100_000];
    let read = content.clone().into_source().read_at(start as u64, &mut part).unwrap();
    assert!(read == part.len() && part == bytes[start..start + read]);
    let ranged = proxy.received() - opened;
    assert!(ranged < 110_000, "{ranged} bytes for a range of {read}");
    content.seek(SeekFrom::Start(1_000_000)).unwrap();
    content.read_exact(&mut part).unwrap();
    assert!(part == bytes[1_000_000..1_100_000]);
    let seeked = proxy.received() - opened - ranged;
    assert!(seeked < 250_000, "{seeked} bytes for a reader of 100 000");
    content.rewind().unwrap();
    let mut whole = Vec::new();
    content.read_to_end(&mut whole).unwrap();
    assert!(whole == bytes);
}

#[test]
fn an_object_that_is_replaced_while_it_is_read_is_damaged() {
    let backend: Arc<InMemory> = Arc::default();
    let contents = node(&backend, options(GRACE, LIMIT));
    let bytes = bytes_of(1_000_000, 2);
    let id = contents.put_bytes(&bytes).unwrap().id();
    let content = contents.open_read(&id).unwrap();
    let kind = || {
        let mut content = content.clone();
        content.seek(SeekFrom::Start(500_000)).unwrap();
        Error::of_read(&id, content.read(&mut [0; 100]).unwrap_err()).kind()
    };
    write(&backend, &key_of(&id), bytes_of(1_000_000, 3));
    assert_eq!(kind(), ErrorKind::Damaged);
    wait(backend.delete(&key_of(&id))).unwrap();
    assert_eq!(kind(), ErrorKind::NotFound);
}

#[test]
fn an_object_of_another_length_is_damaged() {
    let Some(moto) = Moto::start("an_object_of_another_length_is_damaged") else { return };
    let contents = moto.node(GRACE);
    let backend = moto.backend();
    for length in [1, 1_000, 1_000_000] {
        for other in [0, length - 1, length + 1, 70_000] {
            let bytes = bytes_of(length, 4);
            let id = contents.put_bytes(&bytes).unwrap().id();
            let damaged = bytes_of(other, 4);
            wait(backend.put(&key_of(&id), damaged.into())).unwrap();
            assert!(!contents.is_whole(&id).unwrap(), "{other} bytes instead of {length}");
            let _again = contents.put_bytes(&bytes).unwrap();
            assert!(contents.is_whole(&id).unwrap(), "another length is replaced by a put");
        }
    }
    let empty = contents.put_bytes(b"").unwrap().id();
    assert!(contents.is_whole(&empty).unwrap());
    wait(backend.put(&key_of(&empty), vec![1].into())).unwrap();
    assert!(!contents.is_whole(&address_of(b"")).unwrap());
}
