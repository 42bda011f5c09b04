//! The pages for people in a browser: WCAG 2.2 by axe-core, at three widths, light and dark; the
//! keyboard; changes with and without scripts.

use crate::world::{Source, abreast};
use abreast_testkit::http::unused_address;
use abreast_testkit::{eventually, provided, run};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

const SUBJECTS: &str = "\
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
<http://id.example.org/maps> a skos:Concept ;
  skos:prefLabel \"Maps\"@en, \"Karten\"@de, \"خرائط\"@ar ;
  skos:narrower <http://id.example.org/atlases> ;
  skos:scopeNote \"Maps and charts of any scale\"@en ;
  skos:related [ skos:prefLabel \"a node without an IRI\" ] .
<http://id.example.org/atlases> a skos:Concept ;
  skos:prefLabel \"Atlases\"@en ; skos:broader <http://id.example.org/maps> .
";

/// A small image: a square of one colour, in PNG.
const IMAGE: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, 0x49, 0x48, 0x44, 0x52, 0, 0, 0,
    1, 0, 0, 0, 1, 8, 6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89, 0, 0, 0, 0x0d, 0x49, 0x44, 0x41, 0x54,
    0x78, 0x9c, 0x63, 0xf8, 0xcf, 0xc0, 0xf0, 0x1f, 0, 5, 0, 1, 0xff, 0x56, 0xc7, 0x2f, 0x0d, 0, 0,
    0, 0, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];

/// Writes a set of files and a set of entities, and the configuration that publishes them.
fn publish(place: &Path) -> Source {
    let papers = place.join("papers");
    fs::create_dir_all(papers.join("letters")).unwrap();
    fs::create_dir_all(papers.join("maps")).unwrap();
    fs::create_dir(place.join("subjects")).unwrap();
    for number in 1..=120 {
        let letter = format!("<letter><p>Letter {number} to the librarian.</p></letter>\n");
        fs::write(papers.join(format!("letters/{number:03}.xml")), letter).unwrap();
    }
    fs::write(papers.join("maps/rhine.png"), IMAGE).unwrap();
    fs::write(papers.join("notes.txt"), "first line\nsecond line\n").unwrap();
    let form =
        "<form method=post action=/admin/api/v1/sets/papers/deletions><button>x</button></form>";
    fs::write(papers.join("form.html"), form).unwrap();
    let secret = place.join("secret");
    fs::write(&secret, "a secret of enough length\n").unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let closed = unused_address();
    fs::write(place.join("subjects/subjects.ttl"), SUBJECTS).unwrap();
    let here = place.display();
    let config = format!(
        "data = \"{here}/store\"\n[notify]\ndebounce = \"30ms\"\n\
         [institution]\nname = \"Example Library\"\nurl = \"https://library.example.org/\"\n\
         contact = \"data@library.example.org\"\naccent = \"#7a1f2b\"\n\
         [[set]]\nname = \"papers\"\nfolder = \"{here}/papers\"\ntitle = \"Letters and maps\"\n\
         description = \"Letters of the eighteenth century, with transcriptions.\"\n\
         licence = \"https://creativecommons.org/publicdomain/zero/1.0/\"\ncontact = \"maps@example.org\"\n\
         versions = \"all\"\ndebounce = \"30ms\"\ndumps = {{}}\n\
         [[set.webhook]]\nurl = \"http://{closed}/hook\"\nsecret_file = \"{here}/secret\"\n\
         [[set]]\nname = \"subjects\"\nfolder = \"{here}/subjects\"\norigin = \"rdf\"\n\
         namespace = \"http://id.example.org/\"\ntitle = \"Subject headings\"\nversions = \"all\"\n"
    );
    let path = place.join("abreast.toml");
    fs::write(&path, config).unwrap();
    Source::start_config(path.to_str().unwrap())
}

#[test]
fn iris_of_the_server_lead_to_descriptions() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path().display();
    fs::create_dir(place.path().join("subjects")).unwrap();
    fs::write(place.path().join("subjects/subjects.ttl"), SUBJECTS).unwrap();
    let config = format!(
        "data = \"{here}/store\"\nbase_url = \"https://id.example.org/\"\n\
         [[set]]\nname = \"subjects\"\nfolder = \"{here}/subjects\"\norigin = \"rdf\"\n\
         namespace = \"http://id.example.org/\"\n"
    );
    let path = place.path().join("abreast.toml");
    fs::write(&path, config).unwrap();
    let source = Source::start_config(path.to_str().unwrap());
    // The scheme of IRIs is older than TLS of the server.
    let head = source.head("/maps").unwrap().to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 303"), "{head}");
    assert!(head.contains("location: https://id.example.org/subjects/r/maps\r\n"), "{head}");
    for path in ["/map", "/maps/", "/subjects/maps"] {
        assert_eq!(source.answer(path).unwrap().0, 404, "{path}");
    }
}

#[test]
fn labels_are_in_the_language_of_the_reader() {
    let place = tempfile::tempdir().unwrap();
    let source = publish(place.path());
    let page = |path: &str, language: &str| {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAccept: text/html\r\n{language}\r\n",
            source.address
        );
        let mut stream = TcpStream::connect(&source.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        page
    };
    let (german, arabic) = ("Accept-Language: de-AT, en;q=0.5\r\n", "Accept-Language: ar\r\n");
    let english = ["Accept-Language: en\r\n", "Accept-Language: fr\r\n", ""];
    let readers = [(german, "de", "Karten"), (arabic, "ar", "خرائط")];
    let readers = readers.into_iter().chain(english.map(|reader| (reader, "en", "Maps")));
    for (reader, language, label) in readers {
        let label = format!(" lang=\"{language}\">{label}</a>");
        for path in ["/subjects/r/atlases", "/subjects/resources.html", "/subjects/changes.html"] {
            let page = page(path, reader);
            assert!(page.contains(&label), "{path} {reader} {page}");
            assert!(page.to_ascii_lowercase().contains("accept-language\r\n"), "{path} {page}");
        }
    }
    // A search finds labels of all languages.
    for query in ["Karten", "maps", "%D8%AE%D8%B1%D8%A7%D8%A6%D8%B7"] {
        let found = page(&format!("/subjects/resources.html?q={query}"), german);
        assert!(found.contains(" lang=\"de\">Karten</a>"), "{query} {found}");
    }
    // An address for one language, which the links repeat.
    let list = page("/subjects/resources.html?lang=ar", german);
    assert!(list.contains("/subjects/r/maps?lang=ar\" lang=\"ar\">خرائط</a>"), "{list}");
    assert!(list.contains("type=\"hidden\" name=\"lang\" value=\"ar\""), "{list}");
    let entity = page("/subjects/r/atlases?lang=ar", german);
    assert!(entity.contains("/subjects/r/maps?lang=ar\""), "{entity}");
    // Each link of a page for two languages works, and so does an empty choice.
    for path in ["resources.html", "changes.html", "r/atlases"] {
        let shown = page(&format!("/subjects/{path}?lang=ar,de"), english[0]);
        let links = shown.split("href=\"").skip(1).filter_map(|rest| rest.split_once('"'));
        let of_entities: Vec<_> = links.filter(|(link, _)| link.contains("lang=")).collect();
        assert!(!of_entities.is_empty(), "{path}: {shown}");
        for (link, _) in of_entities {
            let path = &link[link.find("/subjects/").unwrap()..];
            let answer = page(&path.replace("&amp;", "&"), english[0]);
            assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        }
        assert!(page(&format!("/subjects/{path}?lang="), german).starts_with("HTTP/1.1 200"));
    }
    // The label that a search found is shown if it is not the name.
    let found = page("/subjects/resources.html?q=maps", german);
    assert!(found.contains(" · Maps</span>"), "{found}");
    assert!(page("/subjects/changes.html?lang=ar", german).contains("lang=\"ar\">خرائط</a>"));
    for path in ["resources.html?lang=%22", "changes.html?lang=a,,b", "r/maps?lang=a%20b"] {
        let answer = page(&format!("/subjects/{path}"), german);
        assert!(answer.starts_with("HTTP/1.1 40"), "{path} {answer}");
    }
    let redirect = page("/subjects/resource.html?key=http://id.example.org/maps", german);
    assert!(redirect.starts_with("HTTP/1.1 30"), "{redirect}");
    assert!(redirect.contains("/subjects/r/maps\r\n"), "{redirect}");
}

#[test]
fn static_sites_are_browsed_and_searched() {
    let test = "static_sites_are_browsed_and_searched";
    let (Some(python), Some(chromium)) =
        (provided(test, "ABREAST_TEST_PYTHON"), provided(test, "ABREAST_TEST_CHROMIUM"))
    else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let papers = place.path().join("papers");
    let long = "x".repeat(150);
    for folder in ["letters", "letters/1790", "Köln ~=x", ".hidden", &long] {
        fs::create_dir_all(papers.join(folder)).unwrap();
    }
    for number in 0..900 {
        fs::write(papers.join(format!("letters/{number}.xml")), "<letter/>").unwrap();
    }
    let odd = ["letters/1790/a b", "Köln ~=x/1%.txt", "Köln ~=x/<b>", "javascript.txt"];
    for name in
        odd.iter().map(|name| (*name).to_owned()).chain([format!("{long}/a"), format!("{long}/b")])
    {
        fs::write(papers.join(name), "text").unwrap();
    }
    let (site, address) = (place.path().join("site"), unused_address());
    let build = || {
        let mut command = abreast();
        command.arg("build").arg(&papers).args([
            "--copy",
            "--base-url",
            &format!("http://{address}/"),
        ]);
        let output = run(command.arg("--out").arg(&site));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    build();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/interop/static_pages.py");
    let port = address.port().to_string();
    let output = run(Command::new(python)
        .arg(script)
        .arg(&site)
        .arg(port)
        .arg(chromium)
        .args([".xml", "900"]));
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && text.starts_with("906 resources\n"), "{text}");
    // A new file changes the page that lists it, or divides this page into two.
    let pages = || abreast_testkit::folder::files(&site.join("papers/folders"));
    let before = pages();
    fs::write(papers.join("letters/5000.xml"), "<letter/>").unwrap();
    build();
    let after = pages();
    let changed = after.iter().filter(|(name, bytes)| before.get(*name) != Some(*bytes)).count();
    assert!((1..=3).contains(&changed) && before.len() >= 5, "{changed} of {}", before.len());
    let has_page = || site.join("papers/folders/letters=2F1790.html").exists();
    assert!(has_page());
    fs::remove_dir_all(papers.join("letters/1790")).unwrap();
    // Documents without references remain for one more build.
    build();
    build();
    assert!(!has_page());
}

#[test]
fn pages_are_accessible_in_a_browser() {
    let test = "pages_are_accessible_in_a_browser";
    let (Some(python), Some(chromium)) =
        (provided(test, "ABREAST_TEST_PYTHON"), provided(test, "ABREAST_TEST_CHROMIUM"))
    else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let source = publish(place.path());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/interop/pages.py");
    let notes = place.path().join("papers/notes.txt");
    let made = run(abreast()
        .args(["token", "create", "--name", "alice", "--scope", "admin", "--data"])
        .arg(place.path().join("store")));
    let made = String::from_utf8(made.stdout).unwrap();
    let token = made.split_whitespace().find(|word| word.starts_with("abreast_")).unwrap();
    // A delivery fails, so that the page of its target has something to show.
    fs::write(place.path().join("papers/new.txt"), "text\n").unwrap();
    eventually("a delivery is attempted", || {
        let (_, hub) = source.answer("/api/v1/hub").unwrap();
        serde_json::from_slice::<serde_json::Value>(&hub).unwrap()["failed"] != 0
    });
    let mut command = Command::new(python);
    command.arg(script).arg(source.url()).arg(chromium).arg(&notes).arg("notes.txt").arg(token);
    // `cargo xtask screenshots` sets the folder.
    command.args(std::env::var_os("ABREAST_SCREENSHOTS"));
    let output = run(&mut command);
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{text}");
}

#[test]
fn the_last_validation_is_on_the_page_of_the_set() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path().display();
    fs::create_dir(place.path().join("maps")).unwrap();
    fs::write(place.path().join("maps/a"), "text").unwrap();
    let config = format!(
        "data = \"{here}/store\"\n[[set]]\nname = \"maps\"\nfolder = \"{here}/maps\"\n\
         validation = \"{here}/validation\"\n"
    );
    let path = place.path().join("abreast.toml");
    fs::write(&path, config).unwrap();
    let source = Source::start_config(path.to_str().unwrap());
    let page = || String::from_utf8(source.answer("/maps/about.html").unwrap().1).unwrap();
    assert!(!page().contains("Validation"), "{}", page());
    let list = format!("http://{}/maps/capabilitylist.xml", source.address);
    let report = place.path().join("validation");
    let validate = |start: &str| {
        let mut command = abreast();
        command.args(["validate", start, "--format", "json", "--output"]).arg(&report);
        command.output().unwrap()
    };
    let output = validate(&list);
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    let text = page();
    assert!(text.contains("<dt>Validation</dt><dd>0 errors, 0 warnings in "), "{text}");
    // A validation that could not read anything leaves the last result.
    let closed = unused_address();
    assert_eq!(validate(&format!("http://{closed}/")).status.code(), Some(5));
    assert_eq!(page(), text);
    fs::write(&report, "{\"type\":\"finding\"}\n").unwrap();
    assert!(!page().contains("<dt>Validation</dt>"));
    // Links remain, and a place that cannot be written is an error.
    let link = place.path().join("link");
    std::os::unix::fs::symlink(&report, &link).unwrap();
    let write = |file: &Path| {
        let mut command = abreast();
        command.args(["validate", &list, "--format", "json", "--output"]).arg(file);
        command.output().unwrap()
    };
    assert!(write(&link).status.success() && link.is_symlink());
    assert!(page().contains("<dt>Validation</dt>"));
    let pipe = Path::new("/dev/null");
    assert!(write(pipe).status.success() && !pipe.is_file());
    let refused = write(&place.path().join("none/report"));
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && !error.contains(".status-"), "{error}");
}
