//! Packets with a VLAN tag belong to another network, though they arrive on the same interface.

use std::net::SocketAddr;

use anyhow::{Result, ensure};
use tests::frames::Frames;
use tests::pinned::Handshakes;
use tests::raw::{Packet, Path};
use tests::sluice::DataPath;
use tests::steering::{FRONT, Family, Setup, Stage};
use tests::wait::{PATIENCE, wait_until};

/// A tag of VLAN 7 (IEEE 802.1Q), as it is between the addresses and the type.
const TAG: [u8; 4] = [0x81, 0x00, 0, 7];

#[test]
fn a_tagged_client_is_not_taken_for_one_of_the_interface() -> Result<()> {
    let stage = Stage::new(DataPath::Kernel, Setup { offloads: false, ..Setup::new(Family::V4) })?;
    let frames = Frames::open(&stage.client, "eth0")?;
    let hardware = stage.client.hardware_address("eth0")?;
    let gateway = stage.router.hardware_address("front")?;
    let syn = |port| {
        let local = SocketAddr::new(stage.family.address(FRONT, 2), port);
        let packet = Packet { seq: 1, syn: true, window: 1000, max_segment: Some(1460), ..Packet::default() };
        packet.write(&Path { hardware, gateway, local, remote: stage.address })
    };
    let mut tagged = syn(2001)?;
    tagged.splice(12..12, TAG);
    frames.send(&tagged)?;
    // Sent second: once it has been processed, the first one has been, too.
    frames.send(&syn(2002)?)?;
    let handshakes = Handshakes::of(&stage.sluice)?;
    wait_until("the second SYN is read", PATIENCE, || handshakes.count().is_ok_and(|count| count > 0))?;
    let count = handshakes.count()?;
    ensure!(count == 1, "{count} handshakes were read");
    Ok(())
}
