//! The gate's maps in the kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;

use aya::Ebpf;
use aya::maps::lpm_trie::LpmTrie;
use aya::maps::{HashMap, MapData, MapError};
use ipnet::IpNet;
use router_common::maps::{GatePolicy, ListenerKey, names};
use router_sys::abi::Raw;

use super::image::GateImage;
use super::write::GateWrites;
use crate::address::{address, network, sixteen_net};
use crate::image::listener_key;
use crate::maps::{NO_REPLACE, into_io, kept, removed, written};
use crate::net_keys::{self, NetKey, NetTrie, nets};

/// The gate's maps.
pub struct GateMaps {
    policies: HashMap<MapData, Raw<ListenerKey>, Raw<GatePolicy>>,
    nets: NetTrie<MapData>,
    rates: HashMap<MapData, u32, u64>,
}

impl GateMaps {
    /// Takes the maps out of a loaded object.
    ///
    /// # Errors
    /// If a map is missing or has another layout.
    pub fn take(object: &mut Ebpf) -> Result<Self, MapError> {
        let mut map = |name: &str| object.take_map(name).ok_or_else(|| MapError::InvalidName { name: name.to_owned() });
        Ok(GateMaps {
            policies: HashMap::try_from(map(names::GATE_POLICIES)?)?,
            nets: LpmTrie::try_from(map(names::GATE_NETS)?)?,
            rates: HashMap::try_from(map(names::GATE_RATES)?)?,
        })
    }

    /// Content of the maps.
    ///
    /// # Errors
    /// The system call's.
    pub fn read(&self) -> io::Result<GateImage> {
        self.read_image().map_err(into_io)
    }

    /// Ids of policies with a token bucket.
    ///
    /// # Errors
    /// The system call's.
    pub fn buckets(&self) -> io::Result<BTreeSet<u32>> {
        self.rates.keys().collect::<Result<_, _>>().map_err(into_io)
    }

    /// Removes a token bucket.
    ///
    /// # Errors
    /// The system call's.
    pub fn remove_bucket(&mut self, policy: u32) -> io::Result<()> {
        removed(self.rates.remove(&policy))
    }

    fn read_image(&self) -> Result<GateImage, MapError> {
        let mut image = GateImage::default();
        for entry in self.policies.iter() {
            let (Raw(key), Raw(policy)) = entry?;
            image.policies.insert((address(&key.address), key.port), policy);
        }
        let mut lists: BTreeMap<u32, Vec<IpNet>> = BTreeMap::new();
        for net in nets(&self.nets) {
            let (list, address, bits) = net?;
            // Only networks are written.
            if let Ok(found) = network(&address, bits).parse() {
                lists.entry(list).or_default().push(found);
            }
        }
        for (id, mut list) in lists {
            list.sort();
            image.lists.insert(id, list.into());
        }
        Ok(image)
    }
}

fn key(list: u32, net: &IpNet) -> NetKey {
    let (address, bits) = sixteen_net(net);
    net_keys::key((list, address, bits))
}

impl GateWrites for GateMaps {
    fn add(&mut self, list: u32, nets: &[IpNet]) -> io::Result<()> {
        nets.iter().try_for_each(|net| written(self.nets.insert(&key(list, net), 1, 0)))
    }

    fn remove(&mut self, list: u32, nets: &[IpNet]) -> io::Result<()> {
        nets.iter().try_for_each(|net| removed(self.nets.remove(&key(list, net))))
    }

    fn put(&mut self, (address, port): (IpAddr, u16), policy: &GatePolicy) -> io::Result<()> {
        kept(self.rates.insert(policy.id, 0, NO_REPLACE))?;
        written(self.policies.insert(Raw(listener_key(address, port)), Raw(*policy), 0))
    }

    fn withdraw(&mut self, (address, port): (IpAddr, u16)) -> io::Result<()> {
        removed(self.policies.remove(&Raw(listener_key(address, port))))
    }
}
