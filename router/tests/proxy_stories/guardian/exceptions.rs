//! Requests that guardian accepts and Sluice rejects.

use super::cases::{Case, Tier};

/// An exception.
pub struct Exception {
    pub tier: Tier,
    /// Name of the case.
    pub name: &'static str,
    pub status: u16,
    /// The row of docs/hostile-input.md that covers it, or the rule of the RFC.
    pub why: &'static str,
}

impl Exception {
    pub fn of(case: &Case) -> Option<&'static Exception> {
        ALL.iter().find(|exception| exception.name == case.name && exception.tier == case.tier())
    }
}

const TWO_LINES: &str = "`Transfer-Encoding` twice: servers that look at one line alone disagree about which";
const CODINGS: &str = "RFC 9112 §6.1: 501 for a coding that is not understood; servers do not agree about it";
const PARAMETERS: &str = "RFC 9112 §7.1: chunked has no parameters, and they are treated as an error";
const BLANK_BEFORE_COLON: &str = "RFC 9112 §5.1: a server MUST reject it with 400";
const NO_TOKEN: &str = "RFC 9110 §5.1: no name; hyper reads none either";
const CONTROL: &str = "RFC 9110 §5.5: an invalid value, which may be kept; hyper has no way to";
const TARGET: &str = "RFC 9112 §3.2: no request target (non-ASCII, `#`); 400";
const LINE: &str = "RFC 9112 §3.2: an invalid request line is answered, not corrected";
const OLD: &str = "HTTP/0.9 has no fields, and no `Host`";

/// All exceptions.
pub const ALL: &[Exception] = &[
    compliant("Different Transfer-Encoding headers", 400, TWO_LINES),
    compliant("Multiple transfer encoding headers in a single request OK", 400, TWO_LINES),
    compliant("Transfer-Encoding with a param: chunked;custom_param", 400, TWO_LINES),
    compliant("TE with custom parameters OK", 501, PARAMETERS),
    compliant("Correct TE OK", 501, CODINGS),
    compliant("Different Transfer-Encoding headers combined", 501, CODINGS),
    compliant("Transfer-Encoding: identity and chunked OK", 501, CODINGS),
    compliant("Compliant URL", 400, TARGET),
    compliant("International in URI", 400, TARGET),
    compliant("Empty URI", 400, LINE),
    acceptable("No TE/CL headers, some others are non-compliant", 400, BLANK_BEFORE_COLON),
    acceptable("TE and some others are non-compliant", 400, BLANK_BEFORE_COLON),
    acceptable("CL and some others are non-compliant", 400, BLANK_BEFORE_COLON),
    acceptable("A non-essential header with a non-printable character (x01)", 400, NO_TOKEN),
    acceptable(r"Some-Header\x01", 400, NO_TOKEN),
    acceptable(r"\x01Some-Header", 400, NO_TOKEN),
    acceptable(r"Some-Header: \x01value", 400, CONTROL),
    acceptable(r"Some-Header: value\x01", 400, CONTROL),
    acceptable("[space] in URI", 505, LINE),
    acceptable("Extra spaces in version", 505, LINE),
    acceptable("Non-RFC, but OK HTTP/0.9", 505, OLD),
    acceptable("Empty version, which means HTTP/0.9", 505, OLD),
];

const fn compliant(name: &'static str, status: u16, why: &'static str) -> Exception {
    Exception { tier: Tier::Compliant, name, status, why }
}

const fn acceptable(name: &'static str, status: u16, why: &'static str) -> Exception {
    Exception { tier: Tier::Acceptable, name, status, why }
}
