//! Values of settings without the logins of the URLs in them.

use abreast_webtypes::without_login;
use std::path::Path;

/// A value without the login that a URL in it may have, as it may be printed.
pub(crate) fn shown(value: &str) -> String {
    abreast_webtypes::visible(&hidden(value)).into_owned()
}

/// A value without the login that a URL in it may have.
pub(crate) fn hidden(value: &str) -> String {
    match url::Url::parse(value) {
        Ok(mut url) if !url.username().is_empty() || url.password().is_some() => {
            let _ = url.set_username("hidden");
            let _ = url.set_password(None);
            url.into()
        }
        // A value that is not a URL, and may be meant as one.
        Err(_) if crate::values::address::is_url(value) => without_login(value).into_owned(),
        _ => value.to_owned(),
    }
}

/// The value of a setting without its login. Only the address of a proxy can have a login without a scheme.
pub(crate) fn hidden_value(key: &str, value: &str) -> String {
    match hidden(value) {
        text if key == "proxy" && text == value => without_login(value).into_owned(),
        text => text,
    }
}

/// Others had better not read a file with passwords in URLs.
pub(crate) fn warn_of_secrets(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let has_login = text.split('"').any(|part| {
        part.contains("://") && url::Url::parse(part).is_ok_and(|url| url.password().is_some())
    });
    let mode = std::fs::metadata(path).map_or(0, |about| about.permissions().mode());
    if has_login && mode & 0o077 != 0 {
        tracing::warn!(
            "`{}` has a password in it and can be read by other users: chmod 600 it",
            path.display()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_no_login_and_other_texts_remain() {
        for (key, value, expected) in [
            ("url", "https://me:hush@h/x", "https://hidden@h/x"),
            ("url", "https://me:hu/sh@h:x/", "https://h:x/"),
            ("proxy", "http://me:hush@h:3128", "http://hidden@h:3128/"),
            ("proxy", "me:hush@h:3128", "h:3128"),
            ("proxy", "h:3128", "h:3128"),
            ("contact", "mailto:me@example.org", "mailto:me@example.org"),
            ("description", "Contact:me@example.org", "Contact:me@example.org"),
        ] {
            assert_eq!(hidden_value(key, value), expected, "{key} = {value}");
        }
    }
}
