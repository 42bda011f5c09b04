//! Protocols: one file for each, from bytes to items.

pub(crate) mod emm;
pub(crate) mod rdf;
pub(crate) mod resourcesync;
pub(crate) mod resourcesync_0_1;
pub(crate) mod sdshare;

use crate::model::error::Error;
use crate::model::item::{Entry, Head, Item, Statement};
use std::io::{BufRead, Read};
use std::ops::ControlFlow;

/// Passes items to the caller.
pub(crate) struct Out<'v> {
    pub(crate) visit: &'v mut dyn FnMut(Item) -> ControlFlow<()>,
}

impl Out<'_> {
    fn pass(&mut self, item: Item) -> Result<(), Error> {
        match (self.visit)(item) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Cancelled),
        }
    }

    pub(crate) fn document(&mut self, head: Head) -> Result<(), Error> {
        self.pass(Item::Document(Box::new(head)))
    }

    pub(crate) fn entry(&mut self, entry: Entry) -> Result<(), Error> {
        self.pass(Item::Entry(Box::new(entry)))
    }

    pub(crate) fn statement(&mut self, statement: Statement) -> Result<(), Error> {
        self.pass(Item::Statement(Box::new(statement)))
    }
}

/// A document that is being read.
pub(crate) struct Source<'d> {
    /// Address or path, for errors and as the base of relative references.
    pub(crate) url: &'d str,
    pub(crate) input: &'d mut dyn BufRead,
}

impl Source<'_> {
    /// The whole document, for formats that are not read in pieces.
    pub(crate) fn all(&mut self, most: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let read = (&mut *self.input).take(most + 1).read_to_end(&mut bytes);
        read.map_err(|error| Error::input(self.url, error))?;
        if bytes.len() as u64 > most {
            let message = format!("the document has more than {} MiB", most >> 20);
            return Err(Error::document(self.url, "documents.size", message, None));
        }
        Ok(bytes)
    }
}

/// The next documents of the same list: parts of an index or pages, as written.
pub(crate) type Next = Vec<String>;
