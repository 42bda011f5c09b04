//! Contract of shards: they cover all keys, split when full, and show when a document made from one
//! is out of date.

use super::{Fixture, Stores, everything, put, state};
use crate::{Change, KeyRange, PageRule, Position, Shard, ShardId};
use abreast_webtypes::Link;
use std::collections::BTreeMap;

fn shards(fixture: &Fixture) -> Vec<Shard> {
    fixture.log.shards(fixture.set).expect("the shards can be read")
}

fn shard(fixture: &Fixture, id: ShardId) -> Shard {
    fixture.log.shard(fixture.set, id).expect("a shard can be read").expect("the shard is there")
}

fn fixture(stores: &mut dyn Stores, resources: u64) -> Fixture {
    Fixture::new(stores, PageRule::default(), resources, 1_000_000)
}

pub(super) fn ordered_load_closes_shards(stores: &mut dyn Stores) {
    let mut fixture = fixture(stores, 10);
    let new = shards(&fixture);
    assert_eq!((new.len(), &new[0].range, new[0].resources), (1, &everything(), 0));
    assert_eq!(new[0].time, fixture.log.head(fixture.set).expect("a head").created);
    for first in [0_u64, 25, 50] {
        fixture.append(
            (first..first + 25).map(|number| put(format!("{number:03}"), number)).collect(),
        );
        fixture = fixture.reopen(stores);
    }
    let live = shards(&fixture);
    let found: Vec<_> =
        live.iter().map(|shard| (shard.range.start.as_str(), shard.resources)).collect();
    let expected = ["", "010", "020", "030", "040", "050", "060"].map(|start| (start, 10));
    assert_eq!(found, [&expected[..], &[("070", 5)]].concat(), "each full, none retired");
    assert_eq!(live[0].id, new[0].id, "a closed shard keeps its number");
    assert_eq!(live[3].version, Position(40));
    fixture.check();
}

pub(super) fn full_shards_are_split(stores: &mut dyn Stores) {
    let mut fixture = fixture(stores, 10);
    let mut known: BTreeMap<ShardId, KeyRange> = BTreeMap::new();
    for number in 0..120_u64 {
        let key = format!("{:03}", number * 37 % 120);
        fixture.append(vec![put(key.clone(), number)]);
        for shard in shards(&fixture) {
            assert!(shard.resources <= 10, "{shard:?}");
            assert!(!shard.retired);
            if let Some(range) = known.insert(shard.id, shard.range.clone()) {
                let closed = range.end.is_none() && range.start == shard.range.start;
                assert!(range == shard.range || closed, "{range:?} became {:?}", shard.range);
            }
        }
        if number % 40 == 39 {
            fixture = fixture.reopen(stores);
        }
    }
    let live = shards(&fixture);
    assert!(live.len() >= 12, "{}", live.len());
    assert!(known.len() > live.len(), "some were retired");
    for (id, range) in &known {
        let found = shard(&fixture, *id);
        assert_eq!(&found.range, range, "a shard answers for its range");
        assert_eq!(found.retired, live.iter().all(|shard| shard.id != *id));
        assert_eq!(found.resources, fixture.keys(range).len() as u64);
    }
    assert_eq!(fixture.log.shard(fixture.set, ShardId(9_999)).expect("read"), None);
    assert_eq!(fixture.log.shard(fixture.set, ShardId(u64::MAX)).expect("read"), None);
    fixture.check();
    fixture.append((0..120).map(|number| Change::delete(format!("{number:03}"))).collect());
    let empty = shards(&fixture);
    assert_eq!(empty.len(), live.len(), "empty shards stay");
    assert!(empty.iter().all(|shard| shard.resources == 0));
    fixture.check();
}

pub(super) fn large_entries_fill_shards(stores: &mut dyn Stores) {
    let fixture = Fixture::new(stores, PageRule::default(), 1_000, 50_000);
    for number in 0..60_u64 {
        let key = format!("{:02}{}", number * 7 % 60, "&".repeat(1_000));
        fixture.append(vec![put(key, number)]);
    }
    let live = shards(&fixture);
    assert!(live.len() > 5, "about 6 kB each as XML: {}", live.len());
    assert!(live.iter().all(|shard| shard.resources <= 10));
    fixture.append(vec![put("0", 1)]);
    fixture.check();

    let fixture = Fixture::new(stores, PageRule::default(), 1_000, 50_000);
    fixture.append((0..40_u64).map(|number| put(format!("{number:02}"), 1)).collect());
    assert_eq!(shards(&fixture).len(), 1);
    for number in 0..40_u64 {
        let mut large = state(1);
        large.links.push(Link { target: "x".repeat(2_000), ..Link::default() });
        fixture.append(vec![Change::put(format!("{number:02}"), large)]);
    }
    assert!(shards(&fixture).len() >= 3, "entries that grow fill them too");
    fixture.check();
}

pub(super) fn versions_follow_changes(stores: &mut dyn Stores) {
    let fixture = fixture(stores, 4);
    fixture.append(["a", "b", "d", "e"].map(|key| put(key, 1)).to_vec());
    let first = shards(&fixture)[0].id;
    fixture.append(vec![put("c", 1)]);
    let live = shards(&fixture);
    assert_eq!(live.len(), 2);
    assert!(shard(&fixture, first).retired);
    assert_eq!(shard(&fixture, first).resources, 5);
    let (left, right) = (live[0].id, live[1].id);
    let versions = |fixture: &Fixture| [left, right, first].map(|id| shard(fixture, id).version.0);
    assert_eq!(shard(&fixture, first).version, Position(5));

    fixture.append(vec![put("a", 2)]);
    assert_eq!(versions(&fixture), [6, versions(&fixture)[1], 6], "an update in the left half");
    assert!(versions(&fixture)[1] <= 5);
    fixture.append(vec![Change::delete("e")]);
    assert_eq!(versions(&fixture), [6, 7, 7], "a deletion in the right half");
    assert_eq!(shard(&fixture, first).resources, 4);
    fixture.append(vec![put("a", 2), Change::delete("x"), put("d", 1)]);
    assert_eq!(versions(&fixture), [6, 7, 7], "what is no change leaves documents right");
    let head = fixture.log.head(fixture.set).expect("a head");
    assert_eq!(shard(&fixture, right).time, head.time);
    assert_eq!(shard(&fixture, first).time, head.time);
    let fixture = fixture.reopen(stores);
    assert_eq!(versions(&fixture), [6, 7, 7]);
    fixture.check();
}
