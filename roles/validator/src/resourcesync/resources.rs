//! Reads all resources in the Resource Lists, for `--sample all`.

use crate::fetch::{self, Go, ResponseFacts, is_url};
use crate::report::Findings;
use crate::resourcesync::checker::Checker;
use crate::resourcesync::doc::Doc;
use crate::resourcesync::entry::{DocumentObserver, Entry, Head};
use crate::walk::node::Walked;
use crate::walk::protocol::Run;
use crate::walk::sketch::Listed;
use abreast_net::Client;
use abreast_resourcesync::v1_1::{Capability, Root};
use std::cell::RefCell;
use std::sync::Arc;

/// Reads the Resource Lists again and passes on each resource, without storing the lists.
pub(super) fn each(walked: &Walked, run: &Run<'_>, send: &mut dyn FnMut(Listed)) {
    let Some(runtime) = fetch::runtime() else { return };
    let client = Client::new(Arc::clone(&run.shared));
    for node in &walked.nodes {
        let Some(doc) = node.outcome.record::<Doc>() else { continue };
        let is_list =
            doc.is(Capability::ResourceList) && doc.root() == Root::UrlSet && !node.origin.archived;
        if !is_list || !is_url(&node.url) {
            continue;
        }
        // One document at a time is buffered, so that the download of a list does not wait for a
        // slow resource.
        let bytes = RefCell::new(Vec::new());
        let begin = |_: &ResponseFacts| {
            bytes.borrow_mut().clear();
            Go::On
        };
        let piece = |piece: &[u8]| {
            let mut bytes = bytes.borrow_mut();
            bytes.extend_from_slice(piece);
            if bytes.len() as u64 > run.options.max_document_bytes { Go::Enough } else { Go::On }
        };
        let read = fetch::url(&client, &node.url, false, run.budget, begin, piece);
        let Ok(facts) = runtime.block_on(read) else { continue };
        let observer = Each { url: &node.url, send };
        let mut checker = Checker::new(Findings::default(), observer, u64::MAX);
        checker.answered(&facts);
        checker.feed(&bytes.into_inner());
        checker.finish();
    }
}

struct Each<'a> {
    url: &'a str,
    send: &'a mut dyn FnMut(Listed),
}

impl DocumentObserver for Each<'_> {
    fn head(&mut self, _head: &Head) {}

    fn entry(&mut self, head: &Head, entry: &Entry, _found: &mut Findings) {
        let md = &entry.md;
        (self.send)(Listed {
            uri: entry.loc.clone(),
            digests: md.digests.clone(),
            length: md.length,
            media_type: md.media_type.clone(),
            encoding: md.encoding.clone(),
            lastmod: entry.lastmod,
            at: head.md.as_ref().and_then(|md| md.at),
            document: self.url.to_owned(),
            place: entry.place,
        });
    }
}
