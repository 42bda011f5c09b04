//! Copies that follow several nodes, one of each protocol.

use crate::feeds::copied;
use crate::rdf::descriptions;
use crate::world::abreast;
use crate::xmpp::account_of;
use abreast_rdf::Syntax;
use abreast_testkit::Running;
use abreast_testkit::folder::files;
use abreast_testkit::xmpp::{PASSWORD, Prosody};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A copy of files or of entities.
pub(super) struct Copy {
    pub(super) name: &'static str,
    folder: PathBuf,
    original: PathBuf,
    /// The file with the statements of the original.
    statements: Option<&'static str>,
    _following: Running,
}

impl Copy {
    /// Copies of the folder `papers` and of the entities in the folder `people`; one follows by XMPP if
    /// there is a server.
    pub(super) fn start_all(place: &Path, url: &str, xmpp: Option<&Prosody>) -> Vec<Self> {
        let account = xmpp.map(|server| account_of(server, "reader", PASSWORD, place));
        let pushed = account.map(|account| ("xmpp", "papers/v0.1/sitemap.xml", false, account));
        [
            ("lists", "papers/", false, Vec::new()),
            ("change-sets", "papers/v0.1/sitemap.xml", false, Vec::new()),
            ("sdshare", "people/sdshare", true, Vec::new()),
            ("emm", "people/emm/1.0", true, Vec::new()),
        ]
        .into_iter()
        .chain(pushed)
        .map(|(name, document, is_rdf, account)| {
            let folder = place.join(name);
            let target = if is_rdf {
                format!("nquads:{}", folder.display())
            } else {
                folder.display().to_string()
            };
            let mut follow = abreast();
            follow.args(["sync", &format!("{url}{document}"), &target]);
            // A copy to which changes are pushed polls rarely.
            let interval = if account.is_empty() { "1s" } else { "20s" };
            follow.args(["--follow", "--interval", interval, "--quiet", "--max-delete", "100%"]);
            follow.args(account);
            let log = std::fs::File::create(place.join(format!("{name}.log"))).unwrap();
            let original = place.join(if is_rdf { "people" } else { "papers" });
            Self {
                name,
                folder,
                original,
                statements: is_rdf.then_some("people.nt"),
                _following: Running::start(follow.stdout(Stdio::null()).stderr(log)),
            }
        })
        .collect()
    }

    /// Whether the copy is equal to the original.
    pub(super) fn is_equal(&self) -> bool {
        let Some(file) = self.statements else {
            return files(&self.folder) == files(&self.original);
        };
        let text = std::fs::read_to_string(self.original.join(file)).unwrap();
        copied(&self.folder) == descriptions(Syntax::NTriples, &text)
    }
}
