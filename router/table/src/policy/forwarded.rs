//! Header fields about the client (OpenShift: `httpHeaders.forwardedHeaderPolicy`).

/// Handling of `X-Forwarded-*` and `Forwarded`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedHeaders {
    /// The router appends its own to the client's.
    #[default]
    Append,
    /// The router's own replace the client's.
    Replace,
    /// The router adds its own if the client sent none.
    IfNone,
    /// The router adds none.
    Never,
}
