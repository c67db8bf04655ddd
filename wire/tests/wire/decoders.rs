//! Every decoder behind one signature: what it gives is the list of all slices it hands out.

use toastrack_wire::backend::ready_for_query_status;
use toastrack_wire::frontend::parse_empty;
use toastrack_wire::{
    Authentication, BackendKeyData, Bind, Close, CommandComplete, CopyResponse, DataRow, Describe,
    ErrorFields, Execute, MessageError, NotificationResponse, ParameterDescription,
    ParameterStatus, Parse, Query, RowDescription,
};

pub(crate) type Slices<'a> = Vec<&'a [u8]>;

pub(crate) struct Decoder {
    pub(crate) name: &'static str,
    pub(crate) decode: for<'a> fn(&'a [u8]) -> Result<Slices<'a>, MessageError>,
    /// A body that it accepts.
    pub(crate) sample: &'static [u8],
}

pub(crate) const DECODERS: [Decoder; 17] = [
    Decoder {
        name: "Parse",
        decode: |body| {
            let parse = Parse::parse(body)?;
            assert_eq!(parse.param_types().len(), parse.param_type_count());
            Ok(vec![parse.name, parse.query])
        },
        sample: b"s1\0select $1\0\0\x02\0\0\0\x19\0\0\0\0",
    },
    Decoder {
        name: "Bind",
        decode: |body| {
            let bind = Bind::parse(body)?;
            let mut slices = vec![bind.portal, bind.statement];
            assert_eq!(bind.params().count(), bind.param_count());
            for (i, param) in bind.params().enumerate() {
                assert!([0, 1, -1].contains(&bind.param_format(i).signum()));
                if i % 50 == 0 {
                    assert_eq!(bind.param(i), param);
                }
                slices.extend(param);
            }
            assert_eq!(
                bind.result_formats().codes().len(),
                bind.result_formats().count()
            );
            Ok(slices)
        },
        sample: b"p\0s\0\0\x02\0\0\0\x01\0\x02\0\0\0\x03abc\xff\xff\xff\xff\0\x01\0\x01",
    },
    Decoder {
        name: "Describe",
        decode: |body| Describe::parse(body).map(|describe| vec![describe.name]),
        sample: b"Sname\0",
    },
    Decoder {
        name: "Close",
        decode: |body| Close::parse(body).map(|close| vec![close.name]),
        sample: b"Pname\0",
    },
    Decoder {
        name: "Execute",
        decode: |body| Execute::parse(body).map(|execute| vec![execute.portal]),
        sample: b"p\0\0\0\0\x0a",
    },
    Decoder {
        name: "Query",
        decode: |body| Query::parse(body).map(|query| vec![query.text]),
        sample: b"select 1\0",
    },
    Decoder {
        name: "Sync",
        decode: |body| parse_empty("Sync", body).map(|()| vec![]),
        sample: b"",
    },
    Decoder {
        name: "RowDescription",
        decode: |body| {
            let row = RowDescription::parse(body)?;
            assert_eq!(row.fields().count(), row.len());
            let fields = row.fields().map(|field| {
                let oid = &body[field.type_oid_at..][..4];
                assert_eq!(oid, field.type_oid.to_be_bytes());
                field.name
            });
            Ok(fields.collect())
        },
        sample: b"\0\x02a\0\0\0\0\x01\0\x01\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0\
b\0\0\0\0\x01\0\x02\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0",
    },
    Decoder {
        name: "ParameterDescription",
        decode: |body| {
            let parameters = ParameterDescription::parse(body)?;
            for (at, oid) in parameters.types() {
                assert_eq!(&body[at..at + 4], oid.to_be_bytes());
            }
            Ok(vec![])
        },
        sample: b"\0\x02\0\0\0\x19\0\0\x0e\xda",
    },
    Decoder {
        name: "DataRow",
        decode: |body| {
            let row = DataRow::parse(body)?;
            assert_eq!(row.fields().count(), row.len());
            Ok(row.fields().flatten().collect())
        },
        sample: b"\0\x03\0\0\0\x03abc\xff\xff\xff\xff\0\0\0\0",
    },
    Decoder {
        name: "ErrorResponse",
        decode: |body| {
            let fields = ErrorFields::parse(body)?;
            Ok(fields.iter().map(|(_, value)| value).collect())
        },
        sample: b"SERROR\0C08P01\0Mmessage\0\0",
    },
    Decoder {
        name: "ReadyForQuery",
        decode: |body| ready_for_query_status(body).map(|_| vec![]),
        sample: b"I",
    },
    Decoder {
        name: "CommandComplete",
        decode: |body| {
            let complete = CommandComplete::parse(body)?;
            let _ = complete.rows();
            Ok(vec![complete.tag])
        },
        sample: b"INSERT 0 1\0",
    },
    Decoder {
        name: "CopyResponse",
        decode: |body| {
            let copy = CopyResponse::parse(body)?;
            assert_eq!(copy.column_formats.codes().len(), copy.column_count());
            Ok(vec![])
        },
        sample: b"\0\0\x02\0\0\0\0",
    },
    Decoder {
        name: "ParameterStatus",
        decode: |body| ParameterStatus::parse(body).map(|status| vec![status.name, status.value]),
        sample: b"client_encoding\0UTF8\0",
    },
    Decoder {
        name: "NotificationResponse",
        decode: |body| {
            NotificationResponse::parse(body).map(|notify| vec![notify.channel, notify.payload])
        },
        sample: b"\0\0\0\x4dchannel\0payload\0",
    },
    Decoder {
        name: "BackendKeyData",
        decode: |body| BackendKeyData::parse(body).map(|data| vec![data.key]),
        sample: b"\0\0\0\x4dsecret",
    },
];

/// Messages whose last part has no length of its own.
pub(crate) fn is_open_ended(name: &str) -> bool {
    name == "BackendKeyData"
}

/// Gives `body` to every decoder, the open-ended Authentication included.
pub(crate) fn decode_with_all(body: &[u8]) {
    for Decoder { name, decode, .. } in DECODERS {
        if let Ok(slices) = decode(body) {
            assert_inside(name, body, &slices);
        }
    }
    if let Ok(request) = Authentication::parse(body) {
        assert_inside("Authentication", body, &[request.data]);
    }
}

/// No slice reaches out of the body, whatever lies behind it in the buffer.
pub(crate) fn assert_inside(name: &str, body: &[u8], slices: &[&[u8]]) {
    let bounds = body.as_ptr_range();
    for slice in slices {
        let range = slice.as_ptr_range();
        assert!(
            bounds.start <= range.start && range.end <= bounds.end,
            "{name} reads outside its frame"
        );
    }
}
