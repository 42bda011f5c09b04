//! URLs without user and password.

/// The URL without user and password, for messages and logs.
pub(crate) fn without_userinfo(url: &str) -> String {
    abreast_webtypes::without_login(url).into_owned()
}
