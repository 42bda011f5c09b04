//! XMPP, with a real server: nodes are printed and followed, and other programs read and write them.

use crate::world::{Source, abreast, stop};
use abreast_testkit::tls::Authority;
use abreast_testkit::xmpp::scripted::{Scripted, accept, error, result};
use abreast_testkit::xmpp::{DOMAIN, PASSWORD, Prosody, SERVICE};
use abreast_testkit::{Running, eventually, eventually_some, provided, run};
use abreast_webtypes::is_control;
use abreast_xmpp::{Account, Node, Session};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SITEMAP: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";
const PEER: &str = include_str!("xmpp/peer.py");

fn program(test: &str) -> Option<PathBuf> {
    provided(test, "ABREAST_TEST_PROSODY")
}

fn node() -> Node {
    Node::new(SERVICE, "papers").unwrap()
}

fn change_set(name: &str) -> String {
    format!(
        "<urlset xmlns=\"{SITEMAP}\" xmlns:rs=\"http://www.openarchives.org/rs/terms/\" rs:type=\"changeset\"><url>\
         <loc>http://example.org/{name}</loc><lastmod rs:type=\"created\">2026-01-01T00:00:00Z</lastmod></url></urlset>"
    )
}

/// Publishes items as the account that may.
fn publish(server: &Prosody, items: &[(&str, String)]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut account = Account::new(&format!("source@{DOMAIN}"), PASSWORD).unwrap();
        account.server = Some(server.address());
        account.ca_file = Some(server.ca_file());
        account.kept_items = 100;
        let (session, _events) = Session::connect(&account, SERVICE).await.unwrap();
        session.create(&node(), "Papers", SITEMAP).await.unwrap();
        for (id, payload) in items {
            session.publish(&node(), id, payload.as_bytes()).await.unwrap();
        }
    });
}

/// A file with a password.
fn password_file(user: &str, password: &str, place: &Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let file = place.join(format!("password-{user}-{}", password.len()));
    fs::write(&file, format!("{password}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    file
}

/// Options of an account, with a password in a file.
pub(crate) fn account_of(
    server: &Prosody,
    user: &str,
    password: &str,
    place: &Path,
) -> Vec<String> {
    let text = |path: &Path| path.display().to_string();
    vec![
        "--xmpp-jid".to_owned(),
        format!("{user}@{DOMAIN}"),
        "--xmpp-password-file".to_owned(),
        text(&password_file(user, password, place)),
        "--xmpp-server".to_owned(),
        server.address(),
        "--ca-file".to_owned(),
        text(&server.ca_file()),
    ]
}

/// `abreast subscribe` of the node.
fn subscribe(server: &Prosody, place: &Path, more: &[&str]) -> Command {
    let mut command = abreast();
    command
        .arg("subscribe")
        .arg(node().to_string())
        .args(account_of(server, "reader", PASSWORD, place));
    command.args(more);
    command
}

fn lines(output: &[u8]) -> Vec<Value> {
    String::from_utf8_lossy(output)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn subscribe_prints_what_a_node_has_and_gets() {
    let Some(program) = program("subscribe_prints_what_a_node_has_and_gets") else { return };
    let mut server = Prosody::start(&program);
    let place = TempDir::new().unwrap();
    let sets = ["a", "b", "c"].map(change_set);
    publish(&server, &[("9", sets[0].clone()), ("10", sets[1].clone()), ("11", sets[2].clone())]);
    // What it has, the oldest first, whatever the service's order is.
    let output = run(&mut subscribe(&server, place.path(), &["--from", "9", "--limit", "2"]));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = lines(&output.stdout);
    let offsets: Vec<_> = printed.iter().map(|line| line["offset"].as_u64().unwrap()).collect();
    assert_eq!(offsets, [10, 11]);
    assert_eq!(printed[0]["topic"], "xmpp:pubsub.xmpp.test?;node=papers");
    assert_eq!(printed[0]["changes"][0]["uri"], "http://example.org/b", "{}", printed[0]);
    assert_eq!(printed[0]["changes"][0]["change"], "created");
    // All that it keeps, also more than a service sends at once.
    let more: Vec<(String, String)> =
        (1..=20).map(|id| (format!("{id}"), change_set(&format!("n{id}")))).collect();
    let more: Vec<(&str, String)> =
        more.iter().map(|(id, set)| (id.as_str(), set.clone())).collect();
    publish(&server, &more);
    let output = run(&mut subscribe(&server, place.path(), &["--from", "0", "--limit", "20"]));
    let offsets: Vec<_> =
        lines(&output.stdout).iter().map(|line| line["offset"].as_u64().unwrap()).collect();
    assert_eq!(offsets, (1..=20).collect::<Vec<_>>());
    // What it gets, also over a restart of the server.
    let mut child = Running(
        subscribe(&server, place.path(), &["--from", "20"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let mut out = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let mut next = || {
        let line: Value = serde_json::from_str(&out.next().unwrap().unwrap()).unwrap();
        line["offset"].to_string()
    };
    publish(&server, &[("21", change_set("d"))]);
    assert_eq!(next(), "21");
    publish(&server, &[("name", change_set("x"))]);
    assert_eq!(next(), "\"name\"");
    server.restart();
    publish(&server, &[("22", change_set("e")), ("23", change_set("f"))]);
    // Nothing again, with a number or without.
    assert_eq!([next(), next()], ["22", "23"]);
    // Nor is anything lost whose number is lower, as after the Source was restored.
    server.restart();
    publish(&server, &[("3", change_set("g")), ("15", change_set("h"))]);
    assert_eq!([next(), next()], ["3", "15"]);
    publish(&server, &[("7", change_set("i"))]);
    assert_eq!(next(), "7");
    assert_eq!(stop(child), Some(130));
}

#[test]
fn accounts_that_are_refused_end_the_command_at_once() {
    let Some(program) = program("accounts_that_are_refused_end_the_command_at_once") else {
        return;
    };
    let server = Prosody::start(&program);
    publish(&server, &[]);
    let place = TempDir::new().unwrap();
    let other = place.path().join("other.pem");
    fs::write(&other, Authority::default().pem()).unwrap();
    let unknown = place.path().join("no.pem").display().to_string();
    let right = account_of(&server, "reader", PASSWORD, place.path());
    let mut untrusted = right.clone();
    *untrusted.last_mut().unwrap() = other.display().to_string();
    let mut missing = right.clone();
    *missing.last_mut().unwrap() = unknown;
    for (address, account, code, parts) in [
        (
            node().to_string(),
            account_of(&server, "reader", "guessed", place.path()),
            12,
            ["does not accept", "help:"],
        ),
        (node().to_string(), untrusted, 6, ["no secure connection", "ca_file"]),
        (node().to_string(), missing, 2, ["cannot read certificates", "no.pem"]),
        (
            "xmpp:pubsub.xmpp.test?;node=other".to_owned(),
            right.clone(),
            4,
            ["item-not-found", "other"],
        ),
        (
            "xmpp:xmpp.test?;node=other".to_owned(),
            right.clone(),
            4,
            ["xmpp.test does not publish", "help: name the service"],
        ),
        ("xmpp:pubsub.xmpp.test".to_owned(), right, 2, ["not the address of a node", "help:"]),
        (node().to_string(), Vec::new(), 2, ["--xmpp-jid", "help:"]),
    ] {
        let begun = Instant::now();
        let output = run(abreast().args(["subscribe", &address]).args(&account));
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{account:?}: {error}");
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(12), "{error}");
        assert!(!error.contains("guessed") && !error.contains(PASSWORD), "{error}");
    }
}

/// What a service states makes no line of a message, and no line of JSON.
#[test]
fn hostile_services_make_no_line_of_their_own() {
    const HOSTILE: &str = "no\u{9b}31m&#10;  help: FORGED&#13;abreast: FORGED";
    let place = TempDir::new().unwrap();
    let password = password_file("reader", PASSWORD, place.path());
    let subscribe = |server: &Scripted| {
        let mut command = abreast();
        command.args(["subscribe", "xmpp:pubsub.xmpp.test?;node=n", "--from", "0", "--limit", "1"]);
        command.args([
            "--max-time",
            "4s",
            "--xmpp-jid",
            "reader@xmpp.test",
            "--xmpp-server",
            &server.address(),
        ]);
        let output = run(command.arg("--xmpp-password-file").arg(&password));
        for bytes in [&output.stdout, &output.stderr] {
            let text = std::str::from_utf8(bytes).unwrap();
            assert!(!text.contains(|c| is_control(c) && c != '\n'), "{text:?}");
            let begins = |line: &str| {
                line.starts_with("abreast: FORGED") || line.trim_start().starts_with("help: FORGED")
            };
            assert!(!text.lines().any(begins), "{text:?}");
        }
        output
    };
    let refusing = Scripted::start(|stanza| {
        if !stanza.contains("<subscribe") {
            return accept(stanza);
        }
        let text = format!("<text xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'>{HOSTILE}</text>");
        error(stanza, "auth", "forbidden").replace("</error>", &format!("{text}</error>"))
    });
    let output = subscribe(&refusing);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(12), "{text}");
    assert!(text.contains("forbidden") && text.contains("FORGED"), "it is shown: {text}");
    let ending = Scripted::start(|stanza| {
        if !stanza.contains("<subscribe") {
            return accept(stanza);
        }
        format!(
            "<stream:error><conflict xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>\
             <text xmlns='urn:ietf:params:xml:ns:xmpp-streams'>{HOSTILE}</text></stream:error></stream:stream>"
        )
    });
    let output = subscribe(&ending);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("conflict") && text.contains("FORGED"), "it is shown: {text}");
    let filled = Scripted::start(|stanza| {
        if stanza.contains("disco#items") {
            let inside = format!(
                "<query xmlns='http://jabber.org/protocol/disco#items'><item jid='{SERVICE}' name='{HOSTILE}'/></query>"
            );
            return result(stanza, &inside);
        }
        if !stanza.contains("<items") {
            return accept(stanza);
        }
        let payload = change_set(HOSTILE).replace("created", HOSTILE);
        let item = format!("<item id='{HOSTILE}'>{payload}</item>");
        let inside = format!(
            "<pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='n'>{item}</items></pubsub>"
        );
        result(stanza, &inside)
    });
    let output = subscribe(&filled);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    let printed = lines(&output.stdout);
    assert_eq!(printed.len(), 1);
    assert!(printed[0]["offset"].as_str().unwrap().contains("help: FORGED"), "{}", printed[0]);
}

/// Passwords are not logged at any level.
#[test]
fn passwords_are_in_no_log() {
    let Some(program) = program("passwords_are_in_no_log") else { return };
    let server = Prosody::start(&program);
    publish(&server, &[("1", change_set("a"))]);
    let place = TempDir::new().unwrap();
    let mut command = subscribe(&server, place.path(), &["--from", "0", "--limit", "1"]);
    let output = run(command.env("ABREAST_LOG", "trace"));
    assert_eq!(output.status.code(), Some(0));
    let log = String::from_utf8_lossy(&output.stderr);
    // In base64 it would be part of the response to a challenge, or of PLAIN.
    assert!(!log.contains(PASSWORD) && !log.contains("urn:ietf:params:xml:ns:xmpp-sasl"), "{log}");
}

/// slixmpp, another implementation, with stanzas as they are.
struct Peer(Running);

impl Peer {
    fn start(server: &Prosody, python: &Path, place: &Path, user: &str, act: &str) -> Self {
        let script = place.join("peer.py");
        fs::write(&script, PEER).unwrap();
        let port = server.address().rsplit(':').next().unwrap().to_owned();
        let mut command = Command::new(python);
        command.arg(&script).args([act, &format!("{user}@{DOMAIN}"), PASSWORD, &port]);
        command.arg(server.ca_file()).args([SERVICE, "papers"]);
        Self(Running(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()))
    }

    fn lines(&mut self) -> impl Iterator<Item = String> + use<> {
        BufReader::new(self.0.0.stdout.take().unwrap()).lines().map(Result::unwrap)
    }
}

#[test]
fn slixmpp_reads_what_we_publish() {
    let test = "slixmpp_reads_what_we_publish";
    let (Some(program), Some(python)) = (program(test), provided(test, "ABREAST_TEST_PYTHON"))
    else {
        return;
    };
    let server = Prosody::start(&program);
    let place = TempDir::new().unwrap();
    publish(&server, &[]);
    let mut peer = Peer::start(&server, &python, place.path(), "reader", "read");
    let mut lines = peer.lines();
    assert_eq!(lines.next().as_deref(), Some("ready"));
    publish(&server, &[("7", change_set("a"))]);
    let item = lines.next().unwrap();
    for part in [
        "7 {http://www.sitemaps.org/schemas/sitemap/0.9}urlset",
        "changeset",
        "http://example.org/a",
        "created",
    ] {
        assert!(item.contains(part), "{part} in {item}");
    }
}

#[test]
fn what_slixmpp_publishes_is_printed() {
    let test = "what_slixmpp_publishes_is_printed";
    let (Some(program), Some(python)) = (program(test), provided(test, "ABREAST_TEST_PYTHON"))
    else {
        return;
    };
    let server = Prosody::start(&program);
    let place = TempDir::new().unwrap();
    publish(&server, &[("1", change_set("a"))]);
    let mut child = Running(
        subscribe(&server, place.path(), &["--from", "0", "--limit", "2"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut out = BufReader::new(child.0.stdout.take().unwrap()).lines();
    assert!(out.next().unwrap().unwrap().contains("example.org/a"));
    let mut peer = Peer::start(&server, &python, place.path(), "source", "write");
    let mut input = peer.0.0.stdin.take().unwrap();
    assert_eq!(peer.lines().next().as_deref(), Some("ready"));
    writeln!(input, "2 {}", change_set("b")).unwrap();
    let line: Value = serde_json::from_str(&out.next().unwrap().unwrap()).unwrap();
    assert_eq!(line["offset"], 2);
    assert!(line.to_string().contains("http://example.org/b"), "{line}");
    eventually("the command ends", || child.0.try_wait().unwrap().is_some());
}

/// A Source that publishes a folder to the node.
pub(crate) fn publishing(server: &Prosody, place: &Path, node: &str) -> String {
    let config = place.join("abreast.toml");
    let text = format!(
        "data = \"{data}\"\n{account}[[set]]\nname = \"papers\"\nfolder = \"{folder}\"\ndebounce = \"30ms\"\nxmpp_node = \"{node}\"\n",
        data = place.join("data").display(),
        account = publishing_account(server, place),
        folder = place.join("folder").display(),
    );
    fs::create_dir_all(place.join("folder")).unwrap();
    fs::write(&config, text).unwrap();
    config.display().to_string()
}

/// The table of the account that publishes.
pub(crate) fn publishing_account(server: &Prosody, place: &Path) -> String {
    let account = account_of(server, "source", PASSWORD, place);
    format!(
        "[xmpp]\njid = \"source@{DOMAIN}\"\npassword_file = \"{password}\"\nserver = \"{server}\"\nca_file = \"{ca}\"\n\
         kept_items = 100\n",
        password = account[3],
        server = server.address(),
        ca = server.ca_file().display(),
    )
}

/// A file that is there at once, so that it is one change.
fn put(folder: &Path, name: &str) {
    fs::write(folder.join(".new"), name).unwrap();
    fs::rename(folder.join(".new"), folder.join(name)).unwrap();
}

#[test]
fn each_change_of_a_source_is_in_the_node_once() {
    let Some(program) = program("each_change_of_a_source_is_in_the_node_once") else { return };
    let mut server = Prosody::start(&program);
    let place = TempDir::new().unwrap();
    let config = publishing(&server, place.path(), "papers");
    let folder = place.path().join("folder");
    let mut source = Source::start_config(&config);
    let port = source.port();
    let sitemap = String::from_utf8(source.get("/papers/v0.1/sitemap.xml").unwrap()).unwrap();
    assert!(
        sitemap.contains("href=\"xmpp:pubsub.xmpp.test\"")
            && sitemap.contains("rs:pubsubnode=\"papers\""),
        "{sitemap}"
    );
    put(&folder, "first");
    let mut child = eventually_some("the node is there", || {
        let mut child = Running(
            subscribe(&server, place.path(), &["--from", "0"])
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        );
        std::thread::sleep(Duration::from_millis(500));
        child.0.try_wait().unwrap().is_none().then_some(child)
    });
    let mut out = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let mut items: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let mut names = Vec::new();
    // Items may come again after a restart of the Source, as they were; new ones come in order.
    let mut read_to = |wanted: &str, names: &mut Vec<String>| {
        while names.last().is_none_or(|name| name != wanted) {
            let line: Value = serde_json::from_str(&out.next().unwrap().unwrap()).unwrap();
            let offset = line["offset"].as_u64().unwrap();
            let changes = line["changes"].as_array().unwrap().iter();
            let of: Vec<String> = changes
                .map(|change| {
                    change["uri"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()
                })
                .collect();
            if let Some(before) = items.get(&offset) {
                assert_eq!(*before, of, "{offset} came again as another one");
                continue;
            }
            let last = items.last_key_value().map_or(0, |(last, _)| *last);
            assert!(offset > last, "{offset} after {last}");
            assert_eq!(offset - last, of.len() as u64, "each change is in one item");
            names.extend(of.clone());
            items.insert(offset, of);
        }
    };
    read_to("first", &mut names);
    let mut expected = vec!["first".to_owned()];
    for round in 0..3 {
        for number in 0..20 {
            let name = format!("r{round}-{number:02}");
            put(&folder, &name);
            expected.push(name);
        }
        match round {
            0 => source.kill(),
            1 => {
                server.kill();
                assert_eq!(source.stop(), Some(0));
                server.restart();
            }
            _ => drop(source.stop()),
        }
        source = Source::start_config_at(&config, port);
    }
    put(&folder, "last");
    read_to("last", &mut names);
    expected.push("last".to_owned());
    // Files that are put while the Source starts are found by its scan or its watch, in any order.
    names.sort_unstable();
    expected.sort_unstable();
    assert_eq!(names, expected);
    drop(child);
    // Another node: the first one gets no more.
    publishing(&server, place.path(), "other");
    assert_eq!(source.stop(), Some(0));
    let source = Source::start_config_at(&config, port);
    put(&folder, "elsewhere");
    let other = "xmpp:pubsub.xmpp.test?;node=other";
    let account = account_of(&server, "reader", PASSWORD, place.path());
    eventually("it is in the other node", || {
        let mut command = abreast();
        command.args(["subscribe", other, "--from", "0", "--limit", "1", "--max-time", "1s"]);
        let output = run(command.args(&account));
        String::from_utf8_lossy(&output.stdout).contains("/papers/r/elsewhere")
    });
    assert_eq!(source.stop(), Some(0));
}

#[test]
fn copies_follow_a_node_over_restarts_of_each_side() {
    let Some(program) = program("copies_follow_a_node_over_restarts_of_each_side") else { return };
    let mut server = Prosody::start(&program);
    let place = TempDir::new().unwrap();
    let config = publishing(&server, place.path(), "papers");
    let (folder, copy) = (place.path().join("folder"), place.path().join("copy"));
    put(&folder, "before");
    let mut source = Source::start_config(&config);
    let port = source.port();
    publish(&server, &[]);
    let follow = || {
        let mut command = abreast();
        command.arg("sync").arg(format!("{}papers/v0.1/sitemap.xml", source_url(port))).arg(&copy);
        // Without what is pushed, a change would take an hour.
        command.args(["--follow", "--interval", "1h", "--json"]);
        command.args(account_of(&server, "reader", PASSWORD, place.path()));
        Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    let mut following = follow();
    let arrives = |name: &str| {
        eventually(&format!("{name} arrives"), || {
            fs::read(copy.join(name)).is_ok_and(|text| text == name.as_bytes())
        });
    };
    arrives("before");
    put(&folder, "one");
    arrives("one");
    // The Source is killed.
    source.kill();
    put(&folder, "two");
    source = Source::start_config_at(&config, port);
    arrives("two");
    // The copy is killed.
    drop(following);
    put(&folder, "three");
    following = follow();
    arrives("three");
    put(&folder, "four");
    arrives("four");
    drop(following);
    // The XMPP server is killed, with its events.
    server.kill();
    put(&folder, "five");
    server.restart();
    following = {
        let mut command = abreast();
        command.arg("sync").arg(format!("{}papers/v0.1/sitemap.xml", source_url(port))).arg(&copy);
        command.args(["--follow", "--interval", "1h", "--json", "--xmpp", &node().to_string()]);
        command.args(account_of(&server, "reader", PASSWORD, place.path()));
        Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    arrives("five");
    put(&folder, "six");
    arrives("six");
    drop(following);
    assert_eq!(source.stop(), Some(0));
}

/// A copy that follows the node, and polls after this time only.
fn following(server: &Prosody, place: &Path, port: u16, interval: &str, address: &str) -> Running {
    let mut command = abreast();
    command.arg("sync").arg(format!("{}papers/v0.1/sitemap.xml", source_url(port)));
    command.arg(place.join("copy")).args(["--follow", "--interval", interval, "--json"]);
    command.args(account_of(server, "reader", PASSWORD, place));
    let at = command.get_args().position(|arg| arg == "--xmpp-server").unwrap();
    let mut args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    args[at + 1] = address.into();
    let mut command = abreast();
    command.args(args);
    Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// The names and contents of a folder's files.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(Result::unwrap);
    let files =
        entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())));
    let visible = files.filter(|(name, path)| !name.starts_with('.') && path.is_file());
    visible.map(|(name, path)| (name, fs::read_to_string(path).unwrap_or_default())).collect()
}

#[test]
fn what_changes_while_the_service_is_away_arrives_after() {
    let test = "what_changes_while_the_service_is_away_arrives_after";
    let Some(program) = program(test) else { return };
    let mut server = Prosody::start(&program);
    let place = TempDir::new().unwrap();
    let config = publishing(&server, place.path(), "papers");
    let (folder, copy) = (place.path().join("folder"), place.path().join("copy"));
    let source = Source::start_config(&config);
    let address = server.address();
    let _following = following(&server, place.path(), source.port(), "1h", &address);
    let is_equal = || files(&copy) == files(&folder);
    put(&folder, "first");
    eventually("the first file arrives", is_equal);
    put(&folder, "second");
    eventually("the second file arrives", is_equal);
    for round in 0..2 {
        server.kill();
        for number in 0..5 {
            put(&folder, &format!("r{round}-{number}"));
        }
        fs::write(folder.join("second"), format!("new in round {round}")).unwrap();
        if round == 1 {
            fs::remove_file(folder.join("first")).unwrap();
        }
        server.restart();
        eventually("what changed arrives", is_equal);
        // Pushed again.
        put(&folder, &format!("after-{round}"));
        eventually("what changes now arrives", is_equal);
    }
    assert!(!files(&copy).contains_key("first"));
    assert_eq!(source.stop(), Some(0));
}

#[test]
fn a_copy_polls_while_its_node_fails() {
    let Some(program) = program("a_copy_polls_while_its_node_fails") else { return };
    let server = Prosody::start(&program);
    let place = TempDir::new().unwrap();
    let config = publishing(&server, place.path(), "papers");
    let (folder, copy) = (place.path().join("folder"), place.path().join("copy"));
    let source = Source::start_config(&config);
    // Nothing listens there.
    let closed = abreast_testkit::http::unused_address();
    let _following = following(&server, place.path(), source.port(), "1s", &closed.to_string());
    for name in ["one", "two", "three"] {
        put(&folder, name);
        eventually("it is polled", || files(&copy) == files(&folder));
    }
    assert_eq!(source.stop(), Some(0));
}

#[test]
fn one_node_is_not_for_several_jobs() {
    let place = TempDir::new().unwrap();
    let config = place.path().join("abreast.toml");
    let job = |name: &str| {
        format!(
            "[[mirror]]\nname = \"{name}\"\nurl = \"http://127.0.0.1:1/{name}\"\nfolder = \"{name}\"\n"
        )
    };
    fs::write(&config, job("a") + &job("b")).unwrap();
    let mut command = abreast();
    command.args(["sync", "--all", "--follow", "--config"]).arg(&config);
    command.args(["--xmpp", &node().to_string(), "--xmpp-jid", "a@xmpp.test"]);
    let output = run(command.args(["--xmpp-password-command", "echo hush"]));
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("2 jobs") && error.contains("help"), "{error}");
}

fn source_url(port: u16) -> String {
    format!("http://127.0.0.1:{port}/")
}
