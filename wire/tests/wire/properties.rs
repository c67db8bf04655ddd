//! Round trips, replacement against a model, and bytes of no meaning at all.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use toastrack_wire::backend::{encode_command_complete, encode_parameter_status};
use toastrack_wire::frontend::{encode_bind, encode_execute, encode_parse, encode_query};
use toastrack_wire::startup::{PROTOCOL_3_0, encode_startup};
use toastrack_wire::{
    Bind, CommandComplete, DataRow, Direction, ErrorBuilder, ErrorFields, Execute, ParameterStatus,
    Parse, Query, RowWriter, Startup, backend_header, encode_frame, frame, frontend_header,
    parse_startup,
};

use crate::decoders::{DECODERS, decode_with_all};

/// Bytes as they may stand in a string.
fn text(max: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(1..=u8::MAX, 0..max)
}

fn value() -> impl Strategy<Value = Option<Vec<u8>>> {
    option::of(vec(any::<u8>(), 0..40))
}

fn values(max: usize) -> impl Strategy<Value = Vec<Option<Vec<u8>>>> {
    vec(value(), 0..max)
}

fn borrowed(values: &[Option<Vec<u8>>]) -> Vec<Option<&[u8]>> {
    values.iter().map(Option::as_deref).collect()
}

/// None, one for all, or one for each of `count`.
fn formats(count: usize) -> impl Strategy<Value = Vec<i16>> {
    let code = 0i16..=1;
    prop_oneof![
        Just(vec![]),
        vec(code.clone(), 1),
        vec(code, if count > 1 { count } else { 0 }),
    ]
}

/// What a Bind consists of.
type BindParts = (Vec<u8>, Vec<u8>, Vec<i16>, Vec<Option<Vec<u8>>>, Vec<i16>);

fn bind_parts() -> impl Strategy<Value = BindParts> {
    values(40).prop_flat_map(|params| {
        (
            text(10),
            text(10),
            formats(params.len()),
            Just(params),
            vec(any::<i16>(), 0..4),
        )
    })
}

fn encoded((portal, statement, formats, params, results): &BindParts) -> Vec<u8> {
    let mut out = Vec::new();
    encode_bind(
        &mut out,
        portal,
        statement,
        formats,
        &borrowed(params),
        results,
    )
    .unwrap();
    out
}

fn frontend_body(bytes: &[u8]) -> &[u8] {
    let header = frontend_header(bytes).unwrap().unwrap();
    assert_eq!(header.len, bytes.len());
    header.body(bytes).unwrap()
}

fn backend_body(bytes: &[u8]) -> &[u8] {
    let header = backend_header(bytes).unwrap().unwrap();
    assert_eq!(header.len, bytes.len());
    header.body(bytes).unwrap()
}

fn row(values: &[Option<Vec<u8>>]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = RowWriter::begin(&mut out, values.len() as u16);
    for value in values {
        match value {
            Some(value) => writer.field(value).unwrap(),
            None => writer.null().unwrap(),
        }
    }
    writer.finish().unwrap();
    out
}

/// `None` leaves a value as it is.
fn replacements() -> impl Strategy<Value = Vec<Option<(i16, Vec<u8>)>>> {
    vec(option::of((0i16..=1, vec(any::<u8>(), 0..70))), 40)
}

proptest! {
    #[test]
    fn parse(name in text(20), query in text(200), types in vec(any::<u32>(), 0..20)) {
        let mut out = Vec::new();
        encode_parse(&mut out, &name, &query, &types).unwrap();
        let parsed = Parse::parse(frontend_body(&out)).unwrap();
        prop_assert_eq!(parsed.name, name);
        prop_assert_eq!(parsed.query, query);
        prop_assert_eq!(parsed.param_types().collect::<Vec<_>>(), types);
    }

    #[test]
    fn query_and_execute(query in text(200), max_rows in any::<i32>()) {
        let mut out = Vec::new();
        encode_query(&mut out, &query).unwrap();
        prop_assert_eq!(Query::parse(frontend_body(&out)).unwrap().text, &query[..]);
        out.clear();
        encode_execute(&mut out, &query, max_rows).unwrap();
        let expected = Execute { portal: &query, max_rows };
        prop_assert_eq!(Execute::parse(frontend_body(&out)), Ok(expected));
    }

    #[test]
    fn bind(parts in bind_parts()) {
        let out = encoded(&parts);
        let (portal, statement, formats, params, results) = parts;
        let parsed = Bind::parse(frontend_body(&out)).unwrap();
        prop_assert_eq!(parsed.portal, portal);
        prop_assert_eq!(parsed.statement, statement);
        prop_assert_eq!(parsed.param_formats().codes().collect::<Vec<_>>(), formats);
        prop_assert_eq!(parsed.params().collect::<Vec<_>>(), borrowed(&params));
        prop_assert_eq!(
            (0..params.len()).map(|i| parsed.param(i)).collect::<Vec<_>>(),
            borrowed(&params)
        );
        prop_assert_eq!(parsed.result_formats().codes().collect::<Vec<_>>(), results);
    }

    /// Replacing in the bytes is the same as writing the Bind anew with the replaced values.
    #[test]
    fn bind_replacement(parts in bind_parts(), replace in replacements()) {
        let before = encoded(&parts);
        let parsed = Bind::parse(frontend_body(&before)).unwrap();
        let (portal, statement, formats, params, results) = parts.clone();
        let mut replaced = params.clone();
        for (param, with) in replaced.iter_mut().zip(&replace) {
            if let Some((_, bytes)) = with {
                *param = Some(bytes.clone());
            }
        }
        let mut out = b"before".to_vec();
        parsed
            .encode_with(&mut out, |i| replace[i].as_ref().map(|(_, bytes)| &bytes[..]))
            .unwrap();
        let expected = encoded(&(portal, statement, formats, replaced.clone(), results));
        prop_assert_eq!(&out[6..], expected);

        out.clear();
        parsed
            .encode_with_formats(&mut out, |i| {
                replace[i].as_ref().map(|(format, bytes)| (*format, &bytes[..]))
            })
            .unwrap();
        let after = Bind::parse(frontend_body(&out)).unwrap();
        prop_assert_eq!(after.params().collect::<Vec<_>>(), borrowed(&replaced));
        for (i, with) in replace.iter().enumerate().take(params.len()) {
            let sent = parsed.param_format(i);
            let expected = with.as_ref().map_or(sent, |(format, _)| *format);
            prop_assert_eq!(after.param_format(i), expected);
        }
        let differs = |i: usize| {
            replace[i].as_ref().is_some_and(|(format, _)| *format != parsed.param_format(i))
        };
        if !(0..params.len()).any(differs) {
            prop_assert_eq!(after.param_formats(), parsed.param_formats());
        }
        prop_assert_eq!(after.result_formats(), parsed.result_formats());
    }

    #[test]
    fn data_row(values in values(40), replace in replacements()) {
        let before = row(&values);
        let parsed = DataRow::parse(backend_body(&before)).unwrap();
        prop_assert_eq!(parsed.fields().collect::<Vec<_>>(), borrowed(&values));
        let mut replaced = values.clone();
        for (value, with) in replaced.iter_mut().zip(&replace) {
            if let Some((_, bytes)) = with {
                *value = Some(bytes.clone());
            }
        }
        let mut out = Vec::new();
        parsed
            .encode_with(&mut out, |i| replace[i].as_ref().map(|(_, bytes)| &bytes[..]))
            .unwrap();
        prop_assert_eq!(out, row(&replaced));
    }

    #[test]
    fn data_row_in_pieces(pieces in vec(vec(any::<u8>(), 0..20), 0..8)) {
        let value = pieces.concat();
        let mut out = Vec::new();
        let mut writer = RowWriter::begin(&mut out, 1);
        writer.begin_field(value.len()).unwrap();
        for piece in &pieces {
            writer.piece(piece).unwrap();
        }
        writer.finish().unwrap();
        prop_assert_eq!(out, row(&[Some(value)]));
    }

    #[test]
    fn strings_of_a_server(name in text(50), value in text(50)) {
        let mut out = Vec::new();
        encode_parameter_status(&mut out, &name, &value).unwrap();
        let expected = ParameterStatus { name: &name, value: &value };
        prop_assert_eq!(ParameterStatus::parse(backend_body(&out)), Ok(expected));
        out.clear();
        encode_command_complete(&mut out, &name).unwrap();
        prop_assert_eq!(CommandComplete::parse(backend_body(&out)).unwrap().tag, &name[..]);
    }

    /// Whatever the texts, zero bytes included, an error of our own is a whole message.
    #[test]
    fn errors(message in any::<String>(), detail in any::<String>()) {
        let mut out = Vec::new();
        ErrorBuilder::error("XX001", &message[..]).detail(&detail[..]).encode(&mut out);
        let fields = ErrorFields::parse(backend_body(&out)).unwrap();
        let expected = message.split('\0').next().unwrap_or("");
        prop_assert_eq!(fields.get(b'M'), Some(expected.as_bytes()));
        prop_assert_eq!(fields.iter().count(), 5);
    }

    #[test]
    fn startup(parameters in vec((vec(1..=u8::MAX, 1..20), text(50)), 0..10)) {
        let parameters: Vec<_> =
            parameters.iter().map(|(name, value)| (&name[..], &value[..])).collect();
        let mut out = Vec::new();
        encode_startup(&mut out, PROTOCOL_3_0, &parameters).unwrap();
        let Ok(Some((Startup::Startup(message), used))) = parse_startup(&out) else {
            panic!("{:?}", parse_startup(&out));
        };
        prop_assert_eq!(used, out.len());
        prop_assert_eq!(message.parameters().collect::<Vec<_>>(), parameters);
    }

    /// A stream gives the same frames however it is cut into reads.
    #[test]
    fn headers_find_the_frames_of_a_stream(
        bodies in vec((prop::sample::select(&b"dDTE1Z"[..]), vec(any::<u8>(), 0..50)), 0..20),
        read_len in 1usize..40,
    ) {
        let mut stream = Vec::new();
        for (tag, body) in &bodies {
            encode_frame(&mut stream, Direction::Backend, *tag, body).unwrap();
        }
        let mut buffer = Vec::new();
        let mut found = Vec::new();
        for read in stream.chunks(read_len) {
            buffer.extend_from_slice(read);
            while let Some(header) = backend_header(&buffer).unwrap() {
                let Some(body) = header.body(&buffer) else { break };
                found.push((header.tag, body.to_vec()));
                buffer.drain(..header.len);
            }
        }
        prop_assert_eq!(found, bodies);
        prop_assert!(buffer.is_empty());
    }

    /// S9, and a header never promises more than its limit.
    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..300)) {
        decode_with_all(&bytes);
        let headers = [
            (Direction::Frontend, frontend_header(&bytes)),
            (Direction::Backend, backend_header(&bytes)),
        ];
        for (direction, header) in headers {
            if let Ok(Some(header)) = header {
                let limit = frame::length_limit(direction, header.tag).unwrap() as usize;
                prop_assert!((5..=limit + 1).contains(&header.len));
                let _ = header.body(&bytes);
            }
        }
        if let Ok(Some((Startup::Startup(message), used))) = parse_startup(&bytes) {
            prop_assert!(used <= bytes.len());
            let _ = message.parameters().count();
        }
    }

    /// Random bytes seldom get far into a decoder; almost good ones do.
    #[test]
    fn almost_good_bodies_never_panic(
        which in 0..DECODERS.len(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        keep in any::<prop::sample::Index>(),
        more in vec(any::<u8>(), 0..10),
    ) {
        let mut bytes = DECODERS[which].sample.to_vec();
        bytes.extend_from_slice(&more);
        bytes.truncate(keep.index(bytes.len() + 1));
        for (at, byte) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        decode_with_all(&bytes);
    }

    /// The same for the start of a connection, whose code and length are given.
    #[test]
    fn almost_good_startup_never_panics(parameters in vec(prop_oneof![Just(0), any::<u8>()], 0..60)) {
        let length = (8 + parameters.len()) as u32;
        let bytes =
            [&length.to_be_bytes()[..], &PROTOCOL_3_0.to_be_bytes(), &parameters].concat();
        if let Ok(Some((Startup::Startup(message), _))) = parse_startup(&bytes) {
            for (name, value) in message.parameters() {
                prop_assert!(!name.is_empty() && !name.contains(&0) && !value.contains(&0));
            }
        }
    }
}
