//! With other people's programs: resync reads us, we read what resync and nginx publish.

use crate::world::{Source, audit, get, sync};
use abreast_testkit::folder::{assert_equal, files};
use abreast_testkit::http::unused_address;
use abreast_testkit::{Running, eventually, provided, run};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// `resync-sync` with arguments, in a working directory of its own; returns its standard error.
fn resync_sync(program: &Path, place: &Path, arguments: &[&str]) -> String {
    let output = run(Command::new(program).args(arguments).current_dir(place));
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}\n{printed}");
    printed
}

#[test]
fn resync_copies_our_source_and_loses_no_change() {
    let Some(program) = provided("resync reads us", "ABREAST_TEST_RESYNC_SYNC") else { return };
    for version in ["1.0", "1.1"] {
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path();
        let (original, copy) = (place.join("original"), place.join("copy"));
        fs::create_dir_all(original.join("sub")).unwrap();
        fs::create_dir_all(&copy).unwrap();
        for number in 0..50 {
            fs::write(original.join(format!("sub/f{number}.txt")), format!("content {number}"))
                .unwrap();
        }
        // A file with a history: its Last-Modified is long ago when it is renamed below.
        let old = fs::File::options().write(true).open(original.join("sub/f1.txt")).unwrap();
        old.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000))
            .unwrap();
        drop(old);
        let source = Source::start(&original, 0, &[]);
        let mapping = format!("{}set/r={}", source.url(), copy.display());
        let list = format!("{}set/resourcelist.xml", source.url());
        let printed = resync_sync(
            &program,
            place,
            &[
                "--baseline",
                "--delete",
                "--noauth",
                "--hash",
                "md5",
                "--spec-version",
                version,
                "--sitemap",
                &list,
                &mapping,
            ],
        );
        assert!(printed.contains("SYNCED"), "{printed}");
        assert_equal(&original, &copy);

        let from = now_as_resync_wants_it();
        for number in 0..10 {
            fs::remove_file(original.join(format!("sub/f{}.txt", number + 20))).unwrap();
            fs::write(
                original.join(format!("sub/f{number}.txt")),
                format!("another content {number}"),
            )
            .unwrap();
            fs::write(original.join(format!("new{number}.txt")), "new").unwrap();
        }
        fs::rename(original.join("sub/f15.txt"), original.join("renamed-with-its-old-time.txt"))
            .unwrap();
        eventually("the Source has recorded them", || {
            source
                .get("/set/changelist.xml")
                .is_some_and(|list| String::from_utf8_lossy(&list).matches("<url>").count() >= 32)
        });
        let changes = format!("{}set/changelist.xml", source.url());
        let printed = resync_sync(
            &program,
            place,
            &[
                "--incremental",
                "--delete",
                "--noauth",
                "--spec-version",
                version,
                "--changelist-uri",
                &changes,
                "--from",
                &from,
                &mapping,
            ],
        );
        assert!(!printed.contains("ERROR"), "{printed}");
        assert_equal(&original, &copy);
    }
}

/// A minute ago, in whole seconds.
fn now_as_resync_wants_it() -> String {
    use abreast_webtypes::Timestamp;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    Timestamp::from_seconds(now as i64 - 60).to_string()
}

/// nginx on a free port.
pub(crate) struct Nginx {
    _child: Running,
    pub(crate) address: String,
}

impl Nginx {
    /// Serves a folder.
    fn start(program: &Path, place: &Path, root: &Path) -> Self {
        Self::start_with(program, place, |_| format!("root {};", root.display()))
    }

    /// Serves what these lines state for a server at a port.
    pub(crate) fn start_with(
        program: &Path,
        place: &Path,
        server: impl FnOnce(u16) -> String,
    ) -> Self {
        // One process: a killed master would leave its workers behind. The port is free when it is chosen;
        // nginx takes it a moment later.
        let port = unused_address().port();
        let control = place.join("nginx");
        fs::create_dir_all(&control).unwrap();
        let shown = control.display();
        let configuration = format!(
            "daemon off; master_process off; pid {shown}/pid; error_log {shown}/error.log;\n\
             events {{ worker_connections 256; }}\n\
             http {{ types {{ application/xml xml; }} default_type application/octet-stream; access_log off;\n\
             client_body_temp_path {shown}/t1; proxy_temp_path {shown}/t2; fastcgi_temp_path {shown}/t3;\n\
             uwsgi_temp_path {shown}/t4; scgi_temp_path {shown}/t5;\n\
             server {{ listen 127.0.0.1:{port}; {} }} }}\n",
            server(port)
        );
        fs::write(control.join("nginx.conf"), configuration).unwrap();
        let child = Command::new(program)
            .arg("-c")
            .arg(control.join("nginx.conf"))
            .arg("-g")
            .arg("user root;")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let nginx = Self { _child: Running(child), address: format!("127.0.0.1:{port}") };
        eventually("nginx answers", || get(&nginx.address, "/nothing").is_some());
        nginx
    }
}

#[test]
fn we_copy_what_resync_build_wrote_and_nginx_serves() {
    let Some(build) = provided("we read resync-build", "ABREAST_TEST_RESYNC_BUILD") else { return };
    let Some(program) = provided("we read from nginx", "ABREAST_TEST_NGINX") else { return };
    let temporary = tempfile::tempdir().unwrap();
    let place = temporary.path();
    let (root, copy) = (place.join("root"), place.join("copy"));
    let data = root.join("data");
    fs::create_dir_all(data.join("inner")).unwrap();
    for number in 0..40 {
        fs::write(data.join(format!("inner/{number}.txt")), format!("content {number}")).unwrap();
        fs::write(data.join(format!("{number}.xml")), format!("<n>{number}</n>")).unwrap();
    }
    let nginx = Nginx::start(&program, place, &root);
    let list = root.join("resourcelist.xml");
    let make_list = || {
        let mapping = format!("http://{}/data={}", nginx.address, data.display());
        let output = run(Command::new(&build)
            .args(["--write-resourcelist", "--hash", "md5", "--outfile"])
            .arg(&list)
            .arg(mapping)
            .current_dir(place));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    make_list();
    let url = format!("http://{}/resourcelist.xml", nginx.address);
    sync(&url, &copy, 0, &[]);
    assert_equal(&data, &copy);
    assert_eq!(audit(&url, &copy), 0);
    let summary = sync(&url, &copy, 0, &[]);
    assert!(summary["requests"].as_u64().unwrap() <= 2, "{summary}");

    fs::remove_file(data.join("inner/3.txt")).unwrap();
    fs::write(data.join("4.xml"), "<n>four</n>").unwrap();
    fs::write(data.join("inner/new.txt"), "new").unwrap();
    make_list();
    // nginx distinguishes list versions by second and length; this one differs in length.
    sync(&url, &copy, 0, &[]);
    assert_equal(&data, &copy);
    assert_eq!(files(&copy).len(), 80);
}
