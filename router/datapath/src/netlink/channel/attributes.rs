//! Attributes of netlink messages, as nfnetlink(7) has them.

use netlink_packet_core::NlasIterator;

/// Attributes by their number; of one that comes twice the later one, and none of higher numbers than are read here.
pub struct Attributes<'a>([Option<&'a [u8]>; 24]);

impl<'a> Attributes<'a> {
    /// Reads them.
    pub fn of(bytes: &'a [u8]) -> Self {
        let mut found = [None; 24];
        for (kind, value) in list(bytes) {
            if let Some(place) = found.get_mut(usize::from(kind)) {
                *place = Some(value);
            }
        }
        Attributes(found)
    }

    /// The bytes of one.
    pub fn bytes(&self, kind: u16) -> Option<&'a [u8]> {
        self.0.get(usize::from(kind)).copied().flatten()
    }

    /// A number of 32 bits, as nfnetlink(7) has them: the highest first.
    pub fn word(&self, kind: u16) -> Option<u32> {
        Some(u32::from_be_bytes(*self.bytes(kind)?.first_chunk()?))
    }

    /// A number of 64 bits.
    pub fn long(&self, kind: u16) -> Option<u64> {
        Some(u64::from_be_bytes(*self.bytes(kind)?.first_chunk()?))
    }

    /// A text that ends with a zero.
    pub fn text(&self, kind: u16) -> Option<&'a str> {
        std::str::from_utf8(self.bytes(kind)?).ok().map(|text| text.trim_end_matches('\0'))
    }

    /// Attributes within one.
    pub fn within(&self, kind: u16) -> Option<Attributes<'a>> {
        self.bytes(kind).map(Attributes::of)
    }
}

/// Attributes in their order.
pub fn list(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    NlasIterator::new(bytes).map_while(Result::ok).map(|attribute| {
        let (kind, length) = (attribute.kind(), usize::from(attribute.length()));
        (kind, attribute.into_inner().get(4..length).unwrap_or_default())
    })
}
