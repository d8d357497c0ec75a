//! Cross-origin requests (Gateway API: HTTPCORSFilter; Contour: corsPolicy).

use std::sync::Arc;

use crate::pattern::Pattern;

/// `HTTPCORSFilter`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cors {
    /// `allowOrigins`: `*`, `scheme://host[:port]`, or with `*.` in front of the host.
    pub origins: Vec<Arc<str>>,
    /// Origins by expressions that match them whole; only an HTTPProxy has them.
    pub origins_like: Vec<Pattern>,
    /// `allowCredentials`.
    pub credentials: bool,
    /// `allowMethods`.
    pub methods: Vec<Arc<str>>,
    /// `allowHeaders`.
    pub headers: Vec<Arc<str>>,
    /// `exposeHeaders`.
    pub expose: Vec<Arc<str>>,
    /// `maxAge`, seconds, default 5.
    pub max_age: u32,
    /// Pages of the public network may ask, too (Private Network Access); only an HTTPProxy says so.
    pub private_network: bool,
}
