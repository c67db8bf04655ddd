//! Random inputs, nasty ones first.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

/// One of `choices`.
pub(crate) fn pick<'a>(rng: &mut StdRng, choices: &[&'a str]) -> &'a str {
    choices.choose(rng).expect("choices are not empty")
}

/// Up to `most` of `parts`, one after the other.
pub(crate) fn mix(rng: &mut StdRng, parts: &[&str], most: usize) -> String {
    let len = rng.random_range(0..=most);
    (0..len).map(|_| pick(rng, parts)).collect()
}

/// Random text from `parts`, now and then a long one.
pub(crate) fn text(rng: &mut StdRng, parts: &[&str]) -> String {
    let most = if rng.random_bool(0.02) { 2000 } else { 12 };
    mix(rng, parts, most)
}

/// Random bytes, with an accent on those that formats care about.
pub(crate) fn bytes(rng: &mut StdRng, most: usize) -> Vec<u8> {
    let len = rng.random_range(0..=most);
    (0..len)
        .map(|_| match rng.random_range(0..3) {
            0 => rng.random(),
            1 => *b"\\\0\x7f\x80\xff' \"\n".choose(rng).expect("not empty"),
            _ => rng.random_range(0x20..0x7f),
        })
        .collect()
}

/// Changes one byte, or cuts or doubles a part.
pub(crate) fn damage(rng: &mut StdRng, input: &mut Vec<u8>) {
    if input.is_empty() {
        return;
    }
    let at = rng.random_range(0..input.len());
    match rng.random_range(0..4) {
        0 => {
            input[at] = *b"{}[]\",:\\0 1ea-.\x01\0\x80"
                .choose(rng)
                .expect("not empty")
        }
        1 => {
            input.remove(at);
        }
        2 => input.truncate(at),
        _ => {
            let part = input[at..].to_vec();
            input.extend(part);
        }
    }
}

const STRING_PARTS: &[&str] = &[
    "a",
    "b",
    "z",
    "Z",
    " ",
    "0",
    "/",
    "'",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\u{7f}",
    "\u{80}",
    "\u{e9}",
    "\u{20ac}",
    "\u{ffff}",
    "\u{1f600}",
    "\u{10ffff}",
    "\\\"",
    "\\\\",
    "\\/",
    "\\b",
    "\\f",
    "\\n",
    "\\r",
    "\\t",
    "\\u0001",
    "\\u001f",
    "\\u001F",
    "\\u0008",
    "\\u000a",
    "\\u0022",
    "\\u005C",
    "\\u0041",
    "\\u00e9",
    "\\u00E9",
    "\\u20ac",
    "\\uFFFE",
    "\\ud83d\\ude00",
    "\\uDBFF\\uDFFF",
    "toast:",
    "longer than a word of eight bytes",
];
const DOUBTFUL_PARTS: &[&str] = &[
    "\\u0000",
    "\\ud83d",
    "\\ude00",
    "\\ud83d\\u0041",
    "\\ud83dx",
    "\\ud83d\\n",
    "\\x",
    "\\u12",
    "\\'",
    "\n",
    "\t",
    "\u{1}",
    "\\",
];
const KEYS: &[&str] = &[
    "",
    "a",
    "b",
    "\\u0061",
    "aa",
    "ab",
    "ba",
    "\u{e9}",
    "\\u00e9",
    "\u{1f600}",
    "zzzz",
    "\\n",
    "\\t",
    "\\\"",
    "\\/",
    "/",
    "key",
    "key_longer_a",
    "key_longer_b",
    "key_longer_\\u0061",
    "exactly8",
    "exactly9",
    "exactly8x",
    "exactly8y",
];

/// A JSON text; now and then with a part that is `doubtful` for jsonb or invalid.
pub(crate) fn json(rng: &mut StdRng, depth: usize, doubtful: bool) -> String {
    let mut out = String::new();
    let space = if rng.random_bool(0.5) {
        &[""][..]
    } else {
        &["", " ", "\n", "\t", "\r\n  "][..]
    };
    json_value(rng, depth, space, &mut out);
    if doubtful && rng.random_bool(0.05) {
        plant_doubt(rng, &mut out);
    }
    out
}

fn json_value(rng: &mut StdRng, depth: usize, space: &[&str], out: &mut String) {
    out.push_str(pick(rng, space));
    let kind = if depth == 0 {
        rng.random_range(0..4)
    } else {
        rng.random_range(0..8)
    };
    match kind {
        0 => out.push_str(pick(rng, &["true", "false", "null"])),
        1 => out.push_str(&number(rng)),
        2 | 3 => json_string(rng, out),
        4 | 5 => {
            out.push('[');
            for index in 0..rng.random_range(0..6) {
                if index > 0 {
                    out.push(',');
                }
                json_value(rng, depth - 1, space, out);
            }
            out.push_str(pick(rng, space));
            out.push(']');
        }
        _ => {
            out.push('{');
            let most = if rng.random_bool(0.1) { 60 } else { 7 };
            for index in 0..rng.random_range(0..most) {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(pick(rng, space));
                out.push('"');
                out.push_str(pick(rng, KEYS));
                if rng.random_bool(0.3) {
                    out.push_str(&mix(rng, STRING_PARTS, 3));
                }
                out.push('"');
                out.push_str(pick(rng, space));
                out.push(':');
                json_value(rng, depth - 1, space, out);
            }
            out.push_str(pick(rng, space));
            out.push('}');
        }
    }
    out.push_str(pick(rng, space));
}

fn json_string(rng: &mut StdRng, out: &mut String) {
    out.push('"');
    out.push_str(&text(rng, STRING_PARTS));
    out.push('"');
}

/// Puts a doubtful part into some string or between tokens.
fn plant_doubt(rng: &mut StdRng, out: &mut String) {
    let at = rng.random_range(0..=out.len());
    if let Some(at) = out[..out.floor_char_boundary(at)].rfind('"') {
        out.insert_str(at + 1, pick(rng, DOUBTFUL_PARTS));
    }
}

/// A JSON number of any shape.
pub(crate) fn number(rng: &mut StdRng) -> String {
    let mut out = String::new();
    if rng.random_bool(0.4) {
        out.push('-');
    }
    if rng.random_bool(0.4) {
        out.push('0');
    } else {
        out.push(char::from(rng.random_range(b'1'..=b'9')));
        digits(rng, 0, &mut out);
    }
    if rng.random_bool(0.5) {
        out.push('.');
        digits(rng, 1, &mut out);
    }
    if rng.random_bool(0.4) {
        out.push_str(pick(rng, &["e", "E"]));
        out.push_str(pick(rng, &["", "+", "-"]));
        out.push_str(pick(
            rng,
            &[
                "0", "00", "1", "2", "3", "7", "16", "020", "45", "308", "1000",
            ],
        ));
    }
    out
}

fn digits(rng: &mut StdRng, least: usize, out: &mut String) {
    let most = *[0, 1, 2, 5, 20, 70].choose(rng).expect("not empty");
    let zeros = rng.random_bool(0.3);
    for _ in 0..rng.random_range(least..=most.max(least)) {
        out.push(if zeros {
            '0'
        } else {
            char::from(rng.random_range(b'0'..=b'9'))
        });
    }
}
