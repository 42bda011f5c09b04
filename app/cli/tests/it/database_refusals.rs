//! Commands for stores in folders, given a store in a database: each has one clear error.

use crate::world::abreast;
use abreast_testkit::http::unused_address;
use abreast_testkit::run;
use std::fs;

/// The exit codes of a wrong use, and of a database out of reach.
const USAGE: i32 = 2;
const AWAY: i32 = 5;

#[test]
fn commands_explain_why_they_refuse_a_database() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).display().to_string();
    fs::write(path("lines"), "{\"uri\":\"http://a.example/\"}\n").unwrap();
    fs::write(path("a.nt"), "<http://a.example/> <http://b.example/> \"c\" .\n").unwrap();
    fs::create_dir(path("papers")).unwrap();
    let database = format!("postgres://abreast:hidden-word@{}/none", unused_address());
    fs::write(
        path("abreast.toml"),
        format!(
            "data = \"{database}\"\ncontents = \"s3://bucket/x\"\nscratch = \"{}\"\nnode = \"a\"\nbase_url = \"http://a.example/\"\n\
             [[set]]\nname = \"notes\"\norigin = \"records\"\n\
             [[set]]\nname = \"papers\"\nfolder = \"{}\"\n\
             [[set]]\nname = \"things\"\norigin = \"rdf\"\nnamespace = \"http://a.example/\"\n",
            path("scratch"),
            path("papers")
        ),
    )
    .unwrap();
    let (through, removed) = ("--server URL", "with `abreast set remove`");
    for (command, code, part) in [
        ("import notes @lines --config @abreast.toml", AWAY, "cannot open the database"),
        ("import notes @lines --data @@", AWAY, "cannot open the database"),
        ("import things @a.nt --config @abreast.toml", USAGE, through),
        ("import things @a.nt --data @@", USAGE, through),
        ("log notes --config @abreast.toml", AWAY, "cannot open the database"),
        ("log notes --data @@", AWAY, "cannot open the database"),
        ("set list --config @abreast.toml", AWAY, "cannot open the database"),
        ("set list --data @@", AWAY, "cannot open the database"),
        ("set remove notes --yes --config @abreast.toml", USAGE, "remove its `[[set]]`"),
        ("set remove old --yes --config @abreast.toml", AWAY, "cannot open the database"),
        ("set remove notes --yes --data @@", AWAY, "cannot open the database"),
        ("set rename notes other --config @abreast.toml", USAGE, "change its `name` first"),
        ("set rename notes other --data @@", AWAY, "cannot open the database"),
        ("drop @@ notes --yes", USAGE, removed),
        ("backup @@ @backup", USAGE, "pg_dump"),
        ("check @@", AWAY, "cannot open the database"),
        ("check --config @abreast.toml", AWAY, "cannot open the database"),
        ("repair @@ --from @papers", AWAY, "cannot open the database"),
        ("repair --config @abreast.toml", AWAY, "cannot open the database"),
        ("restore @backup @@", USAGE, "pg_restore"),
        ("build --config @abreast.toml --out @site", USAGE, "abreast sync"),
        ("build @papers --data @@ --out @site --base-url http://a.example/", USAGE, "abreast sync"),
        ("token list --config @abreast.toml", AWAY, "cannot open the database"),
        ("token list --data @@", AWAY, "cannot open the database"),
        ("hub topics --config @abreast.toml", AWAY, "database"),
        ("hub topics --data @@", AWAY, "database"),
        ("serve --config @abreast.toml --listen 127.0.0.1:0", AWAY, "cannot open the database"),
    ] {
        let args = command.split(' ').map(|word| match word.strip_prefix('@') {
            Some("@") => database.clone(),
            Some(name) => path(name),
            None => word.to_owned(),
        });
        let done = run(abreast().args(args));
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(code), "{command}: {text}");
        assert!(text.contains(part), "{command}: {text}");
        assert_eq!(text.matches("abreast: ").count(), 1, "{command}: {text}");
        assert!(text.contains("help: "), "{command}: {text}");
        for wrong in ["no store in", "scratch", "hidden-word", "source.db"] {
            assert!(!text.contains(wrong), "{command}: {text}");
        }
    }
    assert!(!place.path().join("site").exists());
}
