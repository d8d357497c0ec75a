//! A TCP end controlled packet by packet: any sequence number, timestamp, window and segmentation. Its address belongs
//! to no stack, and it fails on every packet that a stack would drop.

mod packet;
mod receiving;

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::dress;
use crate::frames::{Frames, LONGEST};
use crate::netns::Netns;
use crate::wait::PATIENCE;
pub use packet::{Packet, Path};

/// Hardware address of every raw end; each is on a link of its own.
const HARDWARE: [u8; 6] = [2, 0, 0, 0, 0, 0x77];

/// Parameters of an end.
#[derive(Clone, Copy, Debug)]
pub struct Nature {
    /// Initial sequence number.
    pub isn: u32,
    /// Initial value of its timestamp clock (1 ms); `None`: it offers no timestamps.
    pub clock: Option<u32>,
    /// Its window shift; `None`: it offers no scaling.
    pub shift: Option<u8>,
    /// Its window in bytes.
    pub window: u32,
    /// Its maximum segment size.
    pub max_segment: u16,
    /// True if it offers selective acknowledgement.
    pub sack: bool,
}

impl Nature {
    /// A common end.
    pub const COMMON: Nature =
        Nature { isn: 1000, clock: Some(1000), shift: Some(7), window: 1 << 20, max_segment: 1460, sack: true };
}

/// Attachment of a raw end.
pub struct Place<'n> {
    /// Namespace and interface.
    pub at: (&'n Netns, &'n str),
    /// The other end of the link, which forwards or responds.
    pub gateway: (&'n Netns, &'n str),
    /// Its address: on the link, and not of a stack.
    pub address: SocketAddr,
}

/// An end of a connection.
pub struct End {
    frames: Frames,
    path: Path,
    nature: Nature,
    started: Instant,
    /// The peer's SYN.
    peer_syn: Packet,
    /// Next sequence number to send.
    next: u32,
    /// The peer's last acknowledgement.
    acknowledged: u32,
    /// Next expected sequence number.
    expected: u32,
    /// Newest timestamp value of the peer.
    newest: u32,
    /// The peer's window in bytes.
    window: u32,
    received: Vec<u8>,
    finished: bool,
    reset: bool,
}

impl End {
    fn new(place: &Place, remote: SocketAddr, nature: Nature) -> Result<End> {
        let (netns, interface) = place.at;
        let (gateway, toward) = place.gateway;
        // No stack answers ARP for this address, so a static neighbour entry is added.
        let hardware = HARDWARE.map(|byte| format!("{byte:02x}")).join(":");
        gateway.ip(&[
            "neighbour",
            "replace",
            &place.address.ip().to_string(),
            "lladdr",
            &hardware,
            "dev",
            toward,
            "nud",
            "permanent",
        ])?;
        let gateway = gateway.hardware_address(toward)?;
        Ok(End {
            frames: Frames::open(netns, interface)?,
            path: Path { hardware: HARDWARE, gateway, local: place.address, remote },
            nature,
            started: Instant::now(),
            peer_syn: Packet::default(),
            next: nature.isn,
            acknowledged: nature.isn,
            expected: 0,
            newest: 0,
            window: 0,
            received: Vec::new(),
            finished: false,
            reset: false,
        })
    }

    /// Connects: returns after the SYN-ACK, before its acknowledgement.
    ///
    /// # Errors
    /// When no SYN-ACK comes, or a wrong one.
    pub fn connect(place: &Place, remote: SocketAddr, nature: Nature) -> Result<End> {
        let mut end = End::new(place, remote, nature)?;
        end.send_packet(end.syn())?;
        end.next = nature.isn.wrapping_add(1);
        end.until("a SYN-ACK", |end| end.peer_syn.syn)?;
        ensure!(end.acknowledged == end.next, "the SYN-ACK acknowledges something else: {:?}", end.peer_syn);
        end.acknowledge()?;
        Ok(end)
    }

    /// A listening end.
    ///
    /// # Errors
    /// When the interface cannot be read.
    pub fn listen(place: &Place, nature: Nature) -> Result<End> {
        let anyone = SocketAddr::new(place.address.ip(), 0);
        End::new(place, anyone, nature)
    }

    /// Waits for a SYN, responds to it, and waits for the acknowledgement.
    ///
    /// # Errors
    /// When none comes.
    pub fn accept(&mut self) -> Result<()> {
        self.until("a SYN", |end| end.peer_syn.syn)?;
        let answer = Packet { ack: Some(self.expected), ..self.syn() };
        self.send_packet(answer)?;
        self.next = self.nature.isn.wrapping_add(1);
        self.until("the end of the handshake", |end| end.acknowledged == end.next)
    }

    /// The address of the peer.
    pub fn remote(&self) -> SocketAddr {
        self.path.remote
    }

    /// The SYN of the peer.
    pub fn peer_syn(&self) -> &Packet {
        &self.peer_syn
    }

    /// Everything received in order.
    pub fn received(&self) -> &[u8] {
        &self.received
    }

    /// True if the peer has reset the connection.
    pub fn was_reset(&self) -> bool {
        self.reset
    }

    /// Sends the next bytes in one segment.
    ///
    /// # Errors
    /// When the link is gone.
    pub fn send(&mut self, payload: &[u8]) -> Result<()> {
        self.send_at(self.next, payload)?;
        self.next = self.next.wrapping_add(u32::try_from(payload.len())?);
        Ok(())
    }

    /// Sends the next bytes in one segment, as fragments of at most `size` bytes, a multiple of 8.
    ///
    /// # Errors
    /// When the link is gone.
    pub fn send_in_fragments(&mut self, payload: &[u8], size: usize) -> Result<()> {
        let segment =
            Packet { seq: self.next, ack: Some(self.expected), payload: payload.to_vec(), ..Packet::default() };
        let frame = self.frame(segment)?;
        // Every segment has its own identification.
        dress::fragments(&frame, self.next, size).iter().try_for_each(|part| self.frames.send(part))?;
        self.next = self.next.wrapping_add(u32::try_from(payload.len())?);
        Ok(())
    }

    /// Sends the next bytes in a segment with an invalid authentication header. They do not count as sent.
    ///
    /// # Errors
    /// When the link is gone.
    pub fn send_authenticated(&self, payload: &[u8]) -> Result<()> {
        let payload = payload.to_vec();
        let frame = self.frame(Packet { seq: self.next, ack: Some(self.expected), payload, ..Packet::default() })?;
        self.frames.send(&dress::authenticated(&frame))
    }

    /// Sends the next bytes corrupted: the last byte differs, and the checksum does not match. They do not count as
    /// sent.
    ///
    /// # Errors
    /// When the link is gone.
    pub fn send_damaged(&self, payload: &[u8]) -> Result<()> {
        let payload = payload.to_vec();
        let mut frame =
            self.frame(Packet { seq: self.next, ack: Some(self.expected), payload, ..Packet::default() })?;
        if let Some(last) = frame.last_mut() {
            *last ^= 1;
        }
        self.frames.send(&frame)
    }

    /// Sends bytes at an offset of the stream again, or ahead of time; the next sequence number does not change.
    ///
    /// # Errors
    /// When the link is gone.
    pub fn send_again(&mut self, offset: usize, payload: &[u8]) -> Result<()> {
        let seq = self.nature.isn.wrapping_add(1).wrapping_add(u32::try_from(offset)?);
        self.send_at(seq, payload)
    }

    /// Counts bytes as sent that [`End::send_again`] sent ahead of time.
    ///
    /// # Errors
    /// When they are too many.
    pub fn sent(&mut self, bytes: usize) -> Result<()> {
        self.next = self.next.wrapping_add(u32::try_from(bytes)?);
        Ok(())
    }

    /// Sends bytes in segments of at most `size`, as the peer's window allows, until all are acknowledged.
    ///
    /// # Errors
    /// When the other end stops taking them.
    pub fn send_all(&mut self, payload: &[u8], size: usize) -> Result<()> {
        for segment in payload.chunks(size) {
            let length = u32::try_from(segment.len())?;
            self.until("room in the window", |end| end.in_flight() + length <= end.window)?;
            self.send(segment)?;
            // Responses are read as they arrive, so that no buffer overflows.
            while self.step(Duration::ZERO)? {}
        }
        self.all_acknowledged()
    }

    /// Waits until everything sent is acknowledged.
    ///
    /// # Errors
    /// When it is not.
    pub fn all_acknowledged(&mut self) -> Result<()> {
        self.until("an acknowledgement of everything", |end| end.acknowledged == end.next)
    }

    /// Waits until `bytes` have been received in all.
    ///
    /// # Errors
    /// When they are not.
    pub fn receive(&mut self, bytes: usize) -> Result<()> {
        self.until("more bytes", |end| end.received.len() >= bytes)
    }

    /// Sends a FIN and waits until it is acknowledged.
    ///
    /// # Errors
    /// When it is not.
    pub fn finish(&mut self) -> Result<()> {
        self.send_packet(Packet { seq: self.next, ack: Some(self.expected), fin: true, ..Packet::default() })?;
        self.next = self.next.wrapping_add(1);
        self.all_acknowledged()
    }

    /// From now on sends frames to this hardware address; returns the previous one.
    pub fn send_frames_to(&mut self, hardware: [u8; 6]) -> [u8; 6] {
        std::mem::replace(&mut self.path.gateway, hardware)
    }

    /// Sends a FIN this many bytes before the next sequence number, as an attacker would guess it; this end continues.
    ///
    /// # Errors
    /// When the link is gone.
    pub fn forge_fin(&mut self, before: u32) -> Result<()> {
        let seq = self.next.wrapping_sub(before);
        self.send_packet(Packet { seq, ack: Some(self.expected), fin: true, ..Packet::default() })
    }

    /// Sends a RST this many bytes after the next sequence number, as an attacker would guess it.
    ///
    /// # Errors
    /// When the link is gone.
    pub fn forge_reset(&mut self, behind: u32) -> Result<()> {
        let seq = self.next.wrapping_add(behind);
        self.send_packet(Packet { seq, ack: Some(self.expected), rst: true, ..Packet::default() })
    }

    /// Waits for the peer's FIN.
    ///
    /// # Errors
    /// When it does not come.
    pub fn finished(&mut self) -> Result<()> {
        self.until("a FIN", |end| end.finished)
    }

    /// Waits for a reset.
    ///
    /// # Errors
    /// When it does not come.
    pub fn resets(&mut self) -> Result<()> {
        self.until("a reset", |end| end.reset)
    }

    /// Acknowledges all received bytes.
    ///
    /// # Errors
    /// When the link is gone.
    pub fn acknowledge(&mut self) -> Result<()> {
        self.send_packet(Packet { seq: self.next, ack: Some(self.expected), ..Packet::default() })
    }

    /// Reads packets until a condition holds.
    ///
    /// # Errors
    /// When it does not in time, or a packet is wrong.
    pub fn until(&mut self, what: &str, condition: impl Fn(&End) -> bool) -> Result<()> {
        let start = Instant::now();
        while !condition(self) {
            ensure!(!self.reset, "the connection was reset instead of {what}");
            ensure!(start.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
            self.step(Duration::from_millis(100))?;
        }
        Ok(())
    }

    fn send_at(&mut self, seq: u32, payload: &[u8]) -> Result<()> {
        self.send_packet(Packet { seq, ack: Some(self.expected), payload: payload.to_vec(), ..Packet::default() })
    }

    fn send_packet(&mut self, packet: Packet) -> Result<()> {
        self.frames.send(&self.frame(packet)?)
    }

    /// Fills in the common fields of a packet.
    fn frame(&self, packet: Packet) -> Result<Vec<u8>> {
        let shift = if packet.syn { 0 } else { self.shift() };
        let window = u16::try_from(self.nature.window >> shift).unwrap_or(u16::MAX);
        let with_timestamps =
            if packet.syn && packet.ack.is_none() { self.nature.clock.is_some() } else { self.timestamps_agreed() };
        let timestamps = with_timestamps.then(|| (self.clock(), self.newest));
        Packet { window, timestamps, ..packet }.write(&self.path)
    }

    fn syn(&self) -> Packet {
        // A SYN-ACK has only options that the SYN offered (RFC 7323 §2.2, RFC 2018 §2).
        let answer = self.peer_syn.syn;
        Packet {
            seq: self.nature.isn,
            syn: true,
            max_segment: Some(self.nature.max_segment),
            shift: self.nature.shift.filter(|_| !answer || self.peer_syn.shift.is_some()),
            sack_permitted: self.nature.sack && (!answer || self.peer_syn.sack_permitted),
            ..Packet::default()
        }
    }

    fn timestamps_agreed(&self) -> bool {
        self.nature.clock.is_some() && self.peer_syn.timestamps.is_some()
    }

    /// Our window shift, if both ends offered one.
    fn shift(&self) -> u8 {
        self.nature.shift.filter(|_| self.peer_syn.shift.is_some()).unwrap_or(0)
    }

    fn clock(&self) -> u32 {
        let passed = u32::try_from(self.started.elapsed().as_millis()).unwrap_or(u32::MAX);
        self.nature.clock.unwrap_or(0).wrapping_add(passed)
    }

    fn in_flight(&self) -> u32 {
        self.next.wrapping_sub(self.acknowledged)
    }

    /// Reads a packet; `false` if none arrives in time.
    fn step(&mut self, within: Duration) -> Result<bool> {
        let mut buffer = [0; LONGEST];
        let Some(frame) = self.frames.receive(&mut buffer, within)? else { return Ok(false) };
        if let Some((packet, from)) = Packet::read(frame, &self.path)? {
            let said = format!("{packet:?}");
            self.take(packet, from).with_context(|| format!("at {} from {from}: {said}", self.path.local))?;
        }
        Ok(true)
    }
}

/// The address of raw ends on a link of addresses like `base`.
pub fn address_on(base: IpAddr) -> IpAddr {
    match base {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            [a, b, c, 0x77].into()
        }
        IpAddr::V6(v6) => {
            let mut octets = v6.octets();
            octets[15] = 0x77;
            octets.into()
        }
    }
}
