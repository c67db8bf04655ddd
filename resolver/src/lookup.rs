//! From the text of a reference to its value: cache first, then the store.

use async_trait::async_trait;
use bytes::Bytes;
use toastrack_cache::DetoastCache;
use toastrack_offload::{Store, StoreError};

/// What is known about one argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The value, verified against the reference (S4).
    Value(Bytes),
    /// Ordinary data: not shaped as a reference, or its MAC does not verify.
    NotAReference,
    /// A reference of this store whose value cannot be had.
    Failed {
        /// What the statement in the server fails with.
        sqlstate: &'static str,
        /// What was observed; for corruption it names segment and offset.
        message: String,
    },
}

/// Where values come from; a seam for tests of the wire.
#[async_trait]
pub(crate) trait Lookup: Send + Sync {
    /// Resolves the text spelling of a reference of any kind.
    async fn resolve(&self, text: &[u8]) -> Answer;
}

/// The store, behind the cache that the proxy shares.
pub(crate) struct CachedStore {
    pub(crate) store: Store,
    pub(crate) cache: DetoastCache,
}

#[async_trait]
impl Lookup for CachedStore {
    async fn resolve(&self, text: &[u8]) -> Answer {
        let Some(reference) = self.store.parse_any_text(text) else {
            return Answer::NotAReference;
        };
        let load = async {
            match self.store.get_now(&reference)? {
                Some(value) => Ok::<Bytes, StoreError>(value),
                None => self.store.get(&reference).await,
            }
        };
        match self.cache.get_or_load(reference.identity().0, load).await {
            Ok(value) => Answer::Value(value),
            Err(error) => Answer::Failed {
                sqlstate: error.sqlstate(),
                message: error.to_string(),
            },
        }
    }
}
