//! Problems of the machine, a folder, a configuration or the network path to an address.

mod address;
mod diagnosis;
mod folders;
mod machine;
mod subject;

pub use diagnosis::{Diagnosis, DoctorObserver, DoctorReport};
pub use subject::{
    AddressSubject, BucketSubject, ConfigurationSubject, DatabaseSubject, DoctorOptions, Listen,
    Subject,
};

use crate::place::{Error, Place, there};
use diagnosis::Doctor;

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
