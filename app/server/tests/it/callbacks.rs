//! The address at which a topic is subscribed to by HTTP callback, on a real socket.

use crate::push::{FORM, Pushing, TOPIC};
use abreast_server::ServerOptions;
use abreast_source::projection::{Projection, ResolvedDocument, SiteDocument, Topic, TopicContent};
use abreast_source::publish::{PublishError, Publisher};
use abreast_testkit::eventually;
use abreast_testkit::http::{Server, send};
use std::sync::Arc;

const PATH: &str = "/set/v0.1/subscribe";

/// A protocol whose topic is subscribed to by callback.
pub(crate) struct Called;

impl Projection for Called {
    fn resolve<'p>(&'p self, _: &'p Publisher, _: &str) -> Option<Box<dyn ResolvedDocument + 'p>> {
        None
    }

    fn site(&self, _: &Publisher) -> Result<Vec<SiteDocument>, PublishError> {
        Ok(Vec::new())
    }

    fn callback_topic(&self, publisher: &Publisher, path: &str) -> Option<Topic> {
        let is_subscribed_here = path == &PATH[1..];
        is_subscribed_here.then(|| Topic {
            url: TOPIC.to_owned(),
            set: Arc::clone(&publisher.sets()[0]),
            record: "set".to_owned(),
            content: TopicContent::Changes,
            media_type: "application/xml",
            links: String::new(),
        })
    }
}

/// A receiver that confirms what it is asked.
fn receiver() -> Server {
    Server::new(|request, stream| {
        let mut parts = request.target().split(['?', '&']);
        let challenge = parts.find_map(|part| part.strip_prefix("hub.challenge="));
        send(stream, "200 OK", "", challenge.unwrap_or_default().as_bytes())
    })
}

#[test]
fn a_callback_is_subscribed_as_in_2012() {
    let (pushing, receiver) = (Pushing::new(), receiver());
    for (path, headers) in [("/a", &[][..]), ("/b", &[("Content-Type", FORM)][..])] {
        let body = format!("callbackURI={}\r\n", receiver.url(path));
        let answer = pushing.ask("POST", PATH, headers, body.as_bytes());
        assert_eq!(answer.status, 202, "{}", answer.text());
    }
    eventually("both confirm", || pushing.hub.metrics().confirmed == 2);
    pushing.say("changed");
    let of = |path: &str| receiver.seen().into_iter().filter(|got| got.target() == path).count();
    eventually("both get it", || of("/a") == 1 && of("/b") == 1);
    let state = format!("/hub?callback={}", receiver.url("/a"));
    assert_eq!(pushing.served.get(&state).status, 200);
    let end = format!("callbackURI={}&mode=unsubscribe", receiver.url("/a"));
    assert_eq!(pushing.ask("POST", PATH, &[], end.as_bytes()).status, 202);
    eventually("it ends", || pushing.hub.metrics().ended == 1);
}

#[test]
fn the_address_for_callbacks_explains_itself() {
    let pushing = Pushing::new();
    let page = pushing.served.get(PATH);
    assert_eq!(page.status, 200);
    for word in ["callbackURI", "hub.challenge", "mode=unsubscribe", "410", TOPIC] {
        assert!(page.text().contains(word), "{word}: {}", page.text());
    }
    let head = pushing.served.ask("HEAD", PATH, &[]);
    assert_eq!((head.status, head.body.len()), (200, 0));
    let put = pushing.ask("PUT", PATH, &[], b"x");
    assert_eq!((put.status, put.header("allow").as_str()), (405, "GET, HEAD, POST"));
    // Where nothing is subscribed to, nothing is posted.
    for (path, status) in [
        ("/other/v0.1/subscribe", 404),
        ("/set/v0.1/subscribe/", 405),
        ("/set/v0.1/subscribe.xml", 405),
    ] {
        let posted = pushing.ask("POST", path, &[], b"callbackURI=http://e/").status;
        assert_eq!(posted, status, "{path}");
    }
    assert_eq!(pushing.served.get("/other/v0.1/subscribe").status, 404);
}

#[test]
fn hostile_requests_for_callbacks_get_an_error_text() {
    let pushing = Pushing::with(ServerOptions::default(), |options| {
        options.private_callbacks = false;
        options.verification.client_burst = 3;
        options.verification.client_rate = 0.001;
    });
    let megabyte = vec![b'a'; 1 << 20];
    for (headers, body, status, says) in [
        (&[][..], &b""[..], 400, "callbackURI"),
        (&[], b"callbackURI=http://127.0.0.1/", 400, "private"),
        (&[], b"callbackURI=http://[::ffff:10.0.0.1]/", 400, "private"),
        (&[], b"callbackURI=gopher://e/", 400, "callback"),
        (&[], b"callbackURI=http://e/&callbackURI=http://f/", 400, "more than once"),
        (&[], b"callbackURI=http://e/&mode=delete", 400, "delete"),
        (&[], b"\xff\xfe", 400, "callbackURI"),
        (&[("Content-Type", "application/json")], b"{}", 415, "form"),
        (&[("Content-Type", "application/xml")], b"<urlset/>", 415, "form"),
        (&[], &megabyte, 413, "65536"),
    ] {
        let answer = pushing.ask("POST", PATH, headers, body);
        assert_eq!(answer.status, status, "{says}: {}", answer.text());
        assert!(answer.text().contains(says), "{says}: {}", answer.text());
    }
    let get = pushing.ask("GET", PATH, &[], b"callbackURI=http://e/");
    assert_eq!(get.status, 400, "a body of a GET");
    // A flood from one client is refused before anybody is asked.
    let statuses: Vec<u16> = (0..5)
        .map(|n| {
            let body = format!("callbackURI=http://callback{n}.invalid/");
            pushing.ask("POST", PATH, &[], body.as_bytes()).status
        })
        .collect();
    assert_eq!(statuses, [202, 202, 202, 429, 429]);
    assert_eq!(pushing.hub.metrics().targets, 0);
}
