//! An open Oxigraph store of this process, as an option of a sink.

#[cfg(feature = "oxigraph")]
pub use self::with::OpenStore;
#[cfg(not(feature = "oxigraph"))]
pub use self::without::OpenStore;

#[cfg(feature = "oxigraph")]
mod with {
    use oxigraph::store::Store;
    use std::fmt;
    use std::sync::Arc;

    /// An Oxigraph store that the caller has opened, for
    /// [`OxigraphOptions`](crate::OxigraphOptions).
    #[derive(Clone)]
    pub struct OpenStore(pub(crate) Arc<Store>);

    impl OpenStore {
        /// Makes a sink store its statements in `store`.
        pub fn new(store: Store) -> Self {
            Self(Arc::new(store))
        }

        #[cfg(feature = "rocksdb")]
        pub(crate) fn shared(store: Arc<Store>) -> Self {
            Self(store)
        }
    }

    impl fmt::Debug for OpenStore {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("OpenStore")
        }
    }

    impl PartialEq for OpenStore {
        fn eq(&self, other: &Self) -> bool {
            Arc::ptr_eq(&self.0, &other.0)
        }
    }

    impl Eq for OpenStore {}
}

#[cfg(not(feature = "oxigraph"))]
mod without {
    use std::convert::Infallible;

    /// Never exists without the feature `oxigraph`, so that options can contain the type.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct OpenStore(pub(crate) Infallible);
}
