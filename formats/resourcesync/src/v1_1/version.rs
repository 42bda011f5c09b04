//! The elements of 1.1: `rs:md` and `rs:ln` in addition to the Sitemap's elements [rs-core §7].

use super::attributes::{AlphaField, RS, read_alpha, read_entry_md, read_head_md, read_ln};
use super::{Capability, Change, Entry, Head, RS_NAMESPACE, Root, SITEMAP_NAMESPACE};
use crate::sitemap::{
    Child, Fault, MAX_LINKS, Notes, SM, StringPool, Version, change_set, check_attribute,
    check_in_entry, check_in_head, parse_lastmod, too_many_links,
};
use abreast_webtypes::xml::{Attribute, Element, Ns};

/// The elements of ResourceSync 1.1, for the parser.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct V1_1 {
    /// Whether the document's `rs:md` was read.
    md_read: bool,
    /// Whether the current entry's `rs:md` was read.
    entry_md_read: bool,
}

/// A child of an entry whose text matters.
#[derive(Clone, Copy, Debug)]
pub enum Field {
    /// `lastmod`: time of the last modification
    Lastmod,
    /// Metadata that is an element in version 0.1.
    Alpha(AlphaField),
}

impl V1_1 {
    /// Refuses an attribute of 0.1 in a document without `rs:md`. Read as a plain Sitemap,
    /// addresses of other protocols would be resources, and deleted resources would exist.
    fn check_no_mark(&self, element: &Element<'_>, name: &str) -> Result<(), Fault> {
        let is_mark = |of: &Attribute<'_>| of.ns() == RS && of.local() == name;
        if self.md_read || !element.attributes().any(|of| is_mark(&of)) {
            return Ok(());
        }
        Err(read_as_plain(&format!("`{}` has `rs:{name}`", element.local())))
    }
}

fn read_as_plain(why: &str) -> Fault {
    let message =
        format!("{why}: this is a Sitemap of ResourceSync 0.1, and is read as a plain one");
    Fault::new("rs.version", message)
        .with_help("give its own address, or that of an index with marks of ResourceSync 0.1")
}

impl Version for V1_1 {
    type Head = Head;
    type Entry = Entry;
    type Field = Field;

    const NAMESPACES: &'static [&'static str] = &[SITEMAP_NAMESPACE, RS_NAMESPACE];

    fn root(head: &mut Head) -> &mut Root {
        &mut head.root
    }

    fn root_of(head: &Head) -> Root {
        head.root
    }

    fn write_head(out: &mut Vec<u8>, head: &Head) {
        super::write_head(out, head);
    }

    fn write_entry(out: &mut Vec<u8>, root: Root, entry: &Entry) {
        super::write_entry(out, root, entry);
    }

    fn loc(entry: &mut Entry) -> &mut String {
        &mut entry.loc
    }

    fn line(entry: &mut Entry) -> &mut u64 {
        &mut entry.line
    }

    fn clear(entry: &mut Entry, spare: &mut StringPool) {
        spare.keep(entry.media_type.take());
        spare.keep(entry.encoding.take());
        spare.keep(entry.path.take());
        for link in entry.links.drain(..) {
            spare.keep(Some(link.rel));
            spare.keep(Some(link.href));
            spare.keep(link.media_type);
        }
        entry.clear();
    }

    fn code(field: Field) -> &'static str {
        match field {
            Field::Lastmod => "rs.datetime",
            Field::Alpha(AlphaField::Size) => "rs.length",
            Field::Alpha(_) => "rs.value",
        }
    }

    fn start_root(
        &mut self,
        _head: &mut Head,
        element: &Element<'_>,
        _notes: &mut Notes,
    ) -> Result<(), Fault> {
        // Read as a Sitemap, a list of changes would be a list of all resources.
        let is_type = |of: &Attribute<'_>| {
            of.local() == "type"
                && (of.ns() == RS
                    || of.ns() == Ns::NONE && of.value().trim().eq_ignore_ascii_case("changeset"))
        };
        if element.attributes().any(|of| is_type(&of)) {
            return Err(change_set("the root has `rs:type`"));
        }
        check_attribute(element, "type")
    }

    fn start_in_head(
        &mut self,
        head: &mut Head,
        element: &Element<'_>,
        late: bool,
        spare: &mut StringPool,
        notes: &mut Notes,
    ) -> Result<(), Fault> {
        match (element.ns(), element.local().as_bytes()) {
            (RS, b"md") if late => {
                let message = "the `rs:md` of the document comes behind its first entry";
                Err(Fault::new("rs.order", message).with_help(
                    "write it before all entries, so that lists can be read as they arrive",
                ))
            }
            (RS, b"md") if self.md_read => {
                Err(Fault::new("rs.md", "a second `rs:md` of the document"))
            }
            (RS, b"md") => {
                self.md_read = true;
                read_head_md(head, element, notes)
            }
            (RS, b"ln") if head.links.len() == MAX_LINKS => Err(too_many_links("rs:ln")),
            (RS, b"ln") => read_ln(element, spare, notes).map(|link| head.links.extend(link)),
            _ => check_in_head(element),
        }
    }

    fn end_head(&mut self, _head: &mut Head, notes: &mut Notes) -> Result<(), Fault> {
        if !self.md_read {
            notes
                .add("rs.no-md", "no `rs:md`: a plain Sitemap, read as a Resource List".to_owned());
        }
        Ok(())
    }

    fn start_entry(&mut self) {
        self.entry_md_read = false;
    }

    fn start_in_entry(
        &mut self,
        entry: &mut Entry,
        element: &Element<'_>,
        spare: &mut StringPool,
        notes: &mut Notes,
    ) -> Result<Child<Field>, Fault> {
        match (element.ns(), element.local().as_bytes()) {
            (SM, b"loc") => {
                self.check_no_mark(element, "protocol")?;
                Ok(Child::Loc)
            }
            (SM, b"lastmod") => {
                self.check_no_mark(element, "type")?;
                check_attribute(element, "type").map(|()| Child::Text(Field::Lastmod))
            }
            // The resource may not exist any more.
            (SM, b"expires") if !self.md_read => Err(read_as_plain("an entry has `expires`")),
            (RS, b"md") => {
                if std::mem::replace(&mut self.entry_md_read, true) {
                    return Err(Fault::new("rs.md", "a second `rs:md` in one entry"));
                }
                read_entry_md(entry, element, spare, notes).map(|()| Child::Other)
            }
            (RS, b"ln") if entry.links.len() == MAX_LINKS => Err(too_many_links("rs:ln")),
            (RS, b"ln") => read_ln(element, spare, notes).map(|link| {
                entry.links.extend(link);
                Child::Other
            }),
            (RS, _) => match AlphaField::of(element) {
                Some(field) => Ok(Child::Text(Field::Alpha(field))),
                None => check_in_entry(element).map(|()| Child::Other),
            },
            _ => check_in_entry(element).map(|()| Child::Other),
        }
    }

    fn end_field(
        &mut self,
        field: Field,
        entry: &mut Entry,
        text: &str,
        spare: &mut StringPool,
        notes: &mut Notes,
    ) -> Result<(), Fault> {
        match field {
            Field::Lastmod => {
                let Some(lastmod) = parse_lastmod(text, notes)? else { return Ok(()) };
                match entry.lastmod.replace(lastmod) {
                    None => {}
                    Some(before) if before == lastmod => {
                        notes.add("rs.repeated", "a second `lastmod` in one entry".to_owned());
                    }
                    // One of the two may be from an earlier version of the resource.
                    Some(_) => {
                        return Err(Fault::new(
                            "rs.datetime",
                            "two different `lastmod` in one entry",
                        ));
                    }
                }
                Ok(())
            }
            Field::Alpha(field) => read_alpha(entry, field, text, spare),
        }
    }

    fn end_entry(
        &mut self,
        head: &Head,
        entry: &mut Entry,
        notes: &mut Notes,
    ) -> Result<(), Fault> {
        use Capability::{ChangeDumpManifest, ChangeList, ResourceDumpManifest, ResourceList};
        match (head.capability, entry.change) {
            // Entries of an index, and lists in a document that should be an index.
            (Some(ChangeList), None)
                if head.root == Root::SitemapIndex || entry.capability == head.capability => {}
            (Some(ChangeList | ChangeDumpManifest), None) => {
                let message = "an entry of a list of changes has no `change`";
                return Err(Fault::new("rs.change", message).with_help("it may be a deletion"));
            }
            (Some(ResourceList | ResourceDumpManifest), Some(Change::Deleted)) => {
                let message = "an entry of a list of resources has `change=\"deleted\"`";
                return Err(Fault::new("rs.change", message));
            }
            (Some(ResourceList | ResourceDumpManifest), Some(_)) => {
                let message = "an entry of a list of resources has `change`; ignored";
                notes.add("rs.change-ignored", message.to_owned());
            }
            _ => {}
        }
        Ok(())
    }
}
