//! A folder served on a port of its own, and a client that sends exactly the given bytes.

use abreast_core::contents::ContentStore;
use abreast_core::{ChangeLog, Clock, NewSet, PageRule, SetId, SystemClock};
use abreast_folder::Folder;
use abreast_server::{ServedSet, Server, ServerOptions, Site};
use abreast_source::dump::SetDumps;
use abreast_source::publish::{PublishedSet, Publisher, SourceUrls};
use abreast_source::versions::VersionUrls;
use abreast_source::{IngestOptions, OpenKept, Representations, ScanOptions, WatchStatus, scan};
use abreast_store::SqliteLog;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;

pub(crate) const BASE: &str = "https://example.org/";
/// The content of a file beside the published folder: no answer may hold it.
pub(crate) const SECRET: &str = "not for publication";

pub(crate) struct World {
    pub(crate) temporary: tempfile::TempDir,
    pub(crate) folder: PathBuf,
    pub(crate) log: Arc<dyn ChangeLog>,
    pub(crate) set: SetId,
    pub(crate) status: Arc<WatchStatus>,
    pub(crate) dumps: Option<Arc<SetDumps>>,
    /// Where versions are kept, if they are.
    pub(crate) contents: Option<Arc<dyn ContentStore>>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(PageRule::default())
    }

    pub(crate) fn with(page_rule: PageRule) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("folder");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(temporary.path().join("secret"), SECRET).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let log: Arc<dyn ChangeLog> = Arc::new(SqliteLog::temporary(clock).unwrap());
        let set = log
            .open_set(&NewSet { slug: "set".into(), page_rule, ..NewSet::default() })
            .unwrap()
            .id;
        Self { temporary, folder, log, set, status: Arc::default(), dumps: None, contents: None }
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Records what the folder holds, and ends the import.
    pub(crate) fn publish(&self) {
        let contents = self.contents.clone();
        let ingest = IngestOptions { settle: Duration::ZERO, contents, ..IngestOptions::default() };
        let options = ScanOptions { ingest, ..ScanOptions::default() };
        let folder = Folder::open(&self.folder).unwrap();
        scan(&folder, b"", &*self.log, self.set, &options, &AtomicBool::new(false)).unwrap();
        if self.log.head(self.set).unwrap().importing {
            self.log.complete_import(self.set).unwrap();
        }
    }

    pub(crate) fn serve(&self) -> Served {
        self.serve_with(ServerOptions::default())
    }

    pub(crate) fn serve_with(&self, options: ServerOptions) -> Served {
        self.serve_publisher(options, |publisher| publisher)
    }

    /// Serves with a publisher that has more.
    pub(crate) fn serve_publisher(
        &self,
        options: ServerOptions,
        more: impl FnOnce(Publisher) -> Publisher,
    ) -> Served {
        let Site { publisher, sets, metrics, .. } = self.site();
        Served::start(
            Site {
                publisher: more(publisher),
                sets,
                api: None,
                hub: None,
                metrics,
                memory: abreast_server::Memory::default(),
                followers: abreast_server::Followers::default(),
                store: None,
            },
            options,
        )
    }

    /// The set as a site.
    pub(crate) fn site(&self) -> Site {
        self.site_at(BASE)
    }

    /// The set as a site with this public URL.
    pub(crate) fn site_at(&self, base: &str) -> Site {
        let urls = SourceUrls::new(base);
        let set_urls = urls.set("set");
        let versions =
            self.contents.as_ref().map(|_| VersionUrls::new(&urls, "set", set_urls.naming()));
        let published = PublishedSet {
            representations: self.representations(),
            watch: Arc::clone(&self.status),
            versions,
            about: abreast_source::publish::About { title: "A <set>".into(), ..Default::default() },
            ..PublishedSet::new(self.set, "set", set_urls)
        };
        let published = Arc::new(published.with(self.dumps.clone()));
        let documents = self.temporary.path().join("documents");
        let publisher =
            Publisher::new(Arc::clone(&self.log), urls, [Arc::clone(&published)], documents)
                .unwrap();
        let served = Self::served(published, "A <set>");
        let metrics = std::sync::Arc::new(|| "abreast_test 1\n".into());
        let sets = [served].into_iter().collect();
        Site {
            publisher,
            sets,
            api: None,
            hub: None,
            metrics,
            memory: abreast_server::Memory::default(),
            followers: abreast_server::Followers::default(),
            store: None,
        }
    }

    /// The bytes of the set: its folder, and kept versions.
    pub(crate) fn representations(&self) -> Representations {
        let kept = self.contents.clone().map(|contents| -> OpenKept {
            Arc::new(move |id| contents.open_read(id).map_err(Into::into))
        });
        let folder = Folder::open(&self.folder).unwrap();
        Representations::of_folder(folder, Arc::clone(&self.status)).with_kept(kept)
    }

    /// The set as a server needs it.
    pub(crate) fn served(published: Arc<PublishedSet>, title: &str) -> ServedSet {
        ServedSet {
            title: title.to_owned(),
            link: abreast_server::set_link(&published).unwrap(),
            links: Arc::default(),
            deposit: None,
            entities: None,
            published,
        }
    }
}

/// A running server; stops when dropped.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    pub(crate) fn start(site: Site, options: ServerOptions) -> Self {
        // Few threads for what blocks: nothing may keep many of them.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(16)
            .enable_all()
            .build()
            .unwrap();
        let server = runtime.block_on(Server::bind(([127, 0, 0, 1], 0).into(), options)).unwrap();
        let address = server.address().unwrap();
        let (stop, stopped) = watch::channel(false);
        let thread = std::thread::spawn(move || {
            runtime.block_on(server.run(Arc::new(abreast_server::CurrentSite::new(site)), stopped));
        });
        Self { address, stop, thread: Some(thread) }
    }

    pub(crate) fn connect(&self) -> Client {
        Client::over(TcpStream::connect(self.address).unwrap())
    }

    /// One request on a connection of its own.
    pub(crate) fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> Reply {
        let mut client = self.connect();
        client.request(method, target, headers);
        client.reply(method).unwrap().unwrap()
    }

    pub(crate) fn get(&self, target: &str) -> Reply {
        self.ask("GET", target, &[])
    }

    /// Sends these bytes and nothing more, and reads all answers until the server closes the
    /// connection.
    pub(crate) fn answers_to(&self, bytes: &[u8]) -> Vec<Reply> {
        let mut client = self.connect();
        // A server that has seen enough may close before all is written.
        let _ = client.send(bytes);
        let mut replies = Vec::new();
        while let Ok(Some(reply)) = client.reply("GET") {
            replies.push(reply);
        }
        replies
    }

    pub(crate) fn tell_stop(&self) {
        self.stop.send(true).unwrap();
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    pub(crate) fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.end();
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// The values of a header, joined; empty when there is none.
    pub(crate) fn header(&self, name: &str) -> String {
        let values: Vec<_> = self
            .headers
            .iter()
            .filter(|(given, _)| given == name)
            .map(|(_, value)| &**value)
            .collect();
        values.join(", ")
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

pub(crate) struct Client {
    pub(crate) stream: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn over(stream: TcpStream) -> Self {
        // A server that does not answer fails the test instead of stopping it.
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    pub(crate) fn request(&mut self, method: &str, target: &str, headers: &[(&str, &str)]) {
        let headers: String =
            headers.iter().flat_map(|(name, value)| [*name, ": ", *value, "\r\n"]).collect();
        let request = format!("{method} {target} HTTP/1.1\r\nHost: example.org\r\n{headers}\r\n");
        self.send(request.as_bytes()).unwrap();
    }

    /// The status line and headers of the next answer; `None` when the connection was closed in
    /// between.
    pub(crate) fn head(&mut self) -> io::Result<Option<Reply>> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        assert!(line.starts_with("HTTP/1.") && line.ends_with("\r\n"), "{line:?}");
        let mut reply =
            Reply { status: line[9..12].parse().unwrap(), headers: Vec::new(), body: Vec::new() };
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let Some((name, value)) = line.trim_end().split_once(':') else {
                return Ok(Some(reply));
            };
            reply.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// The next answer; an error when it is cut off.
    pub(crate) fn reply(&mut self, method: &str) -> io::Result<Option<Reply>> {
        let Some(mut reply) = self.head()? else { return Ok(None) };
        if method != "HEAD" && reply.status != 304 {
            let length = reply.header("content-length");
            assert!(!length.is_empty(), "an answer without length: {reply:?}");
            reply.body = vec![0; length.parse().unwrap()];
            self.stream.read_exact(&mut reply.body)?;
        }
        Ok(Some(reply))
    }

    /// Has the server closed the connection, with nothing more to say?
    pub(crate) fn is_closed(&mut self) -> bool {
        // Closed with something of ours unread, it is reset.
        matches!(self.stream.read(&mut [0]), Ok(0))
            || matches!(self.stream.read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::ConnectionReset)
    }
}
