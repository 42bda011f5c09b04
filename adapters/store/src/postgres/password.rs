//! Passwords that change while a program runs, and the password files of PostgreSQL.

use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// Reads a password again; an error has the reason.
pub(crate) type ReadPassword = Box<dyn Fn() -> Result<String, String> + Send + Sync>;

/// A password that is read again when a connection is opened.
#[derive(Clone)]
pub(crate) struct ChangingPassword(Arc<Source>);

struct Source {
    read: ReadPassword,
    /// Shortest time between two reads.
    every: Duration,
    /// Locked during a read.
    reading: Mutex<()>,
    last: Mutex<Last>,
}

struct Last {
    password: String,
    read: Instant,
    is_failing: bool,
}

impl ChangingPassword {
    pub(crate) fn new(password: String, every: Duration, read: ReadPassword) -> Self {
        let last = Last { password, read: Instant::now(), is_failing: false };
        Self(Arc::new(Source { read, every, reading: Mutex::default(), last: Mutex::new(last) }))
    }

    /// The password. Blocks while it is read; other callers get the last one meanwhile.
    pub(crate) fn get(&self) -> String {
        let source = &*self.0;
        if source.last().read.elapsed() >= source.every
            && let Ok(_reading) = source.reading.try_lock()
        {
            let result = (source.read)();
            source.note(result);
        }
        source.last().password.clone()
    }
}

impl Source {
    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the password. If it cannot be read, the last one is used, with one warning.
    fn note(&self, result: Result<String, String>) {
        let mut last = self.last();
        last.read = Instant::now();
        let was_failing = std::mem::replace(&mut last.is_failing, result.is_err());
        match result {
            Ok(password) => {
                last.password = password;
                if was_failing {
                    tracing::info!("the password of the database can be read again");
                }
            }
            Err(error) if !was_failing => {
                tracing::warn!(
                    error,
                    "the password of the database cannot be read; the last one is used"
                );
            }
            Err(_) => {}
        }
    }
}

/// Whether the URL of a database has a password. A URL that cannot be read has none.
pub fn has_password(url: &str) -> bool {
    url.parse().is_ok_and(|config: Config| config.get_password().is_some())
}

/// The password for the URL of a database in the text of a password file of PostgreSQL. Each line has
/// the form `HOST:PORT:DATABASE:USER:PASSWORD`; the first line that fits any host of the URL is
/// used.
pub fn password_in_file(url: &str, text: &str) -> Option<String> {
    let config: Config = url.parse().ok()?;
    let user = config.get_user().map_or_else(own_name, str::to_owned);
    let database = config.get_dbname().unwrap_or(&user);
    let hosts = config.get_hosts();
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let [host, port, of_database, of_user, password] = &fields[..] else { return None };
        let is_place = hosts.iter().enumerate().any(|(number, known)| {
            let ports = config.get_ports();
            let known_port = ports.get(number).or(ports.first()).copied().unwrap_or(5432);
            fits(host, name_of(known)) && fits(port, known_port)
        });
        let fits_all = is_place && fits(of_database, database) && fits(of_user, &user);
        fits_all.then(|| password.text.clone())
    })
}

/// A field of a line.
struct Field {
    text: String,
    /// Whether the field is `*`, which fits any value.
    is_any: bool,
}

fn fits(field: &Field, value: impl Display) -> bool {
    field.is_any || field.text == value.to_string()
}

/// The fields of a line. A backslash precedes a colon or a backslash in a value.
fn fields(line: &str) -> Vec<Field> {
    let mut fields = Vec::new();
    let (mut text, mut raw) = (String::new(), String::new());
    let mut characters = line.chars();
    while let Some(one) = characters.next() {
        match one {
            // The password is the rest of the line.
            ':' if fields.len() < 4 => {
                let is_any = raw == "*";
                fields.push(Field { text: std::mem::take(&mut text), is_any });
                raw.clear();
            }
            '\\' => {
                raw.push(one);
                text.extend(characters.next());
            }
            _ => {
                raw.push(one);
                text.push(one);
            }
        }
    }
    fields.push(Field { text, is_any: false });
    fields
}

/// The name of a host in password files, in which sockets are of `localhost`.
fn name_of(host: &Host) -> &str {
    match host {
        Host::Tcp(name) => name,
        #[cfg(unix)]
        Host::Unix(_) => "localhost",
    }
}

/// The name of the user of this process, as the library determines it.
fn own_name() -> String {
    std::env::var("USER").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    #[test]
    fn a_password_is_read_again_and_retained_after_a_failure() {
        let reads = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&reads);
        let read = move || match counted.fetch_add(1, SeqCst) {
            0 => Ok("second".to_owned()),
            1 | 2 => Err("no such file".to_owned()),
            _ => Ok("third".to_owned()),
        };
        let long = Duration::from_secs(3_600);
        let rare = ChangingPassword::new("first".to_owned(), long, Box::new(|| Err(String::new())));
        assert_eq!(rare.get(), "first");
        let often = ChangingPassword::new("first".to_owned(), Duration::ZERO, Box::new(read));
        let found: Vec<_> = (0..4).map(|_| often.get()).collect();
        assert_eq!(found, ["second", "second", "second", "third"]);
        assert_eq!(reads.load(SeqCst), 4);
    }

    #[test]
    fn password_files_are_read_as_psql_reads_them() {
        let text = "# a comment\nother:5432:hub:abreast:wrong\n*:5433:hub:abreast:by-port\n\
                    one.example:*:*:a\\:b\\\\c:colon:and\\\\more\nlocalhost:5432:hub:abreast:socket\n\
                    short:line\n*:*:hub:abreast:rest\n";
        for (url, expected) in [
            ("postgres://abreast@db.example:5433/hub", Some("by-port")),
            ("postgres://abreast@db.example:1,other:5432/hub", Some("wrong")),
            ("postgres://a%3Ab%5Cc@one.example/x", Some("colon:and\\more")),
            ("postgres://abreast@%2Fvar%2Frun/hub", Some("socket")),
            ("postgres://abreast@db.example/hub", Some("rest")),
            ("postgres://abreast@db.example/other", None),
            ("postgres://nobody@db.example/hub", None),
        ] {
            assert_eq!(password_in_file(url, text).as_deref(), expected, "{url}");
        }
        assert!(has_password("postgres://a:b@h/d") && !has_password("postgres://a@h/d"));
        assert!(has_password("postgres://h/d?user=a&password=b"));
    }
}
