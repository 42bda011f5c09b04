//! Subjects of a diagnosis.

use crate::place::{DatabaseStatus, Place};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// The port and the subject that a diagnosis checks.
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
        /// The folder, which exists or not.
        place: Place,
        /// The address that the user may have meant, if the folder is missing.
        meant: Option<String>,
    },
    /// The folders of a configuration.
    Configuration(Box<ConfigurationSubject>),
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
    /// The published folders, which are only read.
    pub published: BTreeSet<PathBuf>,
    /// The folder of the store, or of the temporary files of a node.
    pub store: Option<PathBuf>,
    /// The database of the store, if it is in one.
    pub database: Option<DatabaseSubject>,
}

/// The database of a configuration.
#[derive(Clone, Debug)]
pub struct DatabaseSubject {
    /// The URL of the database, without a password.
    pub shown: String,
    /// The database, or the reason why it cannot be read, with its help.
    pub found: Result<DatabaseStatus, (String, String)>,
    /// The bucket of the contents, if one is configured.
    pub bucket: Option<BucketSubject>,
}

/// The bucket of a configuration, which nodes share.
#[derive(Clone, Debug)]
pub struct BucketSubject {
    /// The address of the bucket.
    pub url: String,
    /// Whether the bucket can be used, or the reason why not, with its help.
    pub checked: Result<(), (String, String)>,
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
