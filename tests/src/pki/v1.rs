//! Certificates of X.509 version 1, as `openssl x509 -req` creates them: no library supports them any more.

use anyhow::{Context, Result};

const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;
/// Tags of fields of a TBSCertificate that version 1 lacks: `version` and `extensions` (RFC 5280 §4.1).
const NOT_IN_V1: [u8; 2] = [0xa0, 0xa3];

/// A DER value: its tag, its encoding, its content, and the bytes after it.
type Value<'d> = (u8, &'d [u8], &'d [u8], &'d [u8]);

/// Rewrites a certificate as version 1, with a new signature.
///
/// # Errors
/// It is invalid, or `sign` fails.
pub fn certificate(der: &[u8], sign: impl FnOnce(&[u8]) -> Result<Vec<u8>>) -> Result<Vec<u8>> {
    let (_, _, certificate, _) = value(der)?;
    let (_, _, mut fields, rest) = value(certificate)?;
    let (_, algorithm, _, _) = value(rest)?;
    let mut kept = Vec::new();
    while !fields.is_empty() {
        let (tag, whole, _, rest) = value(fields)?;
        if !NOT_IN_V1.contains(&tag) {
            kept.extend_from_slice(whole);
        }
        fields = rest;
    }
    let signed = encoded(SEQUENCE, &kept)?;
    let signature = [&[0], &*sign(&signed)?].concat();
    encoded(SEQUENCE, &[&signed, algorithm, &encoded(BIT_STRING, &signature)?].concat())
}

fn value(der: &[u8]) -> Result<Value<'_>> {
    let [tag, length, ..] = *der else { anyhow::bail!("no DER: {der:x?}") };
    let (header, length) = match length {
        0x80.. => {
            let header = 2 + usize::from(length & 0x7f);
            let digits = der.get(2..header).context("DER ends within a length")?;
            (header, digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)))
        }
        short => (2, usize::from(short)),
    };
    let (whole, rest) = der.split_at_checked(header + length).context("DER ends within a value")?;
    Ok((tag, whole, &whole[header..], rest))
}

fn encoded(tag: u8, content: &[u8]) -> Result<Vec<u8>> {
    let length = u16::try_from(content.len())?.to_be_bytes();
    let length = match content.len() {
        0..0x80 => vec![length[1]],
        0x80..0x100 => vec![0x81, length[1]],
        _ => [&[0x82], &length[..]].concat(),
    };
    Ok([&[tag], &*length, content].concat())
}
