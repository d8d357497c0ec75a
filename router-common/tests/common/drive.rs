//! Feeds the parsers in pieces and formats the outcome as one line.

use std::format;
use std::string::String;
use std::vec::Vec;

use router_common::hostname::{HostBuilder, field_text};
use router_common::http::{self, HeadHost, HeadParser, TargetForm};
use router_common::tls::{self, AlpnSet, HelloParser, Sni};

/// A ClientHello parser and its last result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HelloRun {
    /// The parser's final state.
    pub parser: HelloParser,
    /// The name that it filled.
    pub host: HostBuilder,
    /// Its last result.
    pub progress: tls::Progress,
}

/// A head parser and its last result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadRun {
    /// The parser's final state.
    pub parser: HeadParser,
    /// The name that it filled.
    pub host: HostBuilder,
    /// Its last result.
    pub progress: http::Progress,
}

impl HelloRun {
    /// Feeds the pieces in order until the parser has a final result.
    pub fn over<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut run =
            HelloRun { parser: HelloParser::new(), host: HostBuilder::new(), progress: tls::Progress::Incomplete };
        for piece in pieces {
            if run.progress != tls::Progress::Incomplete {
                break;
            }
            run.progress = run.parser.feed(&mut run.host, piece);
        }
        run
    }

    /// `incomplete` · `invalid <error> alert=<number or ->` · `complete name=<name, address or -> alpn=<list or ->`.
    pub fn outcome(&self) -> String {
        match self.progress {
            tls::Progress::Incomplete => String::from("incomplete"),
            tls::Progress::Invalid(error) => format!("invalid {error:?} alert={}", or_dash(error.alert())),
            tls::Progress::Complete => {
                let hello = self.parser.hello();
                let name = match hello.sni {
                    Sni::None => "-",
                    Sni::IpLiteral => "(address)",
                    Sni::Name => field_text(&self.host.exact),
                };
                format!("complete name={name} alpn={}", alpn_text(hello.alpn))
            }
        }
    }
}

impl HeadRun {
    /// Feeds the pieces in order until the parser has a final result.
    pub fn over<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut run =
            HeadRun { parser: HeadParser::new(), host: HostBuilder::new(), progress: http::Progress::Incomplete };
        for piece in pieces {
            if run.progress != http::Progress::Incomplete {
                break;
            }
            run.progress = run.parser.feed(&mut run.host, piece);
        }
        run
    }

    /// `incomplete` · `invalid <error> status=<code or ->` ·
    /// `complete host=<name, address or -> version=<1.0 or 1.1> form=<form> method=<start>+<len> target=<start>+<len>
    /// len=<bytes>`.
    pub fn outcome(&self) -> String {
        match self.progress {
            http::Progress::Incomplete => String::from("incomplete"),
            http::Progress::Invalid(error) => format!("invalid {error:?} status={}", or_dash(error.status())),
            http::Progress::Complete => {
                let head = self.parser.head();
                let host = match head.host {
                    HeadHost::None => "-",
                    HeadHost::IpLiteral => "(address)",
                    HeadHost::Name => field_text(&self.host.exact),
                };
                let form = match head.form {
                    TargetForm::Origin => "origin",
                    TargetForm::Absolute => "absolute",
                    TargetForm::Authority => "authority",
                    TargetForm::Asterisk => "asterisk",
                };
                format!(
                    "complete host={host} version={} form={form} method={}+{} target={}+{} len={}",
                    if head.http11 { "1.1" } else { "1.0" },
                    head.method_start,
                    head.method_len,
                    head.target_start,
                    head.target_len,
                    head.len
                )
            }
        }
    }
}

/// Each byte as a piece of its own.
pub fn singly(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.chunks(1)
}

/// The two pieces on either side of `at`.
pub fn halves(bytes: &[u8], at: usize) -> [&[u8]; 2] {
    let (left, right) = bytes.split_at(at);
    [left, right]
}

/// Positions of two-way splits: all of a short input; of a long one those near each end, and others at a stride that is
/// not a power of two.
pub fn cuts(len: usize) -> impl Iterator<Item = usize> {
    (0..=len).filter(move |at| len <= 20_000 || *at < 2_000 || len - at < 2_000 || at % 97 == 0)
}

/// Number of bytes after which the result is final; `None` if it never is.
pub fn hello_end(bytes: &[u8]) -> Option<usize> {
    let mut run = HelloRun::over([]);
    bytes
        .iter()
        .position(|byte| {
            run.progress = run.parser.feed(&mut run.host, core::slice::from_ref(byte));
            run.progress != tls::Progress::Incomplete
        })
        .map(|at| at + 1)
}

/// Like [`hello_end`], for heads.
pub fn head_end(bytes: &[u8]) -> Option<usize> {
    let mut run = HeadRun::over([]);
    bytes
        .iter()
        .position(|byte| {
            run.progress = run.parser.feed(&mut run.host, core::slice::from_ref(byte));
            run.progress != http::Progress::Incomplete
        })
        .map(|at| at + 1)
}

fn alpn_text(alpn: AlpnSet) -> String {
    let names: Vec<&str> = [(AlpnSet::H2, "h2"), (AlpnSet::HTTP11, "http/1.1"), (AlpnSet::OTHER, "other")]
        .into_iter()
        .filter_map(|(bit, name)| alpn.has(bit).then_some(name))
        .collect();
    if names.is_empty() { String::from("-") } else { names.join(",") }
}

fn or_dash(number: Option<impl core::fmt::Display>) -> String {
    number.map_or_else(|| String::from("-"), |number| format!("{number}"))
}
