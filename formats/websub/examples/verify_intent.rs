//! A subscription from both sides: the hub verifies that the subscriber wants it.
#![allow(clippy::print_stdout)]

use abreast_websub::{
    Intent, LeaseLimits, Mode, Request, is_confirmed, renew_after, verification_url,
};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The subscriber posts a form to the hub.
    let form = "hub.mode=subscribe&hub.topic=https%3A%2F%2Fexample.org%2Ftopic\
        &hub.callback=https%3A%2F%2Fme.example%2Fin%3Fbox%3D7&hub.lease_seconds=86400";
    let Request::Subscribe(asked) = Request::parse(form.as_bytes())? else {
        return Err("another mode".into());
    };

    // The hub decides on the lease, and asks the callback. The challenge is drawn at random.
    let day = Duration::from_secs(86_400);
    let granted =
        LeaseLimits::new(day, Duration::from_secs(60), day * 30).grant(asked.lease_seconds);
    let url =
        verification_url(&asked.callback, Mode::Subscribe, &asked.topic, "drawn", Some(granted));
    println!("the hub asks GET {url}");

    // The subscriber answers with the challenge, if it wants the subscription.
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let Intent::Verify { topic, challenge, .. } = Intent::parse(query)? else {
        return Err("refused".into());
    };
    println!(
        "the subscriber confirms {topic}, and renews after {:?}",
        renew_after(Duration::from_secs(granted))
    );
    assert!(is_confirmed(200, challenge.as_bytes(), "drawn"));
    Ok(())
}
