//! Redirects: which are followed, and with which credentials.

use std::io::Write;

use abreast_net::{Authorization, Options, Request};

use crate::{client, code_for, get, quick, read};
use abreast_testkit::http::{Server, answer, ok, redirect};

#[tokio::test]
async fn redirect_to_a_file_or_other_scheme_is_refused() {
    for location in [
        "file:///etc/passwd",
        "data:text/plain,x",
        "ftp://example.org/",
        "javascript:alert(1)",
        "http:///x",
    ] {
        let code = code_for(redirect("302 Found", location)).await;
        assert!(matches!(code, "http.redirect" | "uri.syntax"), "{location}: {code}");
    }
    assert_eq!(code_for(answer("302 Found", "", "")).await, "http.redirect");
}

#[tokio::test]
async fn redirects_are_followed_and_the_last_url_returned() {
    let server = Server::new(|seen, stream| {
        let reply = match seen.target() {
            "/a" => redirect("301 Moved Permanently", "/b?x=%7e"),
            "/b?x=%7e" => redirect("303 See Other", "c/../d"),
            "/d" => redirect("307 Temporary Redirect", "//".to_owned().as_str())
                .replace("//", "/e#part"),
            "/e" => redirect("308 Permanent Redirect", "?end"),
            _ => ok("there"),
        };
        stream.write_all(reply.as_bytes()).is_ok()
    });
    let (response, body) = get(&client(quick()), &server.url("/a")).await.unwrap();
    assert_eq!((response.url(), &body[..]), (&*server.url("/e?end"), &b"there"[..]));
    assert_eq!(server.connections(), 1, "the short bodies of redirects are read, not cut off");
}

#[tokio::test]
async fn circles_and_long_chains_end() {
    assert_eq!(code_for(redirect("302 Found", "/")).await, "http.redirect");
    let endless = Server::new(|seen, stream| {
        let n: u32 = seen.target()[1..].parse().unwrap_or(0);
        stream.write_all(redirect("302 Found", &format!("/{}", n + 1)).as_bytes()).is_ok()
    });
    let error = get(&client(quick()), &endless.url("/0")).await.unwrap_err();
    assert_eq!((error.code(), error.is_transient()), ("http.redirect", false));
    assert_eq!(endless.seen().len(), 6, "five redirects are followed");
    let none = client(Options { max_redirects: 0, ..quick() });
    assert_eq!(get(&none, &endless.url("/0")).await.unwrap_err().code(), "http.redirect");
    assert_eq!(endless.seen().len(), 7);
}

#[tokio::test]
async fn redirects_need_only_one_place_at_a_host() {
    let server = Server::script(&[&redirect("302 Found", "/next"), &ok("x")]);
    let client = client(Options { connections_per_host: 1, ..quick() });
    assert_eq!(get(&client, &server.url("/")).await.unwrap().1, b"x");
}

#[tokio::test]
async fn credentials_stay_with_their_origin() {
    let other = Server::saying(ok("x"));
    let back_at = other.url("/foreign");
    let server = Server::new(move |seen, stream| {
        let reply = match seen.target() {
            "/inside" => redirect("302 Found", "/leave"),
            "/leave" => redirect("302 Found", &back_at),
            _ => ok("x"),
        };
        stream.write_all(reply.as_bytes()).is_ok()
    });
    let url = server.url("/inside");
    let secret = Authorization::bearer("t0ps3cret").unwrap();
    let request = Request { authorization: Some(&secret), ..Request::new(&url) };
    let (response, _) = read(&client(quick()), &request).await.unwrap();
    assert_eq!(response.url(), other.url("/foreign"));
    assert!(
        server.seen().iter().all(|seen| seen.header("authorization") == Some("Bearer t0ps3cret"))
    );
    assert_eq!(server.seen().len(), 2);
    assert_eq!(other.seen()[0].header("authorization"), None, "another port is another origin");
}

#[tokio::test]
async fn credentials_do_not_come_back_after_leaving() {
    let home = std::sync::Arc::new(std::sync::OnceLock::<String>::new());
    let target = home.clone();
    let other = Server::new(move |_, stream| {
        stream.write_all(redirect("302 Found", target.get().unwrap()).as_bytes()).is_ok()
    });
    let away = other.url("/");
    let server = Server::new(move |seen, stream| {
        let reply = if seen.target() == "/" { redirect("302 Found", &away) } else { ok("x") };
        stream.write_all(reply.as_bytes()).is_ok()
    });
    home.set(server.url("/back")).unwrap();
    let url = server.url("/").replace("http://", "http://me:pass@");
    let (response, _) = get(&client(quick()), &url).await.unwrap();
    assert_eq!(response.url(), server.url("/back"));
    assert!(server.seen()[0].header("authorization").is_some());
    assert_eq!(server.seen()[1].header("authorization"), None);
}

#[tokio::test]
async fn user_and_password_in_the_url_are_sent_and_never_shown() {
    let server = Server::saying(answer("404 Not Found", "", ""));
    let url = server.url("/").replace("http://", "http://me:hunter2@");
    let (response, _) = get(&client(quick()), &url).await.unwrap();
    assert_eq!(server.seen()[0].header("authorization"), Some("Basic bWU6aHVudGVyMg=="));
    assert!(!server.seen()[0].header("host").unwrap().contains("me"));
    let error = response.require_success().unwrap_err();
    let secret = Authorization::basic("me", "hunter2");
    for text in [
        error.to_string(),
        format!("{error:?}"),
        format!("{:?}", Request::new(&url)),
        format!("{secret:?}"),
    ] {
        assert!(!text.contains("hunter2") && !text.contains("bWU6"), "{text}");
    }
}

#[tokio::test]
async fn a_redirect_to_another_host_does_not_reach_private_addresses() {
    let inner = Server::script(&[&ok("secret")]);
    // The same machine by another name: 127.0.0.1 redirects to localhost.
    let location = inner.url("/meta-data").replace("127.0.0.1", "localhost");
    let outer = Server::new(move |_, stream| {
        stream.write_all(redirect("302 Found", &location).as_bytes()).is_ok()
    });
    assert_eq!(get(&client(quick()), &outer.url("/")).await.unwrap_err().code(), "http.redirect");
    assert!(inner.seen().is_empty(), "nothing was asked for");
    assert_eq!(inner.connections(), 0);
}
