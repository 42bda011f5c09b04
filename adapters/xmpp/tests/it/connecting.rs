//! Connections that fail are errors, soon, and each names what is wrong.

use super::{account, program, session};
use abreast_testkit::tls::{Authority, Certificate};
use abreast_testkit::xmpp::{DOMAIN, Prosody, SERVICE};
use abreast_xmpp::{Account, ErrorKind, Session};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant};

/// Connects, which must fail within seconds.
async fn failure(account: &Account) -> abreast_xmpp::Error {
    let begun = Instant::now();
    let error = Session::connect(account, SERVICE).await.expect_err("it fails");
    assert!(begun.elapsed() < Duration::from_secs(8), "{error} after {:?}", begun.elapsed());
    error
}

#[tokio::test]
async fn wrong_passwords_are_errors_at_once() {
    let Some(program) = program("wrong_passwords_are_errors_at_once") else { return };
    let server = Prosody::start(&program);
    for name in ["source", "nobody"] {
        let mut wrong = Account::new(&format!("{name}@{DOMAIN}"), "guessed").unwrap();
        wrong.server = Some(server.address());
        wrong.ca_file = Some(server.ca_file());
        let error = failure(&wrong).await;
        assert_eq!(error.kind(), ErrorKind::Login, "{error}");
        assert!(
            error.to_string().contains(name) && !error.to_string().contains("guessed"),
            "{error}"
        );
    }
    session(&server, "source").await;
}

#[tokio::test]
async fn wrong_certificates_are_errors_at_once() {
    let Some(program) = program("wrong_certificates_are_errors_at_once") else { return };
    let authority = Authority::default();
    let other = Authority::default();
    let marked = Certificate::self_signed(DOMAIN, true, false);
    let itself = marked.pem().to_owned();
    for (certificate, trusted, expected) in [
        (marked, itself.as_str(), "CA:TRUE"),
        (authority.server(&[DOMAIN], false), other.pem(), "known here"),
        (authority.server(&["other.test"], false), authority.pem(), "not for xmpp.test"),
        (authority.server(&[DOMAIN], true), authority.pem(), "expired"),
        (Certificate::self_signed(DOMAIN, false, false), other.pem(), "no secure connection"),
    ] {
        let server = Prosody::start_with(&program, &certificate, trusted, "");
        let error = failure(&account(&server, "source")).await;
        assert_eq!(error.kind(), ErrorKind::Tls, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.help().is_some());
    }
}

#[tokio::test]
async fn servers_that_do_not_answer_are_errors_in_time() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut account = Account::new("source@xmpp.test", "hush").unwrap();
    account.connect_timeout = Duration::from_millis(300);
    account.server = Some(nobody.local_addr().unwrap().to_string());
    assert_eq!(failure(&account).await.kind(), ErrorKind::Timeout);
    drop(nobody);
    let error = failure(&account).await;
    assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
    assert!(error.is_transient());
}

/// A server that sends something, whatever it is sent.
fn sends(answer: &'static str, repeat: usize) -> Account {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut account = Account::new("source@xmpp.test", "hush").unwrap();
    account.server = Some(listener.local_addr().unwrap().to_string());
    account.connect_timeout = Duration::from_secs(5);
    account.max_received = 100_000;
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1_000]);
        let _ = stream.write_all(
            b"<?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' \
              version='1.0' id='1'>",
        );
        for _ in 0..repeat {
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
        // Open until the client closes.
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    account
}

#[tokio::test]
async fn hostile_servers_are_errors() {
    for (answer, repeat, expected) in [
        // Never an end: the limit of a stanza ends it.
        ("<stream:features><x xmlns='urn:x'>aaaaaaaaaaaaaaaaaaaaaaaaaaaa</x>", 1, "did not answer"),
        (
            "<stream:features><a xmlns='urn:x'/><a xmlns='urn:x'/><a xmlns='urn:x'/>",
            1,
            "did not answer",
        ),
        ("<a xmlns='urn:x'>", 100_000, "failed"),
        ("<!DOCTYPE a [<!ENTITY a 'a'>]>", 1, "failed"),
        ("\0\0\0\0", 1, "failed"),
        ("</stream:stream>", 1, "failed"),
        (
            "<stream:error><host-unknown xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error></stream:stream>",
            1,
            "host-unknown",
        ),
        // Bytes after the answer would be taken for protected ones.
        (
            "<stream:features><starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/></stream:features>\
             <proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/><stream:features/>",
            1,
            "more than its answer",
        ),
        (
            "<stream:features><starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/></stream:features>\
             <failure xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>",
            1,
            "refuses",
        ),
    ] {
        let mut account = sends(answer, repeat);
        if expected == "did not answer" {
            account.connect_timeout = Duration::from_millis(500);
        }
        let error = failure(&account).await;
        assert!(error.to_string().contains(expected), "{answer}: {error}");
    }
}

const HEADER: &str = "<?xml version='1.0'?><stream:stream xmlns='jabber:client' \
                      xmlns:stream='http://etherx.jabber.org/streams' version='1.0' id='1'>";

/// A server that lets everybody log in, or not: what it sends after each thing it is sent.
fn scripted(is_login: bool, last: &str) -> Account {
    let mut answers = Vec::new();
    if is_login {
        answers.push(format!(
            "{HEADER}<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>\
             <mechanism>PLAIN</mechanism></mechanisms></stream:features>"
        ));
        answers.push("<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>".to_owned());
        answers.push(format!(
            "{HEADER}<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>"
        ));
        answers.push(
            "<iq type='result' id='bind'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>\
             <jid>source@xmpp.test/a</jid></bind></iq>"
                .to_owned(),
        );
        answers.push(last.to_owned());
    } else {
        answers.push(format!("{HEADER}<stream:features>{last}"));
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut account = Account::new("source@xmpp.test", "hush").unwrap();
    account.server = Some(listener.local_addr().unwrap().to_string());
    account.connect_timeout = Duration::from_secs(5);
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        for (number, answer) in answers.into_iter().enumerate() {
            // Nobody asks for the last one.
            if number < 4 {
                let _ = stream.read(&mut [0; 1_000]);
            } else {
                std::thread::sleep(Duration::from_millis(200));
            }
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
        // Open until the client closes.
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    account
}

#[tokio::test]
async fn what_is_received_is_limited_before_and_after_the_login() {
    let nested = "<a xmlns='urn:x'>".repeat(200_000);
    let many = format!("<message>{}</message>", "<a/>".repeat(200_000));
    let long = format!("<message><body>{}</body></message>", "a".repeat(200_000));
    for (last, limit, expected) in [
        (&nested, 4 << 20, "deeper than 64"),
        (&many, 4 << 20, "more than 100000 elements"),
        (&long, 100_000, "larger than 100000 bytes"),
    ] {
        let mut account = scripted(false, last);
        account.max_received = limit;
        let error = failure(&account).await;
        assert!(error.to_string().contains(expected), "{error}");
        let mut account = scripted(true, last);
        account.max_received = limit;
        let (_session, mut events) = Session::connect(&account, SERVICE).await.unwrap();
        let error = tokio::time::timeout(Duration::from_secs(8), events.next()).await;
        let error = error.expect("it ends").unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn servers_without_tls_are_used_on_this_machine_only() {
    let account = sends(
        "<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/></stream:features>",
        1,
    );
    // On this machine the next step is to log in.
    assert_eq!(failure(&account).await.kind(), ErrorKind::Login);
}
