//! Texts of fixed size: a program's constants cannot contain pointers, so a reason's text is an entry of a table of
//! bytes.

use core::str;

use router_common::verdict::{FlowEndReason, REASON_CODES, Reason, Verdict};

/// Size of an entry in bytes. It is filled with zeros, which the agent removes.
const WORD: usize = 24;

type Word = [u8; WORD];

/// Verdict and reason, by the reason's code.
static REASONS: [Word; REASON_CODES as usize] = {
    let mut words = [[0; WORD]; REASON_CODES as usize];
    let mut i = 0;
    while i < Reason::ALL.len() {
        let reason = Reason::ALL[i];
        let verdict = match reason.verdict() {
            Verdict::Steer => "steer ",
            Verdict::Pass => "pass ",
            Verdict::Drop => "drop ",
        };
        words[reason as usize] = word(verdict, reason.text());
        i += 1;
    }
    words
};

/// Reasons of ends, by code; there is none for 0.
static ENDS: [Word; FlowEndReason::ALL.len() + 1] = {
    let mut words = [[0; WORD]; FlowEndReason::ALL.len() + 1];
    let mut i = 0;
    while i < FlowEndReason::ALL.len() {
        let reason = FlowEndReason::ALL[i];
        words[reason as usize] = word("", reason.text());
        i += 1;
    }
    words
};

/// Both texts, concatenated. Fails to compile if they are longer than an entry.
const fn word(first: &str, second: &str) -> Word {
    let (first, second) = (first.as_bytes(), second.as_bytes());
    let mut word = [0; WORD];
    let mut i = 0;
    while i < first.len() {
        word[i] = first[i];
        i += 1;
    }
    while i < first.len() + second.len() {
        word[i] = second[i - first.len()];
        i += 1;
    }
    word
}

/// Verdict and reason of a decision.
#[inline(always)]
pub fn reason(code: u16) -> &'static str {
    entry(&REASONS, code as usize)
}

/// Reason of an end.
#[inline(always)]
pub fn end(code: u8) -> &'static str {
    entry(&ENDS, code as usize)
}

/// An unknown code gives entry 0, which is empty: texts have one length, so that positions in a line are constants.
#[inline(always)]
fn entry<const N: usize>(words: &'static [Word; N], code: usize) -> &'static str {
    ascii(&words[if code < N { code } else { 0 }])
}

/// A field that holds ASCII text, filled with zeros.
#[inline(always)]
pub fn ascii<const N: usize>(field: &[u8; N]) -> &str {
    // SAFETY: texts of reasons are ASCII, and so are normal names (`router_common::hostname`) and zeros.
    unsafe { str::from_utf8_unchecked(field) }
}
