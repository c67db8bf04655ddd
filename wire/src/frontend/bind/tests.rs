//! Bind: reading, random access, and replacing without touching anything else.

use super::*;
use crate::testing::{LYING_LENGTHS, assert_exact, body};

fn bind(formats: &[i16], params: &[Option<&[u8]>], result_formats: &[i16]) -> Vec<u8> {
    let mut frame = Vec::new();
    encode_bind(&mut frame, b"p", b"s", formats, params, result_formats).unwrap();
    frame
}

const VALUES: [Option<&[u8]>; 4] = [Some(b"one"), None, Some(b""), Some(b"four")];

/// Name of the case, parameter formats, parameters, result formats.
type Case<'a> = (&'a str, &'a [i16], &'a [Option<&'a [u8]>], &'a [i16]);

#[test]
fn good_cut_and_longer() {
    let cases: [Case<'_>; 6] = [
        ("nothing", &[], &[], &[]),
        ("text", &[], &VALUES, &[]),
        ("one format", &[1], &VALUES, &[1]),
        ("formats each", &[1, 0, 1, 0], &VALUES, &[0, 1, 1]),
        ("a format but no parameter", &[1], &[], &[]),
        ("unknown formats are for the server", &[9], &VALUES, &[-1]),
    ];
    for (name, formats, params, result_formats) in cases {
        let frame = bind(formats, params, result_formats);
        let parsed = Bind::parse(body(&frame)).unwrap();
        assert_eq!(
            (parsed.portal, parsed.statement),
            (&b"p"[..], &b"s"[..]),
            "{name}"
        );
        assert_eq!(parsed.param_count(), params.len(), "{name}");
        assert_eq!(parsed.params().collect::<Vec<_>>(), params, "{name}");
        for (i, param) in params.iter().enumerate() {
            assert_eq!(parsed.param(i), *param, "{name}");
        }
        assert_eq!(parsed.param(params.len()), None, "{name}");
        let codes: Vec<_> = parsed.param_formats().codes().collect();
        assert_eq!(codes, formats, "{name}");
        let codes: Vec<_> = parsed.result_formats().codes().collect();
        assert_eq!(codes, result_formats, "{name}");
        assert_exact(body(&frame), &mut Vec::new(), Bind::parse);
    }
}

#[test]
fn formats_of_parameters() {
    let cases: [(&[i16], [i16; 4]); 3] =
        [(&[], [0; 4]), (&[1], [1; 4]), (&[0, 1, 1, 0], [0, 1, 1, 0])];
    for (formats, expected) in cases {
        let frame = bind(formats, &VALUES, &[]);
        let parsed = Bind::parse(body(&frame)).unwrap();
        assert_eq!([0, 1, 2, 3].map(|i| parsed.param_format(i)), expected);
    }
}

#[test]
fn format_count_must_fit() {
    for formats in [2, 3, 5] {
        let frame = bind(&vec![0; formats], &VALUES, &[]);
        let refused = Bind::parse(body(&frame)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("bind message has {formats} parameter formats but 4 parameters")
        );
    }
}

#[test]
fn lengths_that_lie() {
    let frame = bind(&[], &[Some(b"abc"), Some(b"de")], &[]);
    let good = body(&frame);
    let second = good.len() - 2 - 2 - 4;
    for length in LYING_LENGTHS {
        let mut bytes = good.to_vec();
        bytes[second..][..4].copy_from_slice(&length.to_be_bytes());
        assert_eq!(
            Bind::parse(&bytes).unwrap_err(),
            MessageError::FieldLength {
                message: "Bind",
                index: 1,
                length,
                left: 4
            }
        );
    }
    // A value that swallows the result formats leaves nothing for them.
    let mut bytes = good.to_vec();
    bytes[second..][..4].copy_from_slice(&4i32.to_be_bytes());
    assert!(matches!(
        Bind::parse(&bytes),
        Err(MessageError::Truncated {
            field: "the result formats",
            ..
        })
    ));
}

#[test]
fn random_access_to_many_parameters() {
    // Around the number of marks, and the most there can be.
    for count in [1, 15, 16, 17, 31, 32, 33, 1_000, 65_535] {
        let texts: Vec<_> = (0..count).map(|i| i.to_string().into_bytes()).collect();
        let params: Vec<_> = texts
            .iter()
            .enumerate()
            .map(|(i, text)| (i % 7 != 3).then_some(&text[..]))
            .collect();
        let frame = bind(&[], &params, &[]);
        let parsed = Bind::parse(body(&frame)).unwrap();
        for i in (0..count).filter(|i| count < 2_000 || i % 997 < 2 || i + 2 > count) {
            assert_eq!(parsed.param(i), params[i], "{i} of {count}");
        }
        assert_eq!(parsed.param(count), None);
    }
}

#[test]
fn replacing_nothing_gives_the_same_bytes() {
    for formats in [&[][..], &[1], &[0, 1, 0, 1]] {
        let frame = bind(formats, &VALUES, &[1, 0]);
        let parsed = Bind::parse(body(&frame)).unwrap();
        let mut out = Vec::new();
        parsed.encode_with(&mut out, |_| None).unwrap();
        assert_eq!(out, frame);
        out.clear();
        parsed.encode_with_formats(&mut out, |_| None).unwrap();
        assert_eq!(out, frame);
    }
}

#[test]
fn replaces_any_subset() {
    let frame = bind(&[0, 1, 0, 1], &VALUES, &[1]);
    let parsed = Bind::parse(body(&frame)).unwrap();
    for subset in 0..16u32 {
        let replace = |i: usize| (subset >> i & 1 == 1).then_some(&b"reference"[..]);
        let mut expected = VALUES;
        for (i, value) in expected.iter_mut().enumerate() {
            *value = replace(i).or(*value);
        }
        let mut out = Vec::new();
        parsed.encode_with(&mut out, replace).unwrap();
        assert_eq!(out, bind(&[0, 1, 0, 1], &expected, &[1]), "{subset:b}");
    }
}

#[test]
fn formats_are_written_out_only_where_one_differs() {
    let text: [Option<&[u8]>; 4] = [Some(b"one"), None, Some(b""), Some(b"r")];
    let cases: [(&str, &[i16], i16, &[i16]); 5] = [
        ("none, text", &[], 0, &[]),
        ("none, binary", &[], 1, &[0, 0, 0, 1]),
        ("one, the same", &[1], 1, &[1]),
        ("one, another", &[1], 0, &[1, 1, 1, 0]),
        ("each, another", &[0, 1, 0, 0], 1, &[0, 1, 0, 1]),
    ];
    for (name, before, format, after) in cases {
        let frame = bind(before, &VALUES, &[1]);
        let parsed = Bind::parse(body(&frame)).unwrap();
        let mut out = Vec::new();
        parsed
            .encode_with_formats(&mut out, |i| (i == 3).then_some((format, &b"r"[..])))
            .unwrap();
        assert_eq!(out, bind(after, &text, &[1]), "{name}");
    }
}

#[test]
fn what_postgres_would_refuse_is_not_written() {
    let params = vec![None; 65_536];
    let mut out = b"before".to_vec();
    let refused = encode_bind(&mut out, b"", b"", &[], &params, &[]);
    assert!(matches!(
        refused,
        Err(EncodeError::TooMany { count: 65_536, .. })
    ));
    assert_eq!(out, b"before");
}
