//! Errors and notices of a copy: the server's own, with the client's line numbers.

use crate::common::raw::{error_field, sqlstate};
use crate::common::values::named;
use crate::{End, Pair, RIG};

/// Proves S5 for rows that are wrong in every way, behind and among rows whose values leave: the error is
/// the server's, in its words, at its line; nothing is stored.
#[test]
fn errors_are_those_of_the_server() {
    let mut pair = Pair::new(&RIG, "errors");
    let (big, json) = (named("big"), named("json"));
    let json_text = json.replace('\\', "\\\\");
    let good = format!("1\t{big}\t{json_text}\n2\t{big}x\t{{}}\n");
    for (what, row, state) in [
        ("bad JSON", format!("3\tx\t{{{json_text}\n"), "22P02"),
        ("a bad number", format!("three\t{big}\t{{}}\n"), "22P02"),
        (
            "too many fields",
            format!("3\t{big}\t{{}}\t{big}\n"),
            "22P04",
        ),
        ("too few fields", format!("3\t{big}\n"), "22P04"),
        ("a key that is there", "1\tx\t{}\n".to_owned(), "23505"),
        ("a mixed line end", format!("3\t{big}\r\t{{}}\n"), "22P04"),
        (
            "NUL in JSON",
            format!("3\tx\t{{\"k\":\"\\\\u0000{big}\"}}\n"),
            "22P05",
        ),
    ] {
        let data = format!("{good}{row}4\t{big}y\t{{}}\n");
        for piece in [usize::MAX, 1021] {
            let pieces: Vec<&[u8]> = data.as_bytes().chunks(piece).collect();
            let answer = pair.copy("copy docs(id, body, d) from stdin", &pieces, End::Done);
            assert_eq!(sqlstate(&answer), state, "{what}");
            pair.query("select count(*) from docs");
        }
    }
    let bad = [good.as_bytes(), b"3\tx\xff", big.as_bytes(), b"\t{}\n"].concat();
    let answer = pair.copy("copy docs(id, body, d) from stdin", &[&bad], End::Done);
    assert_eq!(sqlstate(&answer), "22021");
    for (long, state) in [("5001", "22001"), ("5000+blanks", "none")] {
        let data = format!("1\t{}\n2\t{}\n", named("5000"), named(long));
        let answer = pair.copy(
            "copy docs(id, long) from stdin",
            &[data.as_bytes()],
            End::Done,
        );
        assert_eq!(sqlstate(&answer), state);
    }
    pair.check("docs");
}

/// Proves that CSV values of many lines do not shift the line numbers in errors and notices behind them.
#[test]
fn lines_are_counted_as_the_client_sent_them() {
    let mut pair = Pair::new(&RIG, "lines");
    pair.create(
        "create function tell() returns trigger language plpgsql as \
         $$ begin if new.n = 1 then raise notice 'noticed %', new.id; end if; \
         if new.n = 2 then raise exception 'no'; end if; return new; end $$",
    );
    pair.create("create trigger tell before insert on docs for each row execute function tell()");
    let many = "a line of many\n".repeat(400);
    for end in ["\n", "\r\n", "\r"] {
        let many = many.replace('\n', end);
        let start = format!(
            "1,\"{many}\",0{end}2,\"{many}\",1{end}3,\"x{end}y\",1{end}4,x,1{end}5,\"{many}\n{many}\",1{end}"
        );
        for last in [
            format!("six,x,0{end}"),
            format!("6,x,2{end}"),
            format!("6,\"{many}\",2{end}"),
            format!("6{end}"),
            format!("6,\"{many}"),
        ] {
            let data = format!("{start}{last}");
            for piece in [usize::MAX, 4093] {
                let pieces: Vec<&[u8]> = data.as_bytes().chunks(piece).collect();
                let sql = "copy docs(id, body, n) from stdin csv";
                let answer = pair.copy(sql, &pieces, End::Done);
                let context = error_field(&answer, b'W').expect("a context");
                assert!(context.contains("COPY docs, line "), "{context}");
            }
        }
        let answer = pair.copy(
            "copy docs(id, body, n) from stdin csv",
            &[start.as_bytes()],
            End::Done,
        );
        assert_eq!(sqlstate(&answer), "none");
        assert_eq!(pair.left("docs")[0], 3);
        pair.check("docs");
        pair.query("truncate docs");
    }
}
