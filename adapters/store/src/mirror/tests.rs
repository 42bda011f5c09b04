//! Tests of the rows and of the plan together.

use super::*;

fn mirror() -> (tempfile::TempDir, Mirror) {
    let folder = tempfile::tempdir().unwrap();
    let mirror = Mirror::open(&folder.path().join("mirror.db")).unwrap();
    (folder, mirror)
}

fn row(uri: &str) -> Row {
    Row { uri: uri.to_owned(), length: 5, digests: vec![1, 2], file_mtime: 7, ..Row::default() }
}

fn fetch(uri: &str) -> Pending {
    Pending { uri: uri.to_owned(), ..Pending::default() }
}

#[test]
fn facts_rows_and_documents_are_kept() {
    let (folder, mirror) = mirror();
    mirror.set_meta("cursor", Some("1")).unwrap();
    mirror.set_meta("cursor", Some("2")).unwrap();
    mirror.put_row(&row("http://h/a")).unwrap();
    let document =
        Document { etag: Some("\"x\"".to_owned()), last_modified: None, fingerprint: -3 };
    mirror.set_document("http://h/list", &document).unwrap();
    drop(mirror);
    let mirror = Mirror::open(&folder.path().join("mirror.db")).unwrap();
    assert_eq!(mirror.meta("cursor").unwrap().as_deref(), Some("2"));
    assert_eq!(mirror.row("http://h/a").unwrap(), Some(row("http://h/a")));
    assert_eq!(mirror.document("http://h/list").unwrap(), Some(document));
    mirror.set_meta("cursor", None).unwrap();
    assert_eq!(mirror.meta("cursor").unwrap(), None);
}

#[test]
fn a_state_of_the_former_schema_opens_with_everything_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mirror.db");
    let former = Connection::open(&path).unwrap();
    former.execute_batch(crate::database::migration::VERSION_TABLE).unwrap();
    STEPS[..4].iter().for_each(|step| former.execute_batch(step).unwrap());
    let written = "INSERT INTO schema_version VALUES (4);
        INSERT INTO meta VALUES ('cursor', '2026-01-01T00:00:00Z');
        INSERT INTO resource VALUES ('http://h/a', 0, 5, 5, x'0102', 8, NULL, 7, 0, 3);
        INSERT INTO pending VALUES ('http://h/b', 0, 5, 9, x'03', 0, 8, 1, 2, '{}');
        INSERT INTO pending VALUES ('http://h/c', 2, NULL, NULL, x'', 0, 9, 0, 0, NULL);";
    former.execute_batch(written).unwrap();
    drop(former);
    for _ in 0..2 {
        let mirror = Mirror::open(&path).unwrap();
        assert_eq!(mirror.meta("cursor").unwrap().as_deref(), Some("2026-01-01T00:00:00Z"));
        let kept = Row { modified: Some(5), changed: Some(8), epoch: 3, ..row("http://h/a") };
        assert_eq!(mirror.row("http://h/a").unwrap(), Some(kept));
        let failed = Pending {
            modified: Some(5),
            length: Some(9),
            digests: vec![3],
            changed: Some(8),
            attempts: 2,
            via: Some("{}".to_owned()),
            ..fetch("http://h/b")
        };
        assert_eq!(mirror.task("http://h/b").unwrap().unwrap().pending, failed);
        let counts = mirror.pending_counts().unwrap();
        assert_eq!((counts.deletes, counts.held), (1, 1));
    }
}

fn at(time: i64) -> ChangeOrder {
    ChangeOrder { time, changed: Some((time, time)), ..ChangeOrder::default() }
}

#[test]
fn lengths_beyond_all_numbers_add_up_to_the_greatest() {
    let (_folder, mirror) = mirror();
    let mut bytes = Vec::new();
    // The last was written by a version that read longer ones.
    for length in [Some(3), None, Some(i64::MAX as u64), Some(i64::MAX as u64), Some(u64::MAX)] {
        let uri = format!("http://h/{}", bytes.len());
        mirror.put_pending(&Pending { length, changed: Some(1), ..fetch(&uri) }).unwrap();
        let (all, due) = (mirror.pending_counts().unwrap(), mirror.changes_due().unwrap());
        assert_eq!((all.bytes, all.fetches), (due.bytes, due.resources));
        bytes.push(all.bytes);
    }
    let most = i64::MAX as u64;
    assert_eq!(bytes, [3, 3, most, most, most]);
}

#[test]
fn a_state_of_a_former_schema_is_not_changed_by_reading_it() {
    let (folder, mirror) = mirror();
    let path = folder.path().join("mirror.db");
    mirror.put_row(&row("http://h/a")).unwrap();
    let read = Mirror::open_as_it_is(&path).unwrap().unwrap();
    assert_eq!(read.row("http://h/a").unwrap(), Some(row("http://h/a")));
    assert!(read.is_read_only() && read.put_row(&row("http://h/b")).is_err());
    drop((mirror, read));
    let set = |version: usize| {
        let connection = Connection::open(&path).unwrap();
        connection.execute("UPDATE schema_version SET version = ?1", [version as i64]).unwrap();
    };
    set(STEPS.len() - 1);
    let before = std::fs::read(&path).unwrap();
    assert!(Mirror::open_as_it_is(&path).unwrap().is_none());
    assert_eq!(std::fs::read(&path).unwrap(), before);
    set(STEPS.len() + 1);
    let error = Mirror::open_as_it_is(&path).unwrap_err();
    assert!(error.to_string().contains("help: use the newer program"), "{error}");
}

#[test]
fn rows_and_plan_get_uris_of_another_base() {
    let (_folder, mirror) = mirror();
    // A new URI may be the old one of another row.
    for uri in ["http://h/a", "http://h/d/a", "http://h/d/d/a", "http://other/a"] {
        mirror.put_row(&row(uri)).unwrap();
    }
    mirror.put_pending(&fetch("http://h/b")).unwrap();
    mirror.rebase("http://h/", "http://h/d/").unwrap();
    let mut rows = Vec::new();
    mirror.rows_after("", 9, &mut rows).unwrap();
    let uris: Vec<_> = rows.into_iter().map(|row| row.uri).collect();
    let expected = ["http://h/d/a", "http://h/d/d/a", "http://h/d/d/d/a", "http://other/a"];
    assert_eq!(uris, expected);
    assert!(mirror.task("http://h/d/b").unwrap().is_some());
}

#[test]
fn a_removal_is_a_deletion_with_its_reason_kept() {
    let (_folder, mirror) = mirror();
    let removed = Pending { action: PendingAction::Remove, ..fetch("http://h/a") };
    mirror.put_coming(&removed, at(1)).unwrap();
    let (mut coming, mut tasks) = (Vec::new(), Vec::new());
    mirror.coming_after("", 10, &mut coming).unwrap();
    assert_eq!(coming[0].task.pending.action, PendingAction::Remove);
    mirror.put_pending(&removed).unwrap();
    assert_eq!((mirror.pending_counts().unwrap().deletes, mirror.hold_deletes().unwrap()), (1, 1));
    mirror.renew_pending().unwrap();
    tasks.clear();
    mirror.fetches_after("", 10, &mut tasks).unwrap();
    assert!(tasks.is_empty(), "it is not fetched");
    mirror.deletes_after("", 10, &mut tasks).unwrap();
    assert_eq!(tasks[0].pending.action, PendingAction::Remove);
}

#[test]
fn a_change_whose_time_is_a_guess_can_be_doubted() {
    let (_folder, mirror) = mirror();
    let guessed = ChangeOrder { time: 9, ..ChangeOrder::default() };
    let deletion = |uri| Pending { action: PendingAction::Delete, ..fetch(uri) };
    mirror.put_coming(&deletion("http://h/a"), guessed).unwrap();
    mirror.put_coming(&deletion("http://h/b"), at(9)).unwrap();
    mirror.doubt_undated().unwrap();
    for uri in ["http://h/a", "http://h/b"] {
        mirror.put_coming(&fetch(uri), at(5)).unwrap();
    }
    let mut coming = Vec::new();
    mirror.coming_after("", 10, &mut coming).unwrap();
    let actions: Vec<_> = coming.iter().map(|it| it.task.pending.action).collect();
    assert_eq!(actions, [PendingAction::Fetch, PendingAction::Delete]);
}

#[test]
fn fetches_that_no_change_names_can_be_forgotten() {
    let (_folder, mirror) = mirror();
    mirror
        .put_row(&Row { uri: "http://h/damaged".to_owned(), changed: Some(3), ..Row::default() })
        .unwrap();
    for uri in ["http://h/a", "http://h/b", "http://h/damaged"] {
        mirror.put_pending(&Pending { changed: Some(3), ..fetch(uri) }).unwrap();
    }
    mirror.put_coming(&fetch("http://h/b"), at(5)).unwrap();
    mirror.forget_unnamed().unwrap();
    let is_planned = |uri| mirror.task(uri).unwrap().is_some();
    assert_eq!(
        (is_planned("http://h/a"), is_planned("http://h/b"), is_planned("http://h/damaged")),
        (false, true, true)
    );
}

#[test]
fn deprecations_wait_until_they_are_reported() {
    let (folder, mirror) = mirror();
    for uri in ["http://h/b", "http://h/a", "http://h/b"] {
        mirror.put_deprecation(uri).unwrap();
    }
    drop(mirror);
    let mirror = Mirror::open(&folder.path().join("mirror.db")).unwrap();
    assert_eq!(mirror.deprecations(1).unwrap(), ["http://h/a"]);
    assert_eq!(mirror.deprecations(9).unwrap(), ["http://h/a", "http://h/b"]);
    mirror.forget_deprecations().unwrap();
    assert_eq!(mirror.deprecations(9).unwrap(), [""; 0]);
}

#[test]
fn a_deprecation_counts_unless_a_newer_change_ends_it() {
    let (_folder, mirror) = mirror();
    for uri in ["http://h/a", "http://h/b", "http://h/c"] {
        mirror.put_deprecated(uri, &["http://h/new".to_owned()], at(5)).unwrap();
    }
    mirror.put_coming(&fetch("http://h/a"), at(5)).unwrap();
    mirror.put_coming(&fetch("http://h/b"), at(6)).unwrap();
    mirror.put_deprecated("http://h/c", &[], at(7)).unwrap();
    mirror.put_deprecated("http://h/c", &["http://h/old".to_owned()], at(6)).unwrap();
    let mut found = Vec::new();
    mirror.deprecated_after("", 10, &mut found).unwrap();
    let of = |uri: &str, replaced_by: &[&str], time| Deprecated {
        uri: uri.to_owned(),
        replaced_by: replaced_by.iter().map(|&uri| uri.to_owned()).collect(),
        time: Some(time),
    };
    assert_eq!(found, [of("http://h/a", &["http://h/new"], 5), of("http://h/c", &[], 7)]);
}

#[test]
fn uncommitted_rows_are_not_kept() {
    let (folder, mirror) = mirror();
    mirror.begin().unwrap();
    mirror.put_row(&row("http://h/a")).unwrap();
    mirror.put_pending(&fetch("http://h/b")).unwrap();
    drop(mirror);
    let mirror = Mirror::open(&folder.path().join("mirror.db")).unwrap();
    assert_eq!(mirror.row("http://h/a").unwrap(), None);
    assert_eq!(mirror.pending_counts().unwrap(), PendingCounts::default());
}

#[test]
fn a_part_is_given_up_by_itself() {
    let (_folder, mirror) = mirror();
    mirror.begin().unwrap();
    mirror.set_meta("a", Some("1")).unwrap();
    mirror.begin_part().unwrap();
    mirror.set_meta("b", Some("1")).unwrap();
    mirror.give_up_part().unwrap();
    mirror.begin_part().unwrap();
    mirror.set_meta("c", Some("1")).unwrap();
    mirror.join_part().unwrap();
    let kept = |key| mirror.meta(key).unwrap().is_some();
    assert_eq!((kept("a"), kept("b"), kept("c")), (true, false, true));
    mirror.rollback().unwrap();
    assert_eq!(mirror.meta("a").unwrap(), None);
}

#[test]
fn rows_come_in_the_order_of_their_bytes() {
    let (_folder, mirror) = mirror();
    for uri in ["http://h/a/b", "http://h/a", "http://h/A", "http://h/a!", "http://h/é"] {
        mirror.put_row(&row(uri)).unwrap();
    }
    let mut rows = Vec::new();
    mirror.rows_after("", 3, &mut rows).unwrap();
    let last = rows.last().unwrap().uri.clone();
    mirror.rows_after(&last, 3, &mut rows).unwrap();
    let uris: Vec<_> = rows.iter().map(|row| row.uri.as_str()).collect();
    assert_eq!(uris, ["http://h/A", "http://h/a", "http://h/a!", "http://h/a/b", "http://h/é"]);
}

#[test]
fn a_plan_keeps_failures_and_forgets_what_is_done() {
    let (_folder, mirror) = mirror();
    for uri in ["http://h/a", "http://h/b", "http://h/c"] {
        mirror.put_pending(&fetch(uri)).unwrap();
    }
    mirror.put_pending(&Pending { action: PendingAction::Delete, ..fetch("http://h/d") }).unwrap();
    let mut tasks = Vec::new();
    mirror.fetches_after("", 10, &mut tasks).unwrap();
    assert_eq!(tasks.len(), 3);
    mirror.set_pending_state("http://h/b", PendingState::Failed, true).unwrap();
    mirror.forget_fetches_between("http://h/a", "http://h/c").unwrap();
    let counts = mirror.pending_counts().unwrap();
    assert_eq!((counts.fetches, counts.deletes, counts.held), (0, 1, 1));
    mirror.renew_pending().unwrap();
    tasks.clear();
    mirror.fetches_after("", 10, &mut tasks).unwrap();
    assert_eq!((tasks.len(), tasks[0].pending.attempts), (1, 1));
    // The same expectation keeps the count of attempts, another starts again.
    mirror.put_pending(&fetch("http://h/b")).unwrap();
    tasks.clear();
    mirror.fetches_after("", 10, &mut tasks).unwrap();
    assert_eq!(tasks[0].pending.attempts, 1);
    let changed = |time| Pending { changed: Some(time), ..fetch("http://h/b") };
    mirror.put_pending(&changed(1)).unwrap();
    mirror.set_pending_state("http://h/b", PendingState::Failed, true).unwrap();
    mirror.put_pending(&changed(1)).unwrap();
    assert!(mirror.is_failed("http://h/b").unwrap(), "the same change is for the next run");
    mirror.put_pending(&changed(2)).unwrap();
    assert!(!mirror.is_failed("http://h/b").unwrap());
    mirror.put_pending(&Pending { length: Some(3), ..fetch("http://h/b") }).unwrap();
    tasks.clear();
    mirror.fetches_after("", 10, &mut tasks).unwrap();
    assert_eq!(tasks[0].pending.attempts, 0);
}

#[test]
fn counts_are_never_those_of_another_plan() {
    let (_folder, mirror) = mirror();
    let fetches = || mirror.pending_counts().unwrap().fetches;
    mirror.put_pending(&fetch("http://h/a")).unwrap();
    assert_eq!((fetches(), fetches()), (1, 1));
    mirror.begin().unwrap();
    mirror.put_pending(&fetch("http://h/b")).unwrap();
    assert_eq!(fetches(), 2);
    mirror.rollback().unwrap();
    assert_eq!(fetches(), 1);
    mirror.begin().unwrap();
    mirror.begin_part().unwrap();
    mirror.set_pending_state("http://h/a", PendingState::Failed, true).unwrap();
    assert_eq!(fetches(), 0);
    mirror.give_up_part().unwrap();
    assert_eq!(fetches(), 1);
    mirror.forget_pending("http://h/a").unwrap();
    assert_eq!(fetches(), 0);
}

#[test]
fn rows_of_what_came_as_planned_are_made_out_of_the_plan() {
    let (_folder, mirror) = mirror();
    for uri in ["http://h/a", "http://h/b", "http://h/c", "http://h/d"] {
        let listed =
            Pending { modified: Some(5), length: Some(3), digests: vec![1, 9], ..fetch(uri) };
        mirror
            .put_pending(&Pending { changed: (uri == "http://h/b").then_some(8), ..listed })
            .unwrap();
    }
    mirror.set_pending_state("http://h/c", PendingState::Failed, true).unwrap();
    assert_eq!(mirror.put_rows_as_planned("http://h/a", "http://h/c", 7, true).unwrap(), 2);
    let mut rows = Vec::new();
    mirror.rows_after("", 10, &mut rows).unwrap();
    let planned = Row {
        file_mtime: 5_000,
        modified: Some(5),
        length: 3,
        digests: vec![1, 9],
        verified: true,
        epoch: 7,
        ..row("http://h/a")
    };
    let second = Row { uri: "http://h/b".to_owned(), changed: Some(8), ..planned.clone() };
    assert_eq!(rows, [planned, second]);
    // Without times, of the files and of what is listed.
    let listed = Pending { length: Some(3), digests: vec![1, 9], ..fetch("http://h/e") };
    mirror.put_pending(&listed).unwrap();
    assert_eq!(mirror.put_rows_as_planned("http://h/e", "http://h/e", 7, false).unwrap(), 1);
    let kept = mirror.row("http://h/e").unwrap().unwrap();
    assert_eq!((kept.modified, kept.file_mtime), (None, 0));
}

#[test]
fn one_item_is_found_with_what_is_kept() {
    let (_folder, mirror) = mirror();
    assert_eq!(mirror.task("http://h/a").unwrap(), None);
    mirror.put_row(&row("http://h/a")).unwrap();
    mirror.put_pending(&fetch("http://h/a")).unwrap();
    let task = mirror.task("http://h/a").unwrap().unwrap();
    assert_eq!((task.pending.uri.as_str(), task.row), ("http://h/a", Some(row("http://h/a"))));
}

#[test]
fn unseen_rows_become_deletions_once() {
    let (_folder, mirror) = mirror();
    for uri in ["http://h/a", "http://h/b", "http://h/c"] {
        mirror.put_row(&row(uri)).unwrap();
    }
    mirror.add_unseen("http://h/a").unwrap();
    mirror.add_unseen("http://h/b").unwrap();
    assert!(mirror.take_unseen("http://h/b").unwrap());
    assert!(!mirror.take_unseen("http://h/b").unwrap());
    assert_eq!(mirror.plan_unseen().unwrap(), 1);
    let mut tasks = Vec::new();
    mirror.deletes_after("", 10, &mut tasks).unwrap();
    assert_eq!(tasks.len(), 1);
    assert_eq!(
        (tasks[0].pending.uri.as_str(), tasks[0].row.as_ref().unwrap().length),
        ("http://h/a", 5)
    );
}

#[test]
fn excluded_resources_are_deleted_only_on_request() {
    let (_folder, mirror) = mirror();
    for uri in ["http://h/a", "http://h/b"] {
        mirror.put_row(&row(uri)).unwrap();
    }
    assert!(mirror.set_excluded("http://h/a", true).unwrap());
    assert!(!mirror.set_excluded("http://h/a", true).unwrap());
    assert!(mirror.set_excluded("http://h/gone", true).unwrap());
    assert!(mirror.has_excluded().unwrap());
    assert!(!mirror.is_excluded("http://h/gone").unwrap(), "what is not kept is forgotten");
    assert_eq!(mirror.plan_excluded(true).unwrap(), 1);
    assert_eq!(mirror.pending_counts().unwrap().deletes, 1);
    mirror.plan_excluded(false).unwrap();
    assert_eq!(mirror.pending_counts().unwrap().deletes, 0);
    mirror
        .put_coming(&Pending { action: PendingAction::Leave, ..fetch("http://h/b") }, at(2))
        .unwrap();
    mirror.put_coming(&fetch("http://h/b"), at(1)).unwrap();
    let mut tasks = Vec::new();
    mirror.coming_after("", 10, &mut tasks).unwrap();
    assert_eq!(tasks[0].task.pending.action, PendingAction::Leave);
}

#[test]
fn of_several_changes_the_newest_stays_and_of_equals_the_last() {
    let (_folder, mirror) = mirror();
    let change = |uri: &str, time, length| (Pending { length: Some(length), ..fetch(uri) }, time);
    for (pending, time) in [
        change("http://h/a", 2, 20),
        change("http://h/a", 1, 10),
        change("http://h/b", 1, 1),
        change("http://h/b", 1, 2),
    ] {
        mirror.put_coming(&pending, at(time)).unwrap();
    }
    let mut tasks = Vec::new();
    mirror.coming_after("", 10, &mut tasks).unwrap();
    let got: Vec<_> =
        tasks.iter().map(|coming| (coming.task.pending.length, coming.changed)).collect();
    assert_eq!(got, [(Some(20), Some((2, 2))), (Some(2), Some((1, 1)))]);
    mirror.clear_scratch().unwrap();
    tasks.clear();
    mirror.coming_after("", 10, &mut tasks).unwrap();
    assert!(tasks.is_empty());
}
