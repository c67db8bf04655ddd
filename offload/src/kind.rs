//! What a value is and how its payload is stored, as the numbers on disk name them.

/// The SQL type a value belongs to. The numbers are those of references and records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ValueKind {
    /// `text`
    Text = 1,
    /// `character varying`
    Varchar = 2,
    /// `json`, verbatim
    Json = 3,
    /// `jsonb`, in the canonical text that Postgres prints
    Jsonb = 4,
    /// `bytea`, raw bytes
    Bytea = 5,
}

impl ValueKind {
    /// The kind with this number, if there is one.
    pub const fn from_code(code: u8) -> Option<ValueKind> {
        match code {
            1 => Some(ValueKind::Text),
            2 => Some(ValueKind::Varchar),
            3 => Some(ValueKind::Json),
            4 => Some(ValueKind::Jsonb),
            5 => Some(ValueKind::Bytea),
            _ => None,
        }
    }

    /// The number of this kind in references and records.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The name of the plain SQL type.
    pub const fn name(self) -> &'static str {
        match self {
            ValueKind::Text => "text",
            ValueKind::Varchar => "varchar",
            ValueKind::Json => "json",
            ValueKind::Jsonb => "jsonb",
            ValueKind::Bytea => "bytea",
        }
    }
}

/// How a payload is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Codec {
    /// The value as it is.
    Raw = 0,
    /// One lz4 block without a size prefix.
    Lz4 = 1,
    /// The references of the pieces that the value is stored in.
    Manifest = 2,
}

impl Codec {
    /// The codec with this number, if there is one.
    pub const fn from_code(code: u8) -> Option<Codec> {
        match code {
            0 => Some(Codec::Raw),
            1 => Some(Codec::Lz4),
            2 => Some(Codec::Manifest),
            _ => None,
        }
    }

    /// The number of this codec in references and records.
    pub const fn code(self) -> u8 {
        self as u8
    }
}
