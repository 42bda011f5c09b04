//! Load measured with wrk.

use crate::run::{log_path, timed};
use crate::settings::Settings;
use crate::tree;
use abreast_testkit::Random;
use anyhow::{Context, Result, ensure};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// A wrk script that asks for every resource in turn.
pub(crate) fn script(
    settings: &Settings,
    name: &str,
    prefix: &str,
    count: usize,
) -> Result<String> {
    let mut random = Random::new(7);
    let mut text = String::from("local u = {\n");
    for _ in 0..count {
        let _ = writeln!(text, "\"{prefix}{}\",", tree::path_of(random.index(count)));
    }
    text.push_str(
        "}\nlocal r, i = {}, 0\nfunction init() for n, p in ipairs(u) do r[n] = wrk.format(\"GET\", p) end end\n",
    );
    text.push_str("function request() i = i % #r + 1 return r[i] end\n");
    let path = settings.folder.join(format!("wrk-{name}.lua"));
    fs::write(&path, text)?;
    Ok(path.to_string_lossy().into_owned())
}

/// A wrk script that posts a body with these headers.
pub(crate) fn post_script(
    settings: &Settings,
    name: &str,
    headers: &[(&str, &str)],
    bytes: usize,
) -> Result<String> {
    let mut text = format!("wrk.method = \"POST\"\nwrk.body = string.rep(\"x\", {bytes})\n");
    for (name, value) in headers {
        let _ = writeln!(text, "wrk.headers[{name:?}] = {value:?}");
    }
    let path = settings.folder.join(format!("wrk-{name}.lua"));
    fs::write(&path, text)?;
    Ok(path.to_string_lossy().into_owned())
}

/// Results of wrk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrkResult {
    pub(crate) requests: f64,
    pub(crate) seconds: f64,
    /// CPU seconds of wrk itself.
    pub(crate) cpu: f64,
}

/// Requests answered and seconds taken; an answer that is no 2xx is an error.
pub(crate) fn ask(
    settings: &Settings,
    wrk: &Path,
    url: &str,
    header: &str,
    script: Option<&str>,
    seconds: usize,
) -> Result<(f64, f64)> {
    let mut more = Vec::new();
    if !header.is_empty() {
        more.extend(["-H", header]);
    }
    if let Some(script) = script {
        more.extend(["-s", script]);
    }
    let asked = run(settings, wrk, url, 16, seconds, &more)?;
    Ok((asked.requests, asked.seconds))
}

/// The same with a number of connections and further options of wrk.
pub(crate) fn run(
    settings: &Settings,
    wrk: &Path,
    url: &str,
    connections: usize,
    seconds: usize,
    more: &[&str],
) -> Result<WrkResult> {
    let (duration, connections) = (format!("-d{seconds}s"), format!("-c{connections}"));
    let mut arguments = vec!["-t1", connections.as_str(), duration.as_str()];
    arguments.extend(more);
    arguments.push(url);
    let (usage, text) =
        timed(wrk, &arguments, &settings.folder, &log_path(&settings.folder, "wrk")?)?;
    ensure!(!text.contains("Non-2xx") && !text.contains("Socket errors"), "wrk on {url}:\n{text}");
    // `  201520 requests in 5.10s, 1.2GB read`
    let line =
        text.lines().find(|line| line.contains(" requests in ")).context("wrk printed nothing")?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let took = words.get(3).context("wrk printed too little")?.trim_end_matches(',');
    let seconds = match took.strip_suffix('m') {
        Some(minutes) => minutes.parse::<f64>()? * 60.0,
        None => took.trim_end_matches('s').parse()?,
    };
    Ok(WrkResult { requests: words[0].parse()?, seconds, cpu: usage.cpu })
}
