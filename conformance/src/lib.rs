//! Cases that show what each specification asks for. They are data: a folder for each specification
//! with its `manifest.toml` and the documents it names; `tests/` runs them.
//!
//! [`emm`], [`properties`], [`rdf`], [`resourcesync_0_1`], [`sdshare`] and [`websub`] hold what must be true of *any* input; the
//! fuzz targets and a test over small inputs share it.

pub mod emm;
pub mod properties;
pub mod rdf;
pub mod resourcesync_0_1;
pub mod sdshare;
pub mod websub;
