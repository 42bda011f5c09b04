//! Values that apply to an element and its content: base and language [rdf-xml §5.3].

use super::fault::Fault;
use crate::notation::statement::is_language_tag;
use abreast_webtypes::excerpt;
use oxiri::Iri;
use oxrdf::{Literal, NamedNode};
use std::rc::Rc;

/// Base and language at a position.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    base: Option<Rc<Iri<String>>>,
    language: Option<Rc<str>>,
    /// Whether invalid IRIs are passed on unchanged, because the statements are checked later.
    is_lenient: bool,
}

const BASE_HELP: &str =
    "write absolute IRIs, give the document an `xml:base`, or state its base IRI";

impl Scope {
    pub(super) fn new(base: Option<Iri<String>>, is_lenient: bool) -> Self {
        Self { base: base.map(Rc::new), language: None, is_lenient }
    }

    /// The scope inside an element with these attributes.
    pub(super) fn inside(&self, base: Option<&str>, language: Option<&str>) -> Result<Self, Fault> {
        let mut scope = self.clone();
        if let Some(base) = base {
            let iri = self.resolve(base)?;
            let iri = Iri::parse(iri).map_err(|error| fault(base, &error))?;
            scope.base = Some(Rc::new(iri));
        }
        match language {
            Some("") => scope.language = None,
            Some(language) => {
                // Checked here, so that the error has the position of the attribute.
                if !self.is_lenient && !is_language_tag(language) {
                    let message = format!("`{}` is not a language tag", excerpt(language));
                    return Err(Fault::new("rdf.language", message));
                }
                scope.language = Some(language.into());
            }
            None => {}
        }
        Ok(scope)
    }

    /// A literal without datatype.
    pub(super) fn literal(&self, value: String) -> Literal {
        match &self.language {
            Some(language) => {
                Literal::new_language_tagged_literal_unchecked(value, language.to_string())
            }
            None => Literal::new_simple_literal(value),
        }
    }

    /// Resolves an IRI reference.
    pub(super) fn iri(&self, reference: &str) -> Result<NamedNode, Fault> {
        self.resolve(reference).map(NamedNode::new_unchecked)
    }

    fn resolve(&self, reference: &str) -> Result<String, Fault> {
        // Lenient: an absolute IRI is not normalised, also if it has `/../`, since its text is its
        // identity [rdf-xml §5.3].
        let absolute = Iri::parse(reference);
        match (absolute, &self.base) {
            (Err(_), None) if self.is_lenient => Ok(reference.to_owned()),
            (Err(_), Some(base)) if self.is_lenient => {
                Ok(base.resolve(reference).map_or_else(|_| reference.to_owned(), Iri::into_inner))
            }
            (Ok(iri), _) => Ok(iri.into_inner().to_owned()),
            (Err(_), Some(base)) => base
                .resolve(reference)
                .map(Iri::into_inner)
                .map_err(|error| fault(reference, &error)),
            (Err(error), None) => Err(fault(reference, &error).with_help(BASE_HELP)),
        }
    }
}

fn fault(iri: &str, error: &impl std::fmt::Display) -> Fault {
    Fault::new("rdf.iri", format!("`{}` is not an IRI: {error}", excerpt(iri)))
}
