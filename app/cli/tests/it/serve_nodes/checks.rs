//! `abreast check` and `repair` of a database and a bucket whose nodes are running.

use super::PROGRAMS;
use super::nodes::{Nodes, send_signal};
use crate::world::abreast;
use abreast_testkit::postgres::Postgres;
use abreast_testkit::s3::settings;
use abreast_testkit::{eventually, provided, run};

/// Exit codes: no damage, damage, and a server out of reach.
const WHOLE: i32 = 0;
const DAMAGED: i32 = 1;
const AWAY: i32 = 5;

/// The text of a command that ended with this code.
fn checked(nodes: &Nodes, command: &str, args: &[&str], code: i32) -> String {
    let mut program = abreast();
    for (name, value) in settings(nodes.bucket.address()) {
        program.env(name.to_uppercase(), value);
    }
    let output = run(program.arg(command).args(args));
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {text}{errors}");
    text + &errors
}

#[test]
fn damage_of_a_shared_store_is_found_and_repaired() {
    let name = "serve_nodes::checks::damage_of_a_shared_store_is_found_and_repaired";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let temporary = tempfile::tempdir().unwrap();
    let server = Postgres::start(&programs);
    let Some(nodes) = Nodes::start(name, temporary.path(), &server) else { return };
    for number in 0..30 {
        std::fs::write(nodes.papers().join(format!("{number}")), format!("paper {number}"))
            .unwrap();
    }
    let stored = "SELECT encode(id, 'hex') FROM abreast.contents WHERE needed > 0 ORDER BY id";
    let ids =
        || -> Vec<String> { server.sql("serve", stored).lines().map(str::to_owned).collect() };
    eventually("the files are recorded", || ids().len() == 30);
    let ids = ids();

    let config = nodes.place.join("0.toml").display().to_string();
    let text = checked(&nodes, "check", &["--config", &config, "--read-data"], WHOLE);
    for part in ["set papers: 30 resources", "kept contents: 30, 30 read", "no damage found"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The bucket is that of the nodes.
    let text = checked(&nodes, "check", &[&nodes.database], WHOLE);
    assert!(text.contains("kept contents: 30, 0 read"), "{text}");

    let object = |id: &str| format!("/bucket/abreast/contents/{}/{id}", &id[..2]);
    nodes.bucket.ask("DELETE", &object(&ids[0]), "");
    nodes.bucket.ask("PUT", &object(&ids[1]), "of another length");
    let length = format!("SELECT length FROM abreast.contents WHERE id = '\\x{}'", ids[2]);
    let length = server.sql("serve", &length).trim().parse().unwrap();
    nodes.bucket.ask("PUT", &object(&ids[2]), &"x".repeat(length));
    server.sql(
        "serve",
        "UPDATE abreast.resources SET digests = '\\x01' FROM abreast.sets \
         WHERE sets.id = set_id AND slug = 'papers' AND key LIKE '%/7'",
    );
    server.sql("serve", "DELETE FROM abreast.changes WHERE position = 9");
    let text = checked(&nodes, "check", &[&nodes.database], DAMAGED);
    for part in [
        format!("error [contents.missing] s3://bucket/abreast: {}", ids[0]),
        format!("error [contents.length] s3://bucket/abreast: {}", ids[1]),
        "set papers\n  after position 8 comes 10".to_owned(),
        "error [table.row]".to_owned(),
        "help: run `abreast repair --config FILE --from DIR`".to_owned(),
        "help: stop all nodes and restore the database".to_owned(),
    ] {
        assert!(text.contains(&part), "{part}: {text}");
    }
    assert!(!text.contains(&ids[2]), "its bytes were not read: {text}");
    let text = checked(&nodes, "check", &["--config", &config, "--read-data", "--json"], DAMAGED);
    let findings = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    let digests = findings.filter(|finding: &serde_json::Value| {
        finding["code"] == "contents.digest"
            && finding["location"].as_str().unwrap().ends_with(&ids[2])
    });
    assert_eq!(digests.count(), 1, "{text}");

    // The files of the folder have the bytes; nothing is guessed for rows.
    let repair = |args: &[&str], code| {
        let args: Vec<&str> =
            [nodes.database.as_str(), "--read-data"].iter().chain(args).copied().collect();
        checked(&nodes, "repair", &args, code)
    };
    let papers = nodes.papers().display().to_string();
    let text = repair(&[], DAMAGED);
    assert!(text.contains("3 contents of `s3://bucket/abreast` are lost"), "{text}");
    let planned = repair(&["--from", &papers, "--dry-run"], WHOLE);
    assert_eq!(
        repair(&["--from", &nodes.place.join("people").display().to_string()], DAMAGED),
        text
    );
    let step = format!("put 3 lost contents into the bucket again, from {papers}\n");
    assert_eq!((planned, repair(&["--from", &papers], WHOLE)), (step.clone(), step));
    assert_eq!(repair(&[], WHOLE), "nothing to repair\n");
    let text = checked(&nodes, "check", &[&nodes.database, "--read-data"], DAMAGED);
    assert!(!text.contains("contents."), "{text}");

    send_signal(nodes.bucket.id(), "-KILL");
    let text = checked(&nodes, "check", &[&nodes.database], AWAY);
    assert!(text.contains("not checked to the end") || text.contains("damage found"), "{text}");
}
