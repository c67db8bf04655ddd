//! Joins places in a parse tree, which are starts, with tokens, which have ends.

use std::ops::Range;

use pg_query::protobuf::{ScanToken, Token};

use crate::sites::{Cast, Direct, Value};
use crate::tables::Kind;

/// The tokens of a text.
pub(crate) struct Tokens<'t> {
    text: &'t str,
    tokens: Vec<ScanToken>,
}

impl<'t> Tokens<'t> {
    /// `None` when the text cannot be scanned.
    pub(crate) fn of(text: &'t str) -> Option<Tokens<'t>> {
        let tokens = pg_query::scan_tokens(text).ok()?;
        Some(Tokens { text, tokens })
    }

    /// The token of a direct value.
    pub(crate) fn value(&self, direct: &Direct) -> Option<Range<usize>> {
        let i = self.starting_at(direct.at)?;
        let expected = match direct.value {
            Value::Param(_) => Token::Param,
            Value::Literal => Token::Sconst,
        };
        self.is(i, expected).then(|| self.range(i, i))
    }

    /// The type of a direct cast, as written.
    pub(crate) fn cast_type(&self, cast: &Cast) -> Option<Range<usize>> {
        let first = self.starting_at(cast.type_at)?;
        let (kind, last) = self.type_at(first)?;
        (kind == cast.kind).then(|| self.range(first, last))
    }

    /// A direct value together with its cast, if any.
    pub(crate) fn whole(&self, direct: &Direct) -> Option<Range<usize>> {
        let value = self.starting_at(direct.at)?;
        let Some(cast) = &direct.cast else {
            return Some(self.range(value, value));
        };
        let type_first = self.starting_at(cast.type_at)?;
        let (_, type_last) = self.type_at(type_first)?;
        let Some(cast_at) = cast.at else {
            return (type_last + 1 == value).then(|| self.range(type_first, value));
        };
        let cast_at = self.starting_at(cast_at)?;
        if self.is(cast_at, Token::Cast) {
            let operand = self.in_parentheses(value, |_, last| self.is(last + 1, Token::As))?;
            let whole = operand.0 == cast_at + 2
                && operand.1 + 2 == type_first
                && self.is(type_last + 1, Token::Ascii41);
            return whole.then(|| self.range(cast_at, type_last + 1));
        }
        let (first, _) = self.in_parentheses(value, |_, last| last + 1 == cast_at)?;
        let whole = self.is(cast_at, Token::Typecast) && cast_at + 1 == type_first;
        whole.then(|| self.range(first, type_last))
    }

    /// Every parameter: its number, its place, and what a cast right on it says.
    pub(crate) fn params(&self) -> impl Iterator<Item = (u16, usize, ParamCast)> {
        let params = (0..self.tokens.len()).filter(|&i| self.is(i, Token::Param));
        params.filter_map(|i| {
            let number = self.text_of(i).get(1..)?.parse().ok()?;
            Some((number, self.range(i, i).start, self.param_cast(i)))
        })
    }

    fn param_cast(&self, param: usize) -> ParamCast {
        let casts = |_, last| {
            let next = last + 1;
            self.is(next, Token::Typecast) || self.is(next, Token::As)
        };
        let Some((first, last)) = self.in_parentheses(param, casts) else {
            return ParamCast::None;
        };
        let is_alias = self.is(last + 1, Token::As)
            && !(first >= 2
                && self.is(first - 1, Token::Ascii40)
                && self.is(first - 2, Token::Cast));
        if is_alias {
            return ParamCast::None;
        }
        match self.type_at(last + 2) {
            Some((kind, _)) => ParamCast::To(kind),
            None => ParamCast::Other,
        }
    }

    /// The token, with as many pairs of parentheses around it as it takes to
    /// satisfy `enough`: the first and the last token.
    fn in_parentheses(
        &self,
        token: usize,
        enough: impl Fn(usize, usize) -> bool,
    ) -> Option<(usize, usize)> {
        let (mut first, mut last) = (token, token);
        while !enough(first, last) {
            first = first.checked_sub(1)?;
            last += 1;
            if !self.is(first, Token::Ascii40) || !self.is(last, Token::Ascii41) {
                return None;
            }
        }
        Some((first, last))
    }

    /// The plain type that is written from this token on, without modifier or
    /// array, and its last token.
    fn type_at(&self, first: usize) -> Option<(Kind, usize)> {
        let qualified = self.is_name(first, "pg_catalog") && self.is(first + 1, Token::Ascii46);
        let varying = matches!(self.token(first), Some(Token::Character | Token::CharP))
            && self.is(first + 1, Token::Varying);
        let (kind, last) = if varying {
            (Kind::Varchar, first + 1)
        } else {
            let last = if qualified { first + 2 } else { first };
            let named = |kind: &Kind| self.is_name(last, kind.plain_name());
            (Kind::ALL.into_iter().find(named)?, last)
        };
        let goes_on = matches!(
            self.token(last + 1),
            Some(Token::Ascii40 | Token::Ascii46 | Token::Ascii91 | Token::Array | Token::Ascii37)
        );
        (!goes_on).then_some((kind, last))
    }

    fn is_name(&self, i: usize, name: &str) -> bool {
        let written = if i < self.tokens.len() {
            self.text_of(i)
        } else {
            ""
        };
        match written.strip_prefix('"').and_then(|w| w.strip_suffix('"')) {
            Some(quoted) => quoted == name,
            None => written.eq_ignore_ascii_case(name),
        }
    }

    fn starting_at(&self, at: usize) -> Option<usize> {
        let at = i32::try_from(at).ok()?;
        self.tokens.binary_search_by_key(&at, |t| t.start).ok()
    }

    fn is(&self, i: usize, token: Token) -> bool {
        self.token(i) == Some(token)
    }

    fn token(&self, i: usize) -> Option<Token> {
        Token::try_from(self.tokens.get(i)?.token).ok()
    }

    fn text_of(&self, i: usize) -> &'t str {
        self.text.get(self.range(i, i)).unwrap_or_default()
    }

    /// Bytes from the first token to the end of the last; both exist.
    fn range(&self, first: usize, last: usize) -> Range<usize> {
        let at = |i: i32| usize::try_from(i).unwrap_or(usize::MAX);
        at(self.tokens[first].start)..at(self.tokens[last].end)
    }
}

/// The cast right on a use of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParamCast {
    /// There is none.
    None,
    /// To one of the plain types.
    To(Kind),
    /// To anything else.
    Other,
}
