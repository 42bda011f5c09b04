//! Change feeds in Activity Streams.

use super::adversity::Fault;
use super::data::Change;
use super::provider::{Provider, hash_of};
use super::shapes::Paging;
use super::time::{Precision, text};
use std::collections::BTreeSet;
use std::fmt::Write as _;

impl Provider {
    /// The time now, as activities have it.
    pub fn time(&self) -> String {
        text(self.now, self.shape().precision)
    }

    /// The activities in the order of the feed, by their places in the log.
    fn listed(&self) -> Vec<usize> {
        let log = &self.data.log[..self.published];
        let mut listed: Vec<usize> = (0..log.len()).collect();
        if self.shape().is_latest_only {
            let mut seen = BTreeSet::new();
            listed.reverse();
            listed.retain(|at| seen.insert(log[*at].entity));
            listed.reverse();
        }
        if self.shape().precision == Precision::Day {
            // Within a day they are in any order.
            listed.sort_by_key(|at| (log[*at].time, log[*at].entity));
        }
        if self.shape().is_newest_first {
            listed.reverse();
        }
        listed
    }

    /// The pages, with the activities of each.
    fn page_list(&self) -> Vec<(String, Vec<usize>)> {
        let listed = self.listed();
        match self.shape().paging {
            Paging::Positions => {
                let mut pages: Vec<(String, Vec<usize>)> = Vec::new();
                for at in listed {
                    let name = (at / self.page + 1).to_string();
                    match pages.last_mut() {
                        Some((last, items)) if *last == name => items.push(at),
                        _ => pages.push((name, vec![at])),
                    }
                }
                pages
            }
            Paging::Offset | Paging::Until => {
                let mut pages: Vec<Vec<usize>> =
                    listed.chunks(self.page).map(<[usize]>::to_vec).collect();
                if self.has(Fault::EmptyPage) {
                    let at = if self.shape().is_newest_first { 0 } else { pages.len() };
                    pages.insert(at, Vec::new());
                }
                (1..).map(|number: usize| number.to_string()).zip(pages).collect()
            }
        }
    }

    /// The Entry Point.
    pub(super) fn entry(&self) -> String {
        let pages = self.page_list();
        let (first, last) = match self.shape().paging {
            Paging::Until => (self.now.to_string(), String::new()),
            _ => (
                pages.first().map_or_else(|| "1".to_owned(), |page| page.0.clone()),
                pages.last().map_or_else(|| "1".to_owned(), |page| page.0.clone()),
            ),
        };
        let mut entry = self.head("OrderedCollection", "");
        let _ = write!(entry, ",\"first\":{}", self.reference(&format!("/feed/{first}")));
        if self.shape().has_last {
            let _ = write!(entry, ",\"last\":{}", self.reference(&format!("/feed/{last}")));
        }
        entry.push('}');
        entry
    }

    fn head(&self, kind: &str, path: &str) -> String {
        let (base, context) = (&self.base, self.shape().context);
        format!("{{\"@context\":\"{context}\",\"id\":\"{base}/feed{path}\",\"type\":\"{kind}\"")
    }

    fn reference(&self, path: &str) -> String {
        if self.shape().is_bare {
            format!("\"{path}\"")
        } else {
            format!("{{\"id\":\"{}{path}\",\"type\":\"OrderedCollectionPage\"}}", self.base)
        }
    }

    /// A page.
    pub(super) fn change_set(&mut self, name: &str) -> Option<String> {
        let (items, mut prev, mut next, names) = if self.shape().paging == Paging::Until {
            let until: i64 = name.parse().ok()?;
            let log = &self.data.log;
            let mut items: Vec<usize> = self.listed();
            items.retain(|at| log[*at].time <= until);
            // All that share the earliest time are on one page.
            let earliest = items.get(self.page - 1).or(items.last()).map(|at| log[*at].time);
            items.retain(|at| earliest.is_some_and(|earliest| log[*at].time >= earliest));
            let next = earliest.map_or(until, |earliest| earliest - 1);
            (items, None, Some(next.to_string()), Vec::new())
        } else {
            let mut pages = self.page_list();
            let number: usize = name.parse().ok()?;
            let is_range = self.shape().paging == Paging::Positions
                && number.checked_sub(1)? * self.page < self.published;
            if number == 1 && pages.is_empty() || is_range && pages.iter().all(|it| it.0 != name) {
                // A range whose changes are all void.
                let behind = |it: &(String, Vec<usize>)| {
                    let other = it.0.parse::<usize>().is_ok_and(|other| other > number);
                    other != self.shape().is_newest_first
                };
                let at = pages.iter().position(behind).unwrap_or(pages.len());
                pages.insert(at, (name.to_owned(), Vec::new()));
            }
            let at = pages.iter().position(|page| page.0 == name)?;
            let name_of = |at: Option<usize>| Some(pages.get(at?)?.0.clone());
            let (prev, next) = (name_of(at.checked_sub(1)), name_of(Some(at + 1)));
            let names: Vec<String> = pages.iter().map(|page| page.0.clone()).collect();
            (pages.swap_remove(at).1, prev, next, names)
        };
        let hole = self.data.hole.filter(|_| self.faults.has(Fault::Holes));
        if hole.is_some_and(|hole| items.contains(&hole)) {
            return None;
        }
        // A consumer need not use a page that does not lead back to the one it came from.
        let mut leads_back = true;
        if self.has(Fault::Loops) && self.chance(8) {
            // Back to another page: a link to itself is how some feeds end.
            let at = names.iter().position(|other| other == name).unwrap_or(0);
            let (before, behind) = (&names[..at], names.get(at + 1..).unwrap_or_default());
            let (link, others) =
                if self.random.below(2) == 0 { (&mut next, before) } else { (&mut prev, behind) };
            if !others.is_empty() {
                *link = Some(self.random.of(others).clone());
                leads_back = false;
            }
        }
        let mut page = self.head("OrderedCollectionPage", &format!("/{name}"));
        let whole = if self.shape().is_lost { "/lost" } else { "/feed" };
        let _ = write!(page, ",\"partOf\":{}", self.reference(whole));
        let prev = prev.filter(|_| self.shape().has_prev);
        for (member, name) in [("prev", prev), ("next", next)] {
            if let Some(name) = name {
                let _ = write!(page, ",\"{member}\":{}", self.reference(&format!("/feed/{name}")));
            }
        }
        page.push_str(",\"orderedItems\":[");
        let mut separator = "";
        let newest = items.iter().max().filter(|_| leads_back).map(|at| at + 1);
        for at in items {
            for _ in 0..=usize::from(self.has(Fault::Duplicates) && self.chance(4)) {
                page.push_str(separator);
                separator = ",";
                let id = if self.has(Fault::Duplicates) { 0 } else { at };
                self.activity(&self.data.log[at], id, &mut page);
            }
        }
        page.push_str("]}");
        if let Some(newest) = newest {
            self.on_pages.insert(hash_of(page.as_bytes()), newest);
        }
        Some(page)
    }

    fn activity(&self, change: &Change, id: usize, out: &mut String) {
        let (shape, base) = (self.shape(), &self.base);
        let kind = if shape.has_only_updates { "Update" } else { change.kind };
        let kind = match kind {
            kind if shape.has_listed_types => format!("[\"as:{kind}\"]"),
            kind => format!("\"{kind}\""),
        };
        let _ = write!(out, "{{\"id\":\"{base}/activity/{id}\",\"type\":{kind}");
        if let Some(date) = shape.date {
            let _ = write!(out, ",\"{date}\":\"{}\"", text(change.time, shape.precision));
        }
        if change.kind == "Refresh" {
            out.push('}');
            return;
        }
        match change.kind {
            "Move" => {
                let target = self.iri(change.target);
                let _ = write!(out, ",\"target\":{{\"id\":\"{target}\",\"type\":\"x:Term\"}}");
            }
            "Remove" => {
                let _ = write!(out, ",\"origin\":{{\"id\":\"{base}/feed\"}}");
            }
            _ => {}
        }
        let iri = self.iri(change.entity);
        let _ = write!(out, ",\"object\":{{\"id\":\"{iri}\",\"type\":\"x:Term\"");
        if shape.has_links {
            let _ = write!(
                out,
                ",\"url\":[{{\"type\":\"Link\",\"href\":\"{iri}.nt\",\"mediaType\":\"application/n-triples\"}}]"
            );
        }
        out.push_str("}}");
    }
}
