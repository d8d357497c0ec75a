//! Verdicts of rules and chains.

/// What a rule does with a packet, or a chain by its policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet goes on to the next base chain.
    Accept,
    /// It goes no further.
    Drop,
    /// The next rule looks at it.
    Continue,
    /// Back to the calling chain; at its end, to the policy.
    Return,
    /// Another chain, and back.
    Jump(usize),
    /// Another chain, and back to this one's caller.
    Goto(usize),
    /// A program decides.
    Queue,
}
