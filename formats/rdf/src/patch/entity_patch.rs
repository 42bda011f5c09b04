//! Patches of an entity: RDF Patch from one version of its description to the next, and the
//! application to a copy of the earlier version.
//!
//! Rows contain the statements of canonical lines, with a term in place of each blank node. A copy
//! writes its description in the same way, and compares the digest before it applies the rows and
//! the digest of the result. Therefore an error of either side is not stored.

use crate::entity::skolem::{
    ANY_LABEL, PATH, SkolemError, blank_by_prefix, name_by_prefix, prefix,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use memchr::memmem;
use oxrdf::{Literal, NamedNode, NamedOrBlankNode, Quad, Term, Triple};
use rdf_patch::{
    AFTER, BEFORE, Change, ENTITY_PREV, Header, ID, PREV, Patch, SKOLEM, WriteError, Writer,
};
use sha2::{Digest as _, Sha256};

use crate::canonical::Canonical;
use crate::canonical::budget::TooLarge;
use crate::entity::closure::DescriptionLimits;
use crate::entity::diff::{Difference, difference};
use crate::notation::statement::{StatementError, split_lines, statements, write_statement};

/// Prefix of blank node labels in the rows of this crate.
const LABEL: &str = "<_:b";

/// The terms for blank nodes in the rows of a patch. Every form makes the term from the entity and
/// the label in the description: it is the same in each version with this label, and different for
/// each entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchBlankNodes<'a> {
    /// IRIs with the prefix `BASE/.well-known/genid/` [rdf11-concepts §3.5]. Labels, if the
    /// descriptions have such IRIs already.
    Skolem(&'a str),
    /// Labels, `<_:label>`: for stores that preserve labels, such as the stores behind RDF Delta.
    Labels,
    /// Labels; if a statement with a blank node differs, the rows include all statements of all
    /// blank nodes connected with it. For consumers that cannot match labels.
    Subtrees,
}

/// The change of an entity's description, to be written as a patch.
#[derive(Clone, Copy, Debug)]
pub struct EntityPatch<'a> {
    /// The IRI of the entity, without brackets.
    pub entity: &'a str,
    /// Canonical lines of the earlier description; empty for a new entity.
    pub old: &'a [u8],
    /// Canonical lines of the later description; empty for a deleted entity.
    pub new: &'a [u8],
    /// The IRI of the patch: `H id`.
    pub id: &'a str,
    /// The IRI of the previous patch in the log: `H prev`.
    pub prev: Option<&'a str>,
    /// The IRI of the previous patch about the entity: `H entityPrev`.
    pub entity_prev: Option<&'a str>,
    /// Form of the terms for blank nodes.
    pub blank_nodes: PatchBlankNodes<'a>,
}

/// The numbers of rows that were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchRows {
    /// Number of rows `D`, which remove statements.
    pub removed: usize,
    /// Number of rows `A`, which add statements.
    pub added: usize,
}

/// Errors while a patch is written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EntityPatchError {
    /// The base is invalid, or a line is not a statement as this crate writes it.
    #[error(transparent)]
    Lines(#[from] SkolemError),
    /// An identifier is not an IRI.
    #[error("`{0}` is not an absolute IRI")]
    Iri(String),
    /// The rows cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl From<StatementError> for EntityPatchError {
    fn from(error: StatementError) -> Self {
        Self::Lines(error.into())
    }
}

impl EntityPatch<'_> {
    /// Appends the patch as strict RDF Patch: the header with the digests of both descriptions, and
    /// one transaction with all removals, then all additions.
    ///
    /// ```
    /// use abreast_rdf::{EntityPatch, PatchBlankNodes, apply_entity_patch};
    /// use rdf_patch::Patch;
    ///
    /// let old = b"<http://e/ada> <http://e/name> \"Ada\" .\n";
    /// let new = b"<http://e/ada> <http://e/name> \"Ada Lovelace\" .\n";
    /// let change = EntityPatch {
    ///     entity: "http://e/ada",
    ///     old,
    ///     new,
    ///     id: "uuid:2",
    ///     prev: Some("uuid:1"),
    ///     entity_prev: None,
    ///     blank_nodes: PatchBlankNodes::Skolem("https://example.org"),
    /// };
    /// let mut text = Vec::new();
    /// change.write(&mut text)?;
    /// assert!(String::from_utf8_lossy(&text).ends_with(
    ///     "TX .\n\
    ///      D <http://e/ada> <http://e/name> \"Ada\" .\n\
    ///      A <http://e/ada> <http://e/name> \"Ada Lovelace\" .\n\
    ///      TC .\n"
    /// ));
    /// let applied = apply_entity_patch("http://e/ada", old, &Patch::from_slice(&text)?)?;
    /// assert_eq!(applied.description.lines, new);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The base or an identifier is not an IRI, or a line is not a statement as this crate writes
    /// it.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<PatchRows, EntityPatchError> {
        let base = self.prefix()?;
        let (old, new) =
            (named(self.old, &base, self.entity)?, named(self.new, &base, self.entity)?);
        let has_blank = matches!(old, Cow::Owned(_)) || matches!(new, Cow::Owned(_));
        let mut change = difference(&old, &new);
        if self.blank_nodes == PatchBlankNodes::Subtrees && has_blank {
            widen(&mut change, &old, &new, &base)?;
        }
        let mut writer = Writer::new(out);
        let words = [(ID, Some(self.id)), (PREV, self.prev), (ENTITY_PREV, self.entity_prev)];
        for (word, iri) in words {
            if let Some(iri) = iri {
                let node =
                    NamedNode::new(iri).map_err(|_| EntityPatchError::Iri(iri.to_owned()))?;
                writer.header(word, node.as_ref().into())?;
            }
        }
        for (word, lines) in [(BEFORE, &old), (AFTER, &new)] {
            writer.header(word, Literal::from(digest_text(lines)).as_ref().into())?;
        }
        if has_blank && base != LABEL {
            let node = NamedNode::new_unchecked(&base[1..]);
            writer.header(SKOLEM, node.as_ref().into())?;
        }
        writer.begin()?;
        for line in split_lines(&change.removed) {
            writer.remove_line(line)?;
        }
        for line in split_lines(&change.added) {
            writer.add_line(line)?;
        }
        writer.commit()?;
        writer.finish()?;
        let (removed, added) = change.counts();
        Ok(PatchRows { removed, added })
    }

    /// The prefix of the terms in place of blank nodes.
    fn prefix(&self) -> Result<Cow<'static, str>, SkolemError> {
        if let PatchBlankNodes::Skolem(base) = self.blank_nodes {
            let prefix = prefix(base)?;
            let has_such = |lines| memmem::find(lines, prefix.as_bytes()).is_some();
            if !has_such(self.old) && !has_such(self.new) {
                return Ok(prefix.into());
            }
        }
        Ok(LABEL.into())
    }
}

/// The digest of a description without blank nodes, as in the headers `H before` and `H after`:
/// `sha256:` and the hexadecimal digits.
///
/// # Examples
/// ```
/// use abreast_rdf::digest_text;
///
/// let digest = digest_text(b"<http://h/7> <http://h/title> \"Atlas\" .\n");
/// assert!(digest.starts_with("sha256:"));
/// assert_eq!(digest.len(), "sha256:".len() + 64);
/// ```
pub fn digest_text(lines: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(71);
    text.push_str(SHA_256);
    for byte in Sha256::digest(lines) {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from(DIGITS[usize::from(digit)]));
        }
    }
    text
}

const SHA_256: &str = "sha256:";

/// The lines with terms in place of blank nodes; borrowed if there are no blank nodes.
fn named<'a>(lines: &'a [u8], prefix: &str, entity: &str) -> Result<Cow<'a, [u8]>, StatementError> {
    if memmem::find(lines, b"_:").is_none() {
        return Ok(lines.into());
    }
    for statement in statements(lines) {
        if statement?.has_blank() {
            return Ok(name_by_prefix(lines, prefix, entity)?.into());
        }
    }
    Ok(lines.into())
}

/// Adds all statements of blank nodes that are connected with blank nodes in the difference.
fn widen(
    change: &mut Difference,
    old: &[u8],
    new: &[u8],
    prefix: &str,
) -> Result<(), StatementError> {
    let is_blank = |term: &[u8]| term.starts_with(prefix.as_bytes());
    let mut groups = Groups::default();
    for lines in [old, new] {
        for statement in statements(lines) {
            let statement = statement?;
            if is_blank(statement.subject) && is_blank(statement.object) {
                groups.join(statement.subject, statement.object);
            }
        }
    }
    let mut changed: BTreeSet<usize> = BTreeSet::new();
    for statement in statements(&change.removed).chain(statements(&change.added)) {
        let statement = statement?;
        for term in [statement.subject, statement.object] {
            if is_blank(term) {
                changed.insert(groups.of(term));
            }
        }
    }
    let mut wide = Difference::default();
    for (lines, narrow, out) in
        [(old, &change.removed, &mut wide.removed), (new, &change.added, &mut wide.added)]
    {
        let narrow: BTreeSet<&[u8]> = split_lines(narrow).collect();
        for (statement, line) in statements(lines).zip(split_lines(lines)) {
            let statement = statement?;
            let mut terms = [statement.subject, statement.object].into_iter();
            let is_connected =
                terms.any(|term| is_blank(term) && changed.contains(&groups.of(term)));
            if is_connected || narrow.contains(line) {
                statement.write(out);
            }
        }
    }
    *change = wide;
    Ok(())
}

/// Disjoint sets of terms (union-find).
#[derive(Default)]
struct Groups<'a> {
    numbers: BTreeMap<&'a [u8], usize>,
    parents: Vec<usize>,
}

impl<'a> Groups<'a> {
    fn of(&mut self, term: &'a [u8]) -> usize {
        let next = self.parents.len();
        let mut number = *self.numbers.entry(term).or_insert(next);
        if number == next {
            self.parents.push(next);
        }
        while self.parents[number] != number {
            self.parents[number] = self.parents[self.parents[number]];
            number = self.parents[number];
        }
        number
    }

    fn join(&mut self, one: &'a [u8], other: &'a [u8]) {
        let (one, other) = (self.of(one), self.of(other));
        self.parents[one] = other;
    }
}

/// The result of applying a patch to a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedPatch {
    /// The later description; empty if the entity was deleted.
    pub description: Canonical,
    /// Whether the patch has the digest of the result.
    pub is_verified: bool,
    /// Rows about other subjects, which were skipped.
    pub other_subjects: usize,
}

/// The reason why a patch cannot be applied. Then fetch the whole description.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The patch is for another version of the description.
    #[error(
        "the patch is for another version: it states `{stated}` before, and the description has `{found}`"
    )]
    OtherVersion {
        /// The digest in the patch.
        stated: String,
        /// The digest of the given description.
        found: String,
    },
    /// The result does not have the digest in the patch.
    #[error(
        "the patch does not lead to what it states: `{stated}` after, and the result has `{found}`"
    )]
    OtherResult {
        /// The digest in the patch.
        stated: String,
        /// The digest of the computed result.
        found: String,
    },
    /// A digest is not one of SHA-256.
    #[error("`{0}` is not a digest: `sha256:` and 64 hexadecimal digits")]
    Digest(String),
    /// IRIs in place of blank nodes have the same prefix as other IRIs.
    #[error(
        "`H skolem` is <{0}>: expected one that ends with `/.well-known/genid/` and is not used by the description"
    )]
    Skolem(String),
    /// The patch has blank nodes, and does not contain the digest of the version to which it
    /// applies.
    #[error("the patch has blank nodes and no `H before`: their labels cannot be compared")]
    BlankNodes,
    /// A statement is in a graph other than the default graph.
    #[error("the patch has a statement in the graph {0}")]
    Graph(String),
    /// The result is larger than a description may be.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The earlier description has a line that is not a statement as this crate writes it.
    #[error(transparent)]
    Statement(#[from] StatementError),
}

/// Applies a patch of an entity, or the rows about this entity in a larger patch, to the canonical
/// lines of the entity's earlier description.
///
/// Without `H before`, rows apply to any description: adding an existing statement, or removing a
/// missing one, has no effect.
///
/// # Errors
/// - The description differs from the digest in `H before`, or the result from the digest in
///   `H after`.
/// - The patch has named graphs, or blank nodes without `H before`.
/// - The result is larger than [`DescriptionLimits`] permits by default.
pub fn apply_entity_patch(
    entity: &str,
    old: &[u8],
    patch: &Patch,
) -> Result<AppliedPatch, ApplyError> {
    let root = format!("<{entity}>");
    let skolem = patch.header.iri(SKOLEM).map(|iri| format!("<{iri}"));
    let old = named_for(entity, old, &patch.header)?;
    let prefix = skolem.as_deref().unwrap_or(ANY_LABEL);
    let before = stated(&patch.header, BEFORE)?;
    if let Some(stated) = before {
        let found = digest_text(&old);
        if found != stated {
            return Err(ApplyError::OtherVersion { stated: stated.to_owned(), found });
        }
    }
    let mut other_subjects = 0;
    let mut lines: BTreeSet<Cow<'_, [u8]>> = split_lines(&old).map(Cow::Borrowed).collect();
    for change in patch.transactions.iter().flatten() {
        let (Change::Add(quad) | Change::Remove(quad)) = change else { continue };
        if !quad.graph_name.is_default_graph() {
            return Err(ApplyError::Graph(quad.graph_name.to_string()));
        }
        let (line, has_label) = row_line(quad);
        if has_label && before.is_none() {
            return Err(ApplyError::BlankNodes);
        }
        if !line.starts_with(root.as_bytes()) && !line.starts_with(prefix.as_bytes()) {
            other_subjects += 1;
        } else if matches!(change, Change::Add(_)) {
            lines.insert(line.into());
        } else {
            lines.remove(line.as_slice());
        }
    }
    let mut new = Vec::with_capacity(old.len());
    for line in &lines {
        new.extend_from_slice(line);
        new.push(b'\n');
    }
    let most = DescriptionLimits::default();
    if new.len() > most.bytes {
        return Err(TooLarge { root, limit: format!("{} bytes", most.bytes) }.into());
    }
    if lines.len() > most.statements {
        return Err(TooLarge { root, limit: format!("{} statements", most.statements) }.into());
    }
    let after = stated(&patch.header, AFTER)?;
    if let Some(stated) = after {
        let found = digest_text(&new);
        if found != stated {
            return Err(ApplyError::OtherResult { stated: stated.to_owned(), found });
        }
    }
    let description = blank_by_prefix(&new, prefix)?;
    Ok(AppliedPatch { description, is_verified: after.is_some(), other_subjects })
}

/// The lines of a description with the terms that a patch has in place of blank nodes.
pub(crate) fn named_for<'l>(
    entity: &str,
    lines: &'l [u8],
    header: &Header,
) -> Result<Cow<'l, [u8]>, ApplyError> {
    let skolem = header.iri(SKOLEM).map(|iri| format!("<{iri}"));
    if let Some(prefix) = &skolem {
        // Otherwise, IRIs of the description would be read as blank nodes.
        let is_taken = format!("<{entity}>").starts_with(prefix)
            || memmem::find(lines, prefix.as_bytes()).is_some();
        if is_taken || !prefix.ends_with(PATH) {
            return Err(ApplyError::Skolem(prefix[1..].chars().take(100).collect()));
        }
    }
    Ok(named(lines, skolem.as_deref().unwrap_or(LABEL), entity)?)
}

/// The digest in a header of a patch, if there is one.
pub(crate) fn stated<'a>(header: &'a Header, word: &str) -> Result<Option<&'a str>, ApplyError> {
    let Some(term) = header.get(word) else { return Ok(None) };
    let digest = header.text(word).filter(|text| {
        text.strip_prefix(SHA_256).is_some_and(|hex| {
            hex.len() == 64 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        })
    });
    digest.map(Some).ok_or_else(|| ApplyError::Digest(term.to_string().chars().take(100).collect()))
}

/// The statement of a row without a line feed, and whether it has a label.
fn row_line(quad: &Quad) -> (Vec<u8>, bool) {
    let mut triple = Triple::from(quad.clone());
    let mut has_label = false;
    let mut name = |label: &str| {
        has_label = true;
        NamedNode::new_unchecked(format!("_:{label}"))
    };
    if let NamedOrBlankNode::BlankNode(node) = &triple.subject {
        triple.subject = name(node.as_str()).into();
    }
    if let Term::BlankNode(node) = &triple.object {
        triple.object = name(node.as_str()).into();
    }
    let mut line = Vec::new();
    write_statement(triple.as_ref(), &mut line);
    line.pop();
    (line, has_label)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::canonical_lines;

    const ADA: &str = "http://e/ada";

    fn lines(text: &str) -> Vec<u8> {
        canonical_lines(text.as_bytes()).unwrap().lines
    }

    fn change<'a>(
        old: &'a [u8],
        new: &'a [u8],
        blank_nodes: PatchBlankNodes<'a>,
    ) -> EntityPatch<'a> {
        EntityPatch {
            entity: ADA,
            old,
            new,
            id: "uuid:2",
            prev: None,
            entity_prev: None,
            blank_nodes,
        }
    }

    fn written(change: &EntityPatch<'_>) -> String {
        let mut text = Vec::new();
        change.write(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    fn applied(old: &[u8], patch: &str) -> Result<AppliedPatch, ApplyError> {
        apply_entity_patch(ADA, old, &Patch::from_slice(patch.as_bytes()).unwrap())
    }

    /// `(removed, added)` rows.
    fn rows(patch: &str) -> (usize, usize) {
        let of = |code| patch.lines().filter(|row| row.starts_with(code)).count();
        (of("D "), of("A "))
    }

    const HOME: &str = "<http://e/ada> <http://e/home> _:x .\n_:x <http://e/city> \"London\" .\n\
        _:x <http://e/owner> _:y .\n_:y <http://e/name> \"B\" .\n";

    #[test]
    fn creations_and_deletions_are_complete_patches() {
        let new = lines(HOME);
        let create = written(&change(b"", &new, PatchBlankNodes::Labels));
        assert_eq!(rows(&create), (0, 4));
        assert_eq!(applied(b"", &create).unwrap().description.lines, new);
        let delete = written(&change(&new, b"", PatchBlankNodes::Labels));
        assert_eq!(rows(&delete), (4, 0));
        assert_eq!(applied(&new, &delete).unwrap().description.lines, b"");
    }

    #[test]
    fn headers_name_the_patches_before() {
        let old = b"<http://e/ada> <http://e/p> \"1\" .\n";
        let new = b"<http://e/ada> <http://e/p> \"2\" .\n";
        let mut change = change(old, new, PatchBlankNodes::Skolem("https://example.org/"));
        (change.prev, change.entity_prev) = (Some("uuid:1"), Some("uuid:0"));
        assert_eq!(
            written(&change),
            format!(
                "H id <uuid:2> .\nH prev <uuid:1> .\nH entityPrev <uuid:0> .\nH before \"{}\" .\n\
                 H after \"{}\" .\nTX .\nD <http://e/ada> <http://e/p> \"1\" .\n\
                 A <http://e/ada> <http://e/p> \"2\" .\nTC .\n",
                digest_text(old),
                digest_text(new)
            )
        );
        assert_eq!(
            digest_text(b""),
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }

    #[test]
    fn each_form_of_blank_nodes_leads_to_the_new_version() {
        let old = lines(HOME);
        let new = lines(&HOME.replace("\"B\"", "\"C\""));
        let skolem = written(&change(&old, &new, PatchBlankNodes::Skolem("https://example.org")));
        assert!(skolem.contains("H skolem <https://example.org/.well-known/genid/> .\n"));
        assert!(!skolem.contains("_:"));
        let labels = written(&change(&old, &new, PatchBlankNodes::Labels));
        assert!(labels.contains("<_:b") && !labels.contains(" _:"));
        let subtrees = written(&change(&old, &new, PatchBlankNodes::Subtrees));
        assert_eq!(rows(&subtrees), (4, 4));
        for patch in [skolem, labels, subtrees] {
            let result = applied(&old, &patch).unwrap();
            assert_eq!(result.description.lines, new);
            assert!(result.is_verified);
            let error = applied(&new, &patch).unwrap_err();
            assert!(matches!(error, ApplyError::OtherVersion { .. }), "{error}");
            let back = Patch::from_slice(patch.as_bytes()).unwrap().reversed().unwrap();
            assert_eq!(apply_entity_patch(ADA, &new, &back).unwrap().description.lines, old);
        }
    }

    #[test]
    fn blank_nodes_of_two_entities_have_different_labels() {
        let label = |entity: &str| {
            let new = lines(&HOME.replace("http://e/ada", entity));
            let patch = EntityPatch { entity, ..change(b"", &new, PatchBlankNodes::Labels) };
            let text = written(&patch);
            text[text.find("<_:").unwrap()..].split('>').next().unwrap().to_owned()
        };
        assert_ne!(label("http://e/ada"), label("http://e/bob"));
    }

    #[test]
    fn labels_replace_iris_that_descriptions_have_already() {
        let own = "<http://e/ada> <http://e/p> <https://example.org/.well-known/genid/1> .\n";
        let (old, new) = (lines(own), lines(&format!("{own}{HOME}")));
        let patch = written(&change(&old, &new, PatchBlankNodes::Skolem("https://example.org")));
        assert!(!patch.contains("H skolem"), "{patch}");
        assert_eq!(applied(&old, &patch).unwrap().description.lines, new);
        let wrong = patch.replace("TX", "H skolem <https://example.org/.well-known/genid/> .\nTX");
        assert!(matches!(applied(&old, &wrong), Err(ApplyError::Skolem(_))));
        let wrong = patch.replace("TX", "H skolem <http://e/> .\nTX");
        assert!(matches!(applied(&old, &wrong), Err(ApplyError::Skolem(_))));
    }

    #[test]
    fn a_result_that_differs_from_its_digest_is_refused() {
        let (old, new) = (lines(HOME), lines(&HOME.replace("London", "Paris")));
        let patch = written(&change(&old, &new, PatchBlankNodes::Labels)).replace("Paris", "Rome");
        assert!(matches!(applied(&old, &patch), Err(ApplyError::OtherResult { .. })));
    }

    #[test]
    fn patches_without_digests_apply_to_statements_without_labels() {
        let old = lines("<http://e/ada> <http://e/p> \"1\" .\n");
        let apply = |rows: &str| applied(&old, &format!("TX .\n{rows}\nTC .\n"));
        let result = apply(
            "D <https://e/ada> <http://e/p> \"1\" .\nA <http://e/ada> <http://e/p> \"2\" .\n\
             D <http://e/ada> <http://e/p> \"3\" .",
        )
        .unwrap();
        assert_eq!((result.other_subjects, result.is_verified), (1, false));
        let both = "<http://e/ada> <http://e/p> \"1\" .\n<http://e/ada> <http://e/p> \"2\" .\n";
        assert_eq!(result.description.lines, both.as_bytes());
        let blank = apply("D <http://e/ada> <http://e/p> _:b .");
        assert!(matches!(blank, Err(ApplyError::BlankNodes)));
        let graph = apply("A <http://e/ada> <http://e/p> \"1\" <http://e/g> .");
        assert!(matches!(graph, Err(ApplyError::Graph(_))));
        for digest in [
            "md5:1",
            "sha256:",
            "sha256:E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855",
        ] {
            let patch = format!("H before \"{digest}\" .\nTX .\nTC .\n");
            assert!(matches!(applied(&old, &patch), Err(ApplyError::Digest(_))), "{digest}");
        }
    }

    proptest! {
        #[test]
        fn patches_lead_from_version_to_version(edges: Vec<[u8; 3]>) {
            crate::patch::fuzz_property::entity_patch(&edges.concat());
        }
    }
}
