//! Reads the rules of a host from the kernel (nfnetlink, `NFNL_SUBSYS_NFTABLES`; linux/netfilter/nf_tables.h).

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

use netlink_packet_core::NLM_F_DUMP;
use netlink_sys::protocols::NETLINK_NETFILTER;

use super::expressions::{RulesetNames, SetName, expression, marks_connections, verdict};
use super::index::RuleIndex;
use super::ipsets;
use super::rules::{Base, Chain, ChainType, Hook, NftFamily, Ruleset};
use super::sets::{Element, Form, Set, Stands, Value};
use crate::netfilter::rule::NftRule;
use crate::netlink::channel::{Channel, NetlinkAttributes, RawMessage, list, push};

// `NFT_MSG_*` of `NFNL_SUBSYS_NFTABLES` (linux/netfilter/nfnetlink.h).
const NFTABLES: u16 = 10 << 8;
const GET_TABLE: u16 = NFTABLES | 1;
const GET_CHAIN: u16 = NFTABLES | 4;
const GET_RULE: u16 = NFTABLES | 7;
const GET_SET: u16 = NFTABLES | 10;
const GET_ELEMENTS: u16 = NFTABLES | 13;
const GET_GENERATION: u16 = NFTABLES | 16;

// `NFT_SET_*`, as far as used here.
const SET_INTERVAL: u32 = 0x4;
const SET_EVAL: u32 = 0x20;
const SET_CONCAT: u32 = 0x80;

/// Bytes of a `struct nfgenmsg`: family, version, resource.
const GENERAL: usize = 4;
/// Most attempts if rules change while they are read.
const ATTEMPTS: usize = 5;

/// The rules, and the generation that they were read at.
#[derive(Debug)]
pub struct RulesetSnapshot {
    /// The rules.
    pub rules: Ruleset,
    /// Generation of the ruleset (`NFTA_GEN_ID`).
    pub generation: u32,
}

/// An nfnetlink socket.
#[derive(Debug)]
pub struct RulesetReader {
    channel: Channel,
}

impl RulesetReader {
    /// Opens a socket in this thread's network namespace; `None` if the kernel has no netfilter.
    ///
    /// # Errors
    /// The system call's.
    pub fn open() -> io::Result<Option<RulesetReader>> {
        match Channel::open(NETLINK_NETFILTER) {
            Err(error) if error.raw_os_error() == Some(libc::EPROTONOSUPPORT) => Ok(None),
            channel => Ok(Some(RulesetReader { channel: channel? })),
        }
    }

    /// The ruleset's generation; `None` if the kernel has no nftables.
    ///
    /// # Errors
    /// The system call's, or the kernel's.
    pub fn generation(&mut self) -> io::Result<Option<u32>> {
        let mut generation = None;
        let question = RawMessage { kind: GET_GENERATION, payload: vec![0; GENERAL] };
        // NFTA_GEN_ID
        let asked = self.channel.ask(question, 0, |answer| generation = body(&answer).and_then(|body| body.word(1)));
        match asked {
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP)) => Ok(None),
            Err(error) => Err(error),
            Ok(()) => generation.map(Some).ok_or_else(|| io::Error::other("the kernel told no generation of rules")),
        }
    }

    /// All rules; `None` if the kernel has no nftables.
    ///
    /// # Errors
    /// As of [`RulesetReader::generation`]; also if the rules change during every attempt.
    pub fn read(&mut self) -> io::Result<Option<RulesetSnapshot>> {
        for _ in 0..ATTEMPTS {
            let Some(generation) = self.generation()? else { return Ok(None) };
            let read = self.all();
            if self.generation()? == Some(generation) {
                return Ok(Some(RulesetSnapshot { rules: read?, generation }));
            }
        }
        Err(io::Error::other("the rules change faster than they can be read"))
    }

    /// The ipsets with these indices.
    ///
    /// # Errors
    /// The system call's, or the kernel's.
    pub fn ipsets(&mut self, numbers: impl IntoIterator<Item = u16>) -> io::Result<BTreeMap<u16, Set>> {
        numbers.into_iter().map(|number| Ok((number, ipsets::read(&mut self.channel, number)?))).collect()
    }

    fn all(&mut self) -> io::Result<Ruleset> {
        let mut tables = HashMap::<NftFamily, HashMap<String, Table>>::new();
        // NFTA_TABLE_NAME, NFTA_TABLE_FLAGS: NFT_TABLE_F_DORMANT
        self.dump(GET_TABLE, |family, table| {
            let name = table.text(1)?;
            let dormant = table.word(2).unwrap_or(0) & 1 != 0;
            let made = Table { dormant, name: Arc::from(name), names: RulesetNames::default() };
            tables.entry(family).or_default().insert(name.to_owned(), made);
            Some(())
        })?;
        let mut chains = Vec::new();
        self.dump(GET_CHAIN, |family, read| {
            let table = tables.get_mut(&family)?.get_mut(read.text(1)?)?;
            let name = read.text(3)?;
            table.names.chains.insert(name.to_owned(), chains.len());
            let base = base(family, read).filter(|_| !table.dormant);
            let (table, name) = (Arc::clone(&table.name), Arc::from(name));
            chains.push(Chain {
                family,
                table,
                name,
                base,
                rules: Vec::new(),
                index: RuleIndex::default(),
                inert: false,
                plain: false,
            });
            Some(())
        })?;
        let sets = self.sets(&mut tables)?;
        let mut marks = false;
        self.dump(GET_RULE, |family, read| {
            let names = &tables.get(&family)?.get(read.text(1)?)?.names;
            let chain = *names.chains.get(read.text(2)?)?;
            let mut expressions = Vec::new();
            for (_, bytes) in list(read.bytes(4).unwrap_or_default()) {
                marks |= marks_connections(bytes);
                expressions.push(expression(bytes, names));
            }
            chains[chain].rules.push(NftRule { handle: read.long(3)?, expressions });
            Some(())
        })?;
        Ok(Ruleset::new(chains, sets, marks))
    }

    /// All sets, with their elements.
    fn sets(&mut self, tables: &mut HashMap<NftFamily, HashMap<String, Table>>) -> io::Result<Vec<Set>> {
        let mut heads = Vec::new();
        self.dump(GET_SET, |family, read| {
            let table = tables.get_mut(&family)?.get_mut(read.text(1)?)?;
            let name = read.text(2)?.to_owned();
            // NFTA_SET_KEY_LEN, NFTA_SET_DATA_LEN
            let length = |kind| read.word(kind).unwrap_or(0) as usize;
            let set = SetName { place: heads.len(), key: length(5), value: length(7) };
            table.names.sets.insert(name.clone(), set);
            heads.push(SetHeader { family, table: table.name.to_string(), name, ..head(read) });
            Some(())
        })?;
        let mut sets = Vec::with_capacity(heads.len());
        for head in heads {
            let names = tables.get(&head.family).and_then(|tables| tables.get(&head.table)).map(|table| &table.names);
            sets.push(match names {
                Some(names) => self.set(head, names)?,
                None => Set::new(Form::Exact, Vec::new(), None, Stands::Perhaps),
            });
        }
        Ok(sets)
    }

    fn set(&mut self, head: SetHeader, names: &RulesetNames) -> io::Result<Set> {
        let mut payload = vec![number(head.family), 0, 0, 0];
        // NFTA_SET_ELEM_LIST_TABLE, NFTA_SET_ELEM_LIST_SET
        push(&mut payload, 1, &head.table);
        push(&mut payload, 2, &head.name);
        let (mut elements, mut catch_all) = (Vec::new(), None);
        self.channel.ask(RawMessage { kind: GET_ELEMENTS, payload }, NLM_F_DUMP, |answer| {
            let Some(body) = body(&answer) else { return };
            for (_, bytes) in list(body.bytes(3).unwrap_or_default()) {
                let read = NetlinkAttributes::of(bytes);
                // NFTA_SET_ELEM_FLAGS: NFT_SET_ELEM_CATCHALL
                if read.word(3).unwrap_or(0) & 2 != 0 {
                    catch_all = Some(element(&read, names));
                } else {
                    elements.push(element(&read, names));
                }
            }
        })?;
        Ok(Set::new(head.form, elements, catch_all, head.stands))
    }

    fn dump(
        &mut self,
        kind: u16,
        mut take: impl FnMut(NftFamily, &NetlinkAttributes<'_>) -> Option<()>,
    ) -> io::Result<()> {
        // Of all families.
        self.channel.ask(RawMessage { kind, payload: vec![0; GENERAL] }, NLM_F_DUMP, |answer| {
            if let (Some(family), Some(body)) = (answer.payload.first().copied().and_then(family), body(&answer)) {
                take(family, &body);
            }
        })
    }
}

struct Table {
    /// Dormant: none of its chains is called.
    dormant: bool,
    name: Arc<str>,
    names: RulesetNames,
}

/// A set's properties, which the kernel lists before its elements.
struct SetHeader {
    family: NftFamily,
    table: String,
    name: String,
    form: Form,
    stands: Stands,
}

fn body(answer: &RawMessage) -> Option<NetlinkAttributes<'_>> {
    answer.payload.get(GENERAL..).map(NetlinkAttributes::of)
}

/// `NFPROTO_*`; tables of the others (ARP, bridges) see no IP packet.
fn family(number: u8) -> Option<NftFamily> {
    [NftFamily::Inet, NftFamily::Ip, NftFamily::Ip6, NftFamily::Netdev]
        .into_iter()
        .find(|family| self::number(*family) == number)
}

const fn number(family: NftFamily) -> u8 {
    match family {
        NftFamily::Inet => 1,
        NftFamily::Ip => 2,
        NftFamily::Netdev => 5,
        NftFamily::Ip6 => 10,
    }
}

/// The base chain's properties (`NFTA_CHAIN_HOOK`). `None` also for hooks that no packet of a dial passes.
fn base(family: NftFamily, chain: &NetlinkAttributes<'_>) -> Option<Base> {
    let hook = chain.within(4)?;
    let place = match (family, hook.word(1)?) {
        (NftFamily::Netdev, 0) | (NftFamily::Inet, 5) => Hook::Ingress,
        (NftFamily::Netdev, 1) => Hook::Egress,
        (NftFamily::Netdev, _) => return None,
        (_, 0) => Hook::Prerouting,
        (_, 1) => Hook::Input,
        (_, 3) => Hook::Output,
        (_, 4) => Hook::Postrouting,
        _ => return None,
    };
    let kind = match chain.text(7) {
        Some("nat") => ChainType::Nat,
        Some("route") => ChainType::Route,
        _ => ChainType::Filter,
    };
    // NFTA_HOOK_DEV, NFTA_HOOK_DEVS
    let many = list(hook.bytes(4).unwrap_or_default()).map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned());
    let devices = hook.text(3).map(str::to_owned).into_iter().chain(many);
    let devices = devices.map(|name| name.trim_end_matches('\0').to_owned()).collect();
    Some(Base { hook: place, priority: hook.word(2)? as i32, kind, drops: chain.word(5) == Some(0), devices })
}

fn head(set: &NetlinkAttributes<'_>) -> SetHeader {
    let flags = set.word(3).unwrap_or(0);
    // NFTA_SET_DESC, NFTA_SET_DESC_CONCAT, NFTA_LIST_ELEM, NFTA_SET_FIELD_LEN
    let description = set.within(9);
    let fields = description.as_ref().and_then(|description| description.bytes(2)).unwrap_or_default();
    let fields: Vec<usize> = list(fields)
        .filter_map(|(_, field)| NetlinkAttributes::of(field).word(1))
        .map(|length| length as usize)
        .collect();
    let form = match (flags & SET_INTERVAL != 0, flags & SET_CONCAT != 0) {
        (false, _) => Form::Exact,
        (true, false) => Form::Ranges,
        (true, true) => Form::Fields(fields),
    };
    // Conditions on every element: NFTA_SET_EXPR, NFTA_SET_EXPRESSIONS.
    let stands = match (set.bytes(17).or(set.bytes(18)), flags & SET_EVAL) {
        (Some(_), _) => Stands::Perhaps,
        (None, 0) => Stands::Surely,
        // Packets add elements without a notification.
        (None, _) => Stands::ForNow,
    };
    SetHeader { family: NftFamily::Inet, table: String::new(), name: String::new(), form, stands }
}

fn element(read: &NetlinkAttributes<'_>, names: &RulesetNames) -> Element {
    // NFTA_SET_ELEM_KEY, …KEY_END, …DATA: NFTA_DATA_VALUE, NFTA_DATA_VERDICT
    let key = |kind| Some(read.within(kind)?.bytes(1)?.into());
    let data = read.within(2);
    let known = data.as_ref().map(|data| match data.bytes(1) {
        Some(bytes) => Some(Value::Bytes(bytes.into())),
        None => verdict(&data.within(2)?, names).map(Value::Verdict),
    });
    let has_any = |kinds: &[u16]| kinds.iter().any(|kind| read.bytes(*kind).is_some());
    // NFTA_SET_ELEM_EXPR, …OBJREF, …EXPRESSIONS; …TIMEOUT, …EXPIRATION
    let stands = match (has_any(&[7, 9, 11]), has_any(&[4, 5])) {
        (true, _) => Stands::Perhaps,
        (false, true) => Stands::ForNow,
        (false, false) => Stands::Surely,
    };
    Element {
        key: key(1).unwrap_or_default(),
        key_end: key(10),
        ends: read.word(3).unwrap_or(0) & 1 != 0,
        stands,
        // A verdict that is not understood may be any; the strictest is assumed.
        value: known
            .map_or(Value::None, |value| value.unwrap_or(Value::Verdict(crate::netfilter::verdict::RuleVerdict::Drop))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netfilter::firewall::tests::attribute;

    #[test]
    fn a_base_chain_is_read_from_the_kernels_bytes() {
        let hook = [attribute(1, &3_u32.to_be_bytes()), attribute(2, &(-100_i32).to_be_bytes())].concat();
        let chain = [attribute(4, &hook), attribute(5, &0_u32.to_be_bytes()), attribute(7, b"nat\0")].concat();
        let found = base(NftFamily::Ip, &NetlinkAttributes::of(&chain)).unwrap();
        let wanted =
            Base { hook: Hook::Output, priority: -100, kind: ChainType::Nat, drops: true, devices: Vec::new() };
        assert_eq!(found, wanted);
        assert_eq!(base(NftFamily::Netdev, &NetlinkAttributes::of(&chain)), None);
        assert_eq!(base(NftFamily::Ip, &NetlinkAttributes::of(&chain[28..])), None, "without a hook");
    }

    #[test]
    fn an_element_that_goes_by_itself_stands_for_now() {
        let key = attribute(1, &attribute(1, &[10, 0, 0, 1]));
        let verdict = attribute(2, &attribute(2, &attribute(1, &1_u32.to_be_bytes())));
        let found = element(&NetlinkAttributes::of(&[key.clone(), verdict].concat()), &RulesetNames::default());
        let wanted = Value::Verdict(crate::netfilter::verdict::RuleVerdict::Accept);
        assert_eq!((&*found.key, found.stands, found.value), (&[10, 0, 0, 1][..], Stands::Surely, wanted));
        for kind in [4, 5] {
            let timed = [key.clone(), attribute(kind, &[0; 8])].concat();
            let found = element(&NetlinkAttributes::of(&timed), &RulesetNames::default());
            assert_eq!((found.stands, found.value), (Stands::ForNow, Value::None));
        }
    }

    #[test]
    fn a_text_is_filled_up_to_four_bytes() {
        for text in ["", "a", "abc", "abcd"] {
            let mut payload = Vec::new();
            push(&mut payload, 2, text);
            assert_eq!(payload.len() % 4, 0);
            assert_eq!(NetlinkAttributes::of(&payload).text(2), Some(text));
        }
    }
}
