//! Arbitrary bytes as a ClientHello: the result does not depend on the splits, and nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/common/properties.rs"]
#[allow(dead_code, reason = "each target uses one property")]
mod properties;

fuzz_target!(|input: &[u8]| properties::client_hello(input));
