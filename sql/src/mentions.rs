//! The first question asked of every statement: does it name an offloaded table at all?
//!
//! A few names are searched for with SIMD: two or three bytes of each name, the
//! rarest ones, in every case, and the whole name only where these are found. Case
//! folding automata take a byte at a time, which is five to ten times slower
//! (benches/analyzer.rs); they remain for many names and for other processors.

use std::collections::HashMap;

use aho_corasick::AhoCorasick;
use aho_corasick::packed::{self, Searcher};

/// Bytes of each name that are searched for: two have half the spellings of
/// three, so there is room for twice the names, but are found more often.
const WINDOWS: [usize; 2] = [3, 2];
/// What the SIMD algorithm (Teddy) takes.
const MAX_PATTERNS: usize = 64;

/// Finds any of a set of names, ignoring ASCII case.
#[derive(Debug)]
pub(crate) enum Mentions {
    Nothing,
    Windows(Windows),
    Automaton(Box<AhoCorasick>),
    /// The names are beyond what can be searched for: every text may hold one.
    Anything,
}

#[derive(Debug)]
pub(crate) struct Windows {
    searcher: Searcher,
    /// By pattern: the names it may be in, and where in them.
    names: Vec<Vec<Name>>,
}

#[derive(Debug, Clone)]
struct Name {
    name: Vec<u8>,
    window_at: usize,
}

impl Mentions {
    pub(crate) fn new<'a>(names: impl Iterator<Item = &'a [u8]>) -> Mentions {
        let names: Vec<&[u8]> = names.collect();
        if names.is_empty() {
            return Mentions::Nothing;
        }
        let windows = |len| Windows::new(&names, len);
        if let Some(windows) = WINDOWS.into_iter().find_map(windows) {
            return Mentions::Windows(windows);
        }
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .build(names);
        match automaton {
            Ok(automaton) => Mentions::Automaton(Box::new(automaton)),
            Err(_) => Mentions::Anything,
        }
    }

    pub(crate) fn found_in(&self, text: &[u8]) -> bool {
        match self {
            Mentions::Nothing => false,
            Mentions::Windows(windows) => windows.found_in(text),
            Mentions::Automaton(automaton) => automaton.is_match(text),
            Mentions::Anything => true,
        }
    }
}

impl Windows {
    /// `None` when the names are too many or too short, or the processor lacks SIMD.
    fn new(names: &[&[u8]], window_len: usize) -> Option<Windows> {
        let mut by_pattern: HashMap<Vec<u8>, Vec<Name>> = HashMap::new();
        for name in names {
            let window_at = rarest_window(name, window_len)?;
            let window = &name[window_at..window_at + window_len];
            for pattern in cases(window) {
                by_pattern.entry(pattern).or_default().push(Name {
                    name: name.to_vec(),
                    window_at,
                });
            }
        }
        if by_pattern.len() > MAX_PATTERNS {
            return None;
        }
        let mut builder = packed::Config::new().builder();
        let mut names = Vec::new();
        for (pattern, of) in by_pattern {
            builder.add(pattern);
            names.push(of);
        }
        let searcher = builder.build()?;
        Some(Windows { searcher, names })
    }

    fn found_in(&self, text: &[u8]) -> bool {
        let mut from = 0;
        while let Some(found) = self.searcher.find_in(text, (from..text.len()).into()) {
            let names = &self.names[found.pattern().as_usize()];
            if names.iter().any(|name| name.is_at(text, found.start())) {
                return true;
            }
            from = found.start() + 1;
        }
        false
    }
}

impl Name {
    fn is_at(&self, text: &[u8], window_at: usize) -> bool {
        let start = window_at.checked_sub(self.window_at);
        let found = start.and_then(|start| text.get(start..start + self.name.len()));
        found.is_some_and(|found| found.eq_ignore_ascii_case(&self.name))
    }
}

/// Where the window begins that is least often seen in texts.
fn rarest_window(name: &[u8], len: usize) -> Option<usize> {
    let windows = name.windows(len).enumerate();
    let commonness = |window: &[u8]| window.iter().map(|&b| commonness(b)).sum::<usize>();
    windows
        .min_by_key(|(_, window)| commonness(window))
        .map(|(at, _)| at)
}

/// Letters by how often English has them, whatever else in between.
fn commonness(byte: u8) -> usize {
    const LETTERS: &[u8; 26] = b"zqxjkvbpygfwmucldrhsnioate";
    let letter = byte.to_ascii_lowercase();
    LETTERS.iter().position(|&l| l == letter).unwrap_or(12)
}

/// Every spelling in upper and lower case.
fn cases(window: &[u8]) -> Vec<Vec<u8>> {
    window.iter().fold(vec![Vec::new()], |spellings, &byte| {
        let mut bytes = vec![byte.to_ascii_lowercase(), byte.to_ascii_uppercase()];
        bytes.dedup();
        let longer = |spelling: &Vec<u8>| {
            let spelling = spelling.clone();
            bytes.clone().into_iter().map(move |byte| {
                let mut longer = spelling.clone();
                longer.push(byte);
                longer
            })
        };
        spellings.iter().flat_map(longer).collect()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mentions(names: &[String]) -> Mentions {
        Mentions::new(names.iter().map(|name| name.as_bytes()))
    }

    #[test]
    fn each_number_and_length_of_names_has_its_search() {
        let letter = |i: usize| char::from(b"abcdefghijklmnopqrstuvwxyz"[i % 26]);
        let name = |i| String::from_iter([letter(i), letter(i / 26), letter(i + 7)]);
        let names = |n: usize| (0..n).map(name).collect::<Vec<_>>();
        assert!(matches!(mentions(&[]), Mentions::Nothing));
        assert!(matches!(mentions(&names(200)), Mentions::Automaton(_)));
        assert!(matches!(
            mentions(&["a".to_owned()]),
            Mentions::Automaton(_)
        ));
        let few = mentions(&names(12));
        let simd = packed::Config::new().builder().add("abc").build().is_some();
        assert_eq!(matches!(few, Mentions::Windows(_)), simd);
    }

    #[test]
    fn every_case_of_a_window() {
        assert_eq!(cases(b"a_B").len(), 4);
        assert!(cases(b"a_B").contains(&b"A_b".to_vec()));
        assert_eq!(rarest_window(b"documents", 3), Some(2));
        assert_eq!(rarest_window(b"ab", 3), None);
    }

    proptest! {
        /// The answer is that of the plain definition, with few names and many.
        #[test]
        fn finds_what_is_there(
            names in proptest::collection::vec("[a-cA-C_é]{1,5}", 0..12),
            text in "[a-cA-C_é \n]{0,200}",
        ) {
            let text = text.as_bytes();
            let is_there = |name: &String| {
                text.windows(name.len()).any(|w| w.eq_ignore_ascii_case(name.as_bytes()))
            };
            let expected = names.iter().any(is_there);
            prop_assert_eq!(mentions(&names).found_in(text), expected);
        }
    }
}
