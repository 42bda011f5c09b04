//! The machine and time of a measurement, without names that identify the machine.

use std::fs;
use std::process::Command;

/// Processor, cores, memory, kernel and file system.
pub(crate) fn line() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let processor =
        value_of("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".to_owned());
    let kib = value_of("/proc/meminfo", "MemTotal")
        .and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    let memory = kib.map_or_else(String::new, |kib| format!(", {:.0} GiB", kib / 1024.0 / 1024.0));
    // Only the numbers: the rest may be of one machine's making.
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel = kernel.trim().split('-').next().unwrap_or_default();
    format!("{processor}, {cores} cores{memory}, Linux {kernel}")
}

fn value_of(path: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Today.
pub(crate) fn date() -> String {
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let mut text = Vec::new();
    abreast_webtypes::Timestamp::from_seconds(now.as_secs() as i64).write_to(&mut text);
    String::from_utf8_lossy(&text[..10]).into_owned()
}

/// The load average of the last minute.
pub(crate) fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(f64::NAN)
}

/// The first line with a number in the output of `program --version`.
pub(crate) fn version(program: &str, option: &str) -> String {
    let output = Command::new(program).arg(option).output();
    let text = output.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text
        .lines()
        .find(|line| line.bytes().any(|byte| byte.is_ascii_digit()))
        .unwrap_or_default();
    let mut words = line.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
    let number = words.find(|word| {
        word.trim_start_matches('v').starts_with(|first: char| first.is_ascii_digit())
    });
    number.unwrap_or("?").trim_start_matches('v').to_owned()
}
