//! Documents made to need much time or memory: CPU time and memory of what reads them.

use crate::abreast;
use crate::report::Report;
use crate::run::{Usage, log_path, measured};
use crate::samples::{Samples, number};
use crate::settings::Settings;
use anyhow::{Result, ensure};
use serde_json::json;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Most CPU seconds for a document of 10 MB.
const CPU_MAX: f64 = 60.0;
/// Most memory for one document, MiB.
const MEMORY_MAX: f64 = 128.0;

/// Name of the file, what it has, and its text of about so many bytes.
type Shape = (&'static str, &'static str, fn(usize) -> String);

const SHAPES: &[Shape] = &[
    ("flat.nt", "statements of many entities", |bytes| {
        fill("", bytes, "", |text, n| {
            let _ = writeln!(text, "<http://e/{n}> <http://p> \"{n}\" .");
        })
    }),
    ("ring.nt", "one ring of blank nodes that are all alike", |bytes| {
        let nodes = bytes / 40;
        fill("<http://e/1> <http://p> _:n0 .\n", bytes, "", |text, n| {
            let _ = writeln!(text, "_:n{} <http://p> _:n{} .", n % nodes, (n + 1) % nodes);
        })
    }),
    ("grid.nt", "blank nodes that lead to each other in many ways", |bytes| {
        fill("<http://e/1> <http://p> _:n0 .\n", bytes, "", |text, n| {
            let _ = writeln!(text, "_:n{} <http://p> _:n{} .", n % 1_000, n * 7_919 % 1_009);
        })
    }),
    ("shared.nt", "200 entities that lead to one tree", |bytes| {
        let head = (0..200).fold(String::new(), |mut text, n| {
            let _ = writeln!(text, "<http://e/{n}> <http://p> _:n1 .");
            text
        });
        fill(&head, bytes, "", |text, n| {
            let _ = writeln!(text, "_:n{} <http://p> _:n{n} .", n / 2);
        })
    }),
    ("prefix.ttl", "a prefix of 100 KB, used often", |bytes| {
        let head = format!("@prefix p: <http://e/{}> .\n", "x".repeat(100_000));
        fill(&head, bytes, "", |text, n| {
            let _ = writeln!(text, "p:{n} p:p p:o .");
        })
    }),
    ("list.ttl", "one list", |bytes| {
        fill("<http://e/1> <http://p> (", bytes, ") .", |text, _| text.push_str("1 "))
    }),
    ("deep.ttl", "blank nodes within each other", |bytes| {
        fill("<http://e/1> <http://p> ", bytes, "", |text, _| text.push_str("[<http://p> "))
    }),
    ("graphs.trig", "many graphs", |bytes| {
        fill("", bytes, "", |text, n| {
            let _ = writeln!(text, "<http://g/{n}> {{ <http://e/1> <http://p> {n} }}");
        })
    }),
    ("namespace.rdf", "a namespace of 100 KB, used often", |bytes| {
        let head = format!(
            "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:p=\"http://e/{}\">",
            "x".repeat(100_000)
        );
        fill(&head, bytes, "</rdf:RDF>", |text, n| {
            let _ = write!(text, "<p:T rdf:about=\"http://e/{n}\"/>");
        })
    }),
    ("empty.jsonld", "empty objects", |bytes| {
        fill("{\"@graph\":[", bytes, "{}]}", |text, _| text.push_str("{},"))
    }),
    ("vocabulary.jsonld", "a vocabulary of 100 KB, used often", |bytes| {
        let head = format!("[{{\"@context\":{{\"@vocab\":\"http://e/{}\"}}", "x".repeat(100_000));
        fill(&head, bytes, "}]", |text, n| {
            let _ = write!(text, ",\"k{n}\":1");
        })
    }),
    ("terms.jsonld", "terms that are defined by each other", |bytes| {
        fill("[{\"@context\":{\"t0\":\"http://e/\"", bytes, "},\"t9\":1}]", |text, n| {
            let _ = write!(text, ",\"t{}\":\"t{n}:x\"", n + 1);
        })
    }),
    ("deep.jsonld", "objects within each other", |bytes| {
        fill("", bytes, "", |text, _| text.push_str("{\"http://p\":"))
    }),
    ("list.xml", "a Resource List of short entries", |bytes| {
        fill(
            "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:rs=\"http://www.openarchives.org/rs/terms/\"><rs:md capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"/>",
            bytes,
            "</urlset>",
            |text, n| {
                let _ = write!(text, "<url><loc>http://e/{n}</loc></url>");
            },
        )
    }),
    ("attributes.xml", "one element with many attributes", |bytes| {
        fill(
            "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"",
            bytes,
            "/>",
            |text, n| {
                let _ = write!(text, " a{n}=\"\"");
            },
        )
    }),
    ("feed.atom", "a feed of short entries", |bytes| {
        fill("<feed xmlns=\"http://www.w3.org/2005/Atom\">", bytes, "</feed>", |text, _| {
            text.push_str("<entry/>");
        })
    }),
    ("page.json", "a page of short activities", |bytes| {
        fill("{\"type\":\"OrderedCollectionPage\",\"orderedItems\":[", bytes, "{}]}", |text, _| {
            text.push_str("{},");
        })
    }),
    ("patch.rdfp", "a patch of short rows", |bytes| {
        fill("TX .\n", bytes, "TC .\n", |text, n| {
            let _ = writeln!(text, "A <http://e/{n}> <http://p> {n} .");
        })
    }),
];

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let program = abreast::binary(settings)?;
    let bytes = settings.size(10_000_000, 500_000);
    let (mut cpu, mut memory, mut rows) = (Samples::default(), Samples::default(), Vec::new());
    for (name, what, text) in SHAPES {
        let folder = settings.empty_folder("hostile")?;
        let file = folder.join(name);
        fs::write(&file, text(bytes))?;
        fs::create_dir(folder.join("store"))?;
        for (command, arguments) in commands(&file) {
            let log = log_path(&settings.folder, "hostile")?;
            let (usage, status, _) = measured(&program, &arguments, &folder, &log)?;
            let code = status.code();
            // `timeout` ended it, or a signal did.
            ensure!(code.is_some_and(|code| code < 124), "{command} of {name} ended with {status}");
            // Refused for another reason than its content, it would cost nothing.
            let printed = fs::read_to_string(&log)?;
            let is_read = !printed.contains("--data");
            ensure!(is_read, "{command} did not read {name}: {printed}");
            report.raw(&json!({"file": name, "bytes": bytes, "run": command, "code": code, "usage": usage.json()}));
            cpu.push(usage.cpu);
            memory.push(usage.memory_mib);
            rows.push(row(what, name, command, code, &usage));
        }
    }
    let greatest = |samples: &Samples| {
        let mut greatest = Samples::default();
        greatest.push(samples.max());
        greatest
    };
    report.at_most("most CPU time for one document", &greatest(&cpu), CPU_MAX, " s");
    report.at_most("most memory for one document", &greatest(&memory), MEMORY_MAX, " MiB");
    report.text(&format!(
        "Documents of {} MB made to need much time or memory, each read by its commands: `abreast import --dry-run` for RDF, and `abreast validate`. \
         Memory is the memory of the whole process.",
        number(bytes as f64 / 1e6)
    ));
    report.table(&["document", "command", "exit code", "CPU, s", "memory, MiB"], &rows);
    Ok(())
}

/// The commands that read such a file.
fn commands(file: &Path) -> Vec<(&'static str, Vec<String>)> {
    let path = file.to_string_lossy().into_owned();
    let owned = |arguments: &[&str]| arguments.iter().map(|&one| one.to_owned()).collect();
    let is_rdf = ["nt", "ttl", "trig", "rdf", "jsonld"]
        .iter()
        .any(|extension| file.extension().is_some_and(|found| found == *extension));
    let mut commands = vec![("validate", owned(&["validate", &path]))];
    if is_rdf {
        let arguments = ["import", "set", &path, "--data", "store", "--dry-run"];
        commands.push(("import", owned(&arguments)));
    }
    commands
}

fn row(what: &str, name: &str, command: &str, code: Option<i32>, usage: &Usage) -> Vec<String> {
    let code = code.map_or_else(String::new, |code| code.to_string());
    let cells = [number(usage.cpu), number(usage.memory_mib)];
    [format!("{what} (`{name}`)"), command.to_owned(), code].into_iter().chain(cells).collect()
}

/// A text of about so many bytes: what begins it, parts by number, what ends it.
fn fill(begin: &str, bytes: usize, end: &str, mut part: impl FnMut(&mut String, usize)) -> String {
    let mut text = begin.to_owned();
    let mut count = 0;
    while text.len() < bytes {
        part(&mut text, count);
        count += 1;
    }
    text + end
}
