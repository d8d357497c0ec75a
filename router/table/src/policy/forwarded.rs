//! Fields that tell endpoints of the client (OpenShift: `httpHeaders.forwardedHeaderPolicy`).

/// What happens to `X-Forwarded-*` and `Forwarded`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedHeaders {
    /// What the client sent stays, and the router adds its own.
    #[default]
    Append,
    /// The router's own stand alone.
    Replace,
    /// The router's own, where the client sent none.
    IfNone,
    /// None of the router's.
    Never,
}
