//! More ways to break a rule than the one in `cases.rs`: documents that are wrong in a place, a form or a
//! combination of their own. A row is what is wrong, the rule that finds it, and the edits of the good Source.

use crate::cases::failure;
use crate::site::Break::{self, Repeat, Replace, SmallFiles};

const DESCRIPTION: &str = "/.well-known/resourcesync";
/// The entries of the Change List Index without their intervals.
const NO_CLOSED: Break =
    Replace("/cl.xml", "<rs:md from=\"2026-01-01T00:00:00Z\" until=\"2026-01-05T00:00:00Z\"/>", "");
const NO_OPEN: Break = Replace("/cl.xml", "<rs:md from=\"2026-01-05T00:00:00Z\"/>", "");
const NO_INTERVAL_OF_PACKAGE: Break =
    Replace("/cd.xml", " from=\"2026-01-01T00:00:00Z\" until=\"2026-01-05T00:00:00Z\"/>", "/>");
const NOTIFIED: &str =
    "<url><loc>{B}/rd.xml</loc><rs:md change=\"created\" capability=\"resourcedump\"/></url>";

/// What is wrong, the rule, and the edits.
type Mutant = (&'static str, &'static str, &'static [Break]);

const MUTANTS: &[Mutant] = &[
    (
        "lists in another order, their times in the lists only",
        "RS-12.2-order",
        &[NO_CLOSED, NO_OPEN, Replace("/cl1.xml", "from=\"2026-01-01", "from=\"2026-01-06")],
    ),
    (
        "an index that begins before its lists, their times in the lists only",
        "RS-12.2-span",
        &[NO_CLOSED, NO_OPEN, Replace("/cl.xml", "from=\"2026-01-01", "from=\"2025-12-01")],
    ),
    (
        "an index that ends after its lists, their times in the lists only",
        "RS-12.2-span",
        &[
            NO_CLOSED,
            NO_OPEN,
            Replace(
                "/cl.xml",
                "from=\"2026-01-01T00:00:00Z\"",
                "from=\"2026-01-01T00:00:00Z\" until=\"2026-01-09T00:00:00Z\"",
            ),
        ],
    ),
    (
        "an open list before another, their times in the lists only",
        "RS-12.2-last",
        &[NO_CLOSED, NO_OPEN, Replace("/cl1.xml", " until=\"2026-01-05T00:00:00Z\"", "")],
    ),
    (
        "a gap between lists, one time in the index only",
        "RS-12.2-gap",
        &[NO_CLOSED, Replace("/cl.xml", "<rs:md from=\"2026-01-05", "<rs:md from=\"2026-01-06")],
    ),
    (
        "a Change Dump that begins before its package, the time in the manifest only",
        "RS-13.1-span",
        &[NO_INTERVAL_OF_PACKAGE, Replace("/cd.xml", "from=\"2026-01-01", "from=\"2025-12-01")],
    ),
    (
        "a resource twice in a list on one line",
        "RS-10.1-once",
        &[Replace("/rl1.xml", "\n", " "), Replace("/rl1.xml", "{B}/r/b.txt", "{B}/r/a.txt")],
    ),
    (
        "a wrong length of a resource above --max-file-bytes",
        "RS-7-length-true",
        &[SmallFiles, Replace("/rl1.xml", "length=\"14\"", "length=\"15\"")],
    ),
    (
        "a length below --max-file-bytes of a resource above it",
        "RS-7-length-true",
        &[SmallFiles, Replace("/rl1.xml", "length=\"14\"", "length=\"9\"")],
    ),
    ("a resource above --max-file-bytes that is not read", "WALK-limit", &[SmallFiles]),
    (
        "a wrong length of a package above --max-file-bytes",
        "RS-7-length-true",
        &[SmallFiles, Replace("/cd.xml", "length=\"", "length=\"9")],
    ),
    (
        "a Source Description in a Source Description",
        "RS-8-capability",
        &[Replace(DESCRIPTION, "\"capabilitylist\"", "\"description\"")],
    ),
    (
        "a manifest as `sitemapindex`",
        "RS-11.2-manifest",
        &[
            Replace("/p1.xml", "urlset", "sitemapindex"),
            Replace("/p1.xml", "<url>", "<sitemap>"),
            Replace("/p1.xml", "</url>", "</sitemap>"),
        ],
    ),
    (
        "the path of a patch leads out of the package",
        "RS-11.2-safe",
        &[Replace("/c1.xml", "path=\"/1/b.patch\"", "path=\"../../etc/passwd\"")],
    ),
    (
        "the path of a patch without a slash",
        "RS-11.2-slash",
        &[Replace("/c1.xml", "path=\"/1/b.patch\"", "path=\"1/b.patch\"")],
    ),
    (
        "one path for two bitstreams",
        "RS-11.2-all",
        &[Replace("/p1.xml", "/files/b.txt", "/files/a.txt")],
    ),
    (
        "one path for a bitstream and a patch",
        "RS-11.2-all",
        &[Replace("/c1.xml", "path=\"/1/b.patch\"", "path=\"/1/b.txt\"")],
    ),
    (
        "the path of the manifest itself",
        "RS-11.2-safe",
        &[Replace("/p1.xml", "/files/a.txt", "/manifest.xml")],
    ),
    (
        "a document twice in a Framework Notification, without times",
        "RSN-3-once",
        &[Repeat("/notify/framework", NOTIFIED, 2)],
    ),
];

#[test]
fn each_mutant_is_found_by_its_rule() {
    let failures: Vec<_> = MUTANTS
        .iter()
        .filter_map(|(what, rule, breaks)| Some(format!("{what}: {}", failure(rule, breaks)?)))
        .collect();
    assert!(failures.is_empty(), "{} mutants\n{}", failures.len(), failures.join("\n"));
}
