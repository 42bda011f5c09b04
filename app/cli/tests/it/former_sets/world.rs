//! A Source with sets of files and of entities, in a folder or in a database.

use crate::world::{Source, abreast};
use abreast_testkit::http::unused_address;
use abreast_testkit::postgres::Postgres;
use abreast_testkit::run;
use abreast_testkit::s3::{S3Server, settings};
use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

pub(super) struct World {
    temporary: tempfile::TempDir,
    shared: Option<Shared>,
}

/// A store in a database and a bucket.
struct Shared {
    database: String,
    /// The bucket, and its address with a prefix.
    bucket: (SocketAddr, String),
    address: SocketAddr,
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(None)
    }

    pub(super) fn in_database(server: &Postgres, bucket: &S3Server, name: &str) -> Self {
        Self::with(Some(Shared {
            database: server.create(name),
            bucket: (bucket.address(), format!("s3://bucket/{name}")),
            address: unused_address(),
        }))
    }

    fn with(shared: Option<Shared>) -> Self {
        let world = Self { temporary: tempfile::tempdir().unwrap(), shared };
        for folder in ["files", "other", "rdf"] {
            fs::create_dir(world.at(folder)).unwrap();
        }
        for number in 0..12 {
            fs::write(world.at("files").join(format!("{number}.txt")), number.to_string()).unwrap();
        }
        fs::write(world.at("other/a.txt"), "other").unwrap();
        world.describe(3);
        world.configure(&[("papers", "files"), ("people", "rdf"), ("other", "other")]);
        world
    }

    /// Writes descriptions of this many entities.
    pub(super) fn describe(&self, most: u32) {
        let label = "http://www.w3.org/2000/01/rdf-schema#label";
        let mut text = String::new();
        for number in 0..most {
            writeln!(text, "<http://id.example/{number}> <{label}> \"{number}\" .").unwrap();
        }
        fs::write(self.at("new.nt"), text).unwrap();
        fs::rename(self.at("new.nt"), self.at("rdf/a.nt")).unwrap();
    }

    pub(super) fn configure(&self, sets: &[(&str, &str)]) {
        let mut text = format!("data = \"{}\"\n", self.store());
        if let Some(Shared { bucket, address, .. }) = &self.shared {
            write!(
                text,
                "contents = \"{}\"\nscratch = \"{}\"\nnode = \"one\"\nbase_url = \"http://{address}/\"\n\
                 database = {{ lease = \"2s\" }}\nhub = {{ private_callbacks = true }}\n",
                bucket.1,
                self.word("scratch"),
            )
            .unwrap();
        }
        for (name, folder) in sets {
            let folder = self.word(folder);
            write!(
                text,
                "[[set]]\nname = \"{name}\"\nfolder = \"{folder}\"\ndebounce = \"30ms\"\n"
            )
            .unwrap();
            if folder.ends_with("rdf") {
                text.push_str("origin = \"rdf\"\nnamespace = \"http://id.example/\"\n");
            }
        }
        fs::write(self.at("abreast.toml"), text).unwrap();
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        self.temporary.path().join(name)
    }

    pub(super) fn word(&self, name: &str) -> String {
        self.at(name).to_str().unwrap().to_owned()
    }

    /// The store, as `--data` gives it.
    pub(super) fn store(&self) -> String {
        self.shared.as_ref().map_or_else(|| self.word("data"), |shared| shared.database.clone())
    }

    /// The program, which can use the bucket.
    pub(super) fn command(&self) -> Command {
        let mut command = abreast();
        for (name, value) in self.shared.iter().flat_map(|shared| settings(shared.bucket.0)) {
            command.env(name.to_uppercase(), value);
        }
        command
    }

    /// Starts the Source at a port, or at any one if it is 0. The Source of a database has one address.
    pub(super) fn serve(&self, port: u16) -> Source {
        let port = self.shared.as_ref().map_or(port, |shared| shared.address.port());
        let mut command = self.command();
        command.args(["serve", "--config", &self.word("abreast.toml")]);
        Source::run_logged(
            command.args(["--listen", &format!("127.0.0.1:{port}")]),
            &self.at("log"),
        )
    }

    /// Runs `abreast set` with the configuration, or with the store; returns its output.
    #[track_caller]
    pub(super) fn set(&self, words: &[&str], store: &str, code: i32) -> String {
        let place = if store == "data" {
            ["--data".to_owned(), self.store()]
        } else {
            ["--config".to_owned(), self.word("abreast.toml")]
        };
        let output = run(self.command().arg("set").args(words).args(place));
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert_eq!(output.status.code(), Some(code), "{words:?}\n{text}");
        text
    }

    pub(super) fn copy(&self, (path, is_file): (&str, bool)) -> PathBuf {
        self.at(&format!("copy-{is_file}-{}", path.replace('/', "-")))
    }

    pub(super) fn assert_undamaged(&self) {
        let output = run(self.command().args(["check", "--read-data", &self.store()]));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}
