//! Checks at the start of elements, by the position of the element in the document.

use crate::report::rules as r;
use crate::resourcesync::entry::{Entry, Head, MAX_LINKS};
use crate::resourcesync::markup::{ElementFaults, Md, RS, SM, alpha, read_ln};
use abreast_resourcesync::v1_1::{Ln, Root};
use abreast_webtypes::excerpt;
use abreast_webtypes::xml::{Element, Ns};

/// Action at the start of an element, run after the token is released.
pub(super) enum Start {
    Go(CheckerState),
    Entry,
    HeadMd(Box<Md>),
    HeadLink(Box<Ln>),
}

impl Start {
    pub(super) fn of(
        element: &Element<'_>,
        place: CheckerState,
        head: &mut Head,
        entry: &mut Entry,
        faults: &mut ElementFaults,
        head_done: bool,
    ) -> Self {
        let skip = |in_entry| {
            let is_void = false;
            Self::Go(CheckerState::Skipped { open: 1, in_entry, is_void })
        };
        let void = Self::Go(CheckerState::Skipped { open: 1, in_entry: true, is_void: true });
        match place {
            CheckerState::Skipped { open, in_entry, is_void } => {
                Self::Go(CheckerState::Skipped { open: open + 1, in_entry, is_void })
            }
            CheckerState::Outside => {
                head.root = root(element, faults);
                Self::Go(if head.root.is_some() {
                    CheckerState::Root
                } else {
                    CheckerState::Skipped { open: 1, in_entry: false, is_void: false }
                })
            }
            CheckerState::Root => Self::in_root(element, head, faults, head_done),
            CheckerState::Entry => match (element.ns(), element.local().as_bytes()) {
                (SM, b"loc") => {
                    entry.locs += 1;
                    if entry.locs == 1 { Self::Go(CheckerState::Loc) } else { skip(true) }
                }
                (SM, b"lastmod") if !entry.has_lastmod => {
                    entry.has_lastmod = true;
                    Self::Go(CheckerState::Lastmod)
                }
                (SM, b"changefreq") if head.root() == Root::UrlSet => {
                    Self::Go(CheckerState::ChangeFreq)
                }
                (RS, b"md") => {
                    if entry.has_md {
                        faults.add(&r::MD_ONCE, "a second `rs:md` in one entry");
                    } else {
                        entry.has_md = true;
                        entry.md.read(element, faults);
                    }
                    void
                }
                (RS, b"ln") => {
                    if let Some(link) = read_ln(element, faults)
                        && entry.links.len() < MAX_LINKS
                    {
                        entry.links.push(link);
                    }
                    void
                }
                (SM, b"priority") if head.root() == Root::UrlSet => {
                    Self::Go(CheckerState::Priority)
                }
                (ns, _) => {
                    misplaced(element, ns, faults);
                    skip(true)
                }
            },
            CheckerState::Loc
            | CheckerState::Lastmod
            | CheckerState::ChangeFreq
            | CheckerState::Priority => {
                faults.add(
                    &r::ELEMENTS,
                    format!("element `{}` where only text is due", excerpt(element.local())),
                );
                // Two elements to close: this one and the field that contains it.
                Self::Go(CheckerState::Skipped { open: 2, in_entry: true, is_void: false })
            }
        }
    }

    fn in_root(
        element: &Element<'_>,
        head: &mut Head,
        faults: &mut ElementFaults,
        head_done: bool,
    ) -> Self {
        let skipped = |is_void| CheckerState::Skipped { open: 1, in_entry: false, is_void };
        let ns = element.ns();
        let late = |faults: &mut ElementFaults, what: &str| {
            if head_done {
                faults.add(
                    &r::MD_FIRST,
                    format!("`{what}` of the document comes behind its first entry"),
                );
            }
        };
        match (ns, element.local().as_bytes()) {
            (SM, _) if element.local() == head.root().entry_element() => Self::Entry,
            (RS, b"md") => {
                late(faults, "rs:md");
                let mut md = Md::default();
                md.read(element, faults);
                Self::HeadMd(Box::new(md))
            }
            (RS, b"ln") => {
                late(faults, "rs:ln");
                read_ln(element, faults)
                    .map_or(Self::Go(skipped(true)), |link| Self::HeadLink(Box::new(link)))
            }
            _ => {
                misplaced(element, ns, faults);
                Self::Go(skipped(false))
            }
        }
    }
}

/// Reports elements of the namespaces of Sitemap and ResourceSync in a wrong place. Elements of
/// other namespaces are allowed.
fn misplaced(element: &Element<'_>, ns: Ns, faults: &mut ElementFaults) {
    if ns == SM || ns == RS || ns == Ns::NONE {
        let name = element.local();
        let message = match alpha(name) {
            Some(now) => format!("`{name}` is an element of ResourceSync 0.1; in 1.1 write {now}"),
            None => format!("`{}` has no place here", excerpt(name)),
        };
        faults.add(&r::ELEMENTS, message);
    }
}

fn root(element: &Element<'_>, faults: &mut ElementFaults) -> Option<Root> {
    let root = match element.local() {
        "urlset" => Root::UrlSet,
        "sitemapindex" => Root::SitemapIndex,
        other => {
            faults.add(&r::ROOT, format!("the root is `{}`", excerpt(other)));
            return None;
        }
    };
    if element.ns() != SM {
        let which = if element.ns() == Ns::NONE { "no namespace" } else { "another namespace" };
        faults.add(&r::ROOT, format!("`{}` is in {which}", root.element()));
        return None;
    }
    Some(root)
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckerState {
    Outside,
    Root,
    Entry,
    Loc,
    Lastmod,
    ChangeFreq,
    Priority,
    /// Skips the content of an element until this number of open elements is closed.
    Skipped {
        open: u32,
        in_entry: bool,
        /// Whether the element is `rs:md` or `rs:ln`, which have only attributes.
        is_void: bool,
    },
}
