//! Checks of answers to `since` [sdshare §Fragments Feed].

use super::read::Reading;
use crate::fetch::Failure;
use crate::report::{Rule, rules as r};
use crate::walk::feeds::Feeds;
use abreast_sdshare::{Document, Entry, Limits, Relation, stamp, with_since};
use abreast_webtypes::{Timestamp, excerpt, without_fragment};

/// Most pages that are read of an answer.
const PAGES_MAX: usize = 20;
/// Most bytes of a page.
const PAGE_BYTES: u64 = 16 << 20;
const HOUR: i64 = 3_600_000_000;

/// Entries of an answer to `since`, each with the number of its page.
pub(super) struct Answered {
    pub(super) entries: Vec<(usize, Entry)>,
    is_complete: bool,
}

impl Feeds<'_> {
    /// Requests the changes since the time of an entry and since a time in the future, and sends an
    /// invalid value.
    pub(super) async fn since(&mut self, number: usize, reading: &Reading) -> Result<(), Failure> {
        let feed = self.walked.nodes[number].url.clone();
        let later = Timestamp::from_seconds(32_503_680_000); // 3000-01-01
        let newest: Vec<_> = reading.newest.iter().cloned().collect();
        if let Some((time, _)) = newest.get(newest.len() / 2) {
            let time = *time;
            if let Some(answered) =
                self.answered(number, &with_since(&feed, time), &r::SDS_SINCE).await?
            {
                self.judge(number, time, &answered, &newest);
                let one_hour_east = Timestamp::from_micros(time.as_micros().saturating_add(HOUR));
                let url = with_since(&feed, one_hour_east);
                let url = format!("{}%2B01:00", url.trim_end_matches('Z'));
                let same = self.answered(number, &url, &r::SDS_SINCE_FORM).await?;
                if let Some(other) = same.filter(|_| answered.is_complete) {
                    self.same(number, time, &answered, &other);
                }
            }
            let url = with_since(&feed, later);
            if let Some(answered) = self.answered(number, &url, &r::SDS_SINCE).await?
                && let Some((_, entry)) = answered.entries.first()
            {
                let updated = entry.updated.map(stamp).unwrap_or_default();
                let message =
                    || format!("an entry of {updated} in the answer to since={}", stamp(later));
                self.add(number, &r::SDS_SINCE, 0, message);
            }
        }
        let nonsense = with_since(&feed, later).replace(&stamp(later), "yesterday");
        if let Ok(answer) = self.ask(&nonsense, None, false, 0).await?
            && answer.facts.status != 400
        {
            let status = answer.facts.status;
            let message = || format!("since=yesterday is answered {status}");
            self.add(number, &r::SDS_SINCE_INVALID, 0, message);
        }
        Ok(())
    }

    fn judge(
        &mut self,
        number: usize,
        time: Timestamp,
        answered: &Answered,
        newest: &[(Timestamp, Vec<String>)],
    ) {
        for (page, entry) in &answered.entries {
            let Some(updated) = entry.updated.filter(|updated| *updated < time) else { continue };
            let rule = if *page == 1 { &r::SDS_SINCE } else { &r::PAGE_SINCE };
            let message = || {
                format!(
                    "an entry of {} on page {page} of the answer to since={}",
                    stamp(updated),
                    stamp(time)
                )
            };
            self.add(number, rule, 0, message);
        }
        if !answered.is_complete {
            return;
        }
        for (updated, resources) in newest.iter().filter(|(updated, _)| *updated >= time) {
            if answered.entries.iter().any(|(_, entry)| entry.resources == *resources) {
                continue;
            }
            let rule = if *updated == time { &r::SDS_SINCE_EQUAL } else { &r::SDS_SINCE };
            let message = || {
                format!(
                    "the entry of {} at {} is not in the answer to since={}",
                    excerpt(resources.first().map_or("", String::as_str)),
                    stamp(*updated),
                    stamp(time)
                )
            };
            self.add(number, rule, 0, message);
        }
    }

    /// Checks that two spellings of an instant have the same answer. The second answer may also
    /// contain newer changes.
    fn same(&mut self, number: usize, time: Timestamp, one: &Answered, other: &Answered) {
        let is_in = |entry: &Entry, of: &Answered| {
            of.entries.iter().any(|(_, other)| other.resources == entry.resources)
        };
        let missing = one.entries.iter().find(|(_, entry)| !is_in(entry, other));
        let older = other.entries.iter().find(|(_, entry)| {
            entry.updated.is_some_and(|updated| updated < time) && !is_in(entry, one)
        });
        if other.is_complete && missing.or(older).is_some() {
            let message = || {
                format!(
                    "since={} with the offset +01:00 has other entries than with Z",
                    stamp(time)
                )
            };
            self.add(number, &r::SDS_SINCE_FORM, 0, message);
        }
    }

    /// The answer to a query. `None` if the server refuses the query, which violates `rule`.
    pub(super) async fn answered(
        &mut self,
        number: usize,
        url: &str,
        rule: &'static Rule,
    ) -> Result<Option<Answered>, Failure> {
        let mut answered = Answered { entries: Vec::new(), is_complete: false };
        let mut url = url.to_owned();
        for page in 1..=PAGES_MAX {
            let query = url.split_once('?').map_or("", |(_, query)| query).to_owned();
            let fault = match self.ask(&url, None, false, PAGE_BYTES).await? {
                Ok(answer) if answer.facts.is_success() && !answer.is_whole => break,
                Ok(answer) if answer.facts.is_success() => {
                    let media_type = answer.facts.media_type();
                    let limits = Limits::default();
                    match Document::from_answer(&answer.body, media_type, &url, limits) {
                        Ok(document) => {
                            let next =
                                document.feed.link(&Relation::Next).map(|link| link.href.clone());
                            let entries = document.entries.into_iter().map(|entry| (page, entry));
                            answered.entries.extend(entries);
                            match next {
                                None => {
                                    answered.is_complete = true;
                                    break;
                                }
                                Some(next) if self.hosts.may(&next) => {
                                    without_fragment(&next).clone_into(&mut url);
                                }
                                Some(_) => break,
                            }
                            continue;
                        }
                        Err(error) => error.message().to_owned(),
                    }
                }
                Ok(answer) => format!("it is answered {}", answer.facts.status),
                Err(message) => message,
            };
            self.add(number, rule, 0, || format!("{}: {fault}", excerpt(&query)));
            return Ok(None);
        }
        Ok(Some(answered))
    }
}
