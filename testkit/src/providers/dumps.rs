//! ResourceSync 1.1: Resource Dumps and Change Dumps, whose packages are ZIP files, and lists perhaps.

use super::adversity::Fault;
use super::data::ChangeList;
use super::kinds::{Dumps, PART_PACKAGES, TimeIn};
use super::lists::at;
use super::provider::Provider;
use crate::bytes::digest::md5_hex;
use crate::bytes::documents::document;
use crate::bytes::zip::Zip;
use std::fmt::Write as _;

impl Provider {
    pub(super) fn dump_document(&mut self, dumps: &Dumps, path: &str) -> Option<Vec<u8>> {
        let lists = &dumps.lists;
        if lists.is_live && path.starts_with("/dump") {
            self.make_listing();
        }
        let number = |begin: &str, end: &str| {
            path.strip_prefix(begin)?.strip_suffix(end)?.parse::<usize>().ok()
        };
        let text = match path {
            "/caps.xml" => {
                let all = [
                    (dumps.has_resource_list, "resourcelist", "/list.xml"),
                    (dumps.has_change_list, "changelist", "/changes.xml"),
                    (dumps.has_resource_dump, "resourcedump", "/dump.xml"),
                    (dumps.has_change_dump, "changedump", "/cdump.xml"),
                ];
                let offered = all.into_iter().filter(|it| it.0).map(|it| (it.1, it.2));
                Some(self.capabilities(offered))
            }
            _ if path.starts_with("/list") && !dumps.has_resource_list
                || path.starts_with("/change") && !dumps.has_change_list
                || path.starts_with("/dump") && !dumps.has_resource_dump
                || path.starts_with("/cdump") && !dumps.has_change_dump =>
            {
                None
            }
            "/dump.xml" | "/cdump.xml" if dumps.has_index => Some(self.dump_index(dumps, path)),
            "/dump.xml" => Some(self.resource_dump(dumps, None)),
            "/cdump.xml" => Some(self.change_dump(dumps, None)),
            _ => {
                if let Some(part) = number("/dump/part", ".xml") {
                    Some(self.resource_dump(dumps, Some(part)))
                } else if let Some(part) = number("/cdump/part", ".xml") {
                    Some(self.change_dump(dumps, Some(part)))
                } else if let Some(package) = number("/dump/manifest", ".xml") {
                    let manifest = self.resource_manifest(dumps, package as u64);
                    Some(manifest).filter(|_| dumps.are_beside)
                } else {
                    match self.package(dumps, path) {
                        Some(package) => return Some(package),
                        None => self.list_document(lists, path),
                    }
                }
            }
        };
        text.map(String::into_bytes)
    }

    /// Digest and length of a package.
    fn sums(&self, dumps: &Dumps, package: impl FnOnce(&Self) -> Vec<u8>) -> String {
        if !dumps.has_sums {
            return String::new();
        }
        let bytes = package(self);
        format!(" hash=\"md5:{}\" length=\"{}\"", md5_hex(&bytes), bytes.len())
    }

    fn dump_index(&mut self, dumps: &Dumps, path: &str) -> String {
        let lists = &dumps.lists;
        let mut entries = self.up("/caps.xml");
        let begin = path.trim_end_matches(".xml");
        let (capability, parts) = if begin == "/dump" {
            let parts = (dumps.packages as usize).div_ceil(PART_PACKAGES);
            let at = self.at_in_dump(dumps);
            (
                format!("capability=\"resourcedump\"{at}"),
                (0..parts).map(|part| (part, at.clone())).collect(),
            )
        } else {
            let named = self.parts_of_changes(dumps);
            let mut parts = Vec::new();
            for (part, own) in &named {
                let span = if lists.has_spans { self.span(lists, own) } else { String::new() };
                parts.push((*part, span));
            }
            let all = self.all_changes(dumps);
            (format!("capability=\"changedump\"{}", self.span(lists, &all)), parts)
        };
        let base = &self.base;
        for (part, span) in &parts {
            let _ = writeln!(
                entries,
                "<sitemap><loc>{base}{begin}/part{part}.xml</loc><rs:md{span}/></sitemap>"
            );
        }
        if self.has(Fault::Loops) && self.chance(4) {
            let part = parts.first().map_or(0, |part| part.0);
            let again = [path.to_owned(), format!("{begin}/part{part}.xml")];
            let again = self.random.of(&again).clone();
            let _ = writeln!(entries, "<sitemap><loc>{}{again}</loc></sitemap>", self.base);
        }
        document("sitemapindex", &capability, &entries)
    }

    /// `at` as the Resource Dump states it.
    fn at_in_dump(&self, dumps: &Dumps) -> String {
        match dumps.time_in {
            TimeIn::Manifests => String::new(),
            TimeIn::Dump | TimeIn::Both => at(&dumps.lists, &self.data.listing),
        }
    }

    /// The begin of a document, with the link to that above it.
    fn begin_dump(&self, path: &str, part: Option<usize>) -> String {
        match part {
            None => self.up("/caps.xml"),
            Some(_) => format!("<rs:ln rel=\"index\" href=\"{}{path}\"/>\n", self.base),
        }
    }

    fn resource_dump(&mut self, dumps: &Dumps, part: Option<usize>) -> String {
        let mut entries = self.begin_dump("/dump.xml", part);
        for number in 0..dumps.packages {
            if part.is_some_and(|part| number as usize / PART_PACKAGES != part) {
                continue;
            }
            let sums = self.sums(dumps, |provider| provider.resource_package(dumps, number));
            let beside = if dumps.are_beside {
                format!(
                    "<rs:ln rel=\"contents\" href=\"{}/dump/manifest{number}.xml\"/>",
                    self.base
                )
            } else {
                String::new()
            };
            let (base, path) = (&self.base, self.path_of_resources(dumps, number));
            let _ = writeln!(entries, "<url><loc>{base}{path}</loc><rs:md{sums}/>{beside}</url>");
        }
        let at = self.at_in_dump(dumps);
        document("urlset", &format!("capability=\"resourcedump\"{at}"), &entries)
    }

    fn path_of_resources(&self, dumps: &Dumps, number: u64) -> String {
        if dumps.is_renamed {
            format!("/dump/package{number}-{}.zip", self.data.listing.end)
        } else {
            format!("/dump/package{number}.zip")
        }
    }

    fn package(&self, dumps: &Dumps, path: &str) -> Option<Vec<u8>> {
        for number in 0..dumps.packages {
            if path == self.path_of_resources(dumps, number) {
                return Some(self.resource_package(dumps, number));
            }
        }
        let list = self.change_lists(&dumps.lists);
        let list = list.iter().find(|list| dumps.package_of(list) == path)?;
        Some(self.change_package(dumps, list))
    }

    fn resource_manifest(&self, dumps: &Dumps, number: u64) -> String {
        let (listing, mut entries) = (&self.data.listing, String::new());
        for (entity, version) in
            listing.entities.iter().filter(|it| it.0 % dumps.packages == number)
        {
            let path = format!(" path=\"/r/{entity}\"");
            entries.push_str(&self.resource_entry(&dumps.lists, (*entity, *version), &path));
        }
        let at = match dumps.time_in {
            TimeIn::Dump => String::new(),
            TimeIn::Manifests | TimeIn::Both => at(&dumps.lists, listing),
        };
        document("urlset", &format!("capability=\"resourcedump-manifest\"{at}"), &entries)
    }

    fn resource_package(&self, dumps: &Dumps, number: u64) -> Vec<u8> {
        let mut zip = Zip::new();
        zip.add("manifest.xml", self.resource_manifest(dumps, number).as_bytes());
        let here = self.data.listing.entities.iter().filter(|it| it.0 % dumps.packages == number);
        for (entity, version) in here {
            zip.add(&format!("r/{entity}"), self.body(*entity, version.number).as_bytes());
        }
        zip.finish()
    }

    /// All changes that are there, as those of one list.
    fn all_changes(&self, dumps: &Dumps) -> ChangeList {
        let all = self.change_lists(&dumps.lists);
        let (begin, end) = all.first().zip(all.last()).map_or((0, 0), |it| (it.0.begin, it.1.end));
        ChangeList { path: String::new(), begin, end, is_closed: dumps.is_closed }
    }

    /// The parts of the Change Dump by their numbers, each as one list.
    fn parts_of_changes(&self, dumps: &Dumps) -> Vec<(usize, ChangeList)> {
        let mut parts: Vec<(usize, ChangeList)> = Vec::new();
        for list in self.change_lists(&dumps.lists) {
            let part = dumps.part_of(&list);
            match parts.last_mut() {
                Some((last, own)) if *last == part => {
                    (own.end, own.is_closed) = (list.end, list.is_closed);
                }
                _ => parts.push((part, list)),
            }
        }
        for (part, own) in &mut parts {
            let length = dumps.lists.length().unwrap_or(usize::MAX);
            own.is_closed &= own.end >= (*part + 1) * length.saturating_mul(PART_PACKAGES);
        }
        parts
    }

    fn change_dump(&mut self, dumps: &Dumps, part: Option<usize>) -> String {
        let (lists, mut entries) = (&dumps.lists, self.begin_dump("/cdump.xml", part));
        let all = match part {
            None => self.all_changes(dumps),
            Some(part) => {
                let own = self.parts_of_changes(dumps).into_iter().find(|it| it.0 == part);
                own.map_or_else(|| self.all_changes(dumps), |own| own.1)
            }
        };
        let mut named = self.change_lists(lists);
        named.retain(|list| part.is_none_or(|part| dumps.part_of(list) == part));
        let span = |list: &ChangeList| {
            let is_closed = list.is_closed || dumps.is_closed;
            self.span(lists, &ChangeList { path: String::new(), is_closed, ..*list })
        };
        // Of two with one span nothing shows which is the newer one, but their order.
        let shows_order = named.windows(2).all(|pair| span(&pair[0]) != span(&pair[1]));
        if dumps.is_newest_first && shows_order {
            named.reverse();
        }
        for mut list in named {
            let is_empty = list.begin == list.end && !list.is_closed && list.begin > 0;
            if is_empty && !self.faults.has(Fault::Holes) {
                // Nothing is in it yet. Without it, nothing would show that the last one before is missing.
                continue;
            }
            let sums = self.sums(dumps, |provider| provider.change_package(dumps, &list));
            let (base, path) = (&self.base, dumps.package_of(&list));
            list.is_closed |= dumps.is_closed;
            let span = if lists.has_spans { self.span(lists, &list) } else { String::new() };
            let _ = writeln!(entries, "<url><loc>{base}{path}</loc><rs:md{span}{sums}/></url>");
        }
        let span = self.span(lists, &all);
        document("urlset", &format!("capability=\"changedump\"{span}"), &entries)
    }

    fn change_package(&self, dumps: &Dumps, list: &ChangeList) -> Vec<u8> {
        let (lists, mut entries, mut zip) = (&dumps.lists, String::new(), Zip::new());
        for place in list.begin..list.end {
            let change = &self.data.log[place];
            for (entity, kind) in change.changed() {
                let name = format!("c/{place}-{entity}");
                let mut path = format!(" path=\"/{name}\"");
                if kind == "deleted" {
                    path.clear();
                } else {
                    zip.add(&name, self.body(entity, change.version).as_bytes());
                }
                entries.push_str(&self.change_entry(lists, change, (entity, kind), &path));
            }
        }
        let is_closed = list.is_closed || dumps.is_closed;
        let own = ChangeList { path: String::new(), is_closed, ..*list };
        let span = self.span(lists, &own);
        let manifest =
            document("urlset", &format!("capability=\"changedump-manifest\"{span}"), &entries);
        zip.add("manifest.xml", manifest.as_bytes());
        zip.finish()
    }
}
