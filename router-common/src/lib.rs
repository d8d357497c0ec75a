//! Code that the kernel programs and the agent share: one parser per wire format, one host name normalisation, the
//! layouts of map keys and values, and one list of verdicts and reasons.
//!
//! Everything here is `no_std`, does not allocate and never panics on input. Parsers are state machines that consume
//! bytes as they arrive, so the same code runs in the kernel (one byte per verifier-checked step), in the agent, in the
//! fuzz targets and in the tests.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(any(test, feature = "std"))]
extern crate std;
// The tests' shared code refers to this crate by its external name.
#[cfg(test)]
extern crate self as router_common;
#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod common;

pub mod decide;
pub mod dispatcher;
pub mod fragment_fallback;
pub mod gate;
pub mod hostname;
pub mod http;
pub mod ip_extensions;
pub mod keyed_hash;
pub mod maps;
pub mod options;
pub mod packet;
pub mod proxy_v2;
pub mod requests;
pub mod tls;
pub mod translate;
pub mod verdict;
