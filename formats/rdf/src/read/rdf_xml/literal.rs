//! `rdf:parseType="Literal"`: the XML inside, with the namespaces it uses [rdf-xml §7.2.17].
//!
//! Written as exclusive canonical XML with comments, so that equal content is equal text.

use abreast_webtypes::xml::Element;

#[derive(Debug, Default)]
pub(super) struct XmlLiteral {
    out: String,
    /// The open elements, each with the number of declarations around it.
    open: Vec<(String, usize)>,
    /// Prefixes and namespaces that the text declares around the current position.
    declared: Vec<(String, String)>,
}

impl XmlLiteral {
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    pub(super) fn start(&mut self, element: &Element<'_>) {
        let outside = self.declared.len();
        let name = qualified(element.prefix(), element.local());
        let mut attributes: Vec<_> = element.attributes().collect();
        attributes.sort_by_key(|attribute| (attribute.namespace(), attribute.local()));
        let mut used: Vec<(&str, &str)> = attributes
            .iter()
            .filter(|attribute| !attribute.prefix().is_empty())
            .map(|attribute| (attribute.prefix(), attribute.namespace()))
            .chain([(element.prefix(), element.namespace())])
            .filter(|(prefix, _)| *prefix != "xml")
            .collect();
        used.sort_unstable();
        used.dedup();
        self.out.push('<');
        self.out.push_str(&name);
        for (prefix, uri) in used {
            let known = self.declared.iter().rev().find(|(declared, _)| declared == prefix);
            if known.map_or("", |(_, uri)| uri.as_str()) == uri {
                continue;
            }
            self.out.push_str(if prefix.is_empty() { " xmlns" } else { " xmlns:" });
            self.out.push_str(prefix);
            self.out.push_str("=\"");
            escape(uri, true, &mut self.out);
            self.out.push('"');
            self.declared.push((prefix.to_owned(), uri.to_owned()));
        }
        for attribute in attributes {
            self.out.push(' ');
            self.out.push_str(&qualified(attribute.prefix(), attribute.local()));
            self.out.push_str("=\"");
            escape(&attribute.value(), true, &mut self.out);
            self.out.push('"');
        }
        self.out.push('>');
        self.open.push((name, outside));
    }

    pub(super) fn text(&mut self, text: &str) {
        escape(text, false, &mut self.out);
    }

    /// Appends a comment or processing instruction, as written.
    pub(super) fn markup(&mut self, markup: &str) {
        self.out.push_str(&markup.replace("\r\n", "\n").replace('\r', "\n"));
    }

    /// Ends the innermost element; false if that was the property around the literal.
    pub(super) fn end(&mut self) -> bool {
        let Some((name, outside)) = self.open.pop() else { return false };
        self.declared.truncate(outside);
        self.out.push_str("</");
        self.out.push_str(&name);
        self.out.push('>');
        true
    }

    pub(super) fn finish(self) -> String {
        self.out
    }
}

fn qualified(prefix: &str, local: &str) -> String {
    if prefix.is_empty() { local.to_owned() } else { format!("{prefix}:{local}") }
}

fn escape(text: &str, attribute: bool, out: &mut String) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' if !attribute => out.push_str("&gt;"),
            '"' if attribute => out.push_str("&quot;"),
            '\t' if attribute => out.push_str("&#x9;"),
            '\n' if attribute => out.push_str("&#xA;"),
            '\r' => out.push_str("&#xD;"),
            other => out.push(other),
        }
    }
}
