//! From a reference to its value: the cache, then the page cache, then the disk.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream;
use toastrack_cache::DetoastCache;
use toastrack_offload::{Identity, Reference, Store, StoreError};

/// Resolves references; cheap to clone.
#[derive(Clone)]
pub(crate) struct Detoaster {
    store: Store,
    cache: DetoastCache,
}

/// Reads in flight for one batch.
const READS_IN_FLIGHT: usize = 16;

impl Detoaster {
    pub(crate) fn new(store: Store, cache: DetoastCache) -> Detoaster {
        Detoaster { store, cache }
    }

    /// The value if no disk is needed for it. A failed read is left to [`Detoaster::fetch`].
    pub(crate) fn now(&self, reference: &Reference) -> Option<Bytes> {
        let key = reference.identity().0;
        if let Some(value) = self.cache.get(&key) {
            return Some(value);
        }
        let value = self.store.get_now(reference).ok().flatten()?;
        self.cache.insert(key, value.clone());
        Some(value)
    }

    /// The value, from wherever it is; waiters for the same value share one read.
    pub(crate) async fn get(&self, reference: &Reference) -> Result<Bytes, Arc<StoreError>> {
        let reference = *reference;
        let store = self.store.clone();
        self.cache
            .get_or_load(reference.identity().0, async move {
                store.get(&reference).await
            })
            .await
    }

    /// Values of a batch, those that were not at hand read side by side.
    pub(crate) async fn fetch(
        &self,
        references: Vec<Reference>,
    ) -> HashMap<Identity, Result<Bytes, Arc<StoreError>>> {
        stream::iter(references)
            .map(|reference| async move { (reference.identity(), self.get(&reference).await) })
            .buffer_unordered(READS_IN_FLIGHT)
            .collect()
            .await
    }
}
