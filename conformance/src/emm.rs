//! Properties of the reader and writers of change feeds for any input. Each function panics when one
//! does not hold; fuzz targets call nothing else.

use abreast_emm::{
    Action, Activity, ActivityType, Document, EntryPoint, Item, Object, Page, PageWriter, Profile,
    write_entry_point,
};
use abreast_webtypes::resolve;

const URL: &str = "http://example.org/a/feed/1?x=1";

/// A document reads the same whatever white space surrounds it; messages are short; and what is read
/// can be written in each profile and read back equal.
pub fn document(bytes: &[u8]) {
    let read = Document::from_slice(bytes, URL);
    let spaced = Document::from_slice(&[b" \r\n", bytes, b"\t "].concat(), URL);
    let document = match read {
        Ok(document) => document,
        Err(error) => {
            assert!(error.to_string().len() < 1_000, "{error}");
            assert!(spaced.is_err(), "{error}");
            return;
        }
    };
    assert_eq!(format!("{document:?}"), format!("{:?}", spaced.expect("white space is ignored")));
    assert!(document.items.len() as u64 + document.unreadable <= bytes.len() as u64);
    for profile in Profile::ALL {
        entry_point(profile, &document);
        page(profile, &document);
    }
}

/// As it is after it was written: relative to the same address.
fn again(url: &str) -> String {
    resolve(URL, url).unwrap_or_else(|_| url.to_owned())
}

fn entry_point(profile: Profile, document: &Document) {
    let (Some(first), Some(last)) = (&document.first, &document.last) else { return };
    let entry = EntryPoint { id: URL, first, last, ..EntryPoint::default() };
    let read = Document::from_slice(&write_entry_point(profile, &entry), URL).expect("it is one");
    assert_eq!((read.first, read.last), (Some(again(first)), Some(again(last))));
    assert_eq!(read.is_iiif, profile == Profile::Iiif1);
}

fn page(profile: Profile, document: &Document) {
    let (next, prev) = (document.next.as_deref(), document.prev.as_deref());
    let mut writer = PageWriter::new(profile, &Page { id: URL, part_of: URL, prev, next });
    let mut written = Vec::new();
    for item in &document.items {
        let (Some(time), Some(object)) = (item.time, item.objects.first()) else { continue };
        let kind = match item.action {
            Action::Create => ActivityType::Create,
            Action::Add => ActivityType::Add,
            Action::Update => ActivityType::Update,
            Action::Deprecate => ActivityType::Deprecate,
            Action::Remove => ActivityType::Remove,
            Action::Delete => ActivityType::Delete,
            Action::Move | Action::Refresh | Action::Other => continue,
        };
        let types: Vec<&str> = object.types.iter().map(String::as_str).collect();
        let object =
            Object { id: &object.id, types: &types, updated: Some(time), ..Object::default() };
        let id = item.id.as_deref().unwrap_or(URL);
        writer.write(&Activity {
            id,
            kind,
            time,
            object,
            collection: Some(URL),
            ..Activity::default()
        });
        written.push(item);
    }
    let bytes = writer.finish();
    let read = Document::from_slice(&bytes, URL).expect("it is a page");
    assert_eq!((read.next, read.prev), (next.map(again), prev.map(again)));
    assert_eq!((read.items.len(), read.unreadable), (written.len(), 0));
    for (read, item) in read.items.iter().zip(written) {
        same(profile, read, item);
    }
}

fn same(profile: Profile, read: &Item, item: &Item) {
    let is_updated = item.action == Action::Deprecate && profile == Profile::Iiif1;
    assert_eq!(read.action, if is_updated { Action::Update } else { item.action });
    assert_eq!(read.time, item.time);
    assert_eq!(read.id.as_deref().map(str::to_owned), item.id.as_deref().or(Some(URL)).map(again));
    let (read, object) = (&read.objects[0], &item.objects[0]);
    assert_eq!((&read.id, &read.types), (&again(&object.id), &object.types));
}
