//! Reads of the stored objects, for audits.

use super::store::{KEY_RULES, Store, failed};
use crate::copy::path_map::PathMap;
use crate::report::error::{Error, ExitCode};
use crate::report::sinks::ObjectsOptions;
use crate::sink::kept::{Damage, DamageKind, ReadBack, same_bytes};
use abreast_objects::object_store;
use abreast_objects::object_store::path::Path as Key;
use abreast_store::mirror::{Expected, ExpectedRow, Mirror, Row};
use abreast_webtypes::{Digests, visible};
use futures_util::TryStreamExt as _;

/// Reads a store back, for audits.
pub(crate) struct ObjectsKept {
    store: Store,
    /// All objects under the prefix, as listed at the start.
    listed: Expected,
    extras: Vec<String>,
}

/// Maximum number of reported objects that do not belong to the copy.
const EXTRAS_MAX: usize = 10_000;

impl ObjectsKept {
    /// The copy of a database; `None` before the first run has determined a base.
    pub(crate) fn of_copy(
        options: &ObjectsOptions,
        mirror: &Mirror,
    ) -> Result<Option<Self>, Error> {
        let Some(base) = mirror.meta(crate::copy::key::BASE)? else { return Ok(None) };
        let map = PathMap::new(&base, KEY_RULES)
            .map_err(|cause| Error::new("folder.base", ExitCode::Usage, cause.to_string()))?;
        Self::open(options, map).map(Some)
    }

    fn open(options: &ObjectsOptions, map: PathMap) -> Result<Self, Error> {
        let store = Store::open(options, map)?;
        let (listed, mut extras) = (Expected::new()?, Vec::new());
        let prefix = (!store.prefix().is_empty()).then(|| Key::from(store.prefix()));
        let mut objects = store.backend().list(prefix.as_ref());
        loop {
            let next = store.handle().block_on(objects.try_next());
            let Some(object) = next.map_err(|error| audit_failed(&error))? else { break };
            match store.uri(&object.location) {
                Some(uri) => {
                    let row =
                        ExpectedRow { uri, length: Some(object.size), ..ExpectedRow::default() };
                    listed.put(&row, (0, 0), false)?;
                }
                None if extras.len() < EXTRAS_MAX => extras.push(object.location.to_string()),
                None => {}
            }
        }
        drop(objects);
        Ok(Self { store, listed, extras })
    }
}

fn audit_failed(error: &object_store::Error) -> Error {
    let failure = failed(error);
    if failure.fatal {
        return failure.into_error();
    }
    Error::new(failure.code, ExitCode::Retryable, failure.message)
}

impl ReadBack for ObjectsKept {
    fn damage(&mut self, mirror: &Mirror, row: &Row, read: bool) -> Result<Option<Damage>, Error> {
        let Ok(key) = self.store.key(&row.uri) else {
            let message = "the state names a resource that has no key in the store".to_owned();
            return Ok(Some(Damage { kind: DamageKind::NoPlace, message }));
        };
        let damage = |kind, message: String| Ok(Some(Damage { kind, message }));
        let shown = visible(key.as_ref());
        match self.listed.length(&row.uri)? {
            None => return damage(DamageKind::Missing, format!("the object `{shown}` is missing")),
            Some(length) if length != row.length => {
                let (found, written) = (abreast_webtypes::count(length, "byte"), row.length);
                let message = format!("the object `{shown}` has {found}, {written} were written");
                return damage(DamageKind::Length, message);
            }
            Some(_) => {}
        }
        let mut digests = Digests::default();
        digests.set_from_bytes(&row.digests);
        if !read || digests.strongest().is_none() {
            return Ok(None);
        }
        let found = self.digests(mirror, row, &digests)?;
        if same_bytes(row, &digests, found.as_ref()) {
            return Ok(None);
        }
        damage(
            DamageKind::Digest,
            format!("the object `{shown}` has other bytes than were written"),
        )
    }

    fn digests(
        &mut self,
        _mirror: &Mirror,
        row: &Row,
        listed: &Digests,
    ) -> Result<Option<(Digests, u64)>, Error> {
        let Ok(key) = self.store.key(&row.uri) else { return Ok(None) };
        match self.store.handle().block_on(self.store.digests(&key, listed)) {
            Ok(found) => Ok(Some(found)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(audit_failed(&error)),
        }
    }

    fn extras(&mut self, mirror: &Mirror, report: &mut dyn FnMut(&str)) -> Result<(), Error> {
        for path in &self.extras {
            report(path);
        }
        self.listed.each_batch(|rows| {
            for found in rows {
                if mirror.row(&found.uri)?.is_none() {
                    report(&found.uri);
                }
            }
            Ok(())
        })
    }
}
