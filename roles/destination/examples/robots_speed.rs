//! What matching a path against a long robots.txt costs: `cargo run --release -p
//! abreast-destination --example robots_speed`.
#![allow(clippy::print_stdout, reason = "it prints its figures")]

use std::fmt::Write as _;
use std::time::Instant;

/// Rules of each kind: as many as are read.
const RULES: usize = 5_000;
/// Paths matched against them.
const PATHS: usize = 20_000;

fn main() {
    let kinds: [(&str, &dyn Fn(usize) -> String); 5] = [
        ("prefixes", &|number| format!("/archive/{:02}/item{number}/", number % 100)),
        ("nested prefixes", &|number| format!("/archive/{}", "a".repeat(number % 2_000))),
        ("wildcards at the end", &|number| format!("/*.type{number}$")),
        ("wildcards in the middle", &|number| format!("/archive/*/item{number}/*?view=")),
        ("wildcards that nearly fit", &|number| {
            format!("/archive/*a*a*a*{}b", "a".repeat(number % 50))
        }),
    ];
    let paths: Vec<String> = (0..PATHS)
        .map(|number| match number % 3 {
            0 => format!("/archive/{:02}/item{number}/page.html?view=1", number % 100),
            1 => format!(
                "/archive/{}/some/longer/path/of/a/record/{number}.type{number}",
                "a".repeat(number % 60)
            ),
            _ => format!("/other/{number}"),
        })
        .collect();
    for (name, pattern) in kinds {
        let mut text = "User-agent: *\n".to_owned();
        for number in 0..RULES {
            let _ = writeln!(text, "Disallow: {}", pattern(number));
        }
        let begun = Instant::now();
        let allow = abreast_destination::robots_matcher(&text);
        let read = begun.elapsed();
        let begun = Instant::now();
        let allowed = paths.iter().filter(|path| allow(path)).count();
        let each = begun.elapsed().as_secs_f64() / PATHS as f64 * 1e6;
        println!(
            "{RULES} {name}: read in {:.1} ms, {each:.1} us a path ({allowed} of {PATHS} allowed)",
            read.as_secs_f64() * 1e3
        );
    }
}
