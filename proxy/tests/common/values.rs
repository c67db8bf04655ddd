//! Values by name, the same in every run.

use super::THRESHOLD;

const MIB: usize = 1 << 20;

/// A value as the client of the text format would send it.
pub(crate) fn named(name: &str) -> String {
    let threshold = THRESHOLD as usize;
    match name {
        "empty" => String::new(),
        "small" => "short".to_owned(),
        "at-1" => ascii(threshold - 1),
        "at" => ascii(threshold),
        "at+1" => ascii(threshold + 1),
        // One character fewer than bytes: the threshold counts bytes.
        "at+1u" => ascii(threshold - 1) + "é",
        "big" => ascii(5000),
        "other" => ascii(4999).to_uppercase(),
        "noise" => noise(8000),
        "uni" => "Ünïcödé – 漢字かな 🦀👩‍👩‍👧 a\u{301} \u{feff}\u{10ffff} عربى\n".repeat(60),
        "quotes" => "it''s \"quoted\" \\ back\\slash \\n $$dollar$$ %s {a,b} \t\r\n".repeat(70),
        "euro" => "€ is not in LATIN1 ".repeat(200),
        "latin" => "äöüßé ÿ ".repeat(400),
        "mib" => ascii(MIB),
        "mib+1" => ascii(MIB + 1),
        "varchar20" => "exactly twenty chars".to_owned(),
        "varchar20+blanks" => "exactly twenty chars".to_owned() + &" ".repeat(3000),
        "varchar20+x" => "exactly twenty chars, and more".to_owned(),
        "5000" => "é".repeat(5000),
        "5000+blanks" => "é".repeat(5000) + "   ",
        "5001" => "é".repeat(5001),
        "prefix" => "toast:".to_owned(),
        "prefix+" => "toast: is served".to_owned(),
        "lookalike" => lookalike(),
        "lookalike big" => lookalike() + &ascii(4000),
        "json small" => r#"{"b": 1, "a":[1, 2.50, "x"]}"#.to_owned(),
        "json" => json(3000),
        "json odd" => json_odd(),
        "json at" => format!("\"{}\"", ascii(threshold - 2)),
        "json at+1" => format!("\"{}\"", ascii(threshold - 1)),
        "json lookalike" => format!("\"{}\"", lookalike()),
        "json prefix" => "\"toast:\"".to_owned(),
        "json escaped prefix" => "\"\\u0074oast:x\"".to_owned(),
        "json scalar" => "2.561422288066971e+16".to_owned(),
        "json spaces" => format!("  [1 , {{ \"k\" : \"{}\" }} ]\n", ascii(3000)),
        "json nul" => format!("{{\"a\":\"\\u0000\",\"b\":\"{}\"}}", ascii(3000)),
        "json bad" => format!("{{\"a\": \"{}\",}}", ascii(3000)),
        "json mib" => format!("{{\"k\": \"{}\"}}", ascii(MIB - 9)),
        "json mib+1" => format!("{{\"k\": \"{}\"}}", ascii(MIB - 8)),
        "surrogate" => format!("{{\"s\":\"\\ud83d\\ude00{}\"}}", ascii(3000)),
        "lone surrogate" => format!("{{\"s\":\"\\ud83d{}\"}}", ascii(3000)),
        "number" => format!("{{\"n\": {}.{}e10}}", "1".repeat(1500), "7".repeat(1500)),
        "key/1" => format!("{{\"{}\": 1, \"z\": {}}}", ascii(1000), json(2000)),
        "bytes small" => "\\x00ff10".to_owned(),
        "bytes" => hex(&all_bytes(3000)),
        "bytes escape" => escape(&all_bytes(3000)),
        "bytes at" => hex(&all_bytes(threshold)),
        "bytes at+1" => hex(&all_bytes(threshold + 1)),
        "bytes magic" => hex(&magic(50)),
        "bytes magic short" => hex(&magic(8)),
        "bytes magic escape" => escape(&magic(50)),
        "bytes magic big" => hex(&magic(4000)),
        "bytes mib" => hex(&all_bytes(MIB)),
        "bytes mib+1" => hex(&all_bytes(MIB + 1)),
        "bytes bad" => format!("\\x{}g0", "00".repeat(3000)),
        "bytes odd" => format!("\\x{}0", "00".repeat(3000)),
        "one" => "1".to_owned(),
        "two" => "2".to_owned(),
        "three" => "3".to_owned(),
        "array" => format!(
            "{{\"{}\",NULL,\"a,\\\"b\\\\\",\"NULL\",\"{{}}\"}}",
            ascii(3000)
        ),
        other => panic!("no value is called {other}"),
    }
}

fn ascii(len: usize) -> String {
    const SENTENCE: &str = "The quick brown fox jumps over the lazy dog, 0123456789 times. ";
    SENTENCE.chars().cycle().take(len).collect()
}

/// Printable and without redundancy.
fn noise(len: usize) -> String {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'!' + (state >> 40) as u8 % 94)
    };
    let text: String = std::iter::repeat_with(next).take(len).collect();
    text.replace(['\'', '\\'], "x")
}

/// As a reference is spelled, but of no store.
fn lookalike() -> String {
    format!(
        "toast:{}",
        "AQAAAAAAAABQAAAAiBMAAIgTAACIEwAA".repeat(2).split_at(56).0
    )
}

fn json(len: usize) -> String {
    format!(
        r#"{{"title": "a \"quoted\" \u00e9 title", "body": "{}", "n": [1, 2.0, 3.10e2, -0, 1E-5], "ok": true, "none": null, "title": "again"}}"#,
        ascii(len)
    )
}

fn json_odd() -> String {
    format!(
        r#"{{"z":1,"bb":2,"aaa":3,"b":{{"y":[],"x":{{}}}},"":0,"esc":"\b\f\n\r\t\/\\\"","u":"\u00e9\u20ac\ud83e\udd80","num":[1e400,1.10,0.000000000000000000000000000001,123456789012345678901234567890.123456789],"pad":"{}","z":"last"}}"#,
        ascii(2500)
    )
}

fn all_bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 256) as u8).collect()
}

fn magic(len: usize) -> Vec<u8> {
    let mut bytes = b"\xf7TOAST\r\n".to_vec();
    bytes.extend(all_bytes(len.saturating_sub(8)));
    bytes
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\\x{digits}")
}

fn escape(bytes: &[u8]) -> String {
    let one = |byte: &u8| match byte {
        b'\\' => "\\\\".to_owned(),
        0x20..=0x7e => char::from(*byte).to_string(),
        _ => format!("\\{byte:03o}"),
    };
    bytes.iter().map(one).collect()
}

/// Replaces `@{name}` by the value as it stands between quotes, `@{e:name}` as it stands in an `E''`
/// literal and `@{d:name}` as it stands between dollars.
pub(crate) fn expand(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("@{") {
        let (name, after) = after.split_once('}').expect("a closing brace");
        out.push_str(before);
        let value = match name.split_once(':') {
            Some(("e", name)) => named(name)
                .replace('\\', "\\\\")
                .replace('\'', "\\'")
                .replace('\n', "\\n"),
            Some(("d", name)) => named(name).replace("$$", "$ $"),
            _ => named(name).replace('\'', "''"),
        };
        out.push_str(&value);
        rest = after;
    }
    out + rest
}
