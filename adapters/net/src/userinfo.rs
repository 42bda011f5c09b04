//! URLs without the login that they may contain.

/// The URL without user and password, for people and logs.
pub(crate) fn without_userinfo(url: &str) -> String {
    abreast_webtypes::without_login(url).into_owned()
}
