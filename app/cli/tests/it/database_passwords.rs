//! The password of a database: it may change while nodes run, and commands take it from where `psql`
//! does.

use crate::database_node::Node;
use crate::world::abreast;
use abreast_testkit::postgres::Postgres;
use abreast_testkit::{eventually, provided, run};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const PROGRAMS: &str = "ABREAST_TEST_POSTGRES";
const DISCONNECT: &str =
    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = 'guarded'";
const CONNECTIONS: &str =
    "SELECT count(*) > 0 FROM pg_stat_activity WHERE usename = 'guarded' AND datname = 'hub'";

/// A database that needs a password, and its URL without one.
fn guarded(server: &Postgres) -> String {
    server.create("hub");
    server.require_password("guarded", "first");
    server.sql("postgres", "ALTER DATABASE hub OWNER TO guarded");
    format!("postgres://guarded@127.0.0.1:{}/hub", server.port())
}

fn write(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn a_password_may_change_while_a_node_runs() {
    let name = "database_passwords::a_password_may_change_while_a_node_runs";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let place = tempfile::tempdir().unwrap();
    let server = Postgres::start(&programs);
    let url = guarded(&server);
    let (file, runs) = (place.path().join("password"), place.path().join("runs"));
    write(&file, "first\n");
    let by_file = format!("lease = \"3s\"\npassword_file = \"{}\"", file.display());
    let command = format!("echo >> {}; cat {}", runs.display(), file.display());
    let by_command = format!("lease = \"3s\"\npassword_command = \"{command}\"");
    let nodes = [("a", by_file), ("b", by_command)]
        .map(|(name, database)| Node::start(place.path(), name, &url, &database));
    let all_reconnect = || {
        server.sql("postgres", DISCONNECT);
        eventually("the nodes connect", || server.sql("postgres", CONNECTIONS) == "t");
        eventually("all are ready", || nodes.iter().all(|node| node.readiness().0 == 200));
    };
    write(&file, "second\n");
    server.sql("postgres", "ALTER USER guarded PASSWORD 'second'");
    all_reconnect();
    // A file that is not there for a while changes nothing.
    fs::remove_file(&file).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    for _ in 0..3 {
        all_reconnect();
    }
    let log = nodes[0].log();
    let warnings = log.matches("the password of the database cannot be read").count();
    assert_eq!(warnings, 1, "{log}");
    assert!(log.contains("the last one is used"), "{log}");
    // The command runs at most once in 10 s.
    let runs = fs::read_to_string(runs).unwrap().lines().count();
    assert!((2..10).contains(&runs), "{runs}");
}

#[test]
fn commands_find_the_password_of_a_url_as_psql_does() {
    let name = "database_passwords::commands_find_the_password_of_a_url_as_psql_does";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let place = tempfile::tempdir().unwrap();
    let server = Postgres::start(&programs);
    let url = guarded(&server);
    let list = |variables: &[(&str, &str)]| {
        let mut command = abreast();
        command.args(["token", "list", "--data", &url]).env("HOME", place.path());
        command.env_remove("PGPASSWORD").env_remove("PGPASSFILE");
        let answer = run(command.envs(variables.iter().copied()));
        (answer.status.code(), String::from_utf8_lossy(&answer.stderr).into_owned())
    };
    let (code, text) = list(&[]);
    assert!(code == Some(12) && text.contains("password missing"), "{text}");
    assert_eq!(list(&[("PGPASSWORD", "first")]).0, Some(0));
    assert_eq!(list(&[("PGPASSWORD", "wrong")]).0, Some(12));
    let file = place.path().join("passwords");
    write(&file, &format!("127.0.0.1:{}:hub:guarded:first\n", server.port()));
    let named = [("PGPASSFILE", file.to_str().unwrap())];
    assert_eq!(list(&named), (Some(0), String::new()));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let (code, text) = list(&named);
    assert!(code == Some(12) && text.contains("chmod 600"), "{text}");
    assert_eq!(list(&[("PGPASSFILE", "/nowhere")]).0, Some(2));
    write(&place.path().join(".pgpass"), "*:*:*:*:first\n");
    assert_eq!(list(&[]).0, Some(0));
}
