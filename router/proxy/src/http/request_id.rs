//! `httpHeaders.uniqueId`: the unique identifier of a request.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use http::HeaderValue;
use router_table::policy::unique_id::{UniqueId, UniqueIdField, UniqueIdPart};

/// Number of identifiers that this process has assigned.
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// The identifier of a request that begins now on a connection from `client` to `listener`. `None` if the kernel
/// supplies no randomness.
pub fn next(id: &UniqueId, client: SocketAddr, listener: SocketAddr) -> Option<HeaderValue> {
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut text = String::with_capacity(64);
    for part in &*id.parts {
        let (what, hex) = match part {
            UniqueIdPart::Text(part) => {
                text.push_str(part);
                continue;
            }
            UniqueIdPart::Field { what, hex } => (*what, *hex),
        };
        match what {
            UniqueIdField::ClientAddress => address(&mut text, client.ip(), hex),
            UniqueIdField::ClientPort => number(&mut text, client.port().into(), hex),
            UniqueIdField::FrontendAddress => address(&mut text, listener.ip(), hex),
            UniqueIdField::FrontendPort => number(&mut text, listener.port().into(), hex),
            UniqueIdField::Timestamp => number(&mut text, now.as_secs(), hex),
            UniqueIdField::Milliseconds => push(&mut text, format_args!("{:03}", now.subsec_millis())),
            UniqueIdField::Counter => number(&mut text, count, hex),
            UniqueIdField::Process => number(&mut text, std::process::id().into(), hex),
            UniqueIdField::Uuid => uuid(&mut text)?,
        }
    }
    HeaderValue::try_from(text).ok()
}

fn push(text: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = text.write_fmt(what);
}

fn number(text: &mut String, number: u64, hex: bool) {
    if hex { push(text, format_args!("{number:04X}")) } else { push(text, format_args!("{number}")) }
}

fn address(text: &mut String, address: IpAddr, hex: bool) {
    match (address, hex) {
        (address, false) => push(text, format_args!("{address}")),
        (IpAddr::V4(address), true) => address.octets().iter().for_each(|byte| push(text, format_args!("{byte:02X}"))),
        (IpAddr::V6(address), true) => address.octets().iter().for_each(|byte| push(text, format_args!("{byte:02X}"))),
    }
}

/// Version 4 (RFC 9562 §5.4).
fn uuid(text: &mut String) -> Option<()> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty()).ok()?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        push(text, format_args!("{byte:02x}"));
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(parts: &[UniqueIdPart]) -> String {
        let id = UniqueId { name: "x-id".into(), parts: parts.into() };
        let (client, listener) = ("192.0.2.7:1000".parse().unwrap(), "[2001:db8::1]:443".parse().unwrap());
        next(&id, client, listener).unwrap().to_str().unwrap().to_owned()
    }

    fn field(what: UniqueIdField, hex: bool) -> UniqueIdPart {
        UniqueIdPart::Field { what, hex }
    }

    #[test]
    fn addresses_and_numbers_are_written_as_haproxy_writes_them() {
        let cases = [
            (UniqueIdField::ClientAddress, "192.0.2.7", "C0000207"),
            (UniqueIdField::ClientPort, "1000", "03E8"),
            (UniqueIdField::FrontendAddress, "2001:db8::1", "20010DB8000000000000000000000001"),
            (UniqueIdField::FrontendPort, "443", "01BB"),
        ];
        for (what, plain, hex) in cases {
            assert_eq!(id(&[field(what, false), field(what, true)]), format!("{plain}{hex}"));
        }
        let text = UniqueIdPart::Text("_".into());
        assert_eq!(
            id(&[text.clone(), field(UniqueIdField::Process, false), text]),
            format!("_{}_", std::process::id())
        );
    }

    #[test]
    fn no_two_are_the_same() {
        let counted = [field(UniqueIdField::Timestamp, true), field(UniqueIdField::Counter, false)];
        assert_ne!(id(&counted), id(&counted));
        let (one, other) = (id(&[field(UniqueIdField::Uuid, false)]), id(&[field(UniqueIdField::Uuid, false)]));
        assert_ne!(one, other);
        assert_eq!((one.len(), &one[14..15]), (36, "4"));
        assert!("89ab".contains(&one[19..20]));
    }
}
