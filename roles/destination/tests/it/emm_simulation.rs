//! Copies of simulated providers over HTTP, with the real transfer. The reader alone is also tested
//! with many more seeds.

use crate::copy::Copy;
use crate::rdf::quads;
use abreast_destination::{MaxDelete, NQuadsOptions, SinkOptions};
use abreast_testkit::pages::{Answer, Server};
use abreast_testkit::providers::{Fault, Known, Protocol, Provider};
use abreast_testkit::seeds;
use oxigraph::model::Term;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

fn serve(server: &Server, provider: &Arc<Mutex<Provider>>) {
    let provider = Arc::clone(provider);
    server.handler(move |target, _| {
        let reply = provider.lock().unwrap().answer(target, Known::default());
        if let Some(length) = reply.cut {
            let short = reply.body.len() - length;
            return Some(Answer::cut(reply.body, short));
        }
        Some(match reply.status {
            0 => Answer::raw(""),
            200 => {
                let is_page = target.starts_with("/feed");
                let media_type =
                    if is_page { "application/activity+json" } else { "application/n-triples" };
                let answer = Answer::ok(reply.body).header("content-type", media_type);
                match reply.date {
                    Some(date) => {
                        let date = UNIX_EPOCH + Duration::from_micros(date as u64);
                        answer.header("date", &httpdate::fmt_http_date(date))
                    }
                    None => answer,
                }
            }
            status => Answer::status(status),
        })
    });
}

/// The stored version of each entity.
fn kept(copy: &Copy) -> BTreeMap<String, String> {
    let version = |term: &Term| match term {
        Term::Literal(literal) => literal.value().to_owned(),
        other => panic!("{other}"),
    };
    let named = |quad: &oxigraph::model::Quad| {
        let iri = quad.subject.to_string();
        (iri.trim_matches(['<', '>']).to_owned(), version(&quad.object))
    };
    quads(copy.folder()).iter().map(named).collect()
}

#[test]
fn copies_over_http_are_right_after_any_adversity() {
    for seed in seeds(48) {
        let server = Server::start();
        let mut provider = Provider::new(Protocol::Activities, seed, &server.base, false);
        // Entities that are missing permanently may be reported permanently.
        provider.faults = provider.faults.without(Fault::Holes);
        let provider = Arc::new(Mutex::new(provider));
        serve(&server, &provider);
        let mut copy = Copy::of(provider.lock().unwrap().url());
        copy.options.sink = SinkOptions::NQuads(NQuadsOptions::default());
        copy.options.max_delete = MaxDelete::Percent(100.0);
        for _ in 0..seed % 4 {
            copy.try_run();
            provider.lock().unwrap().note_kept(true);
            provider.lock().unwrap().live();
        }
        provider.lock().unwrap().quieten();
        for _ in 0..2 {
            copy.try_run();
            provider.lock().unwrap().wait();
        }
        let (kept, provider) = (kept(&copy), provider.lock().unwrap());
        let known = |all: BTreeMap<String, String>| -> BTreeMap<String, String> {
            all.into_iter().filter(|(iri, _)| !provider.has_forgotten(iri)).collect()
        };
        let (shape, faults) = (provider.shape().name, provider.faults);
        assert_eq!(known(kept), known(provider.entities()), "{seed}: {shape}, {faults:?}");
    }
}
