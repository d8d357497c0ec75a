//! Regular expressions of objects.

use std::ops::Deref;

use regex::{Error, Regex, RegexBuilder};

/// A regular expression that must match a whole text. Two are equal if their texts and flags are.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
    flags: Flags,
}

/// Flags of a [`Pattern`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Upper and lower case are equivalent.
    pub ignore_case: bool,
    /// `.` also matches a line feed.
    pub dot_matches_new_line: bool,
}

/// Most memory of one compiled expression of an HTTPProxy, in bytes.
const MAX_EXPRESSION: usize = 1 << 20;

const START: &str = "^(?:";
const END: &str = ")$";

impl Pattern {
    /// Compiles an expression, which may use up to `limit` bytes of memory.
    ///
    /// # Errors
    /// The text is not in the syntax of [`regex`], or is too large.
    pub fn new(text: &str, flags: Flags, limit: usize) -> Result<Self, Error> {
        let build = |text: &str| {
            let mut builder = RegexBuilder::new(text);
            builder.size_limit(limit).dfa_size_limit(limit);
            builder.case_insensitive(flags.ignore_case).dot_matches_new_line(flags.dot_matches_new_line).build()
        };
        // First without anchors: `)(` would be well-formed between them.
        build(text).and_then(|_| build(&format!("{START}{text}{END}"))).map(|regex| Pattern { regex, flags })
    }

    /// The original text, without anchors.
    pub fn text(&self) -> &str {
        let text = self.regex.as_str();
        text.strip_prefix(START).and_then(|text| text.strip_suffix(END)).unwrap_or_default()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.flags == other.flags && self.regex.as_str() == other.regex.as_str()
    }
}

impl Eq for Pattern {}

impl Deref for Pattern {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        &self.regex
    }
}

/// An expression of an HTTPProxy or of an object derived from one.
///
/// # Errors
/// What is wrong with it, and what to write instead.
pub fn expression(text: &str, ignore_case: bool) -> Result<Pattern, String> {
    let flags = Flags { ignore_case, dot_matches_new_line: true };
    Pattern::new(text, flags, MAX_EXPRESSION).map_err(|error| match error {
        Error::CompiledTooBig(_) => "the expression is too large; write a shorter one".to_owned(),
        _ => format!("{text:?} is not a valid regular expression; use RE2 syntax"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_differ_in_text_and_in_each_flag() {
        let ignore_case = Flags { ignore_case: true, ..Flags::default() };
        let dot_matches_new_line = Flags { dot_matches_new_line: true, ..Flags::default() };
        let of = |text, flags| Pattern::new(text, flags, 1 << 18).unwrap();
        let make = || {
            [
                of("a.", Flags::default()),
                of("b.", Flags::default()),
                of("a.", ignore_case),
                of("a.", dot_matches_new_line),
            ]
        };
        for (i, one) in make().iter().enumerate() {
            for (k, other) in make().iter().enumerate() {
                assert_eq!(one == other, i == k, "{one:?} {other:?}");
            }
        }
        assert_eq!(
            make().map(|it| (it.is_match("Ab"), it.is_match("a\n"), it.is_match("aab"))),
            [(false, false, false), (false, false, false), (true, false, false), (false, true, false),]
        );
    }

    #[test]
    fn anchors_are_no_part_of_the_text() {
        assert_eq!(Pattern::new("a|b", Flags::default(), 1 << 18).unwrap().text(), "a|b");
        assert!(matches!(Pattern::new(")(", Flags::default(), 1 << 18), Err(Error::Syntax(_))));
        assert!(matches!(Pattern::new("a{1000}", Flags::default(), 1 << 8), Err(Error::CompiledTooBig(_))));
    }
}
