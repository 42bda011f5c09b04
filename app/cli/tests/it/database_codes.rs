//! Exit codes of commands whose store is in a database: the same failure has the same code in each.

use crate::database_node::Node;
use crate::world::abreast;
use abreast_testkit::http::unused_address;
use abreast_testkit::postgres::Postgres;
use abreast_testkit::tls::Certificate;
use abreast_testkit::{provided, run};
use std::net::TcpListener;
use std::path::Path;

const PROGRAMS: &str = "ABREAST_TEST_POSTGRES";
const COMMANDS: [&[&str]; 3] =
    [&["hub", "topics"], &["token", "list"], &["hub", "--listen", "127.0.0.1:0", "--scratch"]];

/// Runs each command against a database, and checks its exit code and its message.
fn all_end_with(scratch: &Path, url: &str, code: i32, message: &str) {
    for words in COMMANDS {
        let mut command = abreast();
        command.args(words);
        if words.contains(&"--scratch") {
            command.arg(scratch);
        }
        let answer = run(command.args(["--data", url]));
        let text = String::from_utf8_lossy(&answer.stderr).into_owned();
        assert_eq!(answer.status.code(), Some(code), "{words:?} {url}: {text}");
        assert!(text.contains(message), "{words:?} {url}: {text}");
        assert!(!text.contains("hidden-word"), "{words:?}: {text}");
    }
}

#[test]
fn a_database_out_of_reach_is_code_5() {
    let scratch = tempfile::tempdir().unwrap();
    let closed = format!("postgres://abreast:hidden-word@{}/abreast", unused_address());
    all_end_with(scratch.path(), &closed, 5, "help: try again later");
    // Connections are accepted, and never answered.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("postgres://abreast@{}/abreast", silent.local_addr().unwrap());
    all_end_with(scratch.path(), &silent, 5, "did not answer a new connection in time");
    all_end_with(scratch.path(), "postgres://abreast@nobody.invalid/a", 5, "error connecting");
    all_end_with(scratch.path(), "postgres://a@127.0.0.1/a?colour=red", 2, "colour");
}

#[test]
fn failures_of_a_database_have_the_codes_of_their_causes() {
    let name = "database_codes::failures_of_a_database_have_the_codes_of_their_causes";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let scratch = tempfile::tempdir().unwrap();
    let server = Postgres::start(&programs);
    let end_with = |url: &str, code, message| all_end_with(scratch.path(), url, code, message);
    server.create("hub");
    server.require_password("guarded", "the-password");
    let address = format!("127.0.0.1:{}", server.port());
    let of = |login: &str, rest: &str| format!("postgres://{login}@{address}/{rest}");
    end_with(&of("guarded:hidden-word", "hub"), 12, "help: check the user in the URL");
    end_with(&of("guarded", "hub"), 12, "password missing");
    end_with(&of("nobody", "hub"), 12, "help: check the user in the URL");
    end_with(&of("guarded:the-password", "hub"), 12, "help: make the user the owner");
    end_with(&of("abreast", "other"), 2, "help: create it");
    server.sql("postgres", "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    end_with(&of("abreast", "latin"), 2, "encoding LATIN1");
    end_with(&of("abreast", "hub?sslmode=require"), 6, "does not support TLS");
    end_with(&of("abreast", "hub?target_session_attrs=read-only"), 5, "try again later");
    // A certificate that nobody knows, also without `sslmode=require`.
    let certificate = Certificate::self_signed("localhost", true, false);
    server.offer_tls(certificate.pem(), &certificate.key_pem());
    end_with(&of("abreast", "hub?sslmode=require"), 6, "invalid peer certificate");
    end_with(&of("abreast", "hub"), 6, "invalid peer certificate");
    server.sql("hub", "DROP SCHEMA IF EXISTS abreast CASCADE");
    server.sql("postgres", "ALTER DATABASE hub SET default_transaction_read_only = on");
    end_with(&of("abreast", "hub?sslmode=disable"), 5, "read-only");
}

#[test]
fn config_check_finds_faults_of_a_url_and_shows_the_database() {
    let place = tempfile::tempdir().unwrap();
    let check = |url: &str| {
        let config = Node::configure(place.path(), "a", url, "");
        let answer = run(abreast().args(["config", "check"]).arg(config));
        let texts = [answer.stdout, answer.stderr].map(|text| String::from_utf8(text).unwrap());
        (answer.status.code(), texts.concat())
    };
    let (code, text) =
        check("postgres://abreast:hidden-word@db.example.org/abreast?sslmode=require");
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("a hub, the store in postgres://"), "{text}");
    assert!(!text.contains("hidden-word"), "{text}");
    for (parameter, expected) in [
        ("sslmod=require", "unknown parameter `sslmod` (help: did you mean `sslmode`?)"),
        (
            "sslmode=verify-full",
            "the value of the parameter `sslmode` is wrong (help: use `require`",
        ),
    ] {
        let (code, text) = check(&format!("postgres://a:hidden-word@db.example.org/a?{parameter}"));
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains("a.toml:1: `data`: ") && text.contains(expected), "{text}");
        assert!(!text.contains("hidden-word"), "{text}");
    }
}
