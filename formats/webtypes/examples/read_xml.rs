//! Reads XML that arrives in pieces, and shows where a document is wrong.
#![allow(clippy::print_stdout)]

use abreast_webtypes::SyntaxError;
use abreast_webtypes::xml::{Reader, Token};

/// Names of the elements of a document that arrives in pieces.
fn elements(pieces: &[&[u8]]) -> Result<Vec<String>, SyntaxError> {
    let mut reader = Reader::new(&["http://www.sitemaps.org/schemas/sitemap/0.9"]);
    let mut pieces = pieces.iter();
    let mut names = Vec::new();
    loop {
        match reader.next()? {
            Token::NeedInput => match pieces.next() {
                Some(piece) => reader.push(piece),
                None => reader.finish(),
            },
            Token::Start(element) => names.push(element.local().to_owned()),
            Token::End | Token::Text(_) | Token::Markup(_) => {}
            Token::Done => return Ok(names),
        }
    }
}

fn main() -> Result<(), SyntaxError> {
    let whole =
        elements(&[b"<urlset><url><lo", b"c>https://example.org/a</loc></url>", b"</urlset>"])?;
    println!("elements: {whole:?}");
    assert_eq!(whole, ["urlset", "url", "loc"]);

    // A document that was cut is an error, never a shorter document.
    match elements(&[b"<urlset>\n<url>"]) {
        Ok(names) => panic!("{names:?}"),
        Err(cut) => {
            println!("{} at line {}, column {}: {cut}", cut.code(), cut.line(), cut.column());
        }
    }
    Ok(())
}
