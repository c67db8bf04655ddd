//! The rule for none, one and many format codes.

use super::*;

#[test]
fn none_one_and_many() {
    let cases: [(&str, &[u8], [i16; 3]); 4] = [
        ("none is text", &[], [0, 0, 0]),
        ("one is for all", &[0, 1], [1, 1, 1]),
        ("each has its own", &[0, 1, 0, 0, 0, 1], [1, 0, 1]),
        ("text beyond the last", &[0, 1, 0, 1], [1, 1, 0]),
    ];
    for (name, codes, expected) in cases {
        let formats = Formats::new(codes);
        assert_eq!([0, 1, 2].map(|i| formats.at(i)), expected, "{name}");
        assert_eq!(formats.count(), codes.len() / 2, "{name}");
        assert_eq!(formats.codes().count(), codes.len() / 2, "{name}");
    }
}

#[test]
fn codes_that_are_no_format_are_handed_on() {
    // Postgres refuses them with its own words; the number must survive.
    assert_eq!(Formats::new(&[0xff, 0xfe]).at(7), -2);
}
