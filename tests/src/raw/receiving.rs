//! Receiving packets at a raw end.

use std::net::SocketAddr;

use anyhow::{Result, bail, ensure};

use super::{End, Packet};

impl End {
    /// Processes a packet as a stack would (RFC 9293 §3.10.7), except that every packet that it would drop is an error.
    pub(super) fn take(&mut self, packet: Packet, from: SocketAddr) -> Result<()> {
        if packet.rst {
            ensure!(
                !self.peer_syn.syn || packet.seq == self.expected,
                "a reset that a stack would ignore (RFC 5961 §3.2)"
            );
            self.reset = true;
            return Ok(());
        }
        // New bytes, a new FIN, or a higher acknowledgement.
        let mut tells_something =
            packet.seq.wrapping_add(packet.length()).wrapping_sub(self.expected).cast_signed() > 0;
        if let Some(ack) = packet.ack {
            let sent = self.next.wrapping_sub(self.nature.isn);
            ensure!(ack.wrapping_sub(self.nature.isn) <= sent, "it acknowledges what was not sent");
            if ack.wrapping_sub(self.acknowledged) <= self.in_flight() {
                tells_something |= ack != self.acknowledged;
                self.acknowledged = ack;
            }
            for (left, right) in &packet.sack {
                let right_distance = right.wrapping_sub(self.nature.isn);
                ensure!(
                    right_distance <= sent && left.wrapping_sub(self.nature.isn) < right_distance,
                    "a wrong SACK block"
                );
            }
        }
        if packet.syn {
            return self.take_syn(packet, from);
        }
        ensure!(self.peer_syn.syn, "a packet before the SYN");
        // Timestamps must be ignored if they were not negotiated, and must be present if they were (RFC 7323 §3.2).
        let timestamps = packet.timestamps.filter(|_| self.timestamps_agreed());
        ensure!(timestamps.is_some() == self.timestamps_agreed(), "timestamps are missing");
        self.window =
            u32::from(packet.window) << self.peer_syn.shift.filter(|_| self.nature.shift.is_some()).unwrap_or(0);
        if let Some((value, echo)) = timestamps {
            self.take_echo(echo)?;
            let is_older = value.wrapping_sub(self.newest) >= 1 << 31;
            // A router's CPUs may reorder packets. A late packet legitimately has an older timestamp, and its content
            // is known already: a stack may drop it (RFC 7323 §5.3).
            ensure!(
                !is_older || !tells_something,
                "a timestamp older than {}: a stack drops it (acknowledged are {}, expected is {})",
                self.newest,
                self.acknowledged,
                self.expected
            );
            // A packet ahead of the stream does not update the timestamp yet (RFC 7323 §4.3).
            if !is_older && packet.seq.wrapping_sub(self.expected).cast_signed() <= 0 {
                self.newest = value;
            }
        }
        if packet.length() == 0 {
            return Ok(());
        }
        let skip = usize::try_from(self.expected.wrapping_sub(packet.seq))?;
        if skip > packet.payload.len() {
            // Before or beyond the window: both are acknowledged and dropped.
            return self.acknowledge();
        }
        let new = packet.payload.get(skip..).unwrap_or_default();
        ensure!(new.len() <= usize::try_from(self.nature.window)?, "more than the window has room for");
        ensure!(new.is_empty() || !self.finished, "bytes after the FIN");
        self.received.extend_from_slice(new);
        self.expected = packet.seq.wrapping_add(packet.length());
        self.finished |= packet.fin;
        self.acknowledge()
    }

    fn take_syn(&mut self, packet: Packet, from: SocketAddr) -> Result<()> {
        if self.peer_syn.syn {
            // A retransmission: our SYN-ACK was lost. The caller responds to it.
            ensure!(packet.seq.wrapping_add(1) == self.peer_syn.seq.wrapping_add(1), "another SYN on the same ports");
            return Ok(());
        }
        if let Some((value, echo)) = packet.timestamps {
            ensure!(packet.ack.is_none() || self.nature.clock.is_some(), "timestamps were not offered");
            if packet.ack.is_some() {
                self.take_echo(echo)?;
            }
            self.newest = value;
        }
        self.path.remote = from;
        self.expected = packet.seq.wrapping_add(1);
        self.window = u32::from(packet.window);
        self.peer_syn = packet;
        Ok(())
    }

    /// The echo must be a value that was sent.
    fn take_echo(&self, echo: u32) -> Result<()> {
        let Some(first) = self.nature.clock else { bail!("timestamps were not offered") };
        let passed = self.clock().wrapping_sub(first);
        ensure!(echo.wrapping_sub(first) <= passed, "it echoes {echo}, which was not sent since {first}");
        Ok(())
    }
}
