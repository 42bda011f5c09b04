//! `abreast doctor`: finds problems of the machine, a folder or the network path to an address.

use crate::command::status::database::{in_words, inspect, with_own_help};
use crate::config::access::AccessArgs;
use crate::config::database::DatabaseConfig;
use crate::config::{File, address_of};
use crate::program::terminal::{json, line};
use crate::store::state_folders::place_of;
use crate::values::address::{is_url, with_scheme};
use abreast_maintenance::{
    AddressSubject, BucketSubject, ConfigurationSubject, DatabaseSubject, Diagnosis,
    DoctorObserver, DoctorOptions, Listen, Subject, doctor,
};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Time limit for the description of a database.
const DATABASE_LIMIT: Duration = Duration::from_secs(10);
/// Time limit for all requests of the check of a bucket.
const BUCKET_LIMIT: Duration = Duration::from_secs(10);

const HELP: &str = "\
Examples:
  abreast doctor
  abreast doctor ./papers
  abreast doctor --config /etc/abreast.toml
  abreast doctor https://papers.example.org/

With a folder: space, inodes, whether it can be written, how its file system treats names and times. With a configuration
file: its errors, the port that it names, its folders, the database with its nodes, and the bucket, in which an object is written and deleted. With an address: DNS, proxies, TLS, the server's clock, and whether
the address leads to documents that `abreast sync` reads. Each line is `ok`, or `bad` with help.

Exit codes: 0 no problems, 1 problems found, 2 usage or no such folder, 5 the address cannot be reached now,
6 no secure connection.";

/// Options of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct DoctorArgs {
    /// A folder, or the address of a Source
    what: Option<String>,
    /// Check the folders and the port of this configuration file
    #[arg(long, value_name = "FILE", conflicts_with = "what")]
    config: Option<PathBuf>,
    /// Address on which a server would listen [default: that of --config, else 127.0.0.1:8080]
    #[arg(long, value_name = "HOST:PORT", env = "ABREAST_LISTEN")]
    listen: Option<String>,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: AccessArgs,
}

/// Prints each result at once.
struct Printer {
    json: bool,
}

impl DoctorObserver for Printer {
    fn diagnosed(&mut self, diagnosis: &Diagnosis) {
        let Diagnosis { code, ok, message, help } = diagnosis;
        if self.json {
            return json(diagnosis);
        }
        line(&format!("{}  {code}: {message}", if *ok { "ok " } else { "bad" }));
        if let Some(help) = help {
            line(&format!("     help: {help}"));
        }
    }

    fn cancel(&mut self) -> Arc<AtomicBool> {
        crate::program::signals::cancel_on_signal()
    }
}

/// Runs `doctor`.
pub(crate) fn run(args: &DoctorArgs) -> ExitCode {
    let file = match args.config.as_deref().map(File::read_with_faults).transpose() {
        Ok(file) => file,
        Err(error) => {
            let code = crate::program::exit::code(&error);
            crate::program::logging::failure(&error, code);
            return ExitCode::from(code);
        }
    };
    let named = file.as_ref().and_then(|file| file.listen.as_deref());
    let listen = args.listen.as_deref().or(named).map_or_else(Listen::default, |text| Listen {
        text: text.to_owned(),
        address: address_of(text).map_err(|fault| with_help(&fault, "")),
    });
    let place = args.what.as_deref().unwrap_or(".");
    let access = |net: &mut _| args.access.apply(place, net).map_err(|error| error.to_string());
    let subject = match (file, &args.config) {
        (Some(file), Some(path)) => Subject::Configuration(Box::new(configuration(file, path))),
        _ if is_url(place) => Subject::Address(AddressSubject {
            url: place.to_owned(),
            has_proxy: args.access.proxy.is_some(),
            access: &access,
        }),
        _ => Subject::Folder { place: place_of(place), meant: with_scheme(place) },
    };
    let report = doctor(&DoctorOptions { listen, subject }, &mut Printer { json: args.json });
    let general = u8::from(report.problems > 0);
    ExitCode::from(report.error.map_or(general, |error| crate::program::exit::code(&error.into())))
}

/// Separates a fault from its help.
fn with_help(fault: &str, default: &str) -> (String, String) {
    let (what, help) = fault.split_once(" (help: ").unwrap_or((fault, default));
    (what.to_owned(), help.trim_end_matches(')').to_owned())
}

/// The faults and the folders of a configuration file.
fn configuration(file: File, path: &Path) -> ConfigurationSubject {
    let store = file.store_folder().filter(|folder| !folder.as_os_str().is_empty());
    let database = DatabaseConfig::of_file(&file).ok().flatten().map(|database| DatabaseSubject {
        shown: database.shown(),
        found: inspect(&database, DATABASE_LIMIT)
            .map(|(found, _)| found)
            .map_err(|error| in_words(&error)),
        bucket: database.contents.as_ref().map(|url| BucketSubject {
            url: url.clone(),
            checked: crate::store::bucket::check(url, BUCKET_LIMIT).map_err(|error| {
                with_own_help(&error, "check the bucket, and `contents` of the configuration")
            }),
        }),
    });
    let published = file.set.iter().map(|set| set.folder.clone());
    // Sets of records and of endpoints do not have a folder.
    let published = published.filter(|folder| !folder.as_os_str().is_empty()).collect();
    let faults = crate::command::config_command::faults_of(file);
    let faults = faults.unwrap_or_else(|error| vec![error.to_string()]);
    let faults = faults.iter().map(|fault| with_help(fault, "correct it")).collect();
    ConfigurationSubject { file: path.to_owned(), faults, published, store, database }
}
