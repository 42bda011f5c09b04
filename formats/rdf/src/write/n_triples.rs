//! N-Triples, as canonical lines.

use oxrdf::Triple;
use std::fmt::Write as _;

pub(super) fn write(triples: &[Triple], out: &mut String) {
    for triple in triples {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{triple} .");
    }
}
