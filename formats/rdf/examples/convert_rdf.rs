//! Converts a document: `convert_rdf FROM-FILE TO-SYNTAX`, the syntax as a file extension; one
//! description of all its statements, so blank nodes keep their labels.
#![allow(clippy::print_stdout)]

use abreast_rdf::{ReadOptions, Syntax, WriteOptions, read, write};
use std::io::stdout;
use std::ops::ControlFlow;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), Some(to)) = (arguments.next(), arguments.next()) else {
        return Err("usage: convert_rdf FILE nt|ttl|rdf|jsonld".into());
    };
    let from = Syntax::of_file_name(&file).ok_or("the file name has no known extension")?.syntax;
    let to = Syntax::of_file_name(&format!("out.{to}")).ok_or("no such syntax")?.syntax;
    let mut lines = Vec::new();
    read(from, std::fs::File::open(&file)?, &ReadOptions::default(), &mut |quad| {
        lines.push(format!("{} {} {} .\n", quad.subject, quad.predicate, quad.object));
        ControlFlow::Continue(())
    })?;
    lines.sort();
    lines.dedup();
    write(to, lines.concat().as_bytes(), &WriteOptions::default(), &mut stdout().lock())?;
    Ok(())
}
