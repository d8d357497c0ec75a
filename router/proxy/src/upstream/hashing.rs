//! Rendezvous hashing: a key of a client or its request selects the same endpoint for as long as that exists. When an
//! endpoint is added or removed, only the keys that it gains or had move. Hashes are the same on every worker and node,
//! and after every restart.

use std::net::IpAddr;

use http::{HeaderMap, HeaderValue, Uri};
use router_table::policy::{HashOf, HashedPart};

use super::affinity::Cookie;
use super::tag::{Tag, hash};

/// A key that is hashed with endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashKey(u64);

impl HashKey {
    /// The key of a client address.
    pub fn of_client(client: IpAddr) -> Self {
        HashKey(fold(match client.to_canonical() {
            IpAddr::V4(v4) => u128::from(v4.to_bits()),
            IpAddr::V6(v6) => v6.to_bits(),
        }))
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        HashKey(fold(hash(bytes)))
    }

    /// Combines two keys; their order matters.
    fn and(self, next: Self) -> Self {
        HashKey(self.0.rotate_left(1) ^ next.0)
    }
}

/// A request about to be sent.
#[derive(Clone, Copy, Debug)]
pub struct HashInput<'r> {
    /// Header fields.
    pub headers: &'r HeaderMap,
    /// Target.
    pub uri: &'r Uri,
    /// Client address.
    pub client: IpAddr,
}

impl HashInput<'_> {
    /// The key of these parts of the request, `None` if it has none of them; and the cookie that the client needs to
    /// get the same key again.
    pub fn key(&self, parts: &[HashOf], cookie: Option<&Cookie>) -> (Option<HashKey>, Option<HeaderValue>) {
        let (mut key, mut set) = (None::<HashKey>, None);
        for HashOf { part, terminal } in parts {
            let found = match part {
                HashedPart::Source => Some(HashKey::of_client(self.client)),
                HashedPart::Header(name) => self.header(name),
                HashedPart::Query(name) => self.parameter(name).map(|value| HashKey::of_bytes(value.as_bytes())),
                HashedPart::Cookie(_) => cookie.and_then(|cookie| {
                    let new;
                    let value = match cookie.find(self.headers) {
                        Some(value) => value,
                        None => {
                            let client = Tag::random()?;
                            set = cookie.value(client);
                            new = client.to_string();
                            new.as_bytes()
                        }
                    };
                    Some(HashKey::of_bytes(value))
                }),
            };
            key = match (key, found) {
                (Some(key), Some(found)) => Some(key.and(found)),
                (known, found) => known.or(found),
            };
            if *terminal && key.is_some() {
                break;
            }
        }
        (key, set)
    }

    /// The order of several values does not matter.
    fn header(&self, name: &str) -> Option<HashKey> {
        let mut values = self.headers.get_all(name).iter().map(HeaderValue::as_bytes);
        let first = values.next()?;
        let Some(second) = values.next() else { return Some(HashKey::of_bytes(first)) };
        let mut all: Vec<&[u8]> = [first, second].into_iter().chain(values).collect();
        all.sort_unstable();
        Some(HashKey::of_bytes(&all.join(&0)))
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        let mut pairs = self.uri.query()?.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        pairs.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// ln(u) / weight, where u is a hash in (0, 1]: each member has the highest score with the probability of its share of
/// all weights (Efraimidis and Spirakis 2006).
pub fn score(key: HashKey, tag: Tag, weight: u32) -> f64 {
    let mixed = mix(mix(key.0) ^ fold(tag.0));
    let unit = ((mixed >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    unit.ln() / f64::from(weight.max(1))
}

fn fold(number: u128) -> u64 {
    ((number >> 64) as u64).rotate_left(32) ^ number as u64
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests;
