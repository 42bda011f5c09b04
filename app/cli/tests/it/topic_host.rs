//! Who may publish in a topic without a token, with nginx in front of the hub and the topic.

use crate::interop::Nginx;
use crate::world::get;
use abreast_testkit::http::unused_address;
use abreast_testkit::{Running, eventually, provided, skipped};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const TEST: &str = "topic_host::only_a_topics_host_publishes_through_nginx";
/// The public name of the site, which only the hub knows.
const NAME: &str = "papers.example";
const CONTENT: &str = "as published";

/// A command in which the public name leads to this machine; `None` where the system permits no file system of one's own.
fn with_name(place: &Path) -> Option<Command> {
    let hosts = place.join("hosts");
    fs::write(&hosts, format!("127.0.0.1 localhost {NAME}\n")).unwrap();
    let with_name = |then: &str| {
        let mut command = Command::new("unshare");
        let script = format!("mount --bind \"$0\" /etc/hosts && {then}");
        command.args(["-m", "sh", "-c", &script]).arg(&hosts);
        command
    };
    let found = with_name(&format!("getent hosts {NAME}")).output().ok()?;
    found.status.success().then(|| with_name("exec \"$@\""))
}

/// The status of the answer to a notification of a topic, POSTed with more header lines.
fn publish(address: &str, path: &str, topic: &str, body: &str, more: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\nContent-Type: text/plain\r\n\
         Link: <{topic}>; rel=\"self\"\r\n{more}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn only_a_topics_host_publishes_through_nginx() {
    let Some(program) = provided(TEST, "ABREAST_TEST_NGINX") else { return };
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    let Some(mut hub) = with_name(place) else {
        return skipped(TEST, "`unshare -m` is not permitted");
    };
    let hub_address = unused_address();
    let nginx = Nginx::start_with(&program, place, |port| {
        let topic = |path: &str, host: &str| {
            format!(
                "location = {path} {{ default_type text/plain; return 200 \"{CONTENT}\"; add_header Link \
                 '<http://{NAME}:{port}/hub>; rel=\"hub\", <http://{host}:{port}{path}>; rel=\"self\"'; }}\n"
            )
        };
        let append = "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;";
        // An address of a machine of its own.
        let other = "proxy_bind 127.0.0.3;";
        let proxy = |path: &str, lines: &str| {
            format!("location = {path} {{ proxy_pass http://{hub_address}/hub; {lines} }}\n")
        };
        [
            topic("/topic", NAME),
            topic("/loopback", "127.0.0.1"),
            proxy("/hub", ""),
            proxy("/appends", append),
            proxy("/trusted", &format!("{other} {append}")),
            proxy("/passes-on", other),
        ]
        .concat()
    });
    let port = nginx.address.rsplit(':').next().unwrap();
    let (base, loopback) = (format!("http://{NAME}:{port}/"), format!("http://127.0.0.1:{port}/"));
    let config = place.join("hub.toml");
    let text = format!(
        "listen = \"{hub_address}\"\nbase_url = \"{base}\"\ndata = {:?}\ntrusted_proxies = [\"127.0.0.3\"]\n[hub]\n\
         allow_topics = [\"{base}\", \"{loopback}\"]\nprivate_callbacks = true\n",
        place.join("data").display().to_string()
    );
    fs::write(&config, text).unwrap();
    hub.arg(env!("CARGO_BIN_EXE_abreast")).args(["hub", "--config"]).arg(&config);
    let log = fs::File::create(place.join("log")).unwrap();
    let _hub = Running(hub.stdout(Stdio::null()).stderr(log).spawn().unwrap());
    let direct = hub_address.to_string();
    eventually("the hub answers", || get(&direct, "/readyz").is_some());
    let (topic, local) = (format!("{base}topic"), format!("{loopback}loopback"));
    let forged = "X-Forwarded-For: 127.0.0.1\r\n";
    let stranger = "X-Forwarded-For: 192.0.2.1\r\n";
    let mut wrong = Vec::new();
    for (address, path, topic, body, more, is_accepted) in [
        // Whoever sends what the topic has.
        (&nginx.address, "/hub", &topic, CONTENT, "", true),
        (&nginx.address, "/appends", &topic, CONTENT, "", true),
        // The proxy marks nothing: its address is that of everybody, and that of the topic's host.
        (&nginx.address, "/hub", &topic, "other", "", false),
        // It marks what it forwards, and is not listed.
        (&nginx.address, "/appends", &topic, "other", "", false),
        (&nginx.address, "/appends", &topic, "other", forged, false),
        // It is listed, and reports the client, which has the address of the topic's host.
        (&nginx.address, "/trusted", &topic, "other", "", true),
        // What the client states itself stands before that.
        (&nginx.address, "/trusted", &topic, "other", stranger, true),
        // It is listed, and passes the field on: the client states any address.
        (&nginx.address, "/passes-on", &topic, "other", "", false),
        (&nginx.address, "/passes-on", &topic, "other", stranger, false),
        (&nginx.address, "/passes-on", &topic, "other", forged, true),
        // Without a proxy, from the machine of the hub.
        (&direct, "/hub", &topic, "other", "", false),
        (&direct, "/hub", &topic, CONTENT, "", true),
        // The URL of the topic has a loopback address: everything on this machine is its host.
        (&direct, "/hub", &local, "other", "", true),
        (&nginx.address, "/hub", &local, "other", "", true),
        (&nginx.address, "/appends", &local, "other", "", false),
    ] {
        let status = publish(address, path, topic, body, more);
        let is_right = if is_accepted { status == 200 } else { status == 401 || status == 403 };
        if !is_right {
            wrong.push(format!("{path} {topic} {body} {more:?}: {status}"));
        }
    }
    let log = fs::read_to_string(place.join("log")).unwrap();
    assert!(wrong.is_empty(), "{}\n{log}", wrong.join("\n"));
}
