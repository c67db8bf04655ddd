//! The first question asked of every statement: does it name an offloaded table at all?

use aho_corasick::AhoCorasick;

/// Finds any of a set of names, ignoring ASCII case.
#[derive(Debug)]
pub(crate) struct Mentions {
    /// `None` when there are no names, or too many to build an automaton.
    names: Option<AhoCorasick>,
    otherwise: bool,
}

impl Mentions {
    pub(crate) fn new<'a>(names: impl Iterator<Item = &'a [u8]>) -> Mentions {
        let names: Vec<&[u8]> = names.collect();
        if names.is_empty() {
            return Mentions {
                names: None,
                otherwise: false,
            };
        }
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .build(names);
        Mentions {
            names: automaton.ok(),
            otherwise: true,
        }
    }

    pub(crate) fn found_in(&self, text: &[u8]) -> bool {
        match &self.names {
            Some(names) => names.is_match(text),
            None => self.otherwise,
        }
    }
}
