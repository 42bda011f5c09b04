//! Signatures of requests, checked by a verifier that knows only what was sent.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use abreast_net::{Method, Options, Post, Request, RequestSigner, SigningKey, with_retries};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::signature::{ED25519, UnparsedPublicKey};

use crate::{client, get, quick, read};
use abreast_testkit::http::{self, Server, answer, ok, redirect};

const JWK: &str = r#"{"kty":"OKP","crv":"Ed25519","d":"n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU","x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"}"#;
const X: &str = "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs";

fn signing() -> Options {
    let key = SigningKey::parse(JWK.as_bytes()).unwrap();
    let signer = RequestSigner::new(key, "https://harvest.example").unwrap();
    Options { signer: Some(signer), ..quick() }
}

/// Whether the request has a valid signature for its own host.
fn is_signed(seen: &http::Request) -> bool {
    let header = |name| seen.header(name).unwrap_or_default();
    let input = header("signature-input").strip_prefix("sig1=").unwrap_or_default();
    let agent = header("signature-agent").strip_prefix("sig1=").unwrap_or_default();
    let signature = header("signature").strip_prefix("sig1=:").unwrap_or_default();
    let signature = STANDARD.decode(signature.trim_end_matches(':')).unwrap_or_default();
    let base = format!(
        "\"@authority\": {}\n\"signature-agent\";key=\"sig1\": {agent}\n\"@signature-params\": {input}",
        header("host")
    );
    let number = |name: &str| -> u64 {
        let rest = input.split(&format!(";{name}=")).nth(1).unwrap_or_default();
        rest.split(';').next().and_then(|number| number.parse().ok()).unwrap_or_default()
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let public = UnparsedPublicKey::new(&ED25519, URL_SAFE_NO_PAD.decode(X).unwrap());
    agent == "\"https://harvest.example\""
        && input.starts_with("(\"@authority\" \"signature-agent\";key=\"sig1\");")
        && (now - 60..=now).contains(&number("created"))
        && number("expires") == number("created") + 300
        && public.verify(base.as_bytes(), &signature).is_ok()
}

#[tokio::test]
async fn each_hop_is_signed_for_its_own_authority() {
    let other = Server::saying(ok("x"));
    let there = other.url("/there");
    let server = Server::new(move |seen, stream| {
        let to = if seen.target() == "/" { "/inside" } else { &*there };
        stream.write_all(redirect("302 Found", to).as_bytes()).is_ok()
    });
    let (response, _) = get(&client(signing()), &server.url("/")).await.unwrap();
    assert_eq!(response.url(), other.url("/there"));
    let seen = [server.seen(), other.seen()].concat();
    assert_eq!(seen.len(), 3);
    for (number, one) in seen.iter().enumerate() {
        assert!(is_signed(one), "{number}: {:?}", one.headers().collect::<Vec<_>>());
    }
    // A signature is not valid for the other authority.
    let [first, .., last] = &seen[..] else { unreachable!() };
    assert_ne!(first.header("signature"), last.header("signature"));
}

#[tokio::test]
async fn a_repeated_request_is_signed_again() {
    let asked = AtomicUsize::new(0);
    let server = Server::new(move |_, stream| {
        let reply = match asked.fetch_add(1, Ordering::Relaxed) {
            0 => answer("503 Service Unavailable", "", ""),
            _ => ok("x"),
        };
        stream.write_all(reply.as_bytes()).is_ok()
    });
    let (client, url) = (client(signing()), server.url("/"));
    let fetched = with_retries(&client, &url, async |_| {
        client.send(&Request::new(&url)).await?.require_success()
    });
    fetched.await.unwrap();
    let seen = server.seen();
    assert!(seen.len() == 2 && seen.iter().all(is_signed));
    assert_ne!(seen[0].header("signature-input"), seen[1].header("signature-input"));
}

#[tokio::test]
async fn every_method_is_signed_and_nothing_without_a_key() {
    let server = Server::script(&[&ok("x")]);
    let (signing, plain) = (client(signing()), client(quick()));
    let url = server.url("/");
    let body = "x".into();
    let post = Post { content_type: "text/plain", body: &body, idempotency_key: None };
    let requests = [
        Request::new(&url),
        Request { post: Some(post), ..Request::new(&url) },
        Request { post: Some(post), method: Some(&Method::PUT), ..Request::new(&url) },
    ];
    for request in &requests {
        read(&signing, request).await.unwrap();
        read(&plain, request).await.unwrap();
    }
    for (number, one) in server.seen().iter().enumerate() {
        assert_eq!(is_signed(one), number % 2 == 0, "{number}");
        let is_there = one.headers().any(|(name, _)| name.to_lowercase().starts_with("signature"));
        assert_eq!(is_there, number % 2 == 0, "{number}");
    }
}
