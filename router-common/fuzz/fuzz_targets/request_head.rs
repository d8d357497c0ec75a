//! Arbitrary bytes as a request head: the result does not depend on the splits, positions are within the input, and
//! nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/common/properties.rs"]
#[allow(dead_code, reason = "each target uses one property")]
mod properties;

fuzz_target!(|input: &[u8]| properties::request_head(input));
