//! Stopping: what was begun is finished, nothing new is begun, and it ends in time.

use crate::world::World;
use abreast_server::ServerOptions;
use abreast_testkit::eventually;
use std::io::Read as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Larger than what the sockets between hold.
const LARGE: usize = 16 << 20;

#[test]
fn fifty_downloads_in_flight_are_finished() {
    let world = World::new();
    world.write("large", vec![b'x'; LARGE]);
    let options =
        ServerOptions { stop_timeout: Duration::from_secs(60), ..ServerOptions::default() };
    let served = world.serve_with(options);
    let mut clients: Vec<_> = (0..50).map(|_| served.connect()).collect();
    for client in &mut clients {
        client.request("GET", "/set/r/large", &[]);
        assert_eq!(client.head().unwrap().unwrap().status, 200);
    }
    let mut idle = served.connect();
    idle.request("GET", "/livez", &[]);
    idle.reply("GET").unwrap();
    served.tell_stop();
    assert!(idle.is_closed(), "an idle connection is closed at once");
    eventually("new connections are refused", || TcpStream::connect(served.address).is_err());
    assert!(!served.has_ended());
    let readers: Vec<_> = clients
        .into_iter()
        .map(|mut client| {
            std::thread::spawn(move || {
                let mut body = Vec::new();
                client.stream.read_to_end(&mut body).map(|_| body.len())
            })
        })
        .collect();
    for reader in readers {
        assert_eq!(reader.join().unwrap().unwrap(), LARGE);
    }
    eventually("the server ends when the last is finished", || served.has_ended());
}

#[test]
fn clients_that_never_finish_are_cut_off_in_time() {
    let world = World::new();
    world.write("large", vec![b'x'; 4 * LARGE]);
    let options =
        ServerOptions { stop_timeout: Duration::from_millis(500), ..ServerOptions::default() };
    let served = world.serve_with(options);
    let mut deaf = served.connect();
    deaf.request("GET", "/set/r/large", &[]);
    assert_eq!(deaf.head().unwrap().unwrap().status, 200);
    let mut half = served.connect();
    half.send(b"GET / HTTP/1.1\r\nHost:").unwrap();
    let _silent = served.connect();
    assert_eq!(served.get("/livez").status, 200);
    let begun = Instant::now();
    served.stop();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn response_during_shutdown_closes_the_connection() {
    let world = World::new();
    world.write("large", vec![b'x'; LARGE]);
    let served = world.serve();
    let mut client = served.connect();
    client.request("GET", "/set/r/large", &[]);
    client.head().unwrap().unwrap();
    client.request("GET", "/livez", &[]);
    served.tell_stop();
    eventually("new connections are refused", || TcpStream::connect(served.address).is_err());
    let mut body = vec![0; LARGE];
    client.stream.read_exact(&mut body).unwrap();
    assert!(
        client.is_closed() || client.stream.buffer().is_empty(),
        "a request sent ahead is not begun"
    );
    served.stop();
}

#[test]
fn headers_that_are_sent_in_part_do_not_delay_the_stop() {
    let world = World::new();
    world.write("large", vec![b'x'; LARGE]);
    let served = world.serve();
    let mut new = served.connect();
    new.send(b"GET / HTTP/1.1\r\nHost:").unwrap();
    let mut kept = served.connect();
    kept.request("GET", "/livez", &[]);
    kept.reply("GET").unwrap();
    kept.send(b"GET / HTTP/1.1\r\nHost:").unwrap();
    // What is in flight is finished all the same.
    let mut busy = served.connect();
    busy.request("GET", "/set/r/large", &[]);
    assert_eq!(busy.head().unwrap().unwrap().status, 200);
    assert_eq!(served.get("/livez").status, 200);
    let begun = Instant::now();
    served.tell_stop();
    assert!(new.is_closed() && kept.is_closed());
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    let mut body = Vec::new();
    busy.stream.read_to_end(&mut body).unwrap();
    assert_eq!(body.len(), LARGE);
    eventually("the server ends", || served.has_ended());
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
}

#[test]
fn answers_that_are_not_read_yet_are_sent_whole_at_a_stop() {
    let world = World::new();
    world.write("large", vec![b'x'; LARGE]);
    let options =
        ServerOptions { stop_timeout: Duration::from_secs(60), ..ServerOptions::default() };
    let served = world.serve_with(options);
    // Some end so that their last bytes wait in the server, whatever the sockets hold.
    let mut clients: Vec<_> = (1..90)
        .map(|step| {
            let mut client = served.connect();
            let size = step * (100 << 10);
            let range = format!("bytes=0-{}", size - 1);
            client.request("GET", "/set/r/large", &[("Range", &range)]);
            assert_eq!(client.head().unwrap().unwrap().status, 206);
            (client, size)
        })
        .collect();
    served.tell_stop();
    std::thread::sleep(Duration::from_millis(1_500));
    for (client, size) in &mut clients {
        let mut body = Vec::new();
        let read = client.stream.read_to_end(&mut body).map(|_| body.len());
        assert_eq!(read.unwrap(), *size);
    }
    eventually("the server ends", || served.has_ended());
}
