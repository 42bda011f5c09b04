//! A Source of lists and dumps that a test writes, and runs that use its packages.

use crate::copy::{Copy, Ran};
use abreast_destination::{Event, sync};
use abreast_testkit::digest::md5_hex;
use abreast_testkit::documents::{self, BEGIN, capability_list, document};
use abreast_testkit::pages::Server;
use abreast_testkit::zip::Zip;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// A run that is stopped after that many items.
pub(crate) fn run_until(copy: &Copy, items: usize) -> Ran {
    let (cancel, seen) = (AtomicBool::new(false), AtomicUsize::new(0));
    Ran::of(|observer| {
        let counting = |event: &Event<'_>| {
            observer.event(event);
            if matches!(event, Event::Item(_)) && seen.fetch_add(1, SeqCst) + 1 >= items {
                cancel.store(true, SeqCst);
            }
        };
        sync(&copy.options, &counting, &cancel)
    })
}

/// Stops a run after `items` of `all` resources. On a busy machine, a run may have stored all of them
/// before it stops; then the run of another new copy is stopped.
pub(crate) fn stopped_within<T>(
    (items, all): (usize, usize),
    fresh: impl Fn() -> T,
    copy: impl Fn(&T) -> &Copy,
) -> T {
    for _ in 0..20 {
        let stopped = fresh();
        let ran = run_until(copy(&stopped), items);
        assert_eq!(ran.exit(), 130, "{:?}", ran.reported);
        if ran.items.len() < all {
            return stopped;
        }
    }
    panic!("20 runs stored all {all} resources before they stopped");
}

/// Number of packages in the state folder of the copy.
pub(crate) fn packages(copy: &Copy) -> usize {
    std::fs::read_dir(copy.folder().join(".abreast/packages")).map_or(0, Iterator::count)
}

/// A Source made of documents that a test writes.
pub(crate) struct DumpSource {
    pub(crate) server: Server,
    offered: Vec<(&'static str, &'static str)>,
    /// Links at the top of the Capability List.
    pub(crate) links: String,
}

impl DumpSource {
    pub(crate) fn new() -> Self {
        let server = Server::start();
        // Requests take time, so that a package is cheaper, whatever else this machine does.
        server.delay(Duration::from_millis(10));
        Self { server, offered: Vec::new(), links: String::new() }
    }

    pub(crate) fn url(&self) -> String {
        self.server.url("/caps.xml")
    }

    /// Offers a document in the Capability List.
    pub(crate) fn offer(
        &mut self,
        capability: &'static str,
        path: &'static str,
        root: &str,
        attributes: &str,
        entries: &str,
    ) {
        let attributes = format!("capability=\"{capability}\" {attributes}");
        self.server.body(path, document(root, &attributes, entries));
        self.offered.retain(|(_, offered)| *offered != path);
        self.offered.push((capability, path));
        let offered =
            self.offered.iter().map(|(capability, path)| (capability, self.server.url(path)));
        let list = capability_list(offered).replacen("<url>", &format!("{}<url>", self.links), 1);
        self.server.body("/caps.xml", list);
    }

    pub(crate) fn entry(&self, path: &str, body: &str, more: &str) -> String {
        documents::entry(&self.server.url(path), body.as_bytes(), more)
    }

    pub(crate) fn list(&mut self, resources: &[(String, String)]) {
        let entries: String =
            resources.iter().map(|(path, body)| self.entry(path, body, "")).collect();
        self.offer(
            "resourcelist",
            "/resourcelist.xml",
            "urlset",
            &format!("at=\"{BEGIN}\""),
            &entries,
        );
    }

    /// A package with its manifest.
    pub(crate) fn package(&self, resources: &[(String, String)], deflate: bool) -> Vec<u8> {
        let mut zip = Zip::new();
        for (number, (_, body)) in resources.iter().enumerate() {
            let name = format!("resources/{number}");
            if deflate {
                zip.deflated(&name, body.as_bytes())
            } else {
                zip.add(&name, body.as_bytes())
            };
        }
        zip.add("manifest.xml", self.manifest_of(resources).as_bytes());
        zip.finish()
    }

    /// The manifest of a package with these resources.
    pub(crate) fn manifest_of(&self, resources: &[(String, String)]) -> String {
        let each = resources.iter().enumerate();
        let entries: String = each
            .map(|(number, (path, body))| {
                self.entry(path, body, &format!("path=\"/resources/{number}\""))
            })
            .collect();
        manifest("resourcedump-manifest", &entries)
    }

    /// Packages in a dump, `/NAME.zip` each, with the manifest in `/NAME.xml` if it is `beside` them.
    pub(crate) fn dump_of(&mut self, packages: &[(&str, &[(String, String)])], beside: bool) {
        let mut entries = String::new();
        for (name, resources) in packages {
            let package = self.package(resources, false);
            let (hash, length) = (md5_hex(&package), package.len());
            let [zip, xml] = ["zip", "xml"].map(|kind| format!("/{name}.{kind}"));
            let link = format!("<rs:ln rel=\"contents\" href=\"{xml}\"/>");
            entries += &format!(
                "<url><loc>{}</loc><rs:md type=\"application/zip\" hash=\"md5:{hash}\" length=\"{length}\"/>{}</url>",
                self.server.url(&zip),
                if beside { &*link } else { "" }
            );
            self.server.body(&zip, package);
            if beside {
                self.server.body(&xml, self.manifest_of(resources));
            }
        }
        self.offer("resourcedump", "/dump.xml", "urlset", &format!("at=\"{BEGIN}\""), &entries);
    }

    pub(crate) fn dump(&mut self, packages: &[&'static str]) {
        self.dump_with(packages, |source, path| {
            let package = source.server.page(path);
            format!(
                "type=\"application/zip\" hash=\"md5:{}\" length=\"{}\"",
                md5_hex(&package),
                package.len()
            )
        });
    }

    pub(crate) fn dump_with(
        &mut self,
        packages: &[&'static str],
        attributes: impl Fn(&Self, &str) -> String,
    ) {
        let entries: String = packages
            .iter()
            .map(|path| {
                format!(
                    "<url><loc>{}</loc><rs:md {}/></url>",
                    self.server.url(path),
                    attributes(self, path)
                )
            })
            .collect();
        self.offer("resourcedump", "/dump.xml", "urlset", &format!("at=\"{BEGIN}\""), &entries);
    }

    pub(crate) fn serve(&self, resources: &[(String, String)]) {
        for (path, body) in resources {
            self.server.body(path, body.as_str());
        }
    }
}

pub(crate) fn manifest(capability: &str, entries: &str) -> String {
    document("urlset", &format!("capability=\"{capability}\" at=\"{BEGIN}\""), entries)
}

pub(crate) fn resources(count: usize) -> Vec<(String, String)> {
    (0..count)
        .map(|number| (format!("/d/{}/{number:04}.txt", number % 5), format!("resource {number}")))
        .collect()
}
