//! Signs a delivery as a hub does, and verifies it as a subscriber does.
#![allow(clippy::print_stdout)]

use abreast_websub::{Key, Method, SIGNATURE_HEADER, verify};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (secret, body) = (b"not-to-be-guessed", b"<urlset/>");
    // A key is made once for each subscription.
    let header = Key::new(Method::Sha256, secret).sign(body).to_string();
    println!("{SIGNATURE_HEADER}: {header}");

    let method = verify(secret, Method::Sha256, [header.as_str()], body)?;
    println!("the body is as it was signed, by {method:?}");
    let forged = verify(secret, Method::Sha256, [header.as_str()], b"<urlset></urlset>");
    println!("another body: {forged:?}");
    assert!(forged.is_err());
    Ok(())
}
