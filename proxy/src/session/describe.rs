//! RowDescription and ParameterDescription: which columns are offloaded, and the client's own types.

use bytes::{Bytes, BytesMut};
use toastrack_wire::MessageError;
use toastrack_wire::backend::{ParameterDescription, RowDescription, patch_oid};
use toastrack_wire::frame::HEADER_LEN;

use super::statements::{Columns, ResultColumn, Shape, ShapeColumn, Statement};
use crate::catalog::Snapshot;

/// The type OIDs in a RowDescription.
pub(super) fn row_oids(body: &[u8]) -> Result<Vec<u32>, MessageError> {
    Ok(RowDescription::parse(body)?
        .fields()
        .map(|field| field.type_oid)
        .collect())
}

/// The type OIDs in a ParameterDescription.
pub(super) fn parameter_oids(body: &[u8]) -> Result<Vec<u32>, MessageError> {
    Ok(ParameterDescription::parse(body)?
        .types()
        .map(|(_, oid)| oid)
        .collect())
}

/// The offloaded columns of a result, and the same with the formats that the message tells.
pub(super) fn read_row(body: &[u8], catalog: &Snapshot) -> Result<(Columns, Shape), MessageError> {
    let mut columns = Columns::default();
    let mut shape = Shape::default();
    for (index, field) in RowDescription::parse(body)?.fields().enumerate() {
        let Some(known) = catalog.type_of(field.type_oid) else {
            continue;
        };
        let column = ResultColumn {
            index,
            kind: known.kind,
            array: known.array,
            source: catalog.column_at(field.table_oid, field.column),
        };
        shape.columns.push(ShapeColumn {
            column: column.clone(),
            binary: field.format == 1,
        });
        columns.offloaded.push(column);
    }
    Ok((columns, shape))
}

/// The message with the plain types in place of the `toastrack.*` ones; as it came if it has none.
pub(super) fn plain_row(frame: Bytes, catalog: &Snapshot) -> Result<Bytes, MessageError> {
    let description = RowDescription::parse(&frame[HEADER_LEN..])?;
    let patches = description.fields().filter_map(|field| {
        Some((
            field.type_oid_at,
            catalog.type_of(field.type_oid)?.plain_oid,
        ))
    });
    let patches: Vec<(usize, u32)> = patches.collect();
    Ok(patched(frame, &patches))
}

/// The message with the types that the client declared, or else the plain ones.
pub(super) fn plain_parameters(
    frame: Bytes,
    catalog: &Snapshot,
    statement: &Statement,
) -> Result<Bytes, MessageError> {
    let description = ParameterDescription::parse(&frame[HEADER_LEN..])?;
    let patches = description
        .types()
        .enumerate()
        .filter_map(|(index, (at, oid))| {
            let known = catalog.type_of(oid)?;
            let declared = statement
                .declared
                .get(index)
                .copied()
                .filter(|declared| *declared != 0);
            let site = statement.sites.iter().find(|site| site.index == index);
            let visible = declared.or(site.map(|site| site.visible_type));
            Some((at, visible.unwrap_or(known.plain_oid)))
        });
    let patches: Vec<(usize, u32)> = patches.collect();
    Ok(patched(frame, &patches))
}

fn patched(frame: Bytes, patches: &[(usize, u32)]) -> Bytes {
    if patches.is_empty() {
        return frame;
    }
    let mut frame = BytesMut::from(frame);
    for (at, oid) in patches {
        let inside = patch_oid(&mut frame[HEADER_LEN..], *at, *oid);
        debug_assert!(inside, "positions come from the same bytes");
    }
    frame.freeze()
}
