//! Compares the scanner with the server's own lexer, through libpg_query.

use pg_query::protobuf::Token;
use proptest::prelude::*;

use super::*;

fn skeletons(text: &str) -> Option<Vec<String>> {
    let script = scan(text, usize::MAX)?;
    Some(script.statements.into_iter().map(|s| s.skeleton).collect())
}

/// Each statement's tokens and the places they map to are those that the
/// server's lexer finds in the whole text.
fn agrees_with_the_lexer(text: &str) -> Result<(), TestCaseError> {
    let Some(script) = scan(text, usize::MAX) else {
        return Ok(());
    };
    if script.statements.is_empty() {
        // scan_tokens of pg_query 18.1 makes a slice of a null pointer when there is no token.
        return Ok(());
    }
    let Ok(theirs) = pg_query::scan_tokens(text) else {
        return Ok(());
    };
    // Semicolons may be within a statement (in parentheses) or between two.
    let dropped = [Token::SqlComment, Token::CComment, Token::Ascii59].map(|t| t as i32);
    let mut theirs = theirs
        .into_iter()
        .filter(|t| !dropped.contains(&t.token))
        .map(|t| (t.token, t.start as usize, t.end as usize));
    for statement in &script.statements {
        let tokens = pg_query::scan_tokens(&statement.skeleton)
            .map_err(|e| TestCaseError::fail(format!("{:?}: {e}", statement.skeleton)))?;
        for token in tokens {
            if dropped.contains(&token.token) {
                continue;
            }
            let range = statement.original_range(&(token.start as usize..token.end as usize));
            let expected = theirs.next();
            prop_assert_eq!(
                Some((token.token, range.start, range.end)),
                expected,
                "{:?} -> {:?}",
                text,
                statement.skeleton
            );
            let piece = statement.piece(&(token.start as usize..token.end as usize));
            if let Some(literal) = piece.and_then(|p| p.literal.as_ref()) {
                prop_assert_eq!(token.token, Token::Sconst as i32);
                let body = &text[literal.body.clone()];
                let plain = literal.kind == LiteralKind::Plain;
                prop_assert!(!plain || !body.replace("''", "").contains('\''));
            }
        }
    }
    prop_assert_eq!(theirs.count(), 0, "{:?}", text);
    Ok(())
}

#[test]
fn skeletons_of_named_texts() {
    let cases: &[(&str, &[&str])] = &[
        ("select 'abc'", &["select ''"]),
        ("select 'it''s', ''", &["select '', ''"]),
        (r"select E'a\'b', e'\\'", &["select E'', e''"]),
        (r"select 'a\', 'b'", &["select '', ''"]),
        ("select $$a'b$$, $x$ $$ $x$", &["select $$$$, $x$$x$"]),
        ("select $a$ $b$ $a$", &["select $a$$a$"]),
        ("select a$b$c", &["select a$b$c"]),
        ("select $1, $22", &["select $1, $22"]),
        ("select $1$x$y$x$", &["select $1$x$$x$"]),
        ("select 12, 123456789", &["select 1, 1"]),
        (
            "select 1234567890, 12345678901",
            &["select 1234567890, 99999999999"],
        ),
        (
            "select 1.5, 1e10, 0x1f, .25",
            &["select 1.5, 1e10, 0x1f, .1"],
        ),
        (
            "select a1, \"b'c\", \"d\"\"e\"",
            &["select a1, \"b'c\", \"d\"\"e\""],
        ),
        ("select U&'x', u&\"y'\"", &["select U&'', u&\"y'\""]),
        ("select b'01', X'ff', N'n'", &["select b'', X'', N''"]),
        ("select 'a'\n'b'", &["select ''"]),
        ("select 'a' -- c\n -- d\n 'b'", &["select ''"]),
        ("select 'a' 'b'", &["select '' ''"]),
        ("select 1 -- it's\n, 2", &["select 1  \n, 1"]),
        ("select /* it's /* nested */ */ 1", &["select   1"]),
        ("select /**/ 1, /***/ 2", &["select   1,   1"]),
        ("a; b;; c", &["a", " b", " c"]),
        (";; -- nothing\n ;", &[]),
        ("a 'x;y'; b", &["a ''", " b"]),
        (
            "create rule r as on update to t do (a; b)",
            &["create rule r as on update to t do (a; b)"],
        ),
        ("", &[]),
    ];
    for (text, expected) in cases {
        let found = skeletons(text).unwrap_or_else(|| panic!("{text:?} was given up"));
        assert_eq!(found, *expected, "{text:?}");
        agrees_with_the_lexer(text).expect(text);
    }
}

#[test]
fn what_cannot_be_scanned_is_given_up() {
    let cases = [
        "select 'abc",
        "select E'abc\\'",
        "select E'abc\\",
        "select $$abc",
        "select $a$ $b$",
        "select \"abc",
        "select /* /* */",
        "select (1",
        "select 1)",
        "select '\0'",
        "select 1e10$x$ a $x$",
        "create function f() begin atomic select 1; end",
        "select 'a'\n'b",
    ];
    for text in cases {
        assert_eq!(skeletons(text), None, "{text:?}");
    }
}

#[test]
fn first_words() {
    let cases = [
        ("select 1", "select"),
        (" \n\t(( select 1", "select"),
        ("-- x\n/* y /* z */ */ INSERT", "INSERT"),
        ("/* /", ""),
        ("; with", "with"),
        ("'x'", ""),
        ("--", ""),
        ("", ""),
    ];
    for (text, expected) in cases {
        assert_eq!(first_word(text.as_bytes()), expected.as_bytes(), "{text:?}");
    }
}

/// Fragments that meet in every order: where lexers disagree, if they do.
fn fragment() -> impl Strategy<Value = String> {
    const FIXED: &[&str] = &[
        "'",
        "''",
        "'a'",
        "E'",
        "e'x\\'",
        "\\",
        "\\'",
        "$",
        "$$",
        "$a$",
        "$b$",
        "$1",
        "a",
        "E",
        "U&'",
        "u&\"",
        "N'",
        "b'",
        "x'",
        "\"",
        "\"\"",
        "--",
        "/*",
        "*/",
        "*",
        "/",
        "\n",
        "\r",
        " ",
        "\t",
        ";",
        "(",
        ")",
        "1",
        "12345678901",
        "1.5",
        ".",
        "1e5",
        "::",
        "é",
        "$é$",
        "-",
        "+",
        "@",
        ",",
        "text",
        "insert",
    ];
    prop_oneof![
        8 => proptest::sample::select(FIXED).prop_map(str::to_owned),
        1 => "[ -~]{0,4}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn the_lexer_is_agreed_with(parts in proptest::collection::vec(fragment(), 0..14)) {
        agrees_with_the_lexer(&parts.concat())?;
    }

    #[test]
    fn any_text_is_scanned_without_panic(text in any::<String>()) {
        let _ = scan(&text, 1);
        let _ = first_word(text.as_bytes());
        agrees_with_the_lexer(&text)?;
    }
}
