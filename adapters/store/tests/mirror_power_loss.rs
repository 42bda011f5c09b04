//! Loss of power at any instant leaves the state of a copy as it was at a commit, and with all that
//! was made durable.
//!
//! As for the store of a Source (`power_loss.rs`), except that commits of the state are durable only
//! after [`Mirror::sync`].

use abreast_store::mirror::{Location, Mirror, Packed, Row, Segment};
use abreast_testkit::power;
use std::io::Write as _;
use std::path::Path;

/// Tells the child which state to write.
const CHILD: &str = "ABREAST_MIRROR_POWER_CHILD";
const LOSSES: u64 = 120;
/// Commits before the state is closed, and after it was opened again.
const COMMITS: [u64; 2] = [80, 60];
/// Commits of which the last is made durable.
const SYNCED: u64 = 5;
/// Resources that each commit changes, out of twice as many.
const RESOURCES: u64 = 20;

fn uri(number: u64) -> String {
    format!("http://h/{number:03}")
}

/// What every commit changes together.
fn change(mirror: &Mirror, commit: u64) {
    mirror.begin().expect("begun");
    for place in 0..RESOURCES {
        let uri = uri((commit * 7 + place) % (2 * RESOURCES));
        let record = Location { segment: 1, offset: commit, length: place };
        mirror
            .put_row(&Row { uri: uri.clone(), length: commit, ..Row::default() })
            .and_then(|()| mirror.put_packed(&uri, &Packed { record, original: None }))
            .expect("kept");
    }
    mirror
        .put_segment(&Segment { number: 1, name: "1".to_owned(), length: commit })
        .and_then(|()| mirror.set_meta("commit", Some(&commit.to_string())))
        .and_then(|()| mirror.commit())
        .expect("committed");
}

#[test]
fn child() {
    let Ok(path) = std::env::var(CHILD) else { return };
    let mut commit = 0;
    for commits in COMMITS {
        let mirror = Mirror::open(Path::new(&path)).expect("opened");
        for _ in 0..commits {
            commit += 1;
            change(&mirror, commit);
            if commit.is_multiple_of(SYNCED) {
                mirror.sync().expect("durable");
                std::io::stderr().write_all(format!("ack {commit}\n").as_bytes()).expect("noted");
            }
        }
    }
}

#[test]
fn a_state_that_lost_power_is_one_of_its_commits() {
    if std::env::var_os(CHILD).is_some() {
        return;
    }
    let acknowledgements = COMMITS.iter().sum::<u64>() / SYNCED;
    power::lose_power(
        CHILD,
        "mirror.db",
        LOSSES,
        acknowledgements,
        &mut |path, promised, context| {
            let mirror = Mirror::open(path).expect(context);
            let last =
                mirror.meta("commit").expect(context).map_or(0, |text| text.parse().unwrap());
            assert!(Some(last) >= promised, "{context}: {promised:?} was durable, {last} is there");
            let mut expected = std::collections::BTreeMap::new();
            for commit in 1..=last {
                let places =
                    (0..RESOURCES).map(|place| ((commit * 7 + place) % (2 * RESOURCES), place));
                expected.extend(places.map(|(number, place)| (number, (commit, place))));
            }
            for (number, (commit, place)) in expected {
                let uri = uri(number);
                let row = mirror.row(&uri).expect(context).expect(context);
                let packed = mirror.packed(&uri).expect(context).expect(context);
                let record = Location { segment: 1, offset: commit, length: place };
                assert_eq!((row.length, packed.record), (commit, record), "{context}");
            }
            let length = mirror.segments().expect(context).first().map(|segment| segment.length);
            assert_eq!(length.unwrap_or(0), last, "{context}");
        },
    );
}
