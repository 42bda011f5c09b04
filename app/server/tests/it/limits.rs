//! Clients that take their time: they are waited for only so long, and others do not wait for them.

use crate::world::{Client, Served, World};
use abreast_server::ServerOptions;
use abreast_testkit::eventually;
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn serve(options: ServerOptions) -> (World, Served) {
    let world = World::new();
    world.write("a", "public");
    world.write("large", vec![b'x'; 64 << 20]);
    let served = world.serve_with(options);
    (world, served)
}

#[test]
fn two_hundred_slow_clients_do_not_keep_others_waiting() {
    let options =
        ServerOptions { header_timeout: Duration::from_secs(2), ..ServerOptions::default() };
    let (_world, served) = serve(options);
    let mut slow: Vec<TcpStream> =
        (0..200).map(|_| TcpStream::connect(served.address).unwrap()).collect();
    let begun = Instant::now();
    let mut answered = 0;
    let mut rounds = 0;
    while begun.elapsed() < Duration::from_secs(3) {
        // Half of them say nothing at all, the others a byte now and then.
        for stream in slow.iter_mut().skip(100) {
            let _ = std::io::Write::write_all(
                stream,
                &b"GET / HTTP/1.1\r\nHost: x\r\nX: yyyyyyyyyyyyyyyyyyyyyyyy"[rounds % 50..][..1],
            );
        }
        rounds += 1;
        for _ in 0..10 {
            let asked = Instant::now();
            assert_eq!(served.get("/set/r/a").body, b"public");
            assert!(asked.elapsed() < Duration::from_secs(1));
            answered += 1;
        }
    }
    assert!(answered > 100, "{answered}");
    for stream in slow {
        assert!(Client::over(stream).is_closed(), "closed when the time for a header was over");
    }
}

#[test]
fn an_idle_connection_is_closed() {
    let options =
        ServerOptions { header_timeout: Duration::from_millis(200), ..ServerOptions::default() };
    let (_world, served) = serve(options);
    let mut client = served.connect();
    client.request("GET", "/set/r/a", &[]);
    assert_eq!(client.reply("GET").unwrap().unwrap().status, 200);
    assert!(client.is_closed());
}

#[test]
fn more_connections_than_allowed_take_the_place_of_idle_ones() {
    let options = ServerOptions { connections: 4, ..ServerOptions::default() };
    let (_world, served) = serve(options);
    let mut first: Vec<Client> = (0..4).map(|_| served.connect()).collect();
    for client in &mut first {
        client.request("GET", "/set/r/a", &[]);
        assert_eq!(client.reply("GET").unwrap().unwrap().status, 200);
    }
    let begun = Instant::now();
    for _ in 0..100 {
        assert_eq!(
            served.get("/set/r/a").status,
            200,
            "idle connections do not keep others waiting"
        );
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!(first.remove(0).is_closed(), "the oldest idle connection");
}

#[test]
fn silent_connections_of_one_client_do_not_keep_others_waiting() {
    let options = ServerOptions { connections: 50, ..ServerOptions::default() };
    let (_world, served) = serve(options);
    let _silent: Vec<Client> = (0..200).map(|_| served.connect()).collect();
    let mut half: Vec<Client> = (0..200).map(|_| served.connect()).collect();
    for client in &mut half {
        let _ = client.send(b"GET / HT");
    }
    let begun = Instant::now();
    assert_eq!(served.get("/set/r/a").body, b"public");
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "less than the time for a header: {:?}",
        begun.elapsed()
    );
}

#[test]
fn more_requests_in_flight_than_allowed_wait_their_turn() {
    let options = ServerOptions { connections: 4, ..ServerOptions::default() };
    let (_world, served) = serve(options);
    let mut first: Vec<Client> = (0..4).map(|_| served.connect()).collect();
    for client in &mut first {
        client.request("GET", "/set/r/large", &[]);
        assert_eq!(client.head().unwrap().unwrap().status, 200);
    }
    let mut fifth = served.connect();
    fifth.request("GET", "/set/r/a", &[]);
    fifth.stream.get_ref().set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(fifth.head().is_err(), "not answered while four are being answered");
    first.pop();
    fifth.stream.get_ref().set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    assert_eq!(fifth.reply("GET").unwrap().unwrap().status, 200);
}

#[test]
fn requests_of_one_client_leave_places_to_others() {
    let options = ServerOptions { connections: 16, ..ServerOptions::default() };
    let (_world, served) = serve(options);
    let mut many = Vec::new();
    for _ in 0..16 {
        let mut client = served.connect();
        client.request("GET", "/set/r/large", &[]);
        assert_eq!(client.head().unwrap().unwrap().status, 200);
        many.push(client);
    }
    // Of these some wait, and others are refused.
    many.extend((0..24).map(|_| served.connect()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for _ in 0..5 {
        let begun = Instant::now();
        let stream = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind(([127, 0, 0, 2], 0).into()).unwrap();
            socket.connect(served.address).await.unwrap().into_std().unwrap()
        });
        stream.set_nonblocking(false).unwrap();
        let mut other = Client::over(stream);
        other.request("GET", "/set/r/a", &[]);
        assert_eq!(other.reply("GET").unwrap().unwrap().body, b"public");
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    }
}

#[test]
fn a_client_that_does_not_read_loses_its_connection() {
    let options = ServerOptions {
        connections: 1,
        stall_timeout: Duration::from_millis(300),
        ..ServerOptions::default()
    };
    let (_world, served) = serve(options);
    let mut deaf = served.connect();
    deaf.request("GET", "/set/r/large", &[]);
    // The only place is free again when the first one is given up.
    assert_eq!(served.get("/set/r/a").status, 200);
    assert!(deaf.reply("GET").is_err(), "cut off");
}

#[test]
fn client_that_does_not_read_responses_is_disconnected() {
    let options = ServerOptions {
        connections: 1,
        stall_timeout: Duration::from_millis(300),
        ..ServerOptions::default()
    };
    let (world, served) = serve(options);
    world.write("middle", vec![b'x'; 60_000]);
    let mut deaf = served.connect();
    for _ in 0..20_000 {
        // Refused once the server neither reads nor writes any more.
        deaf.stream.get_ref().set_write_timeout(Some(Duration::from_millis(100))).unwrap();
        if deaf.send(b"GET /set/r/middle HTTP/1.1\r\nHost: x\r\n\r\n").is_err() {
            break;
        }
    }
    assert_eq!(served.get("/set/r/a").status, 200);
}

#[test]
fn a_slow_reader_that_does_read_gets_everything() {
    let options =
        ServerOptions { stall_timeout: Duration::from_secs(2), ..ServerOptions::default() };
    let (_world, served) = serve(options);
    let mut client = served.connect();
    client.request("GET", "/set/r/large", &[]);
    let head = client.head().unwrap().unwrap();
    let length: usize = head.header("content-length").parse().unwrap();
    let begun = Instant::now();
    let mut bytes = vec![0; length / 16];
    for part in 0..16_u32 {
        std::io::Read::read_exact(&mut client.stream, &mut bytes).unwrap();
        // Slower than the limit for all of it together, never for one part.
        while begun.elapsed() < Duration::from_millis(150) * (part + 1) {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_body_without_end_is_not_waited_for() {
    let options = ServerOptions {
        connections: 1,
        header_timeout: Duration::from_millis(300),
        ..ServerOptions::default()
    };
    let (_world, served) = serve(options);
    let mut client = served.connect();
    client
        .send(b"POST /set/r/a HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\nabc")
        .unwrap();
    assert_eq!(client.reply("POST").unwrap().unwrap().status, 405);
    eventually("the place is free for others", || served.get("/set/r/a").status == 200);
}
