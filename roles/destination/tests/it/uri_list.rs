//! Copies of the resources in a list of URIs.

use crate::copy::Copy;
use crate::emm_source::{EmmSource, Habits};
use crate::rdf::quads;
use abreast_destination::{NQuadsOptions, SinkOptions, UriList};
use abreast_testkit::pages::Answer;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A source with the entities 0 to 9, and a copy in files of N-Quads.
fn world(habits: Habits) -> (EmmSource, Copy) {
    let source = EmmSource::start(habits);
    for number in 0..10 {
        source.put(number, "first");
    }
    let mut copy = Copy::of(source.url());
    copy.options.sink = SinkOptions::NQuads(NQuadsOptions::default());
    (source, copy)
}

/// Limits a copy to these entities and to others, as many as are not here.
fn limit(copy: &mut Copy, source: &EmmSource, numbers: &[usize], others: usize) {
    let path = copy.place.path().join("uris");
    let mut text: String =
        numbers.iter().map(|number| format!("{}\n", source.iri(*number))).collect();
    text.extend((0..others).map(|other| format!("urn:other:{other}\n")));
    std::fs::write(&path, text).unwrap();
    copy.options.uris = Some(Arc::new(UriList::read(&path).unwrap()));
}

/// The entities of the copy, with their values.
fn values(copy: &Copy) -> BTreeSet<(usize, String)> {
    let with_value = |quad: &oxigraph::model::Quad| quad.predicate.as_str().ends_with("/value");
    let number = |text: String| text.trim_end_matches('>').rsplit('/').next()?.parse().ok();
    quads(copy.folder())
        .into_iter()
        .filter(with_value)
        .map(|quad| (number(quad.subject.to_string()).unwrap(), quad.object.to_string()))
        .collect()
}

fn expected(values: &[(usize, &str)]) -> BTreeSet<(usize, String)> {
    values.iter().map(|(number, value)| (*number, format!("\"{value}\""))).collect()
}

fn all_habits() -> [Habits; 4] {
    [Habits::default(), Habits::of_congress(), Habits::of_getty(), Habits::of_marva()]
}

#[test]
fn only_entities_of_the_list_are_kept_in_step() {
    for habits in all_habits() {
        // With and without a full download, for a short list and for a list with other URIs.
        for (download, others) in [(true, 0), (false, 0), (true, 2_000), (false, 2_000), (false, 3)]
        {
            let (source, mut copy) = world(habits.clone());
            source.wait_days(1);
            if download {
                source.make_download();
            }
            limit(&mut copy, &source, &[1, 3, 5], others);
            assert_eq!(copy.try_run().exit(), 0);
            assert_eq!(values(&copy), expected(&[(1, "first"), (3, "first"), (5, "first")]));
            source.wait_days(2);
            source.put(3, "second");
            source.put(4, "second");
            source.put(11, "first");
            source.delete(5);
            assert_eq!(copy.try_run().exit(), 0);
            assert_eq!(values(&copy), expected(&[(1, "first"), (3, "second")]));
            assert_eq!(copy.audit(false).exit_code, 0);
        }
    }
}

#[test]
fn a_uri_that_enters_the_list_is_fetched_without_a_change() {
    for habits in all_habits() {
        for others in [0, 2_000] {
            let (source, mut copy) = world(habits.clone());
            limit(&mut copy, &source, &[1], others);
            assert_eq!(copy.try_run().exit(), 0);
            // The feed never contained the entity.
            source.put(20, "unlisted");
            source.data().changes.pop();
            limit(&mut copy, &source, &[1, 2, 20], others);
            let ran = copy.try_run();
            assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
            let all = [(1, "first"), (2, "first"), (20, "unlisted")];
            assert_eq!(values(&copy), expected(&all));
            assert_eq!(copy.audit(false).exit_code, 0);
            source.server.take_log();
            assert_eq!(copy.try_run().exit(), 0);
            assert!(!source.server.take_log().iter().any(|line| line.contains("/id/20")));
        }
    }
}

#[test]
fn a_short_list_needs_no_full_download() {
    let (source, mut copy) = world(Habits::default());
    for number in 10..40 {
        source.put(number, "first");
    }
    source.make_download();
    limit(&mut copy, &source, &[1, 2], 0);
    source.server.take_log();
    assert_eq!(copy.try_run().exit(), 0);
    let asked = source.server.take_log();
    assert!(!asked.iter().any(|line| line.contains("/download")), "{asked:?}");
    // Only the two ends of the feed.
    let pages: BTreeSet<_> = asked.iter().filter(|line| line.contains("/feed/")).collect();
    assert!(pages.len() <= 3, "{asked:?}");
    assert_eq!(values(&copy), expected(&[(1, "first"), (2, "first")]));
    // Stored entities are not requested again when the list grows.
    limit(&mut copy, &source, &[1, 2, 3], 0);
    assert_eq!(copy.try_run().exit(), 0);
    let asked = source.server.take_log();
    assert!(!asked.iter().any(|line| line.contains("/id/1")), "{asked:?}");
    assert_eq!(values(&copy).len(), 3);
}

#[test]
fn entities_that_are_not_found_at_their_iris_come_from_the_feed() {
    for download in [true, false] {
        let (source, mut copy) = world(Habits::default());
        if download {
            source.make_download();
        }
        source.answer_first(|target, _| {
            (target.starts_with("/id/") && !target.contains(".nt")).then(|| Answer::status(404))
        });
        limit(&mut copy, &source, &[1, 2], 0);
        let ran = copy.try_run();
        assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
        assert_eq!(values(&copy), expected(&[(1, "first"), (2, "first")]));
        source.put(2, "second");
        assert_eq!(copy.try_run().exit(), 0);
        assert_eq!(values(&copy), expected(&[(1, "first"), (2, "second")]));
        assert_eq!(copy.audit(false).exit_code, 0);
    }
}

#[test]
fn entities_that_robots_txt_disallows_are_not_requested() {
    let (source, mut copy) = world(Habits::default());
    source.make_download();
    source.answer_first(|target, _| {
        (target == "/robots.txt").then(|| Answer::ok("User-agent: *\nDisallow: /id/\n"))
    });
    limit(&mut copy, &source, &[1, 2], 0);
    copy.options.ignore_robots = false;
    source.server.take_log();
    assert_eq!(copy.try_run().exit(), 0);
    let asked = source.server.take_log();
    assert!(!asked.iter().any(|line| line.contains("/id/")), "{asked:?}");
    assert_eq!(asked.iter().filter(|line| *line == "/robots.txt").count(), 1, "{asked:?}");
    // The entities came with the full download, to which the rules do not apply.
    assert_eq!(values(&copy), expected(&[(1, "first"), (2, "first")]));
    assert_eq!(copy.audit(false).exit_code, 0);
    let asked = source.server.take_log();
    assert!(!asked.iter().any(|line| line.contains("/id/")), "{asked:?}");
}

#[test]
fn a_uri_that_leaves_the_list_is_kept_or_deleted_as_asked() {
    for others in [0, 2_000] {
        let (source, mut copy) = world(Habits::default());
        limit(&mut copy, &source, &[1, 2, 3], others);
        assert_eq!(copy.try_run().exit(), 0);
        limit(&mut copy, &source, &[1], others);
        let ran = copy.try_run();
        assert!(ran.exit() == 0 && ran.has("filter.kept"), "{:?}", ran.reported);
        source.put(2, "second");
        assert_eq!(copy.try_run().exit(), 0);
        let all = [(1, "first"), (2, "first"), (3, "first")];
        assert_eq!(values(&copy), expected(&all), "it is left as it is");
        assert_eq!(copy.audit(false).exit_code, 0);
        // In the list again it is brought up to date.
        limit(&mut copy, &source, &[1, 2], others);
        assert_eq!(copy.try_run().exit(), 0);
        assert_eq!(values(&copy), expected(&[(1, "first"), (2, "second"), (3, "first")]));
        copy.options.delete_excluded = true;
        assert_eq!(copy.try_run().exit(), 0);
        assert_eq!(values(&copy), expected(&[(1, "first"), (2, "second")]));
        // If there is no list, all entities are copied.
        copy.options.uris = None;
        assert_eq!(copy.try_run().exit(), 0);
        assert_eq!(values(&copy).len(), 10);
        source.server.take_log();
        assert_eq!(copy.try_run().exit(), 0);
        let asked = source.server.take_log();
        assert!(asked.len() < 6, "{asked:?}");
    }
}

#[test]
fn a_listed_uri_that_does_not_exist_is_an_error_until_it_does() {
    let (source, mut copy) = world(Habits::default());
    limit(&mut copy, &source, &[1, 50], 0);
    for _ in 0..2 {
        let ran = copy.try_run();
        assert_eq!(ran.exit(), 3, "{:?}", ran.reported);
        assert!(ran.reported.iter().any(|problem| problem.uri == source.iri(50)));
        assert_eq!(values(&copy), expected(&[(1, "first")]));
    }
    assert_eq!(copy.audit(false).missing, 1);
    source.put(50, "there");
    assert_eq!(copy.try_run().exit(), 0);
    assert_eq!(values(&copy).len(), 2);
    // An entity that was removed from the list is not an error.
    limit(&mut copy, &source, &[1, 50, 51], 0);
    assert_eq!(copy.try_run().exit(), 3);
    limit(&mut copy, &source, &[1, 50], 0);
    assert_eq!(copy.try_run().exit(), 0);
}

#[test]
fn a_restored_source_is_asked_for_each_uri_of_a_short_list() {
    let (source, mut copy) = world(Habits::default());
    limit(&mut copy, &source, &[1, 2], 0);
    assert_eq!(copy.try_run().exit(), 0);
    source.wait_days(1);
    source.put(1, "second");
    assert_eq!(copy.try_run().exit(), 0);
    source.data().changes.truncate(8);
    let first = source.data().entities[&2].replace("/id/2", "/id/1").replace("p2", "p1");
    source.data().entities.insert(1, first);
    let ran = copy.try_run();
    assert!(ran.has("gap"), "{:?}", ran.reported);
    assert_eq!(values(&copy), expected(&[(1, "first"), (2, "first")]));
    assert!(!copy.try_run().has("gap"));
}

#[test]
fn a_full_comparison_of_a_short_list_finds_deletions() {
    let (source, mut copy) = world(Habits::default());
    limit(&mut copy, &source, &[1, 2], 0);
    assert_eq!(copy.try_run().exit(), 0);
    source.wait_days(1);
    source.delete(2);
    source.wait_days(1);
    source.put(3, "second");
    copy.options.baseline = true;
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    assert_eq!(values(&copy), expected(&[(1, "first")]));
    copy.options.baseline = false;
    assert_eq!(copy.try_run().exit(), 0);
}

#[test]
fn files_of_a_list_are_copied_as_they_are() {
    let (source, mut copy) = world(Habits::of_iiif());
    copy.options.sink = SinkOptions::Folder;
    let manifest = r#"{"type": "Manifest"}"#;
    source.answer_first(move |target, _| {
        target.starts_with("/id/").then(|| Answer::ok(manifest.to_owned()))
    });
    source.data().habits.has_links = false;
    limit(&mut copy, &source, &[1, 2], 0);
    assert_eq!(copy.try_run().exit(), 0);
    assert_eq!(copy.texts().into_values().collect::<Vec<_>>(), [manifest, manifest]);
}
