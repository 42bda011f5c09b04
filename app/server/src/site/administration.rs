//! The pages for administrators, which another crate makes.

use crate::site::served::Site;
use abreast_core::LogError;

/// Makes the pages for administrators.
pub trait Administration: Send + Sync + 'static {
    /// The page in HTML at a path below `/admin/`, or `None` if there is no such page. May read
    /// stores.
    ///
    /// # Errors
    /// A store cannot be read.
    fn page(&self, site: &Site, path: &AdminPath<'_>) -> Result<Option<String>, LogError>;

    /// The page on which an administrator signs in. `failure`: why the last attempt failed.
    fn sign_in_page(&self, site: &Site, failure: Option<&str>) -> String;
}

/// The address of a page for administrators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdminPath<'p> {
    /// The path below `/admin/`, such as `sets/papers`.
    pub path: &'p str,
    /// The query of the address.
    pub query: &'p str,
}

impl AdminPath<'_> {
    /// The relative address of `/admin/` from this path. Relative addresses are right behind every
    /// proxy.
    pub fn root(&self) -> String {
        match self.path.matches('/').count() {
            0 => "./".to_owned(),
            depth => "../".repeat(depth),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_relative_to_the_pages_of_administrators() {
        let root = |path| AdminPath { path, query: "" }.root();
        assert_eq!([root(""), root("log"), root("sets/a")], ["./", "./", "../"]);
        assert_eq!(root("api/v1/sets/a/scan"), "../../../../");
    }
}
