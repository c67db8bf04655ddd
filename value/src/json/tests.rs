use std::borrow::Cow;

use proptest::prelude::*;

use super::*;

fn canonical(input: &str) -> Option<String> {
    canonical_jsonb(input.as_bytes())
        .ok()
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// What PostgreSQL 15.18 prints, one case for each rule.
#[test]
fn prints_as_jsonb_out() {
    for (input, output) in [
        ("1", "1"),
        (" \n\t\r null ", "null"),
        ("[]", "[]"),
        ("{ }", "{}"),
        ("[ 1 ,2,  true,false ,null]", "[1, 2, true, false, null]"),
        (r#"{"a":1,"b":[1,2]}"#, r#"{"a": 1, "b": [1, 2]}"#),
        (r#"{"b":1,"a":2,"b":3}"#, r#"{"a": 2, "b": 3}"#),
        (r#"{"aa":1,"b":2,"":3}"#, r#"{"": 3, "b": 2, "aa": 1}"#),
        (
            r#"{"b":{"d":1,"c":[{"z":0,"y":1}]},"a":1}"#,
            r#"{"a": 1, "b": {"c": [{"y": 1, "z": 0}], "d": 1}}"#,
        ),
        (
            r#"{"longkey_b":1,"longkey_a":2,"longkey_b":3}"#,
            r#"{"longkey_a": 2, "longkey_b": 3}"#,
        ),
        (r#"{"\u0061":1,"a":2}"#, r#"{"a": 2}"#),
        (r#"{"a":1,"\u0061":2}"#, r#"{"a": 2}"#),
        (r#"{"\n":1,"a":2,"\t":3}"#, r#"{"\t": 3, "\n": 1, "a": 2}"#),
        ("{\"\u{e9}\":1,\"zz\":2}", "{\"zz\": 2, \"\u{e9}\": 1}"),
        (
            r#""\u00e9\ud83d\ude00\/\u0022\u005c""#,
            "\"\u{e9}\u{1f600}/\\\"\\\\\"",
        ),
        (r#""\b\f\n\r\t\"\\""#, r#""\b\f\n\r\t\"\\""#),
        (r#""\u0008\u000c\u000A\u000d\u0009""#, r#""\b\f\n\r\t""#),
        (r#""\u001F\u007f""#, "\"\\u001f\u{7f}\""),
        ("2.561422288066971e+16", "25614222880669710"),
        ("1.50", "1.50"),
        ("1.50e1", "15.0"),
        ("1.5e1", "15"),
        ("1E-3", "0.001"),
        ("12.34e-3", "0.01234"),
        ("12.34e5", "1234000"),
        ("-0", "0"),
        ("-0.00", "0.00"),
        ("-0e3", "0"),
        ("0e-5", "0.00000"),
        ("-0.1", "-0.1"),
        ("-0.001e2", "-0.1"),
        (
            "0.123456789012345678901234567890123456789012345678901234567890",
            "0.123456789012345678901234567890123456789012345678901234567890",
        ),
    ] {
        assert_eq!(canonical(input).as_deref(), Some(output), "{input}");
    }
}

/// Input that is canonical is not copied.
#[test]
fn borrows_canonical_input() {
    for input in [
        r#"{"a": 1, "b": [1, 2, {"c": "\n"}]}"#,
        "[]",
        "\"\u{e9}\"",
        "-1.50",
    ] {
        assert!(matches!(
            canonical_jsonb_cow(input.as_bytes()),
            Ok(Cow::Borrowed(bytes)) if bytes == input.as_bytes()
        ));
    }
}

/// What is doubtful is left alone; the second column says whether json takes it.
#[test]
fn refuses_what_is_doubtful() {
    let deep = "[".repeat(MAX_JSON_DEPTH + 1) + &"]".repeat(MAX_JSON_DEPTH + 1);
    let digits = "1".repeat(5000);
    for (input, json) in [
        ("", false),
        (" ", false),
        ("nul", false),
        ("truex", false),
        ("True", false),
        ("NaN", false),
        ("01", false),
        ("+1", false),
        ("-", false),
        ("1.", false),
        (".5", false),
        ("1e", false),
        ("1e+", false),
        ("1a", false),
        ("1 2", false),
        ("[1,]", false),
        ("[,1]", false),
        ("[1 2]", false),
        ("[1", false),
        ("[1}", false),
        ("]", false),
        ("{", false),
        ("{\"a\"}", false),
        ("{\"a\":}", false),
        ("{\"a\":1,}", false),
        ("{a:1}", false),
        ("{1:1}", false),
        ("{\"a\":1]", false),
        ("\"", false),
        ("\"a", false),
        ("\"\\", false),
        ("\"\\x\"", false),
        ("\"\\u12\"", false),
        ("\"\\u12g4\"", false),
        ("\"a\nb\"", false),
        ("\"a\0b\"", false),
        ("1\0", false),
        ("\u{c}1", false),
        ("\u{feff}1", false),
        ("'a'", false),
        ("\"\\u0000\"", true),
        ("\"\\ud800\"", true),
        ("\"\\ud800x\"", true),
        ("\"\\ud800\\ud800\"", true),
        ("\"\\udc00\"", true),
        ("{\"\\u0000\":1}", true),
        ("1e2000", true),
        ("1e-2000", true),
        ("1e99999999999999999999", true),
        (digits.as_str(), true),
        (deep.as_str(), false),
    ] {
        assert_eq!(canonical(input), None, "{input}");
        assert_eq!(valid_json(input.as_bytes()), json, "{input}");
    }
    assert_eq!(canonical_jsonb(b"\"\xff\""), Err(NotCanonical::NotUtf8));
    assert!(!valid_json(b"\"\xff\""));
}

/// Small inputs do not become large outputs, nor cost much (J3).
#[test]
fn bounds_expansion_and_sorting() {
    let numbers = format!("[{}1]", "1e1000,".repeat(10_000));
    assert_eq!(canonical(&numbers), None);

    // 300 levels, each with keys out of order, around one large string.
    let nested =
        "{\"b\":0,\"a\":".repeat(300) + "\"" + &"x".repeat(1 << 20) + "\"" + &"}".repeat(300);
    assert_eq!(
        canonical_jsonb(nested.as_bytes()),
        Err(NotCanonical::TooCostly)
    );
}

/// The deepest nesting that is accepted.
#[test]
fn accepts_the_deepest_nesting() {
    let arrays = "[".repeat(MAX_JSON_DEPTH) + &"]".repeat(MAX_JSON_DEPTH);
    assert_eq!(canonical(&arrays), Some(arrays.clone()));
    assert!(valid_json(arrays.as_bytes()));
}

/// Every length of a string crosses the borders of words and blocks.
#[test]
fn finds_special_bytes_at_every_place() {
    for len in 0..200 {
        for special in ["\"", "\\n", "\u{1f}", ""] {
            let text = format!(
                "{}{special}",
                "\u{e9}x".repeat(len / 2) + &"y".repeat(len % 2)
            );
            let end = scan::plain_run_end(text.as_bytes(), 0);
            assert_eq!(end, text.len() - special.len(), "{len} {special:?}");
        }
    }
}

fn json_text() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("null".to_owned()),
        "-?(0|[1-9][0-9]{0,8})(\\.[0-9]{1,5})?([eE][+-]?[0-9]{1,2})?",
        "\"([a-z\u{e9}\u{1f600} ]|\\\\[\"\\\\/bfnrt]|\\\\u00[0-7][1-9a-fA-F]){0,20}\"",
    ];
    scalar.prop_recursive(6, 64, 6, |inner| {
        let space = "[ \n]{0,2}";
        let key = "\"([ab]|\\\\u006[12]|\\\\n){0,3}\"";
        prop_oneof![
            (proptest::collection::vec(inner.clone(), 0..6), space).prop_map(
                |(items, space)| format!("[{space}{}]", items.join(&format!("{space},")))
            ),
            (proptest::collection::vec((key, inner), 0..6), space).prop_map(|(members, space)| {
                let members: Vec<_> = members
                    .into_iter()
                    .map(|(key, value)| format!("{key}{space}:{value}{space}"))
                    .collect();
                format!("{{{space}{}}}", members.join(","))
            }),
        ]
    })
}

proptest! {
    /// The canonical form is its own canonical form, and valid JSON.
    #[test]
    fn canonical_is_stable(input in json_text()) {
        let once = canonical_jsonb(input.as_bytes());
        prop_assert!(once.is_ok(), "{input}: {once:?}");
        let once = once.unwrap_or_default();
        prop_assert!(valid_json(input.as_bytes()));
        prop_assert!(valid_json(&once));
        prop_assert_eq!(canonical_jsonb(&once), Ok(once));
    }

    /// No bytes panic, and what has a canonical form is valid JSON.
    #[test]
    fn never_panics(input in "[\\[\\]{}\",:\\\\0-9eE.+u \u{e9}ntrufalse-]{0,40}", bytes: Vec<u8>) {
        let _ = canonical_jsonb(&bytes);
        let _ = valid_json(&bytes);
        let canonical = canonical_jsonb(input.as_bytes());
        prop_assert!(canonical.is_err() || valid_json(input.as_bytes()));
    }
}
