//! Attributes of netlink messages, encoded as in nfnetlink(7).

use netlink_packet_core::NlasIterator;

/// Attributes by type, for types below 24; a repeated attribute has the last value.
pub struct NetlinkAttributes<'a>([Option<&'a [u8]>; 24]);

impl<'a> NetlinkAttributes<'a> {
    /// Parses attributes.
    pub fn of(bytes: &'a [u8]) -> Self {
        let mut found = [None; 24];
        for (kind, value) in list(bytes) {
            if let Some(place) = found.get_mut(usize::from(kind)) {
                *place = Some(value);
            }
        }
        NetlinkAttributes(found)
    }

    /// The value of an attribute.
    pub fn bytes(&self, kind: u16) -> Option<&'a [u8]> {
        self.0.get(usize::from(kind)).copied().flatten()
    }

    /// A 32-bit number in network byte order, as in nfnetlink(7).
    pub fn word(&self, kind: u16) -> Option<u32> {
        Some(u32::from_be_bytes(*self.bytes(kind)?.first_chunk()?))
    }

    /// A 64-bit number in network byte order.
    pub fn long(&self, kind: u16) -> Option<u64> {
        Some(u64::from_be_bytes(*self.bytes(kind)?.first_chunk()?))
    }

    /// A zero-terminated text.
    pub fn text(&self, kind: u16) -> Option<&'a str> {
        std::str::from_utf8(self.bytes(kind)?).ok().map(|text| text.trim_end_matches('\0'))
    }

    /// Nested attributes.
    pub fn within(&self, kind: u16) -> Option<NetlinkAttributes<'a>> {
        self.bytes(kind).map(NetlinkAttributes::of)
    }
}

/// Attributes in order, as type and value.
pub fn list(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    NlasIterator::new(bytes).map_while(Result::ok).map(|attribute| {
        let (kind, length) = (attribute.kind(), usize::from(attribute.length()));
        (kind, attribute.into_inner().get(4..length).unwrap_or_default())
    })
}
