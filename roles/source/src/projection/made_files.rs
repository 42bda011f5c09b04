//! Tests for all kinds of made files: full disk, kill, clock set back, removed set, layout of
//! earlier versions.

#[cfg(test)]
mod tests {
    use crate::made::{Signal, steps};
    use crate::projection::resourcesync::archive::{Archive, ArchiveRule, check_archives};
    use crate::projection::resourcesync::dumps::{
        DumpOptions, DumpSet, Dumps, Since, Which, check_dumps,
    };
    use crate::projection::resourcesync_0_1::ResourceSync01;
    use crate::projection::sdshare::{SetSnapshots, SnapshotOptions, check_snapshots};
    use crate::projection::{FileError, PublishedFile};
    use crate::publish::{PublishedSet, Publisher, SourceUrls};
    use crate::static_site::{SiteOptions, write_site};
    use crate::{OpenKept, Representations};
    use abreast_contents::Contents;
    use abreast_core::contents::ContentStore as _;
    use abreast_core::{
        Beginning, Change, ChangeLog, FixedClock, NewSet, SetId, ShardRule, State, append,
    };
    use abreast_store::SqliteOptions;
    use abreast_webtypes::Timestamp;
    use std::collections::BTreeMap;
    use std::fs;
    use std::io::{self, Read as _};
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Duration;

    /// The kinds of made files.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Kind {
        Resources,
        Changes,
        Snapshots,
        Archives,
        /// Dumps of ResourceSync 0.1.
        Derived,
    }

    const ALL: [Kind; 5] =
        [Kind::Resources, Kind::Changes, Kind::Snapshots, Kind::Archives, Kind::Derived];
    /// Kinds with a schedule.
    const SCHEDULED: [Kind; 4] = [Kind::Resources, Kind::Changes, Kind::Snapshots, Kind::Archives];

    /// A set of entities in two shards, with stored descriptions.
    struct Place {
        temporary: tempfile::TempDir,
        /// The IRI is unique, so that messages of other tests are not found.
        slug: String,
        clock: Arc<FixedClock>,
        log: Arc<dyn ChangeLog>,
        set: SetId,
        contents: Contents,
        version: AtomicUsize,
    }

    impl Place {
        fn new(seconds: i64) -> Self {
            static COUNT: AtomicUsize = AtomicUsize::new(0);
            let slug = format!("made-{}-", COUNT.fetch_add(1, Ordering::Relaxed));
            let temporary = tempfile::tempdir().unwrap();
            let clock = Arc::new(FixedClock::at(Timestamp::from_seconds(seconds)));
            let rule = ShardRule { resources: 2, bytes: 36_000_000 };
            let options = SqliteOptions::default().with_shard_rule(rule);
            let log: Arc<dyn ChangeLog> =
                Arc::new(options.open_temporary(Arc::<FixedClock>::clone(&clock) as _).unwrap());
            let new = NewSet { slug: slug.clone(), beginning: Beginning::Log, ..NewSet::default() };
            let set = log.open_set(&new).unwrap().id;
            let contents = Contents::open(&temporary.path().join("contents")).unwrap();
            let version = AtomicUsize::new(0);
            let place = Self { temporary, slug, clock, log, set, contents, version };
            for name in ["a", "b", "c"] {
                place.put(name);
            }
            assert!(place.log.shards(place.set).unwrap().len() > 1);
            place
        }

        /// Changes the description of an entity.
        fn put(&self, name: &str) {
            let version = self.version.fetch_add(1, Ordering::Relaxed);
            let iri = format!("http://id.example/{name}");
            let line = format!("<{iri}> <http://p.example/p> \"{version}\" .\n");
            let kept = self.contents.put_bytes(line.as_bytes()).unwrap();
            let state = State {
                modified: Timestamp::from_seconds(version as i64),
                length: Some(line.len() as u64),
                media_type: Some("application/n-triples".to_owned()),
                content: Some(kept.id()),
                ..State::default()
            };
            append(&*self.log, self.set, vec![Change::put(iri, state)]).unwrap();
        }

        fn store(&self, number: usize) -> PathBuf {
            self.temporary.path().join(format!("store-{number}"))
        }

        fn representations(&self) -> Representations {
            let contents = self.contents.clone();
            let open: OpenKept = Arc::new(move |id| contents.open_read(id).map_err(Into::into));
            Representations::elsewhere().with_kept(Some(open))
        }

        /// Opens a store in the same way as a start of the server.
        fn open(&self, kind: Kind, root: &Path, every: Duration) -> Opened<'_> {
            let representations = self.representations();
            let sources = SourceUrls::new("https://example.org/");
            let urls = sources.set(&self.slug).of_entities("http://id.example/");
            let (id, slug, log) = (self.set, self.slug.clone(), Arc::clone(&self.log));
            let folder = |name: &str| root.join(name).join(&slug);
            let set = PublishedSet::new(id, slug.clone(), urls.clone());
            let set = match kind {
                Kind::Snapshots => {
                    let options =
                        SnapshotOptions { every, chunk_bytes: 100, ..SnapshotOptions::default() };
                    let folder = folder("snapshots");
                    set.with(Some(
                        SetSnapshots::open(log, id, representations, folder, options, None)
                            .unwrap(),
                    ))
                }
                Kind::Archives => {
                    let rule = ArchiveRule { every, keep: 3 };
                    set.with(Some(Arc::new(Archive::open(folder("archives"), rule, None).unwrap())))
                }
                Kind::Resources | Kind::Changes | Kind::Derived => {
                    let options = DumpOptions {
                        every,
                        // A package for each entity.
                        part_size: 1,
                        scheduled: kind != Kind::Changes,
                        changes: kind == Kind::Changes,
                        patience: Duration::ZERO,
                        ..DumpOptions::default()
                    };
                    let of_dumps = DumpSet { id, slug, urls, representations, options };
                    set.with(Some(
                        Dumps::new(log, root.join("dumps"), None).open_set(of_dumps).unwrap(),
                    ))
                }
            };
            Opened { place: self, kind, root: root.to_owned(), set: Arc::new(set) }
        }
    }

    /// An open store, in which files of one kind are made.
    struct Opened<'a> {
        place: &'a Place,
        kind: Kind,
        root: PathBuf,
        set: Arc<PublishedSet>,
    }

    impl Opened<'_> {
        /// Makes due files; returns the message of a failure.
        fn make(&self) -> Result<(), String> {
            let (set, log) = (&self.set, &self.place.log);
            let before = steps::messages(&self.place.slug).len();
            match self.kind {
                Kind::Resources | Kind::Changes => set.dumps().unwrap().tend(),
                Kind::Snapshots => {
                    let snapshots = set.snapshots().unwrap();
                    snapshots.ask(&log.head(self.place.set).unwrap());
                    snapshots.wait();
                }
                Kind::Archives => set.archive().unwrap().tend(&**log, set, &Signal::default()),
                Kind::Derived => {
                    let documents = self.place.temporary.path().join("documents");
                    let urls = SourceUrls::new("https://example.org/");
                    let sets = [Arc::clone(set)];
                    let publisher = Publisher::new(Arc::clone(log), urls, sets, documents).unwrap();
                    let publisher = publisher.with_projection(ResourceSync01::default());
                    let made = ["zip", "warc.gz"].map(|ending| self.derived(&publisher, ending));
                    return made.into_iter().collect::<Result<Vec<_>, _>>().map(drop);
                }
            }
            match steps::messages(&self.place.slug).get(before..) {
                Some([.., last]) => Err(last.clone()),
                _ => Ok(()),
            }
        }

        /// Makes the dumps of ResourceSync 1.1 first, if the kind is made from them.
        fn prepare(&self) {
            if self.kind == Kind::Derived {
                self.set.dumps().unwrap().tend();
            }
        }

        fn derived(&self, publisher: &Publisher, ending: &str) -> Result<PublishedFile, String> {
            let dump = self.set.dumps().unwrap().newest_resources().ok_or("there is no dump")?;
            let slug = &self.place.slug;
            let path = format!("{slug}/v0.1/dump/{}-1.{ending}", dump.packages[0].stem);
            publisher.file(&path, None).map_err(|error| match error {
                FileError::Failed { detail, cause } => format!("{detail}: {cause}"),
                other => format!("{other:?}"),
            })
        }

        /// Number of published dumps, snapshots, lists or files; checks that each is complete.
        fn count(&self) -> usize {
            let set = &self.set;
            let mut damage = Vec::new();
            let mut report = |finding| damage.push(finding);
            let dumps = self.root.join("dumps");
            let (listed, found) = match self.kind {
                Kind::Resources | Kind::Changes => {
                    let dumps_of_set = set.dumps().unwrap();
                    let all = [dumps_of_set.resources(), dumps_of_set.changes()].concat();
                    let packages = all.iter().map(|dump| dump.packages.len() as u64).sum::<u64>();
                    assert_eq!(check_dumps(&dumps, true, &mut report).unwrap(), packages);
                    (all.len(), all.len() as u64)
                }
                Kind::Snapshots => {
                    let found =
                        check_snapshots(&self.root.join("snapshots"), true, &mut report).unwrap();
                    (found as usize, found)
                }
                Kind::Archives => {
                    let found =
                        check_archives(&self.root.join("archives"), true, &mut report).unwrap();
                    (set.archive().unwrap().snapshots().len(), found)
                }
                Kind::Derived => {
                    check_dumps(&dumps, true, &mut report).unwrap();
                    let names = tree(&self.root).into_keys();
                    let is_made = |name: &String| {
                        name.contains(".v0.1-")
                            && !name.ends_with(".sha256")
                            && !name.contains("making-")
                    };
                    let found = names.filter(is_made).count();
                    (found, found as u64)
                }
            };
            assert_eq!(damage, [], "{:?}", self.kind);
            assert_eq!(listed as u64, found, "{:?}: what is listed is there", self.kind);
            listed
        }
    }

    /// All files below a folder, with their lengths.
    fn tree(folder: &Path) -> BTreeMap<String, u64> {
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let entry = entry.unwrap();
            let (name, kind) =
                (entry.file_name().into_string().unwrap(), entry.file_type().unwrap());
            if kind.is_dir() {
                let below = tree(&entry.path()).into_iter();
                found.extend(below.map(|(below, length)| (format!("{name}/{below}"), length)));
                found.insert(name + "/", 0);
            } else {
                found.insert(name, entry.metadata().unwrap().len());
            }
        }
        found
    }

    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
            if path.is_dir() {
                copy(&path, &to.join(name));
            } else {
                fs::copy(&path, to.join(name)).unwrap();
            }
        }
    }

    /// A start finds nothing to remove in a store.
    fn assert_nothing_left(place: &Place, kind: Kind, root: &Path, case: &str) {
        let before = tree(root);
        assert!(before.keys().all(|name| !name.contains("making-")), "{case}: {before:?}");
        drop(place.open(kind, root, Duration::ZERO));
        assert_eq!(tree(root), before, "{case}");
    }

    const START: i64 = 1_700_000_000;

    #[test]
    fn a_full_disk_at_each_step_leaves_nothing() {
        for kind in ALL {
            let place = Place::new(START);
            for full in 1.. {
                let (root, case) = (place.store(full), format!("{kind:?}, step {full}"));
                let opened = place.open(kind, &root, Duration::ZERO);
                opened.prepare();
                let watched = steps::Watched::begin(&root, move |step, _| {
                    let why = || io::Error::new(io::ErrorKind::StorageFull, "the disk is full");
                    if step >= full { Err(why()) } else { Ok(()) }
                });
                let made = opened.make();
                let count = watched.count();
                if kind != Kind::Derived && made.is_err() {
                    opened.make().unwrap();
                    assert_eq!(watched.count(), count, "{case}: a pause follows");
                }
                drop(watched);
                assert_nothing_left(&place, kind, &root, &case);
                match made {
                    Ok(()) => assert!(opened.count() > 0, "{case}"),
                    Err(message) => {
                        assert!(message.contains("the disk is full"), "{case}: {message}");
                        assert!(
                            message.starts_with("cannot ") || kind == Kind::Derived,
                            "{message}"
                        );
                    }
                }
                let again = place.open(kind, &root, Duration::ZERO);
                assert_eq!(again.make(), Ok(()), "{case}");
                assert!(again.count() > 0, "{case}");
                if count < full {
                    assert!(count > 5, "{case}");
                    break;
                }
            }
        }
    }

    #[test]
    fn what_is_killed_between_two_steps_is_swept_and_made_again() {
        for kind in ALL {
            let place = Place::new(START);
            let root = place.store(1);
            let opened = place.open(kind, &root, Duration::ZERO);
            opened.prepare();
            let killed = place.temporary.path().join("killed");
            if kind != Kind::Derived {
                opened.make().unwrap();
                assert_eq!(opened.count(), 1, "{kind:?}");
                place.put("a");
                place.put("c");
            }
            let (from, to) = (root.clone(), killed.clone());
            let watched = steps::Watched::begin(&root, move |step, _| {
                copy(&from, &to.join(step.to_string()));
                Ok(())
            });
            opened.make().unwrap();
            let (count, steps) = (opened.count(), watched.count());
            drop(watched);
            assert!(count == 2 && steps > 5, "{kind:?}: {count}, {steps}");
            let mut torn = 0;
            for step in 1..=steps {
                let (root, case) =
                    (killed.join(step.to_string()), format!("{kind:?}, step {step}"));
                let before = tree(&root);
                let opened = place.open(kind, &root, Duration::ZERO);
                torn += usize::from(tree(&root) != before);
                assert_nothing_left(&place, kind, &root, &case);
                assert!(kind == Kind::Derived || opened.count() > 0, "{case}: the first one stays");
                assert_eq!(opened.make(), Ok(()), "{case}");
                assert_eq!(opened.count(), count, "{case}");
            }
            assert!(torn > 3, "{kind:?}: {torn}");
        }
    }

    #[test]
    fn a_clock_that_is_set_back_makes_one_at_once_and_no_more() {
        let hour = Duration::from_secs(3_600);
        for kind in SCHEDULED {
            // Far in the future.
            let place = Place::new(4_000_000_000);
            let root = place.store(1);
            let opened = place.open(kind, &root, hour);
            opened.make().unwrap();
            assert_eq!(opened.count(), 1, "{kind:?}");
            drop(opened);
            if kind == Kind::Archives {
                // The time of a copy is the time of the system.
                let record = root.join("archives").join(&place.slug).join("record");
                let text =
                    String::from_utf8(abreast_folder::read_sealed(&record).unwrap()).unwrap();
                let taken = text.lines().nth(1).unwrap().split(' ').nth(4).unwrap().to_owned();
                fs::write(&record, text.replace(&taken, "4000000000000000")).unwrap();
            }
            place.clock.set(Timestamp::from_seconds(START));
            place.put("a");
            let opened = place.open(kind, &root, hour);
            opened.make().unwrap();
            assert_eq!(opened.count(), 2, "{kind:?}");
            place.put("a");
            opened.make().unwrap();
            assert_eq!(opened.count(), 2, "{kind:?}: it is not due");
        }
    }

    #[test]
    fn files_of_a_set_that_is_removed_meanwhile_are_not_made() {
        for kind in ALL {
            let place = Place::new(START);
            for removed in 1.. {
                let (root, case) = (place.store(removed), format!("{kind:?}, step {removed}"));
                let opened = place.open(kind, &root, Duration::ZERO);
                opened.prepare();
                let folder = root.clone();
                let watched = steps::Watched::begin(&root, move |step, _| {
                    if step == removed {
                        fs::remove_dir_all(&folder)?;
                    }
                    Ok(())
                });
                let (made, count) = (opened.make(), watched.count());
                drop(watched);
                assert!(made.is_ok() || count >= removed, "{case}: {made:?}");
                assert!(count < removed || !root.exists(), "{case}: {:?}", tree(&root));
                let again = place.open(kind, &root, Duration::ZERO);
                again.prepare();
                assert_eq!(again.make(), Ok(()), "{case}");
                assert!(again.count() > 0, "{case}");
                if count < removed {
                    break;
                }
            }
        }
    }

    /// The text of a made file: of all members of a ZIP file, and without compression.
    fn text_of(path: &Path) -> String {
        let mut bytes = fs::read(path).unwrap();
        if let Ok(mut zip) = zip::ZipArchive::new(io::Cursor::new(bytes.as_slice())) {
            let mut all = Vec::new();
            for member in 0..zip.len() {
                zip.by_index(member).unwrap().read_to_end(&mut all).unwrap();
            }
            bytes = all;
        } else if bytes.starts_with(&[0x1f, 0x8b]) {
            let mut plain = Vec::new();
            flate2::read::MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut plain).unwrap();
            bytes = plain;
        }
        String::from_utf8(bytes).unwrap()
    }

    /// A maker of files, its folder, the ending of its files, and what precedes the position in them.
    type Maker<'a> = (&'a str, PathBuf, &'a str, &'a str);
    const MODIFIED: &str = "DCTERMS.modified\" content=\"";

    #[test]
    fn every_made_file_contains_its_position() {
        let place = Place::new(START);
        let root = |name: &str| place.temporary.path().join(name);
        let head = place.log.head(place.set).unwrap();
        for kind in ALL {
            let opened = place.open(kind, &root(&format!("{kind:?}")), Duration::ZERO);
            opened.prepare();
            opened.make().unwrap();
            assert!(opened.count() > 0, "{kind:?}");
        }
        let urls = SourceUrls::new("https://example.org/").set(&place.slug);
        let of_dumps = DumpSet {
            id: place.set,
            slug: place.slug.clone(),
            urls: urls.of_entities("http://id.example/"),
            representations: place.representations(),
            options: DumpOptions::default(),
        };
        let dumps =
            Dumps::new(Arc::clone(&place.log), root("since"), None).open_set(of_dumps).unwrap();
        dumps.since(Since::Position(1), Which::Every).unwrap();
        // A static site of a folder's set: entities need a server.
        let urls = SourceUrls::new("https://example.org/");
        let set = PublishedSet::new(place.set, place.slug.clone(), urls.set(&place.slug));
        let set = PublishedSet { representations: Representations::elsewhere(), ..set };
        let publisher = Publisher::new(Arc::clone(&place.log), urls, [set], root("documents"));
        let publisher = publisher.unwrap().with_projection(ResourceSync01::default());
        let options = SiteOptions { copy: false, gzip: false, reread: false };
        write_site(&publisher, &root("site"), options, &AtomicBool::new(false)).unwrap();

        let number = format!("position={}", head.position.0);
        let snapshot = format!("set={} time={} {number}", place.slug, head.time);
        let snapshot = snapshot.replace("--", "-%2D");
        let (until, change) = ("until=\"", "datetime=\"");
        let makers: [Maker<'_>; 13] = [
            ("Resource Dump", root("Resources"), ".zip", "at=\""),
            ("Change Dump", root("Changes"), ".zip", until),
            ("ZIP of ResourceSync 0.1", root("Derived"), ".v0.1-1.zip", MODIFIED),
            ("WARC of ResourceSync 0.1", root("Derived"), ".warc.gz", MODIFIED),
            ("changes since a time", root("since"), ".zip", until),
            ("snapshot in N-Triples", root("Snapshots"), ".nt", "time="),
            ("snapshot in N-Triples, gzip", root("Snapshots"), ".ntz", "time="),
            ("snapshot in RDF/XML", root("Snapshots"), ".rdf", "time="),
            ("snapshot in RDF/XML, gzip", root("Snapshots"), ".rdfz", "time="),
            ("archive", root("Archives"), ".xml.gz", "at=\""),
            ("Resource List of a static site", root("site"), "resourcelist.xml", "at=\""),
            ("Change List of a static site", root("site"), "changelist.xml", change),
            ("pages of a static site", root("site"), "about.html", "<time datetime=\""),
        ];
        for (maker, folder, ending, mark) in makers {
            let names = tree(&folder).into_keys().filter(|name| name.ends_with(ending));
            let texts: Vec<_> = names.map(|name| text_of(&folder.join(name))).collect();
            assert!(!texts.is_empty(), "{maker}: no `{ending}` in {:?}", tree(&folder));
            let position = format!("{mark}{}", head.time);
            let of_all = texts.iter().filter(|text| text.contains(mark)).count();
            assert_eq!(of_all, texts.len(), "{maker}: {texts:?}");
            assert!(texts.iter().any(|text| text.contains(&position)), "{maker}: {texts:?}");
            if mark == "time=" {
                // Each chunk has the comment: chunks are published as files.
                let chunks = texts[0].matches(&snapshot).count();
                assert!(chunks == if ending.contains("nt") { 3 } else { 1 }, "{maker}: {texts:?}");
            }
        }
    }

    #[test]
    fn the_layout_of_earlier_versions_is_read_and_swept() {
        let place = Place::new(START);
        let (root, slug) = (place.store(1), &place.slug);
        let put = |path: &str, bytes: &[u8]| {
            let path = root.join(path.replace("SET", slug));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        };
        let gzip = |text: &str| {
            let mut file =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            io::Write::write_all(&mut file, text.as_bytes()).unwrap();
            file.finish().unwrap()
        };
        let record = |kind: &str, times: &str, name: &str| {
            format!(
                "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:rs=\"http://www.openarchives.org/rs/terms/\">\
             <rs:md capability=\"{kind}\" {times}/><url><loc>https://example.org/{slug}/dump/{name}-1.zip</loc>\
             <rs:md length=\"3\" type=\"application/zip\" {times}/></url></urlset>\n"
            )
        };
        let (from, until) = ("2023-01-01T00:00:00Z", "2023-01-02T00:00:00Z");
        for (kind, capability, times) in [
            ("resources", "resourcedump", format!("at=\"{from}\" completed=\"{until}\"")),
            ("changes", "changedump", format!("from=\"{from}\" until=\"{until}\"")),
        ] {
            let name = format!("{kind}-20230102T000000.000000Z");
            let folder = format!("dumps/SET/{kind}/{name}");
            put(&format!("{folder}/{name}-1.zip"), b"zip");
            put(&format!("{folder}/{name}-1.xml"), b"xml");
            put(&format!("{folder}/record.xml"), record(capability, &times, &name).as_bytes());
            // A complete dump of ResourceSync 0.1, and leftovers of a crash.
            let stem = format!("{folder}/{name}-1.v0.1-1");
            put(&format!("{stem}.zip"), b"derived");
            put(&format!("{stem}.zip.sha256"), b"00  derived");
            put(&format!("{stem}.warc.gz.sha256"), b"00  never made");
            put(&format!("{folder}/making-{name}-1.v0.1-1.warc.gz"), b"torn");
            put(&format!("dumps/SET/{kind}/making-{kind}-x/{kind}-x-1.zip"), b"torn");
            put(&format!("dumps/SET/{kind}/note.txt"), b"another's");
        }
        let line = "<http://id.example/a> <http://p.example/p> \"0\" .\n";
        let (snapshot, length) = ("1672617600000000-3", line.len());
        let text = format!(
            "{{\"name\":{{\"time\":1672617600000000,\"position\":3}},\"created\":{},\"length\":{length},\
         \"chunks\":[{length}],\"has_rdf_xml\":false}}",
            place.log.head(place.set).unwrap().created.as_micros()
        );
        put(&format!("snapshots/SET/{snapshot}.json"), text.as_bytes());
        put(&format!("snapshots/SET/{snapshot}.nt"), line.as_bytes());
        put("snapshots/SET/making-1-1.rdf", b"torn");
        put("snapshots/SET/1-1.nt", b"without a record");
        put("snapshots/SET/note.txt", b"another's");
        let list = "list 1 1672531200000000 - 1672617600000000 3\npart 7 3 1 1672531200000000\n";
        put("archives/SET/record", format!("abreast-archive 1\n{list}").as_bytes());
        put("archives/SET/list-1.xml.gz", &gzip("<urlset/>"));
        put("archives/SET/part-7-3-1.xml.gz", &gzip("<urlset/>"));
        // Earlier versions wrote these parts without the prefix.
        put("archives/SET/part-8-4-2.xml.gz", b"torn");
        put("archives/SET/list-2.xml.gz", b"torn");
        put("archives/SET/making-list-2.xml.gz", b"torn");
        put("archives/SET/note.txt", b"another's");

        let day = Duration::from_secs(24 * 3_600);
        let opened = SCHEDULED.map(|kind| place.open(kind, &root, day));
        assert_eq!(opened[0].set.dumps().unwrap().resources().len(), 1);
        assert_eq!(opened[1].set.dumps().unwrap().changes().len(), 1);
        assert_eq!(opened[2].count(), 1);
        assert_eq!(opened[3].count(), 1);
        drop(opened);
        let names: Vec<String> =
            tree(&root).into_keys().filter(|name| !name.ends_with('/')).collect();
        let (resources, changes) =
            ("resources-20230102T000000.000000Z", "changes-20230102T000000.000000Z");
        let of_dump = |kind: &str, name: &str| {
            [
                format!("{name}/{name}-1.v0.1-1.zip"),
                format!("{name}/{name}-1.v0.1-1.zip.sha256"),
                format!("{name}/{name}-1.xml"),
                format!("{name}/{name}-1.zip"),
                format!("{name}/record.xml"),
                "note.txt".to_owned(),
            ]
            .map(|file| format!("dumps/{slug}/{kind}/{file}"))
        };
        let mut expected = [of_dump("resources", resources), of_dump("changes", changes)].concat();
        let others = ["list-1.xml.gz", "note.txt", "part-7-3-1.xml.gz", "record"];
        expected.extend(others.map(|file| format!("archives/{slug}/{file}")));
        let others = [format!("{snapshot}.json"), format!("{snapshot}.nt"), "note.txt".to_owned()];
        expected.extend(others.map(|file| format!("snapshots/{slug}/{file}")));
        expected.sort();
        assert_eq!(names, expected);
        // Intervals that ended while the program was stopped.
        place.put("a");
        for kind in SCHEDULED {
            let opened = place.open(kind, &root, day);
            let count = || match kind {
                Kind::Resources => opened.set.dumps().unwrap().resources().len(),
                Kind::Changes => opened.set.dumps().unwrap().changes().len(),
                _ => opened.count(),
            };
            assert_eq!(count(), 1, "{kind:?}");
            assert_eq!(opened.make(), Ok(()), "{kind:?}");
            assert!(count() > usize::from(kind != Kind::Changes), "{kind:?}");
        }
    }
}
