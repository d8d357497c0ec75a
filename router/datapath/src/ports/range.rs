//! A range of source ports, as `--snat-ports` names it.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// A range of ports, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    /// The lowest port.
    pub low: u16,
    /// The highest port.
    pub high: u16,
}

impl PortRange {
    /// Number of ports.
    pub fn count(self) -> u16 {
        // 0 to 65,535 would be one more than `u16` holds; it cannot occur, because port 0 is not valid.
        self.high - self.low + 1
    }

    /// True if the range contains a port.
    pub fn has(self, port: u16) -> bool {
        (self.low..=self.high).contains(&port)
    }

    /// True if two ranges have a port in common.
    pub fn overlaps(self, other: PortRange) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.low, self.high)
    }
}

impl FromStr for PortRange {
    type Err = String;

    /// `LOW-HIGH`, both from 1 to 65535.
    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is not a range of ports; write LOW-HIGH, for example 10240-32767");
        let (low, high) = text.split_once('-').ok_or_else(bad)?;
        let number = |text: &str| text.trim().parse().map_err(|_: ParseIntError| bad());
        let range = PortRange { low: number(low)?, high: number(high)? };
        if range.low == 0 || range.low > range.high {
            return Err(bad());
        }
        Ok(range)
    }
}
