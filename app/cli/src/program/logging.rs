//! Logs and errors on standard error: text for people, one JSON object a line for programs.

use crate::program::exit;
use crate::program::log_lines::{JsonLines, TextLines};
use crate::program::terminal::{self, LogEntry};
use abreast_net::TRACE;
use clap::ValueEnum as _;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::ffi::OsStr;
use std::panic::PanicHookInfo;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use tracing::Metadata;
use tracing_subscriber::filter::{FilterExt as _, LevelFilter, filter_fn};
use tracing_subscriber::fmt::format::JsonFields;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer};

/// Environment variable with the format of the log: `text` or `json`.
const FORMAT: &str = "ABREAST_LOG_FORMAT";

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

static CHOSEN: OnceLock<Format> = OnceLock::new();

/// Failures are printed on standard output as well, as JSON.
static JSON_OUTPUT: AtomicBool = AtomicBool::new(false);

/// With `--json`, a failure is printed as a JSON object on standard output, in addition to its text
/// on standard error.
pub(crate) fn report_json() {
    JSON_OUTPUT.store(true, Ordering::Relaxed);
}

/// Starts logging. A server logs its actions (level info); other commands log warnings, or more with
/// `-v`.
pub(crate) fn start(verbose: u8, server: bool) {
    let level = match verbose {
        0 if server => "info",
        0 => "warn",
        1 => "info",
        _ => "debug",
    };
    let wanted = std::env::var(FORMAT).ok().map(|name| (Format::from_str(&name, true), name));
    let on_terminal = terminal::error_is_terminal();
    let format = match &wanted {
        Some((Ok(format), _)) => *format,
        _ if server && !on_terminal => Format::Json,
        _ => Format::Text,
    };
    let _ = CHOSEN.set(format);
    if server {
        crate::program::recent_log::keep();
    }
    let (filter, wrong) = filter(std::env::var_os("ABREAST_LOG").as_deref(), level);
    let log = tracing_subscriber::fmt::layer().with_writer(|| LogEntry).with_ansi(false);
    let log = match format {
        Format::Json => log.fmt_fields(JsonFields::new()).event_format(JsonLines).boxed(),
        Format::Text => {
            let has_time = server || on_terminal;
            let is_joined = server && !on_terminal;
            log.event_format(TextLines { has_time, is_joined }).boxed()
        }
    };
    #[cfg(feature = "otlp")]
    let (traces, problem) = crate::program::traces::layer();
    #[cfg(not(feature = "otlp"))]
    let (traces, problem) =
        (None::<Box<dyn Layer<tracing_subscriber::Registry> + Send + Sync>>, None::<String>);
    // A trace is between the events and the span of their set or job.
    let has_traces = traces.is_some();
    let spans = filter_fn(move |metadata| is_own_span(metadata, has_traces));
    let mut layers = vec![log.with_filter(filter.or(spans)).boxed()];
    layers.extend(traces);
    tracing_subscriber::registry().with(layers).init();
    if let Some(error) = problem {
        tracing::warn!(%error, "no traces are sent (help: check the OTEL_EXPORTER_OTLP_* environment variables)");
    }
    std::panic::set_hook(Box::new(panicked));
    if let Some((Err(_), name)) = wanted {
        tracing::warn!("{FORMAT} is `{name}`; expected text or json");
    }
    if let Some(wrong) = wrong {
        // Not in the log: its filter may leave the message out.
        terminal::warning(&format!("abreast: {wrong}"));
    }
}

/// Whether this is a span of this program, and not of a trace that is not sent. Libraries have several
/// spans for each frame of HTTP/2.
fn is_own_span(metadata: &Metadata<'_>, has_traces: bool) -> bool {
    metadata.is_span()
        && metadata.target().starts_with("abreast")
        && (has_traces || metadata.target() != TRACE)
}

/// Libraries whose messages repeat the errors that this program reports.
const QUIET: &str = "deadpool=off,tokio_postgres=off";

/// The filter of the log, and why the given one cannot be used.
fn filter(given: Option<&OsStr>, level: &str) -> (EnvFilter, Option<String>) {
    let Some(given) = given.filter(|given| !given.is_empty()) else {
        return (EnvFilter::new(format!("{level},{QUIET}")), None);
    };
    let text = given.to_string_lossy();
    let (usable, unusable): (Vec<&str>, Vec<&str>) = text
        .split(',')
        .map(str::trim)
        .filter(|directive| !directive.is_empty())
        .partition(|directive| EnvFilter::try_new(directive).is_ok());
    let is_level = |directive: &&str| directive.parse::<LevelFilter>().is_ok();
    // A word that is not a level is the name of a part; a misspelt level is one, too.
    let word = usable.iter().find(|directive| {
        !is_level(directive) && !directive.contains(['=', '[']) && !directive.starts_with("abreast")
    });
    let wrong = match (unusable.first(), word) {
        (None, None) => return (EnvFilter::new(&*text), None),
        (Some(unusable), _) => {
            format!("`{}` cannot be used and is left out", abreast_webtypes::visible(unusable))
        }
        (None, Some(word)) => format!(
            "`{}` is no level, and is taken for the name of a part",
            abreast_webtypes::visible(word)
        ),
    };
    // Add the default level if no level is given: otherwise all parts that are not listed log nothing.
    let kept = if usable.iter().any(is_level) {
        usable.join(",")
    } else {
        [&[level][..], &usable].concat().join(",")
    };
    let shown = abreast_webtypes::visible(&text);
    let wrong = format!(
        "ABREAST_LOG is `{shown}`: {wrong}\n  help: levels are error, warn, info, debug and trace; \
         for one part: abreast_net=debug,info"
    );
    (EnvFilter::new(kept), Some(wrong))
}

/// Prints a line of progress: in a log of JSON as an entry, else as text.
pub(crate) fn progress(text: &str) {
    if is_json() {
        tracing::info!("{text}");
    } else {
        terminal::warning(&format!("progress: {text}"));
    }
}

fn is_json() -> bool {
    CHOSEN.get() == Some(&Format::Json)
}

/// The code for the kind of failure, as in reports of `sync`.
pub(crate) fn code_name(error: &anyhow::Error, exit_code: u8) -> &'static str {
    if let Some(error) =
        error.chain().find_map(|cause| cause.downcast_ref::<abreast_destination::Error>())
    {
        return error.code();
    }
    match exit_code {
        exit::USAGE => "usage",
        3 => "partial",
        exit::NETWORK => "network",
        exit::TLS => "tls",
        7 => "delete.held",
        10 => "locked",
        exit::AUTH => "access",
        exit::DISK if exit::of_machine(error).any(exit::is_denied) => "path.denied",
        exit::DISK if error.chain().any(exit::is_full) => "disk.full",
        exit::DISK => "io",
        130 => "cancelled",
        _ => "failed",
    }
}

/// Prints an error with its causes, and returns its exit code.
pub(crate) fn print_error(error: &anyhow::Error) -> u8 {
    let code = crate::program::exit::code(error);
    failure(error, code);
    code
}

/// The messages of an error and its causes, each once; the message about a full disk ends with help.
pub(crate) fn messages(error: &anyhow::Error) -> Vec<String> {
    let short = |text: String| {
        let text = abreast_webtypes::without_logins(&text);
        abreast_webtypes::short_lines(&text).into_owned()
    };
    // Leave out causes that an earlier message already contains.
    let mut causes: Vec<String> = Vec::new();
    for cause in error.chain().map(|it| short(it.to_string())) {
        if !causes.iter().any(|earlier| earlier.contains(&cause)) {
            causes.push(cause);
        }
    }
    if let Some(last) = causes.last_mut()
        && error.chain().any(crate::program::exit::is_full)
        && !error.chain().any(|cause| cause.to_string().contains("help: "))
    {
        last.push_str("\n  help: free space on the disk, then run the same command again");
    }
    causes
}

/// Prints an error with its causes, the way out last. The program ends with this exit code.
pub(crate) fn failure(error: &anyhow::Error, exit_code: u8) {
    let mut causes = messages(error);
    let message = causes.remove(0);
    if JSON_OUTPUT.load(Ordering::Relaxed) {
        let of_copy =
            error.chain().find_map(|cause| cause.downcast_ref::<abreast_destination::Error>());
        let candidates = of_copy.map(abreast_destination::Error::candidates).unwrap_or_default();
        let mut help = None;
        let mut texts = std::iter::once(&message).chain(&causes).map(|text| {
            let (text, own) = without_help(text);
            help = help.take().or(own);
            text
        });
        let (first, others) = (texts.next(), texts.collect::<Vec<_>>());
        let object = serde_json::json!({
            "type": "error", "fatal": true, "code": code_name(error, exit_code), "message": first, "help": help,
            "candidates": candidates, "causes": others, "exit_code": exit_code,
        });
        terminal::line(&object.to_string());
    }
    if is_json() {
        if causes.is_empty() {
            tracing::error!("{message}");
        } else {
            tracing::error!(causes = causes.join("; "), "{message}");
        }
        return;
    }
    let mut text = format!("abreast: {message}");
    for cause in causes {
        text.push_str("\n  because: ");
        text.push_str(&cause);
    }
    terminal::warning(&text);
}

/// Separates a message from its help, which is on a separate line or in brackets at the end.
pub(crate) fn without_help(text: &str) -> (&str, Option<&str>) {
    if let (message, Some(help)) = abreast_destination::without_help(text) {
        return (message, Some(help));
    }
    match text.rsplit_once(" (help: ") {
        Some((message, help)) if help.ends_with(')') && !message.contains('\n') => {
            (message, help.strip_suffix(')'))
        }
        _ => (text, None),
    }
}

/// Prints wrong arguments as JSON on standard output.
pub(crate) fn usage_as_json(error: &clap::Error) {
    use clap::error::{ContextKind, ContextValue};
    let text = error.render().to_string();
    let text = abreast_webtypes::without_logins(&text);
    let message =
        text.trim().trim_start_matches("error: ").split("\n\n").next().unwrap_or_default();
    let suggested = [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedValue,
        ContextKind::SuggestedSubcommand,
        ContextKind::ValidValue,
        ContextKind::ValidSubcommand,
    ];
    let candidates: Vec<&str> = suggested
        .into_iter()
        .filter_map(|kind| error.get(kind))
        .flat_map(|value| match value {
            ContextValue::String(text) => std::slice::from_ref(text),
            ContextValue::Strings(texts) => texts.as_slice(),
            _ => &[],
        })
        .map(String::as_str)
        .collect();
    let help = "abreast COMMAND --help lists the arguments";
    let object = serde_json::json!({
        "type": "error", "fatal": true, "code": "usage", "message": message, "help": help, "candidates": candidates, "causes": [], "exit_code": terminal::usage_code(error),
    });
    terminal::line(&object.to_string());
}

/// Reports the addresses of a server that is ready: on standard output for people, else in the log.
pub(crate) fn ready(line: &str) {
    if is_json() && !terminal::output_is_terminal() {
        tracing::info!("{}", line.trim());
    } else {
        terminal::line(line);
    }
}

fn panicked(panic: &PanicHookInfo<'_>) {
    let mut text = format!(
        "internal error: {panic}\n  help: this is a fault of the program: report it with this message"
    );
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        text = format!("{text}\n{trace}");
    }
    panic_line(&text);
}

/// Logs a panic, or prints its text. The log of a server is also on the page of its administrators.
fn panic_line(text: &str) {
    if is_json() || crate::program::recent_log::is_kept() {
        tracing::error!("{text}");
    } else {
        terminal::warning(&format!("abreast: {text}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_libraries_are_not_recorded() {
        let is_own = |span: &tracing::Span, has_traces| {
            is_own_span(span.metadata().expect("a span has metadata"), has_traces)
        };
        tracing::subscriber::with_default(tracing_subscriber::registry(), || {
            assert!(is_own(&tracing::error_span!("work"), false));
            assert!(!is_own(&tracing::trace_span!(target: "h2::codec", "frame"), true));
            let answer = tracing::debug_span!(target: TRACE, "answer");
            assert!(is_own(&answer, true) && !is_own(&answer, false));
        });
    }

    #[test]
    fn panics_of_a_server_are_in_its_log() {
        crate::program::recent_log::keep();
        let log = tracing_subscriber::fmt::layer()
            .with_writer(|| LogEntry)
            .with_ansi(false)
            .event_format(TextLines { has_time: true, is_joined: true });
        tracing::subscriber::with_default(tracing_subscriber::registry().with(log), || {
            panic_line("internal error: panicked at a place\n  help: report it");
        });
        let lines = crate::program::recent_log::lines();
        let is_panic = |line: &&String| line.contains("internal error: panicked at a place");
        let line = lines.iter().find(is_panic).unwrap_or_else(|| panic!("{lines:?}"));
        assert!(line.contains("ERROR") && line.contains("; help: report it"), "{line}");
    }

    #[test]
    fn what_can_be_used_of_a_log_filter_is_kept() {
        for (given, kept, is_wrong) in [
            ("info,hyper", "info,hyper", true),
            ("debgu", "debgu,warn", true),
            ("abreast=debgu,info", "info", true),
            ("abreast=debug,info", "abreast=debug,info", false),
            ("[span{a=1}]=debug", "[span{a=1}]=debug", false),
            ("", "warn,deadpool=off,tokio_postgres=off", false),
        ] {
            let (found, wrong) = filter(Some(OsStr::new(given)), "warn");
            assert_eq!(found.to_string(), EnvFilter::new(kept).to_string(), "{given}");
            assert_eq!(wrong.is_some(), is_wrong, "{given}: {wrong:?}");
        }
    }
}
