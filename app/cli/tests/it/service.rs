//! Under a service manager: readiness, status line, watchdog, and a socket that is passed on.

use crate::world::abreast;
use abreast_testkit::{Running, eventually_ok};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The socket of a service manager that waits for messages.
fn manager(folder: &Path) -> UnixDatagram {
    let socket = UnixDatagram::bind(folder.join("notify")).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket
}

/// Messages until one has this line; the last one is that with it.
fn until(manager: &UnixDatagram, line: &str) -> Vec<String> {
    let (begun, mut messages) = (Instant::now(), Vec::new());
    loop {
        assert!(begun.elapsed() < Duration::from_secs(60), "{line} did not come: {messages:?}");
        let mut buffer = [0; 4096];
        let length = manager.recv(&mut buffer).unwrap_or_else(|error| {
            panic!("{line} did not come: {error}; came: {messages:?}");
        });
        let message = String::from_utf8(buffer[..length].to_vec()).unwrap();
        let is_it = message.lines().any(|one| one == line);
        messages.push(message);
        if is_it {
            return messages;
        }
    }
}

fn started(mut command: Command, folder: &Path) -> Running {
    command.env("NOTIFY_SOCKET", folder.join("notify"));
    Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

fn end(mut child: Running, manager: &UnixDatagram) {
    use rustix::process::{Pid, Signal, kill_process};
    kill_process(Pid::from_child(&child.0), Signal::TERM).unwrap();
    until(manager, "STOPPING=1");
    manager.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let code = eventually_ok("the program ends", || {
        // It reports to the watchdog until its end, and must not wait for a place in the socket.
        let _ = manager.recv(&mut [0; 4096]);
        child.0.try_wait().unwrap().ok_or("it runs")
    });
    assert_eq!(code.code(), Some(0));
}

#[test]
fn servers_report_readiness_status_and_the_watchdog() {
    let place = tempfile::tempdir().unwrap();
    let papers = place.path().join("papers");
    std::fs::create_dir(&papers).unwrap();
    std::fs::write(papers.join("a"), "1").unwrap();
    let hub = place.path().join("hub");
    for (name, arguments, status) in [
        ("serve", vec!["serve".as_ref(), papers.as_os_str()], "STATUS=serving 1 resource of 1 set"),
        ("hub", vec!["hub".as_ref(), "--data".as_ref(), hub.as_os_str()], "STATUS=serving"),
    ] {
        let manager = manager(place.path());
        let mut command = abreast();
        command.args(arguments).args(["--listen", "127.0.0.1:0"]);
        // Half of this is the time between two messages.
        command.env("WATCHDOG_USEC", "200000");
        let child = started(command, place.path());
        until(&manager, "READY=1");
        let began = Instant::now();
        until(&manager, status);
        until(&manager, "WATCHDOG=1");
        until(&manager, "WATCHDOG=1");
        assert!(began.elapsed() < Duration::from_secs(30), "{name}");
        end(child, &manager);
        std::fs::remove_file(place.path().join("notify")).unwrap();
    }
}

#[test]
fn a_reload_is_reported_with_its_begin_and_its_end() {
    use rustix::process::{Pid, Signal, kill_process};
    let place = tempfile::tempdir().unwrap();
    let papers = place.path().join("papers");
    std::fs::create_dir(&papers).unwrap();
    let config = place.path().join("abreast.toml");
    std::fs::write(&config, format!("[[set]]\nfolder = {papers:?}\n")).unwrap();
    let manager = manager(place.path());
    let mut command = abreast();
    command.args(["serve", "--listen", "127.0.0.1:0", "--config"]).arg(&config);
    let child = started(command, place.path());
    until(&manager, "READY=1");
    // With a faulty configuration, too, the reload ends.
    for text in [format!("[[set]]\nfolder = {papers:?}\ntitle = \"T\"\n"), "faulty".to_owned()] {
        std::fs::write(&config, text).unwrap();
        kill_process(Pid::from_child(&child.0), Signal::HUP).unwrap();
        let messages = until(&manager, "RELOADING=1");
        let message = messages.last().unwrap();
        let time = message.lines().find_map(|line| line.strip_prefix("MONOTONIC_USEC="));
        assert!(time.is_some_and(|time| time.parse::<u64>().is_ok()), "{message}");
        until(&manager, "READY=1");
    }
    end(child, &manager);
}

#[test]
fn a_hub_opens_its_access_log_again_at_a_reload() {
    use rustix::process::{Pid, Signal, kill_process};
    let unit = include_str!("../../../../packaging/systemd/abreast-hub.service");
    assert!(unit.contains("\nExecReload=/bin/sh -c 'kill -HUP $MAINPID'\n"), "{unit}");
    let place = tempfile::tempdir().unwrap();
    let log = place.path().join("access.log");
    let manager = manager(place.path());
    let mut command = abreast();
    command.args(["hub", "--open", "--listen", "127.0.0.1:0", "--data"]);
    command.arg(place.path().join("data")).arg("--access-log").arg(&log);
    let child = started(command, place.path());
    until(&manager, "READY=1");
    std::fs::rename(&log, place.path().join("access.log.1")).unwrap();
    kill_process(Pid::from_child(&child.0), Signal::HUP).unwrap();
    until(&manager, "RELOADING=1");
    until(&manager, "READY=1");
    assert!(log.exists());
    end(child, &manager);
}

#[test]
fn servers_answer_on_a_socket_that_is_passed_on() {
    let place = tempfile::tempdir().unwrap();
    let papers = place.path().join("papers");
    std::fs::create_dir(&papers).unwrap();
    let manager = manager(place.path());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // A connection from before the program runs waits for it.
    let mut early = TcpStream::connect(address).unwrap();
    let program = abreast();
    let mut command = Command::new("sh");
    command
        .args(["-c", "exec 3<&0 0</dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$@\"", "sh"])
        .arg(program.get_program())
        .arg("serve")
        .arg(&papers)
        // The address is that of the socket.
        .args(["--listen", "127.0.0.1:1"])
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(listener)));
    let child = started(command, place.path());
    until(&manager, "READY=1");
    let request = format!("GET /livez HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    early.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    early.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    eventually_ok("it still listens", || TcpStream::connect(address));
    end(child, &manager);
}

#[test]
fn a_passed_file_that_is_no_socket_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .args(["-c", "exec 3</dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$@\"", "sh"])
        .arg(abreast().get_program())
        .args(["serve", "."])
        .current_dir(place.path())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("ListenStream="), "{error}");
}
