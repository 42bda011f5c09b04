//! The report for people, in lines of a given width.

use abreast_maintenance::{
    Attention, CopyRun, CopyStatus, DatabaseStatus, HubStatus, SetStatus, StatusReport,
    StoreStatus, TablesStatus,
};
use abreast_webtypes::{W3cDatetime, count, visible};
use indicatif::{HumanBytes, HumanCount};
use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Default width of the lines, which fits into every terminal.
const WIDTH: usize = 60;

/// Problems of a run that are printed.
const PROBLEMS: usize = 20;

/// The width of the terminal, by the variable COLUMNS.
pub(super) fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    columns.map_or(WIDTH, |columns: usize| columns.clamp(40, 120))
}

/// The lines of a report.
pub(super) fn lines(report: &StatusReport, width: usize) -> Vec<String> {
    let mut page = Page { lines: Vec::new(), width };
    for attention in &report.attention {
        page.attention(0, attention);
    }
    for store in &report.stores {
        page.store(store);
    }
    for copy in &report.copies {
        page.copy(copy);
    }
    page.left_out(report.copies_left_out, "copies");
    let healthy = if report.healthy { "healthy" } else { "needs attention: see the lines with !" };
    page.text(0, healthy);
    page.lines
}

struct Page {
    lines: Vec<String>,
    width: usize,
}

impl Page {
    /// A paragraph; further lines are indented by four more columns.
    fn text(&mut self, indent: usize, text: &str) {
        self.paragraph(" ".repeat(indent), indent + 4, text);
    }

    /// A value after its name; the lines of all values start at one column.
    fn field(&mut self, indent: usize, name: &str, value: &str) {
        self.paragraph(format!("{}{name:<14}", " ".repeat(indent)), indent + 14, value);
    }

    /// The words after the first text, in lines that fit; further lines are indented. A word that is too
    /// long has a line alone.
    fn paragraph(&mut self, beginning: String, indent: usize, text: &str) {
        let (mut line, mut is_empty) = (beginning, true);
        for word in text.split_whitespace() {
            let length = line.chars().count() + word.chars().count() + usize::from(!is_empty);
            if !is_empty && length > self.width {
                self.lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
                is_empty = true;
            }
            if !is_empty {
                line.push(' ');
            }
            line.push_str(word);
            is_empty = false;
        }
        self.lines.push(line);
    }

    fn attention(&mut self, indent: usize, attention: &Attention) {
        self.text(indent, &format!("! {}", attention.message));
        self.text(indent + 2, &format!("help: {}", attention.help));
    }

    fn left_out(&mut self, number: u64, what: &str) {
        if number > 0 {
            self.text(0, &format!("and {number} more {what}"));
        }
    }

    fn store(&mut self, store: &StoreStatus) {
        let process = store.process.map(|pid| format!(" (process {pid})")).unwrap_or_default();
        self.text(0, &format!("store {}: {}{process}", store.place, store.state));
        if let Some(url) = store.url.as_ref().filter(|url| url.trim_end_matches('/') != store.place)
        {
            self.field(2, "address", url);
        }
        if let Some(disk) = &store.disk {
            let mut used = format!("databases {}", HumanBytes(disk.databases));
            for (bytes, what) in [(disk.contents, "contents"), (disk.dumps, "dumps")] {
                if bytes > 0 {
                    let _ = write!(used, ", {what} {}", HumanBytes(bytes));
                }
            }
            if let Some(free) = disk.free {
                let _ = write!(used, "; {} free", HumanBytes(free));
            }
            self.field(2, "disk", &used);
        }
        if let Some(database) = store.database.as_ref().filter(|database| database.reachable) {
            self.database(database);
        }
        for attention in &store.attention {
            self.attention(2, attention);
        }
        for set in &store.sets {
            self.set(set);
        }
        self.left_out(store.sets_left_out, "sets");
        if let Some(hub) = &store.hub {
            self.hub(hub);
        }
        for follower in &store.followers {
            let behind = follower.lag().map(|lag| format!(", {lag} behind"));
            let last = format!(
                "{} at {}{}",
                follower.by,
                follower.last_request,
                behind.unwrap_or_default()
            );
            self.text(2, &format!("follower {} of {}: {last}", follower.client, follower.of));
            if !follower.program.is_empty() {
                self.field(4, "program", &follower.program);
            }
        }
        self.left_out(store.followers_left_out, "followers");
    }

    fn database(&mut self, database: &DatabaseStatus) {
        if let Some(version) = &database.version {
            self.field(2, "database", &format!("PostgreSQL {version}"));
        }
        if let Some(difference) = database.clock_difference_ms {
            let seconds = difference as f64 / 1e3;
            self.field(2, "clock", &format!("{seconds:+.1} s from this machine"));
        }
        let version = |tables: &TablesStatus| format!("{} {}", tables.part, tables.version);
        let versions: Vec<_> = database.tables.iter().map(version).collect();
        let none = "none yet: the first start of a node makes them".to_owned();
        let tables = if versions.is_empty() { none } else { versions.join(", ") };
        self.field(2, "tables", &tables);
        for node in &database.nodes {
            let until = shortened(&node.until);
            let lease = if node.state == "alive" { "lease until" } else { "lost, lease ended" };
            let (roles, shards) = (node.roles.join(", "), node.shards);
            self.text(
                2,
                &format!("node {} ({roles}): {shards} of 1,024 parts, {lease} {until}", node.name),
            );
        }
        for lease in &database.leases {
            let until = shortened(&lease.until);
            let state = if lease.state == "held" { "lease until" } else { "no node, lease ended" };
            let watch =
                lease.watch.as_deref().map(|watch| format!("{watch}, ")).unwrap_or_default();
            self.text(
                2,
                &format!("work {}: node {}, {watch}{state} {until}", lease.name, lease.node),
            );
            if lease.held_deletions > 0 {
                self.field(4, "held", &count(lease.held_deletions, "deletion"));
                lease.held.iter().for_each(|key| self.text(6, &visible(key)));
            }
        }
    }

    fn set(&mut self, set: &SetStatus) {
        let resources = HumanCount(set.resources);
        let noun = if set.resources == 1 { "resource" } else { "resources" };
        self.text(2, &format!("set {}: {}, {resources} {noun}", set.name, set.state));
        self.time(4, "last change", set.last_change.as_deref(), "none");
        if set.last_scan.is_some() {
            self.time(4, "last scan", set.last_scan.as_deref(), "");
        }
        if let Some(subscribers) = set.subscribers {
            let lag = match (set.subscribers_lag, set.subscribers_lag_seconds) {
                (None | Some(0), _) => String::new(),
                (Some(lag), None) => format!(", {} behind", count(lag, "notification")),
                (Some(lag), Some(age)) => {
                    format!(", {} behind ({} s)", count(lag, "notification"), HumanCount(age))
                }
            };
            self.field(4, "subscribers", &format!("{subscribers}{lag}"));
        }
        if set.held_deletions > 0 {
            self.field(4, "held", &count(set.held_deletions, "deletion"));
            for uri in &set.held {
                self.text(6, uri);
            }
            if set.more_held() > 0 {
                self.text(6, &format!("and {} more", set.more_held()));
            }
        }
        if let Some(dumps) = &set.dumps {
            let newest = dumps.newest.as_deref().map(|newest| format!(", newest {newest}"));
            let packages = count(dumps.packages, "package");
            let bytes = HumanBytes(dumps.bytes);
            self.field(4, "dumps", &format!("{packages}, {bytes}{}", newest.unwrap_or_default()));
        }
        if let Some(bytes) = set.versions_bytes {
            self.field(4, "versions", &HumanBytes(bytes).to_string());
        }
        for attention in &set.attention {
            self.attention(4, attention);
        }
    }

    fn hub(&mut self, hub: &HubStatus) {
        let (topics, targets) = (count(hub.topics, "topic"), count(hub.targets, "target"));
        self.text(2, &format!("hub: {topics}, {targets}, {} failing", hub.failing));
        if let (Some(delivered), Some(failed)) = (hub.delivered, hub.failed) {
            let delivered = HumanCount(delivered);
            self.field(4, "delivered", &format!("{delivered}, {failed} failed since the start"));
        }
        if hub.dead_letters > 0 {
            self.field(4, "given up", &count(hub.dead_letters, "notification"));
        }
        if hub.dead_subscriptions > 0 {
            let dead = hub.dead_subscriptions;
            self.field(4, "dead", &format!("{} in the last 7 days", count(dead, "subscription")));
        }
        for topic in &hub.behind {
            let age = topic.lag_seconds.map(|age| format!(" ({} s)", HumanCount(age)));
            let lag = count(topic.lag, "notification");
            let behind = format!("{} of {} targets", topic.behind, topic.targets);
            self.text(
                4,
                &format!("behind: {} {behind}, {lag}{}", topic.url, age.unwrap_or_default()),
            );
        }
        for target in &hub.failing_targets {
            let since = target.since.as_deref().map(|since| format!(" since {since}"));
            let error = target.error.as_deref().map(|error| format!(": {error}"));
            let (since, error) = (since.unwrap_or_default(), error.unwrap_or_default());
            let attempts = count(target.attempts, "failed attempt");
            self.text(4, &format!("{} {}  {attempts}{since}{error}", target.id, target.address));
        }
        for attention in &hub.attention {
            self.attention(4, attention);
        }
    }

    fn copy(&mut self, copy: &CopyStatus) {
        let process = copy.process.map(|pid| format!(" (process {pid})")).unwrap_or_default();
        let phase = copy.phase.as_deref().map(|phase| format!(", {phase}")).unwrap_or_default();
        let job = copy.job.as_deref().map(|job| format!(", job {job}")).unwrap_or_default();
        let set = copy.set.as_deref().map(|set| format!(", set {set}")).unwrap_or_default();
        self.text(0, &format!("copy {}: {}{phase}{process}{job}{set}", copy.place, copy.state));
        if let Some(source) = &copy.source {
            self.field(2, "source", source);
        }
        self.time(2, "last success", copy.last_success.as_deref(), "never");
        self.time(2, "last change", copy.last_change.as_deref(), "unknown");
        if let Some(cursor) = &copy.cursor {
            self.field(2, "cursor", cursor);
        }
        let behind = copy.behind_seconds.map_or("unknown".to_owned(), |seconds| {
            if seconds == 0 { "0 s".to_owned() } else { ago(seconds) }
        });
        self.field(2, "behind", &behind);
        let more = |is_more: bool| if is_more { "more than " } else { "" };
        let (resources, pending) = (HumanCount(copy.resources), HumanCount(copy.pending));
        self.field(2, "resources", &format!("{}{resources}", more(copy.resources_more)));
        let failed = HumanCount(copy.failed);
        let more = more(copy.pending_more);
        self.field(2, "pending", &format!("{more}{pending}, {failed} failed"));
        if copy.held_deletions > 0 {
            self.field(2, "held", &count(copy.held_deletions, "deletion"));
        }
        if let Some(run) = &copy.run {
            self.time(2, "last run", copy.last_run.as_deref(), "");
            self.run("", run);
        }
        if let Some(total) = &copy.since_start {
            self.run("since start", total);
        }
        for problem in copy.problems.iter().take(PROBLEMS) {
            let message = problem.message.lines().next().unwrap_or_default();
            self.text(2, &format!("[{}] {} {message}", problem.code, problem.uri));
        }
        let printed = copy.problems.len().min(PROBLEMS) as u64;
        if copy.problem_count > printed {
            self.text(2, &format!("and {} more problems", copy.problem_count - printed));
        }
        for attention in &copy.attention {
            self.attention(2, attention);
        }
    }

    fn run(&mut self, name: &str, run: &CopyRun) {
        let seconds = run.milliseconds as f64 / 1e3;
        let mut text = format!(
            "{}, {}, {} in {seconds:.1} s",
            count(run.changes, "change"),
            HumanBytes(run.bytes),
            count(run.requests, "request")
        );
        if run.retries > 0 {
            let _ = write!(text, ", {} repeated", run.retries);
        }
        if seconds > 0.0 && run.bytes > 0 {
            let _ = write!(text, ", {}/s", HumanBytes((run.bytes as f64 / seconds) as u64));
        }
        self.field(2, name, &text);
    }

    fn time(&mut self, indent: usize, name: &str, time: Option<&str>, none: &str) {
        let text = match time {
            Some(text) => match age(text) {
                Some(age) => format!("{} ({} ago)", shortened(text), ago(age)),
                None => text.to_owned(),
            },
            None => none.to_owned(),
        };
        self.field(indent, name, &text);
    }
}

/// A time without fractions of a second.
fn shortened(text: &str) -> String {
    match (text.split_once('.'), text.ends_with('Z')) {
        (Some((whole, _)), true) => format!("{whole}Z"),
        _ => text.to_owned(),
    }
}

/// Seconds since a W3C Datetime.
fn age(text: &str) -> Option<u64> {
    let then = W3cDatetime::parse(text.as_bytes()).ok()?.instant.as_seconds();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
    Some(now.saturating_sub(u64::try_from(then).unwrap_or(0)))
}

/// A duration in its two largest units.
fn ago(seconds: u64) -> String {
    let text = humantime::format_duration(Duration::from_secs(seconds)).to_string();
    text.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_begin_at_one_column() {
        let mut page = Page { lines: Vec::new(), width: 40 };
        page.field(2, "last run", "2026-01-01T00:00:00Z (3s ago)");
        page.field(2, "", "12 changes, 260 B, 6 requests in 0.1 s");
        let wanted = [
            "  last run      2026-01-01T00:00:00Z (3s",
            "                ago)",
            "                12 changes, 260 B, 6",
            "                requests in 0.1 s",
        ];
        assert_eq!(page.lines, wanted);
    }

    #[test]
    fn lines_fit_and_no_word_is_lost() {
        let attention = Attention::new(
            "the deletion of 30 of 40 resources is held: the files are gone",
            "abreast sync https://papers.example.org/ ./papers --max-delete 30",
        );
        let copy = CopyStatus {
            place: "./papers".to_owned(),
            source: Some("https://papers.example.org/".to_owned()),
            state: "following".to_owned(),
            last_success: Some("2026-01-01T00:00:00.123456Z".to_owned()),
            attention: vec![attention.clone()],
            ..CopyStatus::default()
        };
        let mut report = StatusReport::new("0", String::new());
        report.copies.push(copy);
        report.finish();
        let found = lines(&report, 60);
        assert!(found.iter().all(|line| line.chars().count() <= 60), "{found:#?}");
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let all = words(&found.join(" "));
        assert!(all.contains(&attention.message) && all.contains(&attention.help), "{all}");
        assert!(all.ends_with("see the lines with !"));
    }
}
