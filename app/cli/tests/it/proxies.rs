//! The configurations in `packaging/proxy`, in the web servers that they are for.

use crate::world::{abreast, sync};
use abreast_testkit::folder::assert_equal;
use abreast_testkit::http::unused_address;
use abreast_testkit::tls::Authority;
use abreast_testkit::{Running, eventually, provided, run};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Longer than the limit of nginx (1 MB), and than what Apache keeps in memory.
const LARGE: usize = 20_000_000;
/// Longer than a new event takes, shorter than the comments of a stream without events.
const SOON: Duration = Duration::from_secs(12);

/// A place of a Source behind a web server.
#[derive(Clone, Copy)]
struct Layout {
    /// The file in `packaging/proxy`.
    file: &'static str,
    prefix: &'static str,
    /// Parts that are changed so that the web server removes the prefix, or speaks HTTP/2 with the Source.
    changes: &'static [(&'static str, &'static str)],
}

const fn at_root(file: &'static str) -> Layout {
    Layout { file, prefix: "", changes: &[] }
}

const fn below(file: &'static str) -> Layout {
    Layout { file, prefix: "/data", changes: &[] }
}

/// A web server with TLS in front of a Source.
struct Front {
    place: PathBuf,
    port: u16,
    /// Where the Source listens.
    behind: String,
    layout: Layout,
}

impl Front {
    /// The shipped file, with the names, ports and files of the test.
    fn shipped(&self) -> String {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/proxy");
        let mut text = fs::read_to_string(folder.join(self.layout.file)).unwrap();
        for (from, to) in self.layout.changes {
            assert!(text.contains(from), "{}: no `{from}`", self.layout.file);
            text = text.replace(from, to);
        }
        let place = self.place.display();
        for (from, to) in [
            ("/etc/ssl/certs/data.example.org.pem", format!("{place}/cert.pem")),
            ("/etc/ssl/private/data.example.org.key", format!("{place}/key.pem")),
            ("127.0.0.1:8080", self.behind.clone()),
            ("listen 443", format!("listen 127.0.0.1:{}", self.port)),
            ("*:443", format!("127.0.0.1:{}", self.port)),
            ("ServerName data.example.org", "ServerName localhost".to_owned()),
            ("server_name data.example.org", "server_name localhost".to_owned()),
        ] {
            text = text.replace(from, &to);
        }
        text
    }

    fn write(&self, name: &str, text: String) -> PathBuf {
        let path = self.place.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn nginx(&self, program: &Path) -> Running {
        let (place, port) = (self.place.display(), self.port);
        let sites = match self.layout.prefix {
            "" => self.shipped(),
            _ => format!(
                "server {{ listen 127.0.0.1:{port} ssl http2; server_name localhost;\n\
                 ssl_certificate {place}/cert.pem; ssl_certificate_key {place}/key.pem;\n{}}}\n",
                self.shipped()
            ),
        };
        let configuration = format!(
            "daemon off; master_process off; user root; pid {place}/pid; error_log {place}/error.log;\n\
             events {{ worker_connections 256; }}\n\
             http {{ access_log off; client_body_temp_path {place}/t1; proxy_temp_path {place}/t2;\n\
             fastcgi_temp_path {place}/t3; uwsgi_temp_path {place}/t4; scgi_temp_path {place}/t5;\n{sites}}}\n"
        );
        let file = self.write("nginx.conf", configuration);
        self.start(Command::new(program).arg("-c").arg(file))
    }

    fn caddy(&self, program: &Path) -> Running {
        let (place, port) = (self.place.display(), self.port);
        let mut sites = self.shipped();
        for name in ["data.example.org {", "www.example.org {"] {
            let with_certificate =
                format!("https://localhost:{port} {{\n\ttls {place}/cert.pem {place}/key.pem");
            sites = sites.replace(name, &with_certificate);
        }
        let configuration = format!(
            "{{\n\tadmin off\n\tauto_https disable_redirects\n\tstorage file_system {place}/caddy\n}}\n{sites}"
        );
        let file = self.write("Caddyfile", configuration);
        let mut command = Command::new(program);
        command.args(["run", "--adapter", "caddyfile", "--config"]).arg(file);
        self.start(command.env("HOME", &self.place))
    }

    fn apache(&self, program: &Path) -> Running {
        let (place, port) = (self.place.display(), self.port);
        let modules = [
            "mpm_event",
            "authz_core",
            "authz_host",
            "ssl",
            "http2",
            "proxy",
            "proxy_http",
            "socache_shmcb",
            "env",
        ];
        let modules = modules.map(|name| {
            format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n")
        });
        let modules = modules.concat();
        let site = match self.layout.prefix {
            "" => self.shipped(),
            _ => format!(
                "<VirtualHost 127.0.0.1:{port}>\nServerName localhost\nProtocols h2 http/1.1\nSSLEngine on\n\
                 SSLCertificateFile {place}/cert.pem\nSSLCertificateKeyFile {place}/key.pem\n{}</VirtualHost>\n",
                self.shipped()
            ),
        };
        let configuration = format!(
            "ServerRoot {place}\nServerName localhost\nPidFile {place}/pid\nErrorLog {place}/error.log\n\
             DefaultRuntimeDir {place}\nListen 127.0.0.1:{port}\n{modules}{site}"
        );
        let file = self.write("apache.conf", configuration);
        // One process, which leaves no other behind.
        self.start(Command::new(program).arg("-X").arg("-f").arg(file))
    }

    fn start(&self, command: &mut Command) -> Running {
        let log = fs::File::create(self.place.join("front.log")).unwrap();
        command.stdout(log.try_clone().unwrap()).stderr(log);
        let running = Running(command.spawn().unwrap());
        eventually("the web server listens", || {
            TcpStream::connect(("127.0.0.1", self.port)).is_ok()
        });
        running
    }

    fn base(&self) -> String {
        format!("https://localhost:{}{}/", self.port, self.layout.prefix)
    }

    /// curl over HTTP/2, with what it prints.
    fn curl(&self, curl: &Path, path: &str, arguments: &[&str]) -> Vec<u8> {
        let output = run(&mut self.curl_command(curl, path, arguments));
        let fault = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{path} {arguments:?}: {fault}");
        output.stdout
    }

    fn curl_command(&self, curl: &Path, path: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(curl);
        command.args(["-sS", "--http2", "--path-as-is", "--cacert"]).arg(self.place.join("ca.pem"));
        command.args(arguments).arg(format!("{}{path}", self.base()));
        command.env_remove("https_proxy").env_remove("HTTPS_PROXY").env_remove("ALL_PROXY");
        command
    }

    /// The status code of an answer, after its version of HTTP.
    fn status(&self, curl: &Path, path: &str, arguments: &[&str]) -> String {
        let more = ["-o", "/dev/null", "-w", "%{http_version} %{http_code}"];
        text(self.curl(curl, path, &[&more, arguments].concat()))
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// Serves a folder behind a web server in each layout, and compares the answers with the folder.
fn works_behind(
    name: &str,
    variable: &str,
    start: impl Fn(&Front, &Path) -> Running,
    layouts: &[Layout],
) {
    let (Some(program), Some(curl)) =
        (provided(name, variable), provided(name, "ABREAST_TEST_CURL"))
    else {
        return;
    };
    for &layout in layouts {
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path();
        let authority = Authority::default();
        let certificate = authority.server(&["localhost"], false);
        fs::write(place.join("ca.pem"), authority.pem()).unwrap();
        fs::write(place.join("cert.pem"), certificate.pem()).unwrap();
        fs::write(place.join("key.pem"), certificate.key_pem()).unwrap();
        let original = place.join("original");
        fs::create_dir_all(original.join("sub folder")).unwrap();
        let odd = [
            "a b.txt",
            "ü.txt",
            "100%.txt",
            "a%2Fb.txt",
            "a+b;c=d,e&f.txt",
            "q?x.txt",
            "h#i.txt",
            "~'(!)*@$.txt",
        ];
        for odd in odd {
            fs::write(original.join(odd), odd).unwrap();
            fs::write(original.join("sub folder").join(odd), odd).unwrap();
        }
        for number in 0..100 {
            fs::write(original.join(format!("{number}.txt")), format!("content {number}")).unwrap();
        }
        let front = Front {
            place: place.to_owned(),
            port: unused_address().port(),
            behind: unused_address().to_string(),
            layout,
        };
        let _server = start(&front, &program);
        let _source = source(&front, &original);
        let what = format!("{} {}", layout.file, layout.changes.len());
        check(&front, &curl, &original, &what);
    }
}

fn source(front: &Front, original: &Path) -> Running {
    let place = front.place.as_path();
    let strip = !front.layout.prefix.is_empty() && front.layout.changes.is_empty();
    let config = format!(
        "listen = {:?}\nbase_url = {:?}\ndata = {:?}\ntrusted_proxies = [\"127.0.0.1\"]\nstrip_prefix = {strip}\n\
         [api]\nwrite = true\n[[set]]\nname = \"set\"\nfolder = {:?}\n",
        front.behind,
        front.base(),
        place.join("data").display().to_string(),
        original.display().to_string(),
    );
    let config = front.write("abreast.toml", config);
    let log = fs::File::create(place.join("log")).unwrap();
    let mut command = abreast();
    command.args(["serve", "--config"]).arg(config).env("ABREAST_LOG", "abreast=debug");
    let running = Running(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
    eventually("the Source is ready", || {
        crate::world::get(&front.behind, "/readyz").is_some_and(|(status, text)| {
            status == 200 && !String::from_utf8_lossy(&text).contains("is being read")
        })
    });
    running
}

fn check(front: &Front, curl: &Path, original: &Path, what: &str) {
    let place = front.place.as_path();
    // HTTP/2, and what clients search for at the root of the host.
    assert_eq!(front.status(curl, "", &[]), "2 200", "{what}");
    let root = format!("https://localhost:{}/.well-known/resourcesync", front.port);
    let found = front.status(
        curl,
        "",
        &[
            "--next",
            "-sS",
            "--cacert",
            &place.join("ca.pem").display().to_string(),
            "-o",
            "/dev/null",
            "-w",
            " %{http_code}",
            &root,
        ],
    );
    assert!(found.contains(" 200"), "{what}: {found}");

    // Compressed once, by the Source, whose ETag arrives.
    let list = "set/resourcelist.xml";
    let head = text(front.curl(
        curl,
        list,
        &["-D", "-", "-o", "/dev/null", "-H", "Accept-Encoding: gzip"],
    ))
    .to_lowercase();
    assert_eq!(head.matches("content-encoding: gzip").count(), 1, "{what}\n{head}");
    assert!(front.curl(curl, list, &["--compressed"]).starts_with(b"<?xml"), "{what}");
    assert!(front.curl(curl, list, &[]).starts_with(b"<?xml"), "{what}");
    let etag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().trim().to_owned();
    let same = format!("If-None-Match: {etag}");
    assert_eq!(
        front.status(curl, list, &["-H", "Accept-Encoding: gzip", "-H", &same]),
        "2 304",
        "{what}"
    );

    // Each file, whatever its name, and a part of one.
    let copy = place.join("copy");
    let ca = place.join("ca.pem").display().to_string();
    sync(&front.base(), &copy, 0, &["--ca-file", &ca]);
    assert_equal(original, &copy);
    for (name, more) in [("in-a-row", None), ("alone", Some("--no-pipelining"))] {
        let by_http_1_1 = place.join(format!("copy-by-http-1.1-{name}"));
        let options: Vec<&str> = ["--ca-file", &ca, "--no-http2"].into_iter().chain(more).collect();
        sync(&front.base(), &by_http_1_1, 0, &options);
        assert_equal(original, &by_http_1_1);
    }
    // 100 requests by HTTP/2 do not fit.
    let few_files = place.join("copy-with-few-files");
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 90; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_abreast"), "sync"]);
    let few = run(command.arg(front.base()).arg(&few_files).args(["--ca-file", &ca]));
    assert_eq!(few.status.code(), Some(0), "{what}: {}", String::from_utf8_lossy(&few.stderr));
    assert_equal(original, &few_files);
    assert_eq!(front.curl(curl, "set/r/7.txt", &["-r", "2-5"]), b"nten", "{what}");

    // An event arrives when it is made.
    let mut stream =
        front.curl_command(curl, "set/notify/change", &["-N", "-H", "Accept: text/event-stream"]);
    let mut stream = Running(stream.stdout(Stdio::piped()).spawn().unwrap());
    let out = BufReader::new(stream.0.stdout.take().unwrap());
    let (sender, events) = mpsc::channel();
    let reading = std::thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let first = events.recv_timeout(SOON);
    assert!(first.is_ok(), "{what}: the stream does not begin");
    fs::write(original.join("new.txt"), "new").unwrap();
    let mut lines = std::iter::from_fn(|| events.recv_timeout(SOON).ok());
    assert!(lines.any(|line| line.starts_with("data:")), "{what}: no event");
    drop(stream);
    drop(events);
    reading.join().unwrap();

    // A large upload, and the same bytes back.
    let token = run(abreast()
        .args(["token", "create", "--name", "t", "--scope", "write", "--data"])
        .arg(place.join("data")));
    let token = text(token.stdout);
    let large = place.join("large");
    fs::write(&large, vec![b'x'; LARGE]).unwrap();
    let authorization = format!("Authorization: Bearer {}", token.trim());
    let path = "api/v1/sets/set/content/large.bin";
    eventually("the token is read", || {
        // A refusal may end the connection while curl sends.
        let upload = ["-T", &large.display().to_string(), "-H", &authorization];
        let more = ["-o", "/dev/null", "-w", "%{http_code}"];
        let output = run(&mut front.curl_command(curl, path, &[&more[..], &upload[..]].concat()));
        let status = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_ne!(status, "413", "{what}");
        output.status.success() && status.starts_with('2')
    });
    assert_eq!(front.curl(curl, "set/r/large.bin", &[]).len(), LARGE, "{what}");

    // What is for this machine only.
    for path in ["livez", "readyz", "metrics"] {
        let status = front.status(curl, path, &["--interface", "127.0.0.3"]);
        assert_eq!(status, "2 403", "{what}: {path}");
    }

    // The address of the client, whatever the client says of itself.
    front.status(
        curl,
        "set/r/42.txt",
        &["--interface", "127.0.0.3", "-H", "X-Forwarded-For: 192.0.2.1"],
    );
    let logged = || fs::read_to_string(place.join("log")).unwrap();
    eventually("the request is logged", || logged().contains("set/r/42.txt"));
    let log = logged();
    let line = log.lines().rev().find(|line| line.contains("set/r/42.txt")).unwrap();
    assert!(line.contains("127.0.0.3") && !line.contains("192.0.2.1"), "{what}: {line}");
}

#[test]
fn the_configurations_of_nginx_work() {
    let changes: &[_] = &[
        (
            "proxy_pass http://127.0.0.1:8080;\n        proxy_http",
            "proxy_pass http://127.0.0.1:8080/;\n        proxy_http",
        ),
        ("rewrite ^ /data$uri break;", ""),
    ];
    works_behind(
        "proxies::the_configurations_of_nginx_work",
        "ABREAST_TEST_NGINX",
        Front::nginx,
        &[
            at_root("nginx.conf"),
            below("nginx-prefix.conf"),
            Layout { changes, ..below("nginx-prefix.conf") },
        ],
    );
}

#[test]
fn the_configurations_of_caddy_work() {
    let changes: &[_] = &[("handle /data/*", "handle_path /data/*"), ("rewrite * /data{uri}", "")];
    let http2: &[_] = &[("reverse_proxy 127.0.0.1", "reverse_proxy h2c://127.0.0.1")];
    works_behind(
        "proxies::the_configurations_of_caddy_work",
        "ABREAST_TEST_CADDY",
        Front::caddy,
        &[
            at_root("Caddyfile"),
            below("Caddyfile-prefix"),
            Layout { changes, ..below("Caddyfile-prefix") },
            Layout { changes: http2, ..at_root("Caddyfile") },
        ],
    );
}

#[test]
fn the_configurations_of_apache_work() {
    let changes: &[_] = &[
        ("127.0.0.1:8080/data/ nocanon", "127.0.0.1:8080/ nocanon"),
        ("127.0.0.1:8080/data$1", "127.0.0.1:8080$1"),
    ];
    works_behind(
        "proxies::the_configurations_of_apache_work",
        "ABREAST_TEST_APACHE",
        Front::apache,
        &[
            at_root("apache.conf"),
            below("apache-prefix.conf"),
            Layout { changes, ..below("apache-prefix.conf") },
        ],
    );
}
