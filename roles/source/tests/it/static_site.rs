//! Static sites: their files, the order in which the files are written, and later builds.

use crate::world::{BASE, World};
use abreast_core::PageRule;
use abreast_folder::Folder;
use abreast_resourcesync::v1_1::{Capability, Document, Root};
use abreast_source::publish::Publisher;
use abreast_source::static_site::{SiteError, SiteOptions, SiteReport, write_site};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const COPY: SiteOptions = SiteOptions { copy: true, gzip: false, reread: false };

fn site(world: &World) -> PathBuf {
    world.temporary.path().join("site")
}

fn try_build(
    world: &World,
    publisher: &Publisher,
    options: SiteOptions,
) -> Result<SiteReport, SiteError> {
    write_site(publisher, &site(world), options, &AtomicBool::new(false))
}

fn build(world: &World, options: SiteOptions) -> SiteReport {
    world.scan();
    if world.log.head(world.set).unwrap().importing {
        world.log.complete_import(world.set).unwrap();
    }
    try_build(world, &world.publisher(), options).unwrap()
}

/// All public files of the site, with their inodes, which show rewritten files.
fn files(place: &Path) -> BTreeMap<String, (Vec<u8>, u64)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![place.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with(".abreast") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(place).unwrap().to_string_lossy().into_owned();
                found.insert(name, (std::fs::read(&path).unwrap(), path.metadata().unwrap().ino()));
            }
        }
    }
    found
}

/// Follows every link from the Source Description down, and checks that each linked document exists
/// and has the expected kind.
fn walk(place: &Path) -> Vec<String> {
    let mut seen = Vec::new();
    let mut next = vec![(format!("{BASE}.well-known/resourcesync"), Some(Capability::Description))];
    while let Some((url, capability)) = next.pop() {
        let path = url.strip_prefix(BASE).unwrap();
        let bytes =
            std::fs::read(place.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        let document = Document::from_slice(&bytes).unwrap();
        assert_eq!(document.head.capability, capability, "{path}");
        let inner =
            matches!(document.head.root, Root::SitemapIndex).then_some(capability).flatten();
        if matches!(capability, Some(Capability::Description | Capability::CapabilityList))
            || inner.is_some()
        {
            for entry in &document.entries {
                next.push((entry.loc.clone(), inner.or(entry.capability)));
            }
        }
        seen.push(path.to_owned());
    }
    seen.sort();
    seen
}

#[test]
fn a_site_holds_the_same_documents_as_the_server_sends() {
    let world = World::with(PageRule { changes: 2, ..PageRule::default() }, 10);
    for number in 0..30 {
        world.write(&format!("sub/f {number:02}"), &number.to_string());
    }
    let report = build(&world, COPY);
    assert_eq!((report.copied, report.problem_count), (30, 0));
    for number in 0..5 {
        world.write(&format!("sub/f {number:02}"), "another content");
    }
    std::fs::remove_file(world.folder.join("sub/f 09")).unwrap();
    build(&world, COPY);
    let seen = walk(&site(&world));
    for path in [
        "set/capabilitylist.xml",
        "set/resourcelist.xml",
        "set/changelist.xml",
        "set/changelist/1.xml",
    ] {
        assert!(seen.contains(&path.to_owned()), "{path} in {seen:?}");
    }
    assert!(
        seen.iter().filter(|path| path.starts_with("set/resourcelist/")).count() > 1,
        "{seen:?}"
    );
    let publisher = world.publisher();
    let path = "set/changelist.xml";
    assert_eq!(
        std::fs::read(site(&world).join("set/changelist.xml")).unwrap(),
        publisher.bytes(path).unwrap()
    );
    for page in ["about.html", "set/about.html", "robots.txt", "sitemap.xml"] {
        assert!(site(&world).join(page).is_file(), "{page}");
    }
    let copies = |place: &Path| -> Vec<(String, Vec<u8>)> {
        files(place).into_iter().map(|(path, (bytes, _))| (path, bytes)).collect()
    };
    assert_eq!(copies(&site(&world).join("set/r")), copies(&world.folder));
    let modified = |path: PathBuf| path.metadata().unwrap().mtime();
    assert_eq!(
        modified(site(&world).join("set/r/sub/f 07")),
        modified(world.folder.join("sub/f 07"))
    );
}

#[test]
fn a_second_build_rewrites_only_what_changed() {
    let world = World::with(PageRule { changes: 2, ..PageRule::default() }, 10);
    for number in 0..30 {
        world.write(&format!("f{number:02}"), "x");
    }
    build(&world, COPY);
    let first = files(&site(&world));
    let report = build(&world, COPY);
    assert_eq!((report.written, report.copied, report.removed), (0, 0, 0));
    assert_eq!(files(&site(&world)), first);

    world.write("f00", "y");
    // Sitemaps contain whole seconds: the file gets another second than before.
    let file = std::fs::File::options().write(true).open(world.folder.join("f00")).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000))
        .unwrap();
    let report = build(&world, COPY);
    assert_eq!(report.copied, 1);
    let second = files(&site(&world));
    let rewritten: Vec<_> = second
        .iter()
        .filter(|(path, file)| first.get(*path) != Some(*file))
        .map(|(path, _)| path.as_str())
        .collect();
    // The list and the Sitemap of one shard, the documents that link to them, the change, the pages
    // with its time, and the file.
    assert_eq!(
        rewritten.iter().filter(|path| path.contains("resourcelist/")).count(),
        1,
        "{rewritten:?}"
    );
    assert_eq!(
        rewritten.iter().filter(|path| path.contains("sitemap/")).count(),
        1,
        "{rewritten:?}"
    );
    for path in [
        "set/resourcelist.xml",
        "set/changelist.xml",
        "sitemap.xml",
        "about.html",
        "set/about.html",
        "set/r/f00",
    ] {
        assert!(rewritten.contains(&path), "{path} in {rewritten:?}");
    }
    // The pages and descriptions of the Source and of the set show the time of the last change.
    let pages = ["about.", "index.", "catalog.", "changes.", "dataset."];
    let shows = |path: &str| pages.iter().any(|page| path.contains(page));
    assert_eq!(rewritten.iter().filter(|path| shows(path)).count(), 12, "{rewritten:?}");
    assert_eq!(rewritten.len(), 12 + 6, "{rewritten:?}");
}

#[test]
fn pages_have_links_to_files_of_the_site_only() {
    let world = World::new();
    world.write("folder/<a> b.txt", "x");
    world.scan();
    world.log.complete_import(world.set).unwrap();
    world.write("folder/<a> b.txt", "changed");
    world.scan();
    let mut set = world.published();
    set.urls = set.urls.in_files();
    let publisher = world.publisher_of(set).with_static_projections();
    try_build(&world, &publisher, COPY).unwrap();
    let (mut pages, mut links) = (0, 0);
    for (path, (text, _)) in files(&site(&world)) {
        if ![".html", ".atom"].iter().any(|end| path.ends_with(end)) {
            continue;
        }
        pages += 1;
        let text = String::from_utf8(text).unwrap();
        for (_, rest) in text
            .match_indices("href=\"https://example.org/")
            .map(|(at, found)| (at, &text[at + found.len()..]))
        {
            let target = rest.split(['"', '#']).next().unwrap();
            let target = if target.is_empty() { "index.html" } else { target };
            let file = site(&world)
                .join(percent_encoding::percent_decode_str(target).decode_utf8().unwrap().as_ref());
            assert!(file.is_file(), "{target} in {path}");
            links += 1;
        }
    }
    // Six of the site and the set, and two of folders.
    assert_eq!(pages, 8);
    assert!(links > 50, "{links}");
}

#[test]
fn files_that_it_did_not_write_are_never_replaced() {
    let world = World::new();
    world.write("a", "x");
    std::fs::create_dir_all(site(&world).join("set")).unwrap();
    std::fs::write(site(&world).join("set/changelist.xml"), "mine").unwrap();
    world.scan();
    world.log.complete_import(world.set).unwrap();
    let refused = try_build(&world, &world.publisher(), COPY).unwrap_err();
    assert!(
        matches!(&refused, SiteError::Foreign(paths) if paths == &["set/changelist.xml"]),
        "{refused}"
    );
    assert_eq!(files(&site(&world)).len(), 1, "nothing was written");
    std::fs::remove_file(site(&world).join("set/changelist.xml")).unwrap();

    std::fs::create_dir_all(site(&world).join("set/r")).unwrap();
    let refused = try_build(&world, &world.publisher(), COPY).unwrap_err();
    assert!(refused.to_string().contains("set/r/"), "{refused}");
    std::fs::remove_dir(site(&world).join("set/r")).unwrap();

    let outside = world.temporary.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::remove_dir(site(&world).join("set")).unwrap();
    symlink(&outside, site(&world).join("set")).unwrap();
    assert!(try_build(&world, &world.publisher(), COPY).is_err());
    assert_eq!(
        std::fs::read_dir(&outside).unwrap().count(),
        0,
        "nothing was written through a link"
    );
    std::fs::remove_file(site(&world).join("set")).unwrap();

    // An existing robots.txt is preserved, and the build prints the line to add.
    std::fs::write(site(&world).join("robots.txt"), "User-agent: *\n").unwrap();
    let report = try_build(&world, &world.publisher(), COPY).unwrap();
    assert!(
        report.notices[0].contains("Sitemap: https://example.org/sitemap.xml"),
        "{:?}",
        report.notices
    );
    assert_eq!(
        std::fs::read_to_string(site(&world).join("robots.txt")).unwrap(),
        "User-agent: *\n"
    );
}

#[test]
fn lists_that_were_split_stay_for_one_more_build() {
    let world = World::with(PageRule::default(), 10);
    for number in 0..15 {
        world.write(&format!("f{number:02}"), "x");
    }
    build(&world, COPY);
    let lists = |world: &World| -> Vec<String> {
        files(&site(world))
            .into_keys()
            .filter(|path| path.starts_with("set/resourcelist/"))
            .collect()
    };
    let before = lists(&world);
    for number in 0..15 {
        world.write(&format!("f00-{number:02}"), "x");
    }
    build(&world, COPY);
    let during = lists(&world);
    assert!(
        before.iter().all(|path| during.contains(path)),
        "who holds the old index finds its lists"
    );
    let report = build(&world, COPY);
    let after = lists(&world);
    assert!(
        report.removed > 0 && !before.iter().all(|path| after.contains(path)),
        "{before:?} {after:?}"
    );
    walk(&site(&world));
}

#[test]
fn compressed_documents_are_never_older_than_plain_ones() {
    let world = World::new();
    world.write("a", "x");
    let gzip = SiteOptions { copy: false, gzip: true, reread: false };
    build(&world, gzip);
    let is_packed = |path: &str| path.strip_suffix(".gz").is_some();
    let same = |world: &World| {
        let all = files(&site(world));
        for (path, (bytes, _)) in all.iter().filter(|(path, _)| is_packed(path)) {
            let mut plain = Vec::new();
            flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut plain).unwrap();
            assert_eq!(all[path.strip_suffix(".gz").unwrap()].0, plain, "{path}");
        }
        all.keys().filter(|path| is_packed(path)).count()
    };
    assert!(same(&world) > 5);
    let before = files(&site(&world));
    build(&world, gzip);
    assert_eq!(files(&site(&world)), before);
    world.write("a", "another");
    build(&world, gzip);
    same(&world);
    // The build now writes no gzip: compressed copies are removed, so that no server sends them
    // instead of newer documents.
    world.write("a", "a third");
    build(&world, SiteOptions { copy: false, gzip: false, reread: false });
    same(&world);
    assert!(!site(&world).join("set/changelist.xml.gz").exists());
}

#[test]
fn copies_follow_files_that_become_folders_and_back() {
    let world = World::new();
    world.write("a", "file");
    world.write("b/c", "folder");
    build(&world, COPY);
    std::fs::remove_file(world.folder.join("a")).unwrap();
    std::fs::remove_dir_all(world.folder.join("b")).unwrap();
    world.write("a/x/y", "folder now");
    world.write("b", "file now");
    let report = build(&world, COPY);
    assert_eq!(report.problem_count, 0, "{:?}", report.problems);
    assert_eq!(std::fs::read_to_string(site(&world).join("set/r/a/x/y")).unwrap(), "folder now");
    assert_eq!(std::fs::read_to_string(site(&world).join("set/r/b")).unwrap(), "file now");
    std::fs::remove_dir_all(world.folder.join("a")).unwrap();
    build(&world, COPY);
    assert!(!site(&world).join("set/r/a").exists());
}

#[test]
fn a_file_changed_since_listing_is_copied_by_the_next_build() {
    let world = World::new();
    world.write("a", "one");
    world.scan();
    world.log.complete_import(world.set).unwrap();
    world.write("a", "two");
    let report = try_build(&world, &world.publisher(), COPY).unwrap();
    assert!(
        report.problem_count == 1 && report.problems[0].contains("changed"),
        "{:?}",
        report.problems
    );
    assert!(!site(&world).join("set/r/a").exists());
    assert_eq!(build(&world, COPY).copied, 1);
    assert_eq!(std::fs::read_to_string(site(&world).join("set/r/a")).unwrap(), "two");
}

#[test]
fn another_build_at_the_same_time_is_refused() {
    let world = World::begun();
    build(&world, COPY);
    let own = site(&world).join(".abreast/site");
    let held = Folder::open(&own).unwrap().root().lock(b"lock").unwrap().unwrap();
    assert!(matches!(try_build(&world, &world.publisher(), COPY), Err(SiteError::Locked(_))));
    drop(held);
    try_build(&world, &world.publisher(), COPY).unwrap();
}

#[test]
fn archived_lists_are_part_of_the_site() {
    use abreast_source::archive::{Archive, ArchiveRule, take};
    let world = World::with(PageRule { changes: 2, ..PageRule::default() }, 10);
    for number in 0..30 {
        world.write(&format!("f{number:02}"), "x");
    }
    build(&world, COPY);
    let rule = ArchiveRule { every: std::time::Duration::ZERO, keep: 3 };
    let archive = Archive::open(world.temporary.path().join("archive"), rule, None).unwrap();
    let set = world.published().with(Some(Arc::new(archive)));
    let publisher = world.publisher_of(set);
    let stop = AtomicBool::new(false);
    assert!(take(&*world.log, &publisher.sets()[0], &stop).unwrap());
    world.write("f00", "y");
    world.scan();
    assert!(take(&*world.log, &publisher.sets()[0], &stop).unwrap());
    try_build(&world, &publisher, COPY).unwrap();
    // The capability of the archive defines the kind of its entries.
    let place = site(&world);
    let list = std::fs::read(place.join("set/resourcelist-archive.xml")).unwrap();
    let list = Document::from_slice(&list).unwrap();
    assert_eq!(list.entries.len(), 2);
    for entry in list.entries {
        let index = std::fs::read(place.join(entry.loc.strip_prefix(BASE).unwrap())).unwrap();
        for part in Document::from_slice(&index).unwrap().entries {
            assert!(place.join(part.loc.strip_prefix(BASE).unwrap()).is_file());
        }
    }
    assert!(place.join("set/changelist-archive.xml").is_file());
    let before = files(&place);
    try_build(&world, &publisher, COPY).unwrap();
    assert_eq!(files(&place), before);
}
