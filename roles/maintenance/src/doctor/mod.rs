//! Problems of the machine, a folder, a configuration or the network path to an address.

mod address;
mod folders;
mod machine;

use crate::place::{Error, Place, there};
use abreast_webtypes::without_logins;
use serde::Serialize;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Options of a diagnosis.
pub struct DoctorOptions<'o> {
    /// The address on which a server would listen.
    pub listen: Listen,
    /// The subject that is checked in addition to the machine.
    pub subject: Subject<'o>,
}

/// An address on which a server would listen.
#[derive(Clone, Debug)]
pub struct Listen {
    /// The address as the user wrote it.
    pub text: String,
    /// The address, or the reason why it cannot be used, with its help.
    pub address: Result<SocketAddr, (String, String)>,
}

impl Default for Listen {
    /// The address of a server without configuration.
    fn default() -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 8080));
        Self { text: address.to_string(), address: Ok(address) }
    }
}

/// A subject of a diagnosis.
#[derive(Debug)]
pub enum Subject<'o> {
    /// A folder for a store or a copy.
    Folder {
        /// The folder to check.
        place: Place,
        /// The address that the user may have meant, if there is no such folder.
        meant: Option<String>,
    },
    /// The folders of a configuration.
    Configuration(ConfigurationSubject),
    /// The address of a Source.
    Address(AddressSubject<'o>),
}

/// A configuration, after it was checked.
#[derive(Clone, Debug)]
pub struct ConfigurationSubject {
    /// The file of the configuration.
    pub file: PathBuf,
    /// The faults of the configuration, each with its help.
    pub faults: Vec<(String, String)>,
    /// The published folders.
    pub published: BTreeSet<PathBuf>,
    /// The folder of the store.
    pub store: Option<PathBuf>,
}

/// The address of a Source, and how it is reached.
pub struct AddressSubject<'o> {
    /// The address as the user wrote it.
    pub url: String,
    /// Whether an option contains a proxy.
    pub has_proxy: bool,
    /// Adds logins, proxies and certificates to the options of the HTTP client, and returns the URL without a login, or the
    /// reason why one of them cannot be used.
    pub access: Access<'o>,
}

/// How access options are added to the options of the HTTP client.
type Access<'o> = &'o dyn Fn(&mut abreast_net::Options) -> Result<String, String>;

impl std::fmt::Debug for AddressSubject<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AddressSubject").field("has_proxy", &self.has_proxy).finish_non_exhaustive()
    }
}

/// One result of a diagnosis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "check")]
pub struct Diagnosis {
    /// Stable code, such as `clock` or `space`.
    pub code: &'static str,
    /// Whether there is no problem.
    pub ok: bool,
    /// The result, for people.
    pub message: String,
    /// How to solve the problem, if there is one.
    pub help: Option<String>,
}

/// Receives results while a diagnosis runs.
pub trait DoctorObserver {
    /// Receives the next result.
    fn diagnosed(&mut self, diagnosis: &Diagnosis);

    /// Returns a flag that stops the reading of a Source's documents. Called when the reading starts.
    fn cancel(&mut self) -> Arc<AtomicBool> {
        Arc::default()
    }
}

/// Result of a diagnosis.
#[derive(Debug, Default)]
pub struct DoctorReport {
    /// Number of problems.
    pub problems: u64,
    /// The error that ended the diagnosis early.
    pub error: Option<Error>,
}

/// A diagnosis that is being made.
struct Doctor<'o> {
    observer: &'o mut dyn DoctorObserver,
    problems: u64,
    error: Option<Error>,
}

impl Doctor<'_> {
    fn report(&mut self, code: &'static str, ok: bool, what: &str, help: &str) {
        self.problems += u64::from(!ok);
        let [message, help] = [what, help].map(|text| without_logins(text).into_owned());
        let help = (!ok).then_some(help);
        self.observer.diagnosed(&Diagnosis { code, ok, message, help });
    }
}

/// Checks this machine, then a folder, a configuration or an address. Each result is passed to `observer` at once.
pub fn doctor(options: &DoctorOptions<'_>, observer: &mut dyn DoctorObserver) -> DoctorReport {
    let mut doctor = Doctor { observer, problems: 0, error: None };
    machine::check_machine(&mut doctor, &options.listen);
    match &options.subject {
        Subject::Folder { place: Place { folder, shown }, meant } => {
            match (there::found(folder), meant) {
                (Ok(None), Some(meant)) => {
                    let what = format!("there is no folder {shown}");
                    let help = format!("for a server, did you mean `{meant}`?");
                    doctor.report("folder", false, &what, &help);
                    doctor.error = Some(Error::Usage(what));
                }
                _ => folders::check_folder(&mut doctor, folder),
            }
        }
        Subject::Configuration(configuration) => {
            folders::check_configuration(&mut doctor, configuration);
            // Each problem of a configuration is the same kind of result.
            doctor.error = None;
        }
        Subject::Address(subject) => address::check_address(&mut doctor, subject),
    }
    DoctorReport { problems: doctor.problems, error: doctor.error }
}
