//! Proxies: the requests they receive, and those that servers behind them see.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread;

use abreast_net::{Authorization, Credentials, Error, Options, Proxies, Request};

use crate::tls::trusted;
use crate::{client, get, quick, read};
use abreast_testkit::http::{Server, answer, ok, read_head};
use abreast_testkit::tls::Authority;

/// Joins two connections until either ends.
fn join(one: &TcpStream, two: &TcpStream) {
    let (mut from, mut to) = (one.try_clone().unwrap(), two.try_clone().unwrap());
    let back = thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Write);
    });
    let (mut from, mut to) = (two.try_clone().unwrap(), one.try_clone().unwrap());
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(std::net::Shutdown::Both);
    let _ = back.join();
}

/// A proxy for `CONNECT` that leads everything to one server, and the requests it received.
fn connect_proxy(to: &Server) -> (Server, Arc<Mutex<Vec<String>>>) {
    let (told, to) = (Arc::<Mutex<Vec<String>>>::default(), to.address());
    let heads = told.clone();
    let proxy = Server::raw(move |mut stream| {
        let Some(head) = read_head(&mut stream) else { return };
        heads.lock().unwrap().push(head);
        let server = TcpStream::connect(to).unwrap();
        let _ = stream.write_all(b"HTTP/1.1 200 Connection established\r\nVia: a proxy\r\n\r\n");
        join(&stream, &server);
    });
    (proxy, told)
}

fn through(proxy: &str) -> Options {
    Options { proxies: Proxies::through(proxy).unwrap(), ..quick() }
}

#[tokio::test]
async fn http_proxy_gets_absolute_urls_and_its_own_credentials() {
    let proxy = Server::script(&[&ok("one"), &ok("two")]);
    let address = proxy.address();
    let client = client(through(&format!("http://me:hush@{address}")));
    assert_eq!(get(&client, "http://museum.example:8080/a?b").await.unwrap().1, b"one");
    assert_eq!(get(&client, "http://museum.example:8080/c").await.unwrap().1, b"two");
    let seen = proxy.seen();
    assert_eq!(seen[0].line(), "GET http://museum.example:8080/a?b HTTP/1.1");
    assert_eq!(seen[0].header("host"), Some("museum.example:8080"));
    assert_eq!(seen[0].header("proxy-authorization"), Some("Basic bWU6aHVzaA=="));
    assert_eq!((seen[0].header("authorization"), proxy.connections()), (None, 1));
}

#[tokio::test]
async fn hosts_in_no_proxy_are_reached_directly() {
    let (proxy, server) = (Server::script(&[&ok("proxy")]), Server::script(&[&ok("server")]));
    let proxies = Proxies::through(&proxy.url("")).unwrap().bypassing("127.0.0.0/8");
    let client = client(Options { proxies, ..quick() });
    assert_eq!(get(&client, &server.url("/")).await.unwrap().1, b"server");
    assert!(proxy.seen().is_empty());
}

#[tokio::test]
async fn https_uses_a_tunnel_and_hides_credentials_from_the_proxy() {
    let (authority, folder) = (Authority::default(), tempfile::tempdir().unwrap());
    let server = authority.server(&["museum.example"], false).serve(ok("secure"));
    let (proxy, told) = connect_proxy(&server);
    let login = Authorization::basic("me", "hush");
    let options = Options {
        connect_to: Vec::new(),
        proxies: Proxies::through(&format!("http://you:psst@{}", proxy.address())).unwrap(),
        ..trusted(&authority, folder.path(), &server)
    };
    let client = client(options);
    let request =
        Request { authorization: Some(&login), ..Request::new("https://museum.example/secret") };
    assert_eq!(read(&client, &request).await.unwrap().1, b"secure");
    let told = told.lock().unwrap();
    assert!(told[0].starts_with("CONNECT museum.example:443 HTTP/1.1\r\n"), "{told:?}");
    assert!(told[0].contains("Proxy-Authorization: Basic eW91OnBzc3Q="), "{told:?}");
    assert!(!told[0].contains("secret") && !told[0].to_lowercase().contains("\r\nauthorization"));
}

#[tokio::test]
async fn proxy_with_https_url_is_reached_over_tls() {
    let (authority, folder) = (Authority::default(), tempfile::tempdir().unwrap());
    let proxy = authority.server(&["proxy.example"], false).serve(ok("forwarded"));
    let options = |name: &str| Options {
        connect_to: vec![(format!("{name}:8443"), proxy.address())],
        proxies: Proxies::through(&format!("https://{name}:8443")).unwrap(),
        ..trusted(&authority, folder.path(), &proxy)
    };
    assert_eq!(
        get(&client(options("proxy.example")), "http://museum.example/").await.unwrap().1,
        b"forwarded"
    );
    let error = get(&client(options("other.example")), "http://museum.example/").await.unwrap_err();
    assert_eq!(error.code(), "net.tls", "the proxy's certificate is verified");
}

/// A SOCKS 5 server; returns the address it was asked for.
fn socks(to: &Server, login: Option<(&str, &str)>) -> (Server, Arc<Mutex<Vec<Vec<u8>>>>) {
    let (told, to) = (Arc::<Mutex<Vec<Vec<u8>>>>::default(), to.address());
    let asked = told.clone();
    let login = login.map(|(user, password)| (user.to_owned(), password.to_owned()));
    let proxy = Server::raw(move |mut stream| {
        let bytes = |stream: &mut TcpStream, count: usize| {
            let mut bytes = vec![0; count];
            stream.read_exact(&mut bytes).ok().map(|()| bytes)
        };
        let Some(begin) = bytes(&mut stream, 2) else { return };
        let methods = bytes(&mut stream, begin[1].into()).unwrap();
        if let Some((user, password)) = &login {
            assert!(methods.contains(&2));
            let _ = stream.write_all(&[5, 2]);
            let length = bytes(&mut stream, 2).unwrap()[1];
            let found_user = bytes(&mut stream, length.into()).unwrap();
            let length = bytes(&mut stream, 1).unwrap()[0];
            let found = bytes(&mut stream, length.into()).unwrap();
            let right = found_user == user.as_bytes() && found == password.as_bytes();
            let _ = stream.write_all(&[1, u8::from(!right)]);
            if !right {
                return;
            }
        } else {
            let _ = stream.write_all(&[5, 0]);
        }
        let head = bytes(&mut stream, 4).unwrap();
        let length = match head[3] {
            1 => 4,
            4 => 16,
            _ => bytes(&mut stream, 1).unwrap()[0].into(),
        };
        let address = bytes(&mut stream, length + 2).unwrap();
        asked.lock().unwrap().push(address);
        let _ = stream.write_all(&[5, 0, 0, 3, 1, b'x', 0, 80]);
        join(&stream, &TcpStream::connect(to).unwrap());
    });
    (proxy, told)
}

#[tokio::test]
async fn socks_proxies_get_names_or_addresses_by_scheme() {
    let server = Server::saying(ok("there"));
    let (proxy, told) = socks(&server, None);
    let names = client(through(&format!("socks5h://{}", proxy.address())));
    assert_eq!(get(&names, "http://museum.example:81/").await.unwrap().1, b"there");
    let fixed = vec![("museum.example:81".into(), "192.0.2.7:81".parse().unwrap())];
    let addresses =
        client(Options { connect_to: fixed, ..through(&format!("socks5://{}", proxy.address())) });
    assert_eq!(get(&addresses, "http://museum.example:81/").await.unwrap().1, b"there");
    assert_eq!(
        *told.lock().unwrap(),
        [b"museum.example\0\x51".to_vec(), vec![192, 0, 2, 7, 0, 81]]
    );
    assert_eq!(server.seen()[0].line(), "GET / HTTP/1.1", "not a whole URL");
}

#[tokio::test]
async fn socks_logins_are_given_and_wrong_ones_reported() {
    let server = Server::saying(ok("there"));
    let (proxy, _) = socks(&server, Some(("me", "hush")));
    let right = client(through(&format!("socks5h://me:hush@{}", proxy.address())));
    assert_eq!(get(&right, "http://museum.example/").await.unwrap().1, b"there");
    let wrong = client(through(&format!("socks5h://me:psst@{}", proxy.address())));
    let error = get(&wrong, "http://museum.example/").await.unwrap_err();
    assert_eq!(
        (error.code(), error.status(), error.is_transient()),
        ("net.proxy", Some(407), false)
    );
    assert!(!format!("{error:?} {error}").contains("psst"));
}

#[tokio::test]
async fn proxy_refusals_and_nonsense_are_reported_as_such() {
    let fetch = async |reply: String| -> Error {
        let proxy = Server::raw(move |mut stream| {
            let _ = read_head(&mut stream);
            let _ = stream.write_all(reply.as_bytes());
        });
        get(&client(through(&proxy.url(""))), "https://museum.example/").await.unwrap_err()
    };
    let error = fetch(answer("407 Proxy Authentication Required", "", "")).await;
    assert_eq!(
        (error.code(), error.status(), error.is_transient()),
        ("net.proxy", Some(407), false)
    );
    let error = fetch(answer("503 Busy", "", "")).await;
    assert_eq!((error.code(), error.is_transient()), ("net.proxy", true));
    for babble in [
        "hello\r\n\r\n".to_owned(),
        format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(10_000)),
    ] {
        assert_eq!(fetch(babble).await.code(), "net.proxy");
    }
    assert_eq!(fetch(String::new()).await.code(), "net.proxy", "cut off");
}

#[tokio::test]
async fn redirect_to_private_address_is_refused_behind_a_proxy() {
    let proxy =
        Server::script(&[&abreast_testkit::http::redirect("302 Found", "http://127.0.0.1:1/x")]);
    let error = get(&client(through(&proxy.url(""))), "http://museum.example/").await.unwrap_err();
    assert_eq!(error.code(), "http.redirect");
    assert_eq!(proxy.seen().len(), 1);
}

#[tokio::test]
async fn credentials_by_origin_go_to_that_origin_only() {
    let other = Server::script(&[&ok("other")]);
    let server = Server::script(&[
        &ok("mine"),
        &abreast_testkit::http::redirect("302 Found", &other.url("/")),
    ]);
    let mut credentials = Credentials::default();
    credentials.add(&server.url("/some/where"), Authorization::bearer("hush").unwrap()).unwrap();
    let options = Options {
        credentials,
        connect_to: vec![("elsewhere.example:80".into(), other.address())],
        ..quick()
    };
    assert!(!format!("{options:?}").contains("hush"));
    let client = client(options);
    get(&client, &server.url("/a")).await.unwrap();
    get(&client, &server.url("/redirected")).await.unwrap();
    get(&client, "http://elsewhere.example/").await.unwrap();
    assert_eq!(server.seen()[0].header("authorization"), Some("Bearer hush"));
    assert!(other.seen().iter().all(|seen| seen.header("authorization").is_none()));
    assert_eq!(other.seen().len(), 2);
}
