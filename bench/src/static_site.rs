//! Documents that make a plain web server a Source, written without the product's code.

use crate::tree::{Listed, Tree, path_of};
use anyhow::Result;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

const START: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
const NAMESPACES: &str = "xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:rs=\"http://www.openarchives.org/rs/terms/\"";
/// Entries of one document [rs-core §7].
const MAX_ENTRIES: usize = 50_000;

/// The documents of one [`Tree`], which is beside them as `data/`.
pub(crate) struct StaticSite<'a> {
    /// The web server's root.
    root: &'a Path,
    /// Its public URL.
    base: String,
    listed: Vec<Listed>,
    /// When the Change List begins, in microseconds: before every Resource List, so that there is
    /// no gap.
    from: i64,
    /// The Change List's entries so far.
    changes: String,
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as i64)
}

fn instant(micros: i64) -> String {
    let mut text = Vec::new();
    abreast_webtypes::Timestamp::from_micros(micros).write_to(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

impl<'a> StaticSite<'a> {
    pub(crate) fn new(root: &'a Path, base: &str, tree: &Tree) -> Result<Self> {
        let site = Self { root, ..Self::imagined(base, tree) };
        fs::create_dir_all(root.join("rs"))?;
        fs::create_dir_all(root.join(".well-known"))?;
        let base = &site.base;
        site.put(
            ".well-known/resourcesync",
            &format!(
                "{START}<urlset {NAMESPACES}><rs:md capability=\"description\"/><url><loc>{base}rs/capabilitylist.xml</loc>\
                 <rs:md capability=\"capabilitylist\"/></url></urlset>\n"
            ),
        )?;
        site.put(
            "rs/capabilitylist.xml",
            &format!(
                "{START}<urlset {NAMESPACES}><rs:ln rel=\"up\" href=\"{base}.well-known/resourcesync\"/><rs:md capability=\"capabilitylist\"/>\
                 <url><loc>{base}rs/resourcelist.xml</loc><rs:md capability=\"resourcelist\"/></url>\
                 <url><loc>{base}rs/changelist.xml</loc><rs:md capability=\"changelist\"/></url></urlset>\n"
            ),
        )?;
        site.write_lists()?;
        Ok(site)
    }

    /// Documents that are not on disk.
    pub(crate) fn imagined(base: &str, tree: &Tree) -> Self {
        let listed = (0..tree.count).map(|number| tree.listed(number)).collect();
        let (root, from) = (Path::new(""), now() - 1_000_000);
        Self { root, base: base.to_owned(), listed, from, changes: String::new() }
    }

    /// Takes in what [`Tree::change`] changed.
    pub(crate) fn publish(&mut self, tree: &Tree, numbers: &[usize]) -> Result<()> {
        let at = now();
        for (order, number) in numbers.iter().enumerate() {
            self.listed[*number] = tree.listed(*number);
            let change = format!("change=\"updated\" datetime=\"{}\" ", instant(at + order as i64));
            let entry = self.entry(*number, &change);
            self.changes.push_str(&entry);
        }
        self.write_lists()
    }

    /// A Resource List of the first entries only, as bytes.
    pub(crate) fn resource_list(&self, first: usize, end: usize, at: i64) -> String {
        let mut text = format!(
            "{START}<urlset {NAMESPACES}>{}<rs:md capability=\"resourcelist\" at=\"{}\"/>\n",
            self.up(),
            instant(at)
        );
        (first..end).for_each(|number| text.push_str(&self.entry(number, "")));
        text.push_str("</urlset>\n");
        text
    }

    fn up(&self) -> String {
        format!("<rs:ln rel=\"up\" href=\"{}rs/capabilitylist.xml\"/>", self.base)
    }

    fn entry(&self, number: usize, change: &str) -> String {
        let listed = &self.listed[number];
        let mut hex = String::with_capacity(32);
        listed.md5.iter().for_each(|byte| {
            let _ = write!(hex, "{byte:02x}");
        });
        format!(
            "<url><loc>{}data/{}</loc><lastmod>{}</lastmod><rs:md {change}hash=\"md5:{hex}\" length=\"{}\" type=\"application/xml\"/></url>\n",
            self.base,
            path_of(number),
            instant(listed.modified as i64 * 1_000_000),
            listed.length
        )
    }

    /// The Change List first: anyone who reads the new Resource List finds the changes before it.
    fn write_lists(&self) -> Result<()> {
        let changes = format!(
            "{START}<urlset {NAMESPACES}>{}<rs:md capability=\"changelist\" from=\"{}\"/>\n{}</urlset>\n",
            self.up(),
            instant(self.from),
            self.changes
        );
        self.put("rs/changelist.xml", &changes)?;
        let (count, at) = (self.listed.len(), now());
        if count <= MAX_ENTRIES {
            return self.put("rs/resourcelist.xml", &self.resource_list(0, count, at));
        }
        let mut index = format!(
            "{START}<sitemapindex {NAMESPACES}>{}<rs:md capability=\"resourcelist\" at=\"{}\"/>\n",
            self.up(),
            instant(at)
        );
        for first in (0..count).step_by(MAX_ENTRIES) {
            let name = format!("rs/resourcelist_{:05}.xml", first / MAX_ENTRIES);
            self.put(&name, &self.resource_list(first, count.min(first + MAX_ENTRIES), at))?;
            let _ = writeln!(
                index,
                "<sitemap><loc>{}{name}</loc><rs:md at=\"{}\"/></sitemap>",
                self.base,
                instant(at)
            );
        }
        self.put("rs/resourcelist.xml", &format!("{index}</sitemapindex>\n"))
    }

    fn put(&self, name: &str, text: &str) -> Result<()> {
        let path = self.root.join(name);
        let temporary = path.with_extension("tmp");
        fs::write(&temporary, text)?;
        Ok(fs::rename(&temporary, &path)?)
    }
}
