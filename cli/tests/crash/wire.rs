//! Fields as the bytes of the protocol's binary format, whatever their type is called.

use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

type Failure = Box<dyn Error + Sync + Send>;

/// A field of a result, or a parameter.
#[derive(Debug, Clone)]
pub(crate) struct Field(pub(crate) Vec<u8>);

impl<'a> FromSql<'a> for Field {
    fn from_sql(_: &Type, bytes: &'a [u8]) -> Result<Field, Failure> {
        Ok(Field(bytes.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

impl ToSql for Field {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Failure> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// The binary form of jsonb is a version and the text.
pub(crate) const JSONB_VERSION: u8 = 1;
