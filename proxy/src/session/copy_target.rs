//! Whether the target of a COPY ... FROM STDIN that has just begun is certain, and what its columns are.
//!
//! Types do not protect what COPY brings in: a reference that came to a plain text column would be stored
//! as text. So three things have to agree. *The session* was asked which table the name means ([`Asked`]):
//! its own search path, its temporary tables, what its open transaction has changed. *The catalog* is read
//! again once the server has said CopyInResponse: the COPY then holds its lock, so nobody else can change
//! the table's types any more, and whatever others have committed since the question shows, as does the
//! relation that is really locked (copy_locks.rs). *The message* says the format and the number of columns.
//! What the session itself does between question and COPY is nothing, if the two are sent back to back; in
//! a text of several statements it is what triggers and defaults of the copies before do, and then
//! nothing that the session has changed may be locked. The client gets the CopyInResponse afterwards, so
//! no row comes before it is decided.
//!
//! Not held against: a trigger of one COPY that changes `client_encoding` for the next COPY of one text.

use std::sync::Arc;

use toastrack_offload::{TEXT_LEN, ValueKind};
use toastrack_sql::{CopyFormat, CopyIn};
use toastrack_value::encoding::ClientEncoding;
use toastrack_wire::backend::CopyResponse;

use super::Session;
use super::asked::Asked;
use crate::catalog::{Column, Snapshot, max_chars};
use crate::copy_locks::{Attribute, Opened};
use crate::intercept::CopyTarget;

/// The target, if it is certain and has a column to offload. `response` is the body of the
/// CopyInResponse.
pub(super) async fn decide(
    session: &Session,
    asked: &Asked,
    response: &[u8],
) -> Option<Arc<CopyTarget>> {
    let catalog = session.offloading()?;
    let opened = asked.opened()?;
    let columns = columns(&asked.copy, &opened, &catalog)?;
    let copy = CopyResponse::parse(response).ok()?;
    let binary = asked.copy.layout.format == CopyFormat::Binary;
    if (copy.overall_format == 1) != binary || copy.column_count() != columns.len() {
        return None;
    }
    if columns.iter().all(Option::is_none) {
        return None;
    }
    let database = session.database.get()?;
    let certain = opened.is_certain(database, asked.copy.first).await;
    certain.then(|| {
        Arc::new(CopyTarget {
            table: opened.table,
            columns,
            layout: asked.copy.layout.clone(),
            ended: Default::default(),
            lines: Default::default(),
        })
    })
}

/// Whether it is worth asking.
pub(super) fn may_offload(copy: &CopyIn, catalog: &Snapshot) -> bool {
    let encoding = copy.layout.encoding.as_ref();
    let utf8 = encoding.is_none_or(|name| {
        matches!(
            ClientEncoding::from_name(name.as_bytes()),
            ClientEncoding::Utf8
        )
    });
    utf8 && catalog.tables.has_named(&copy.table)
}

/// The offloaded columns among the fields of a row; None when the fields cannot be told.
fn columns(copy: &CopyIn, opened: &Opened, catalog: &Snapshot) -> Option<Vec<Option<Arc<Column>>>> {
    let attributes: Vec<&Attribute> = if copy.columns.is_empty() {
        let all = opened.attributes.iter();
        all.filter(|attribute| !attribute.generated).collect()
    } else {
        let named = |name: &String| {
            let mut all = opened.attributes.iter();
            all.find(|attribute| attribute.name == *name && !attribute.generated)
        };
        copy.columns.iter().map(named).collect::<Option<_>>()?
    };
    let offloaded = |attribute: &Attribute| {
        let known = catalog.type_of(attribute.type_oid)?;
        let column = catalog.column_at(opened.relation, attribute.number)?;
        let chars = max_chars(known.kind, attribute.type_modifier);
        let same = !known.array && known.kind == column.kind && chars == column.max_chars;
        // COPY measures what it is sent, and so the reference.
        let fits =
            known.kind != ValueKind::Varchar || chars.is_none_or(|most| most as usize >= TEXT_LEN);
        (same && fits).then_some(column)
    };
    Some(attributes.into_iter().map(offloaded).collect())
}
