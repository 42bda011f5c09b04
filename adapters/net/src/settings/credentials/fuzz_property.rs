//! What holds for every `.netrc` file: for fuzzing and for the tests of its seeds.

use super::{Credentials, netrc};
use std::fmt::Write as _;

/// The entries of any text can be written, with comments and macros between them, and are read as
/// the same.
///
/// # Panics
/// When that is not so.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let entries = netrc(&text);
    let mut written = String::new();
    for entry in &entries {
        match &entry.machine {
            Some(machine) => drop(writeln!(written, "machine {machine}")),
            None => written.push_str("default\n"),
        }
        for (name, value) in [("login", &entry.login), ("password", &entry.password)] {
            if !value.is_empty() {
                let _ = write!(written, "\t{name} {value}");
            }
        }
        written
            .push_str(" # machine comment login comment\nmacdef m\nmachine macro login macro\n\n");
    }
    let again = netrc(&written);
    assert_eq!(again.len(), entries.len(), "{written}");
    for (again, entry) in again.iter().zip(&entries) {
        assert_eq!(again.machine, entry.machine);
        assert_eq!((&again.login, &again.password), (&entry.login, &entry.password));
    }
    let mut credentials = Credentials::default();
    let own = "http://own.example:8080/";
    assert!(credentials.add_netrc(&text, own).is_ok());
    // What is for another machine is never sent to this one, without a default.
    let is_own = |machine: &Option<String>| {
        machine.as_deref().is_none_or(|name| name.eq_ignore_ascii_case("own.example"))
    };
    assert_eq!(
        credentials.find("http://own.example:8080").is_some(),
        entries.iter().any(|entry| is_own(&entry.machine))
    );
}
