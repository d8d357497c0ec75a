//! Verdicts of rules and chains.

/// Verdict of a rule, or of a chain by its policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleVerdict {
    /// The packet continues with the next base chain.
    Accept,
    /// The packet is dropped.
    Drop,
    /// The packet continues with the next rule.
    Continue,
    /// Return to the calling chain; in a base chain, apply the policy.
    Return,
    /// Continue in another chain, then return here.
    Jump(usize),
    /// Continue in another chain, then return to this one's caller.
    Goto(usize),
    /// A user-space program decides.
    Queue,
}
