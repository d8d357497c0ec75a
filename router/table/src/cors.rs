//! Cross-origin requests (Gateway API: HTTPCORSFilter; Contour: corsPolicy).

use std::sync::Arc;

use crate::pattern::Pattern;

/// `HTTPCORSFilter`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cors {
    /// `allowOrigins`: `*`, `scheme://host[:port]`, or the same with `*.` before the host.
    pub origins: Vec<Arc<str>>,
    /// Regular expressions that match a whole origin; HTTPProxy only.
    pub origins_like: Vec<Pattern>,
    /// `allowCredentials`.
    pub credentials: bool,
    /// `allowMethods`.
    pub methods: Vec<Arc<str>>,
    /// `allowHeaders`.
    pub headers: Vec<Arc<str>>,
    /// `exposeHeaders`.
    pub expose: Vec<Arc<str>>,
    /// `maxAge`, in seconds; default 5.
    pub max_age: u32,
    /// `allowPrivateNetwork` of an HTTPProxy: pages of a public network may send requests, too (Private Network
    /// Access).
    pub private_network: bool,
}
