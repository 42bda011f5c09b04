//! The URL of a database.

use std::error::Error;
use tokio_postgres::Config;

/// The parameters that a URL may have.
const PARAMETERS: [&str; 18] = [
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "load_balance_hosts",
    "options",
    "password",
    "port",
    "sslmode",
    "sslnegotiation",
    "target_session_attrs",
    "user",
];

/// A fault of a URL, with the way to correct it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlFault {
    /// The fault, as a text in one line.
    pub message: String,
    /// The way to correct it.
    pub help: String,
}

/// Checks the URL of a database and its parameters. The texts do not contain a password.
///
/// # Errors
/// The URL has another form, an unknown parameter or a wrong value, or lacks a host.
pub fn check_url(url: &str) -> Result<(), UrlFault> {
    read_url(url).map(drop)
}

/// Reads the URL of a database.
pub(crate) fn read_url(url: &str) -> Result<Config, UrlFault> {
    const FORM: &str = "write postgres://USER@HOST:PORT/NAME";
    let fault = |message: String, help: &str| UrlFault { message, help: help.to_owned() };
    let config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
        let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        if let Some(name) = cause.strip_prefix("unknown option `") {
            let name = abreast_webtypes::visible(name.trim_end_matches('`')).into_owned();
            return unknown(&name);
        }
        match cause.strip_prefix("invalid value for option `") {
            Some(name) => {
                let name = name.trim_end_matches('`');
                let message = format!("the value of the parameter `{name}` is wrong");
                fault(message, values_of(name))
            }
            None => fault(format!("the URL of the database cannot be read: {cause}"), FORM),
        }
    })?;
    let hosts = config.get_hosts().len().max(config.get_hostaddrs().len());
    if hosts == 0 {
        return Err(fault("the URL of the database has no host".to_owned(), FORM));
    }
    let ports = config.get_ports().len();
    if ports > 1 && ports != hosts {
        let message = format!("the URL of the database has {hosts} hosts and {ports} ports");
        return Err(fault(message, "give one port, or one for each host"));
    }
    Ok(config)
}

fn unknown(name: &str) -> UrlFault {
    let help = match abreast_webtypes::nearest(name, &PARAMETERS) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("the parameters are {}", PARAMETERS.join(", ")),
    };
    UrlFault {
        message: format!("the URL of the database has the unknown parameter `{name}`"),
        help,
    }
}

/// The values of a parameter.
fn values_of(name: &str) -> &'static str {
    match name {
        "sslmode" => {
            "use `require`, `prefer` or `disable`; certificates and host names are always checked"
        }
        "target_session_attrs" => "use `any`, `read-write` or `read-only`",
        "channel_binding" => "use `disable`, `prefer` or `require`",
        "sslnegotiation" => "use `postgres` or `direct`",
        "load_balance_hosts" => "use `disable` or `random`",
        "hostaddr" => "use IP addresses, separated by commas",
        "port" => "use numbers from 1 to 65535, separated by commas",
        _ => "use a number",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_a_url_are_found() {
        for good in [
            "postgres://abreast@db.example.org/abreast",
            "postgresql://a:b@one:5432,two:5433/d?target_session_attrs=read-write&sslmode=require",
            "postgres://a@one,two:5433/d?connect_timeout=3",
            "postgres://a@%2Fvar%2Frun%2Fpostgresql/d",
        ] {
            assert_eq!(check_url(good), Ok(()), "{good}");
        }
        for (bad, message, help) in [
            ("postgres://a:hidden-word@h/d?sslmod=require", "parameter `sslmod`", "`sslmode`?"),
            ("postgres://a:hidden-word@h/d?colour=red", "parameter `colour`", "parameters are app"),
            ("postgres://a:hidden-word@h/d?sslmode=verify-full", "`sslmode`", "always checked"),
            ("postgres://a:hidden-word@h/d?connect_timeout=long", "`connect_timeout`", "a number"),
            ("postgres://a:hidden-word@h:hidden-port/d", "`port`", "numbers from 1"),
            ("postgres:///d", "no host", "USER@HOST"),
            ("mysql://a:hidden-word@h/d", "cannot be read", "USER@HOST"),
        ] {
            let fault = check_url(bad).unwrap_err();
            assert!(fault.message.contains(message), "{bad}: {fault:?}");
            assert!(fault.help.contains(help), "{bad}: {fault:?}");
            assert!(!fault.message.contains("hidden"), "{bad}: {fault:?}");
        }
    }
}
