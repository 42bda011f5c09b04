//! A store of Oxigraph in this process, as an option of a sink.

#[cfg(feature = "oxigraph")]
pub use self::with::OpenStore;
#[cfg(not(feature = "oxigraph"))]
pub use self::without::OpenStore;

#[cfg(feature = "oxigraph")]
mod with {
    use oxigraph::store::Store;
    use std::fmt;
    use std::sync::Arc;

    /// A store that is open.
    #[derive(Clone)]
    pub struct OpenStore(pub(crate) Arc<Store>);

    impl OpenStore {
        /// Statements are kept in this store.
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

    /// A store that is open: there is none without the feature `oxigraph`.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct OpenStore(pub(crate) Infallible);
}
