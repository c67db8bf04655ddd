//! A COPY ... TO STDOUT on its way to the client.

use std::io;

use bytes::Bytes;
use toastrack_sql::CopyOut;
use toastrack_wire::frame::HEADER_LEN;
use toastrack_wire::{Direction, encode_frame, tag::backend as tag};

use super::backend::Backend;
use super::ledger::Entry;
use crate::intercept::{CopyReader, CopyRows, RowError};
use crate::metrics::add;

impl Backend<'_> {
    /// The message tells no types. Where none of ours was known, the server is asked once more, since
    /// the schema may have been installed just now.
    pub(super) async fn on_copy_out_response(&mut self, frame: Bytes) -> io::Result<bool> {
        let layout = self.copy_layout();
        if let Some(database) = self.session.database.get() {
            if !database.current().has_types()
                && let Err(error) = database.refresh().await
            {
                return Ok(self.lose_catalog(&error));
            }
            let found = database.current().has_types();
            self.copy = found.then(|| CopyRows::new(layout, &frame[HEADER_LEN..]));
        }
        self.forward(&frame);
        Ok(true)
    }

    fn copy_layout(&self) -> CopyOut {
        let mut ledger = self.session.ledger.lock();
        let options = match ledger.front_of_reply() {
            Some(Entry::Query(query)) => query.copies.pop_front(),
            Some(Entry::Execute(portal)) => portal
                .statement
                .as_ref()
                .and_then(|statement| statement.copies.first().cloned()),
            _ => None,
        };
        options.unwrap_or_default()
    }

    pub(super) async fn on_copy_data(&mut self, frame: Bytes) -> io::Result<()> {
        if self.discarding {
            return Ok(());
        }
        let Some(mut copy) = self.copy.take() else {
            self.outbox.extend_from_slice(&frame);
            return Ok(());
        };
        let context = &self.session.context;
        let Some(catalog) = self.session.catalog() else {
            return Ok(());
        };
        let reader = CopyReader {
            store: &context.store,
            detoaster: &context.detoaster,
            encoding: self.encoding(),
            catalog: &catalog,
        };
        let resolved = copy.resolve(&frame[HEADER_LEN..], &reader).await;
        self.copy = Some(copy);
        match resolved {
            Ok(None) => self.outbox.extend_from_slice(&frame),
            Ok(Some((row, values))) => {
                add(&context.metrics.values_resolved, values);
                match encode_frame(&mut self.outbox, Direction::Backend, tag::COPY_DATA, &row) {
                    Ok(()) => {}
                    Err(error) => self.fail_statement(&RowError::Message(error)),
                }
            }
            Err(error) => self.fail_statement(&error),
        }
        Ok(())
    }
}
