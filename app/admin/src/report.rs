//! The report on a running server.

use abreast_core::hub::TopicSummary;
use abreast_core::{Clock as _, LogError, SystemClock};
use abreast_maintenance::{
    Attention, DiskUse, DumpUse, FollowerStatus, HubStatus, SetStatus, StoreStatus, free_bytes,
    hub_status,
};
use abreast_server::{Follower, FollowerAt, ServedSet, Site};
use abreast_source::SetState;
use abreast_store::summary::read_sets;
use abreast_webtypes::{Timestamp, count};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Subscriptions that ended within this time are reported, in microseconds.
const ENDED_MICROS: i64 = 7 * 24 * 3_600 * 1_000_000;

/// Most followers in the report.
const FOLLOWERS: usize = 100;

/// Reports on a running server.
#[derive(Clone, Debug)]
pub struct SiteReport {
    data: PathBuf,
}

impl SiteReport {
    /// Reports on a server with its store in the folder `data`.
    pub fn new(data: &Path) -> Self {
        Self { data: std::path::absolute(data).unwrap_or_else(|_| data.to_owned()) }
    }

    /// The report, from memory and the databases.
    pub fn store(&self, site: &Site) -> StoreStatus {
        let place = self.data.display().to_string();
        let mut status = StoreStatus {
            state: "serving".to_owned(),
            process: Some(std::process::id()),
            url: Some(site.publisher.urls().base().to_owned()),
            ..StoreStatus::default()
        };
        let mut topics = None;
        match self.hub(site) {
            Some(Ok((hub, found))) => (status.hub, topics) = (Some(hub), Some(found)),
            Some(Err(error)) => {
                let help = format!("abreast check {place}");
                status.attention.push(Attention::new(with_cause(&error), help));
            }
            None => {}
        }
        let stored = read_sets(&self.data.join("source.db")).unwrap_or_default();
        let kept: HashMap<String, Option<u64>> =
            stored.into_iter().map(|set| (set.slug, set.kept_bytes)).collect();
        for set in site.sets.all() {
            let mut set = self.set(site, set, topics.as_deref());
            set.versions_bytes = kept.get(&set.name).copied().flatten();
            status.sets.push(set);
        }
        let length = |name: &str| std::fs::metadata(self.data.join(name)).map_or(0, |m| m.len());
        let files = ["source.db", "source.db-wal", "hub.db", "hub.db-wal"];
        let dumps = status.sets.iter().filter_map(|set| set.dumps.as_ref());
        status.disk = Some(DiskUse {
            databases: files.into_iter().map(length).sum(),
            contents: status.sets.iter().filter_map(|set| set.versions_bytes).sum(),
            dumps: dumps.map(|dumps| dumps.bytes).sum(),
            free: free_bytes(&self.data),
        });
        let followers = site.followers();
        status.followers_left_out = followers.len().saturating_sub(FOLLOWERS) as u64;
        status.followers =
            followers.into_iter().take(FOLLOWERS).map(|one| follower(site, one)).collect();
        if let Err(error) = site.publisher.log().check_available() {
            let help = "make room on the disk, or put the folder of the store back";
            status.attention.push(Attention::new(error.to_string(), help));
        }
        status.place = place;
        status
    }

    /// The report on the hub, with its topics; `None` without a hub.
    pub(crate) fn hub(
        &self,
        site: &Site,
    ) -> Option<Result<(HubStatus, Vec<TopicSummary>), LogError>> {
        let hub = &site.hub.as_ref()?.hub;
        let since = Timestamp::from_micros(SystemClock.now().as_micros() - ENDED_MICROS);
        let summary = match hub.store().summary(since) {
            Ok(summary) => summary,
            Err(error) => return Some(Err(error)),
        };
        let (metrics, place) = (hub.metrics(), self.data.display().to_string());
        let mut status = hub_status(&summary, &place);
        // A process has the store open.
        let server = format!("--server {}", site.publisher.urls().base());
        for attention in &mut status.attention {
            attention.help = attention.help.replace(&format!("--data {place}"), &server);
        }
        status.delivered = Some(metrics.delivered);
        status.failed = Some(metrics.failed);
        Some(Ok((status, summary.topics)))
    }

    /// The report on a set. The bytes of its versions are not read.
    pub(crate) fn set(
        &self,
        site: &Site,
        set: &ServedSet,
        topics: Option<&[TopicSummary]>,
    ) -> SetStatus {
        let (published, log) = (&set.published, site.publisher.log());
        let watch = &published.watch;
        let mut status = SetStatus {
            name: published.slug.clone(),
            last_scan: watch.last_scan().map(|time| time.to_string()),
            unreadable_files: watch.problems(),
            held_deletions: watch.held().map_or(0, |held| held.missing),
            held: watch.held_names().iter().map(|key| published.urls.naming().uri(key)).collect(),
            dumps: dump_use(set),
            ..SetStatus::default()
        };
        if let Some(topics) = topics {
            status.note_subscribers(topics);
        }
        match log.head(published.id) {
            Ok(head) => {
                status.resources = head.resources;
                status.position = head.position.0;
                status.last_change = (head.position.0 > 0).then(|| head.time.to_string());
            }
            Err(error) => {
                let help = format!("abreast check {}", self.data.display());
                status.attention.push(Attention::new(error.to_string(), help));
            }
        }
        let state = SetState::of(&**log, published);
        state.as_ref().map_or("failed", SetState::name).clone_into(&mut status.state);
        if let Ok(state) = &state
            && let Some(attention) =
                self.attention(site.publisher.urls().base(), state, &status.name, watch.is_shared())
        {
            status.attention.push(attention);
        }
        if let Some(first) = watch.problem_texts().into_iter().next() {
            let is_of_files = published.representations.has_folder();
            let (message, help) = if is_of_files {
                let number = count(status.unreadable_files, "file");
                (
                    format!("{number} cannot be read, such as {first}"),
                    "let the user of the server read them",
                )
            } else {
                (first, "correct the description; the published state remains until then")
            };
            status.attention.push(Attention::new(message, help));
        }
        let failures = published.dumps().map(|dumps| [dumps.failure(), dumps.failure_of_changes()]);
        for (error, seconds) in failures.into_iter().flatten().flatten() {
            let message = format!("{error}; the next attempt is in {seconds} s");
            status.attention.push(Attention::new(message, "see the log of the server"));
        }
        status
    }

    fn attention(
        &self,
        base: &str,
        state: &SetState,
        name: &str,
        is_shared: bool,
    ) -> Option<Attention> {
        let (place, restart) = if is_shared {
            ("--config FILE".to_owned(), "")
        } else {
            let place = format!("--data {}", self.data.display());
            (place, ", or restart the server with --confirm-deletions")
        };
        Some(match state {
            SetState::Ready | SetState::Reading | SetState::Confirmed(_) => return None,
            SetState::Held(held) => Attention::new(
                held.to_string(),
                format!(
                    "if {}, release them at {base}admin/sets/{name}, or: curl -X POST -H 'Authorization: Bearer TOKEN' \
                     {base}api/v1/sets/{name}/deletions (a token of scope `admin`: abreast token create --name NAME --scope admin {place}){restart}; \
                     if not, put the files back",
                    held.if_intended(),
                ),
            ),
            SetState::Incomplete => Attention::new(
                "the first reading or import of the set is not complete",
                "repeat the import, or restart the server",
            ),
            SetState::Missing(reason) => {
                Attention::new(reason.clone(), "make the folder or endpoint available again")
            }
            SetState::Failed(reason) => Attention::new(
                reason.clone(),
                format!("make room on the disk, then abreast check {}", self.data.display()),
            ),
        })
    }
}

fn follower(site: &Site, follower: Follower) -> FollowerStatus {
    let (by, behind) = match follower.at {
        FollowerAt::Asked(position) => {
            let head = site
                .sets
                .find(&follower.of)
                .and_then(|set| Some(site.publisher.log().known_head(set.published.id)?.position));
            ("poll", head.map(|head| head.0.saturating_sub(position.0)))
        }
        FollowerAt::Sent(offset) => {
            let hub = site.hub.as_ref().map(|hub| &hub.hub);
            let topic = hub.and_then(|hub| hub.store().topic(hub.topic(&follower.of)?).ok()?);
            ("stream", topic.map(|topic| topic.head.0.saturating_sub(offset)))
        }
    };
    FollowerStatus {
        client: follower.client,
        program: follower.program,
        of: follower.of,
        by: by.to_owned(),
        last_request: follower.last_request.to_string(),
        behind,
    }
}

/// An error with its causes in one line.
fn with_cause(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}

fn dump_use(set: &ServedSet) -> Option<DumpUse> {
    let dumps = set.published.dumps()?;
    let all: Vec<_> = dumps.resources().into_iter().chain(dumps.changes()).collect();
    Some(DumpUse {
        packages: all.iter().map(|dump| dump.packages.len() as u64).sum(),
        bytes: all.iter().map(|dump| dump.bytes()).sum(),
        newest: all.iter().map(|dump| dump.end).max().map(|end| end.to_string()),
    })
}
