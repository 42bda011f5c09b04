//! Readable Turtle: only used prefixes, blank nodes nested where they are mentioned, lists in rows.

use super::graph::{Nesting, by_subject};
use super::prefixes::Prefixes;
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{LiteralRef, NamedNodeRef, NamedOrBlankNodeRef, Term, TermRef, Triple};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

pub(super) fn write(
    triples: &[Triple],
    prefixes: &Prefixes,
    declared: &mut BTreeSet<String>,
    is_later: bool,
    out: &mut String,
) {
    let mut turtle = Turtle {
        prefixes,
        used: BTreeMap::new(),
        nesting: Nesting::new(triples),
        out: String::new(),
    };
    for (subject, statements) in by_subject(triples) {
        if let NamedOrBlankNodeRef::BlankNode(node) = subject
            && turtle.nesting.is_nested(node.as_str())
        {
            continue;
        }
        if !turtle.out.is_empty() {
            turtle.out.push('\n');
        }
        turtle.subject(subject);
        turtle.predicates(&statements, 1);
        turtle.out.push_str(" .\n");
    }
    let Turtle { used, out: body, .. } = turtle;
    if is_later && !body.is_empty() {
        out.push('\n');
    }
    let mut head = false;
    for (prefix, namespace) in used {
        if declared.insert(prefix.to_owned()) {
            let _ = writeln!(out, "@prefix {prefix}: <{namespace}> .");
            head = true;
        }
    }
    if head {
        out.push('\n');
    }
    out.push_str(&body);
}

struct Turtle<'a> {
    prefixes: &'a Prefixes,
    used: BTreeMap<&'a str, &'a str>,
    nesting: Nesting<'a>,
    out: String,
}

impl<'a> Turtle<'a> {
    fn subject(&mut self, subject: NamedOrBlankNodeRef<'a>) {
        match subject {
            NamedOrBlankNodeRef::NamedNode(node) => self.iri(node),
            NamedOrBlankNodeRef::BlankNode(node) => {
                let _ = write!(self.out, "{node}");
            }
        }
    }

    /// Predicates and objects, each predicate on a separate line, `a` first.
    fn predicates(&mut self, statements: &[&'a Triple], depth: usize) {
        let (types, others): (Vec<&Triple>, Vec<&Triple>) =
            statements.iter().copied().partition(|triple| triple.predicate == rdf::TYPE);
        let mut last: Option<&Triple> = None;
        for triple in types.into_iter().chain(others) {
            let is_same = last.is_some_and(|last| last.predicate == triple.predicate);
            if is_same {
                self.out.push_str(" ,\n");
                self.indent(depth + 1);
            } else {
                if last.is_some() {
                    self.out.push_str(" ;");
                }
                self.out.push('\n');
                self.indent(depth);
                if triple.predicate == rdf::TYPE {
                    self.out.push('a');
                } else {
                    self.iri(triple.predicate.as_ref());
                }
                self.out.push(' ');
            }
            self.object(triple.object.as_ref(), depth);
            last = Some(triple);
        }
    }

    fn object(&mut self, object: TermRef<'a>, depth: usize) {
        match object {
            TermRef::NamedNode(node) => self.iri(node),
            TermRef::Literal(literal) => self.literal(literal),
            TermRef::BlankNode(node) => {
                let node = node.as_str();
                if self.nesting.is_list(node) {
                    return self.list(node, depth);
                }
                if !self.nesting.is_nested(node) {
                    let _ = write!(self.out, "_:{node}");
                    return;
                }
                let statements = self.nesting.statements.get(node).cloned().unwrap_or_default();
                if statements.is_empty() {
                    return self.out.push_str("[]");
                }
                self.out.push('[');
                self.predicates(&statements, depth + 1);
                self.out.push('\n');
                self.indent(depth);
                self.out.push(']');
            }
        }
    }

    /// Writes the items of a list in a row.
    fn list(&mut self, first: &'a str, depth: usize) {
        self.out.push('(');
        let mut cell = Some(first);
        while let Some(node) = cell {
            let statements = self.nesting.statements.get(node).cloned().unwrap_or_default();
            cell = None;
            for triple in &statements {
                if triple.predicate == rdf::FIRST {
                    self.out.push('\n');
                    self.indent(depth + 1);
                    self.object(triple.object.as_ref(), depth + 1);
                } else if let Term::BlankNode(rest) = &triple.object {
                    cell = Some(rest.as_str());
                }
            }
        }
        self.out.push('\n');
        self.indent(depth);
        self.out.push(')');
    }

    fn iri(&mut self, node: NamedNodeRef<'a>) {
        match self.prefixes.split(node.as_str()) {
            Some((prefix, namespace, local)) => {
                self.used.insert(prefix, namespace);
                let _ = write!(self.out, "{prefix}:{local}");
            }
            None => {
                let _ = write!(self.out, "{node}");
            }
        }
    }

    fn literal(&mut self, literal: LiteralRef<'a>) {
        let (value, datatype) = (literal.value(), literal.datatype());
        let is_bare = (datatype == xsd::INTEGER && is_integer(value))
            || (datatype == xsd::BOOLEAN && matches!(value, "true" | "false"))
            || (datatype == xsd::DECIMAL && is_decimal(value));
        if is_bare {
            return self.out.push_str(value);
        }
        self.out.push('"');
        for character in value.chars() {
            match character {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                other if abreast_webtypes::is_control(other) => {
                    let _ = write!(self.out, "\\U{:08X}", u32::from(other));
                }
                other => self.out.push(other),
            }
        }
        self.out.push('"');
        if let Some(language) = literal.language() {
            let _ = write!(self.out, "@{language}");
        } else if datatype != xsd::STRING {
            self.out.push_str("^^");
            self.iri(datatype);
        }
    }

    fn indent(&mut self, depth: usize) {
        for _ in 0..depth {
            self.out.push_str("  ");
        }
    }
}

/// Whether a text is an integer in canonical form. Some readers rewrite other forms.
fn is_integer(value: &str) -> bool {
    let digits = value.strip_prefix('-').unwrap_or(value);
    let is_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_digits && (!digits.starts_with('0') || value == "0")
}

/// Whether a text is a decimal in canonical form.
fn is_decimal(value: &str) -> bool {
    value.split_once('.').is_some_and(|(whole, part)| {
        let digits = whole.strip_prefix('-').unwrap_or(whole);
        let is_digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        !digits.starts_with('-')
            && is_integer(digits)
            && is_digits
            && (!part.ends_with('0') || part == "0")
            && value != "-0.0"
    })
}
