//! Client encodings, on the way out.
//!
//! Stored values are UTF-8, as the server holds them. A client that asked for
//! another encoding gets them as Postgres would convert them, or an error that
//! Postgres would give, or an error of our own where we have no table.

use std::borrow::Cow;

/// The encoding of a client, by what it takes to write to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClientEncoding {
    /// Bytes go out as they are stored.
    Utf8,
    /// No conversion: bytes go out as they are stored.
    SqlAscii,
    /// ISO 8859-1.
    Latin1,
    /// Keeps ASCII bytes for ASCII characters; by Postgres' name.
    OtherAsciiSuperset(&'static str),
    /// Client-only encoding in which an ASCII byte may be part of another character;
    /// by Postgres' name. An encoding that is not known here is treated so, with the
    /// name `unknown`.
    Unsafe(&'static str),
}

/// Postgres' encodings by canonical name, each with its aliases (`pg_encname_tbl`).
const ASCII_SUPERSETS: &[(&str, &[&str])] = &[
    ("EUC_CN", &["euccn"]),
    ("EUC_JP", &["eucjp"]),
    ("EUC_JIS_2004", &["eucjis2004"]),
    ("EUC_KR", &["euckr"]),
    ("EUC_TW", &["euctw"]),
    ("ISO_8859_5", &["iso88595"]),
    ("ISO_8859_6", &["iso88596"]),
    ("ISO_8859_7", &["iso88597"]),
    ("ISO_8859_8", &["iso88598"]),
    ("KOI8R", &["koi8", "koi8r"]),
    ("KOI8U", &["koi8u"]),
    ("LATIN10", &["iso885916", "latin10"]),
    ("LATIN2", &["iso88592", "latin2"]),
    ("LATIN3", &["iso88593", "latin3"]),
    ("LATIN4", &["iso88594", "latin4"]),
    ("LATIN5", &["iso88599", "latin5"]),
    ("LATIN6", &["iso885910", "latin6"]),
    ("LATIN7", &["iso885913", "latin7"]),
    ("LATIN8", &["iso885914", "latin8"]),
    ("LATIN9", &["iso885915", "latin9"]),
    ("MULE_INTERNAL", &["muleinternal"]),
    ("WIN1250", &["win1250", "windows1250"]),
    ("WIN1251", &["win", "win1251", "windows1251"]),
    ("WIN1252", &["win1252", "windows1252"]),
    ("WIN1253", &["win1253", "windows1253"]),
    ("WIN1254", &["win1254", "windows1254"]),
    ("WIN1255", &["win1255", "windows1255"]),
    ("WIN1256", &["win1256", "windows1256"]),
    ("WIN1257", &["win1257", "windows1257"]),
    (
        "WIN1258",
        &["abc", "tcvn", "tcvn5712", "vscii", "win1258", "windows1258"],
    ),
    ("WIN866", &["alt", "win866", "windows866"]),
    ("WIN874", &["win874", "windows874"]),
];

const UNSAFE: &[(&str, &[&str])] = &[
    ("BIG5", &["big5", "win950", "windows950"]),
    ("GB18030", &["gb18030"]),
    ("GBK", &["gbk", "win936", "windows936"]),
    ("JOHAB", &["johab"]),
    ("SHIFT_JIS_2004", &["shiftjis2004"]),
    (
        "SJIS",
        &["mskanji", "shiftjis", "sjis", "win932", "windows932"],
    ),
    ("UHC", &["uhc", "win949", "windows949"]),
];

impl ClientEncoding {
    /// Reads an encoding's name as Postgres does: letters and digits count, case does
    /// not, aliases are known. A name that is not known gives `Unsafe("unknown")`.
    pub fn from_name(name: &[u8]) -> ClientEncoding {
        let key: Vec<u8> = name
            .iter()
            .filter(|b| b.is_ascii_alphanumeric())
            .map(u8::to_ascii_lowercase)
            .collect();
        let in_table = |table: &[(&'static str, &[&str])]| {
            table
                .iter()
                .find(|(_, aliases)| aliases.iter().any(|alias| alias.as_bytes() == key))
                .map(|(name, _)| *name)
        };
        match key.as_slice() {
            b"utf8" | b"unicode" => ClientEncoding::Utf8,
            b"sqlascii" => ClientEncoding::SqlAscii,
            b"latin1" | b"iso88591" => ClientEncoding::Latin1,
            _ => match in_table(ASCII_SUPERSETS) {
                Some(name) => ClientEncoding::OtherAsciiSuperset(name),
                None => ClientEncoding::Unsafe(in_table(UNSAFE).unwrap_or("unknown")),
            },
        }
    }

    /// Postgres' name for it.
    pub fn name(self) -> &'static str {
        match self {
            ClientEncoding::Utf8 => "UTF8",
            ClientEncoding::SqlAscii => "SQL_ASCII",
            ClientEncoding::Latin1 => "LATIN1",
            ClientEncoding::OtherAsciiSuperset(name) | ClientEncoding::Unsafe(name) => name,
        }
    }

    /// Whether every ASCII byte in a text is an ASCII character, so that the text can
    /// be taken apart bytewise.
    pub fn is_ascii_superset(self) -> bool {
        !matches!(self, ClientEncoding::Unsafe(_))
    }
}

/// Why a value cannot be sent in the client's encoding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Untranslatable {
    /// Postgres' own error for a character that the encoding lacks (22P05).
    #[error(
        "character with byte sequence {} in encoding \"UTF8\" has no equivalent in encoding \"{encoding}\"",
        byte_sequence(*character)
    )]
    NoEquivalent {
        /// The character.
        character: char,
        /// The client's encoding.
        encoding: &'static str,
    },
    /// Characters outside ASCII for an encoding that is not converted to here, or a
    /// value that is not UTF-8.
    #[error("conversion of offloaded values to encoding \"{encoding}\" is not supported")]
    NotConvertible {
        /// The client's encoding.
        encoding: &'static str,
    },
}

impl Untranslatable {
    /// The SQLSTATE to report.
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Untranslatable::NoEquivalent { .. } => "22P05",
            Untranslatable::NotConvertible { .. } => "0A000",
        }
    }
}

fn byte_sequence(character: char) -> String {
    character
        .encode_utf8(&mut [0; 4])
        .bytes()
        .map(|byte| format!("0x{byte:02x}"))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Converts a stored text to the client's encoding.
///
/// # Errors
/// [`Untranslatable`] when Postgres could not convert it, or we cannot.
pub fn encode_for_client(
    value_utf8: &[u8],
    encoding: ClientEncoding,
) -> Result<Cow<'_, [u8]>, Untranslatable> {
    match encoding {
        ClientEncoding::Utf8 | ClientEncoding::SqlAscii => Ok(Cow::Borrowed(value_utf8)),
        _ if value_utf8.is_ascii() => Ok(Cow::Borrowed(value_utf8)),
        ClientEncoding::Latin1 => latin1(value_utf8).map(Cow::Owned),
        ClientEncoding::OtherAsciiSuperset(encoding) | ClientEncoding::Unsafe(encoding) => {
            Err(Untranslatable::NotConvertible { encoding })
        }
    }
}

fn latin1(value_utf8: &[u8]) -> Result<Vec<u8>, Untranslatable> {
    let encoding = "LATIN1";
    let text =
        std::str::from_utf8(value_utf8).map_err(|_| Untranslatable::NotConvertible { encoding })?;
    text.chars()
        .map(|character| {
            u8::try_from(character).map_err(|_| Untranslatable::NoEquivalent {
                character,
                encoding,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names and aliases as clients and ParameterStatus spell them.
    #[test]
    fn reads_names() {
        use ClientEncoding::*;
        for (name, encoding) in [
            ("UTF8", Utf8),
            ("utf-8", Utf8),
            ("UNICODE", Utf8),
            ("SQL_ASCII", SqlAscii),
            ("LATIN1", Latin1),
            ("iso-8859-1", Latin1),
            ("EUC_JP", OtherAsciiSuperset("EUC_JP")),
            ("windows-1252", OtherAsciiSuperset("WIN1252")),
            ("KOI8R", OtherAsciiSuperset("KOI8R")),
            ("SJIS", Unsafe("SJIS")),
            ("Shift_JIS_2004", Unsafe("SHIFT_JIS_2004")),
            ("GB18030", Unsafe("GB18030")),
            ("", Unsafe("unknown")),
            ("klingon", Unsafe("unknown")),
        ] {
            assert_eq!(
                ClientEncoding::from_name(name.as_bytes()),
                encoding,
                "{name}"
            );
        }
    }

    /// A canonical name gives itself.
    #[test]
    fn canonical_names_are_known() {
        for (name, _) in ASCII_SUPERSETS.iter().chain(UNSAFE) {
            assert_eq!(ClientEncoding::from_name(name.as_bytes()).name(), *name);
        }
    }

    /// Conversions and the two ways in which they fail.
    #[test]
    fn converts() {
        let e_acute = "caf\u{e9}".as_bytes();
        let to = |value: &'static [u8], name: &str| {
            encode_for_client(value, ClientEncoding::from_name(name.as_bytes()))
                .map(Cow::into_owned)
                .map_err(|error| (error.sqlstate(), error.to_string()))
        };
        assert_eq!(to(e_acute, "UTF8"), Ok(e_acute.to_vec()));
        assert_eq!(to(e_acute, "SQL_ASCII"), Ok(e_acute.to_vec()));
        assert_eq!(to(e_acute, "LATIN1"), Ok(b"caf\xe9".to_vec()));
        assert_eq!(to(b"plain", "SJIS"), Ok(b"plain".to_vec()));
        assert_eq!(
            to("\u{20ac}".as_bytes(), "LATIN1"),
            Err((
                "22P05",
                "character with byte sequence 0xe2 0x82 0xac in encoding \"UTF8\" \
                 has no equivalent in encoding \"LATIN1\""
                    .to_owned()
            ))
        );
        assert_eq!(
            to(e_acute, "WIN1252").map_err(|(state, _)| state),
            Err("0A000")
        );
        assert_eq!(
            to(b"\xff", "LATIN1").map_err(|(state, _)| state),
            Err("0A000")
        );
    }
}
