//! Pinned objects outlive an agent, and the next one adopts them: the same maps, with the new programs in place of the
//! old ones. Needs root.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test reports by panicking")]

#[allow(dead_code, reason = "only the namespace is used")]
mod packets;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use aya::maps::{Array, Map, MapData, MapInfo};
use aya::programs::{SchedClassifier, TcAttachType};
use router_common::maps::{ABI, MapsMeta, names};
use router_datapath::PinFolder;
use router_datapath::interfaces::Interfaces;
use router_datapath::kernel::{BpfObject, GateMode, KernelError, KernelPrograms, clean_up};
use router_sys::abi::Raw;

use packets::own_network;

/// An instance of the test's own, removed at its end.
struct Instance(String);

impl Instance {
    fn new(name: &str) -> Instance {
        own_network();
        ip(&["link", "set", "lo", "up"]);
        Instance(format!("adopt-{}-{name}", std::process::id()))
    }

    fn folder(&self) -> PinFolder {
        PinFolder::of(&self.0)
    }

    fn open(&self) -> Result<KernelPrograms, KernelError> {
        KernelPrograms::open(self.folder(), BpfObject::Plain, false)
    }

    fn links(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.folder().links()) else { return Vec::new() };
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn map_id(&self, name: &str) -> u32 {
        MapInfo::from_pin(self.folder().map(name)).unwrap().id()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.folder().path().parent().unwrap());
    }
}

fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().unwrap();
    assert!(output.status.success(), "ip {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn index(name: &str) -> u32 {
    let shown = Command::new("ip").args(["-o", "link", "show", name]).output().unwrap();
    String::from_utf8(shown.stdout).unwrap().split(':').next().unwrap().parse().unwrap()
}

fn interfaces(names: &[&str]) -> Interfaces {
    let attachable: BTreeMap<_, _> = names.iter().map(|name| ((*name).to_owned(), index(name))).collect();
    Interfaces { attachable, ..Interfaces::default() }
}

/// Ids of the programs on an interface, ingress and egress.
fn attached(interface: &str) -> [Vec<u32>; 2] {
    [TcAttachType::Ingress, TcAttachType::Egress]
        .map(|way| SchedClassifier::query_tcx(interface, way).unwrap().1.iter().map(|info| info.id()).collect())
}

/// The kernel frees links without a pin asynchronously.
fn nothing_is_attached(interface: &str) {
    let begin = Instant::now();
    while attached(interface) != [Vec::<u32>::new(), Vec::new()] {
        assert!(begin.elapsed() < Duration::from_secs(10), "{interface}: {:?}", attached(interface));
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn news(kernel: &mut KernelPrograms, names: &[&str]) -> Vec<String> {
    kernel.follow(&interfaces(names))
}

#[test]
fn the_next_agent_goes_on_with_the_maps_and_puts_its_programs_in_the_place_of_the_old() {
    let instance = Instance::new("next");
    let mut first = instance.open().unwrap();
    assert!(!first.adopted);
    assert_eq!(news(&mut first, &["lo"]), ["attached to lo"]);
    assert_eq!(instance.links(), ["lo-egress", "lo-ingress"]);
    let maps = [names::FLOWS, names::EVENTS].map(|name| instance.map_id(name));
    let programs = attached("lo");
    assert!(programs.iter().all(|way| way.len() == 1), "{programs:?}");
    // As if it were killed: nothing is logged or removed.
    drop(first);
    assert_eq!(attached("lo"), programs, "the programs work on without an agent");

    let mut second = instance.open().unwrap();
    assert!(second.adopted);
    assert_eq!(attached("lo"), programs, "until the agent attaches, the old programs work");
    news(&mut second, &["lo"]);
    let replaced = attached("lo");
    assert!(replaced.iter().all(|way| way.len() == 1), "one program each: {replaced:?}");
    assert!(replaced.iter().zip(&programs).all(|(new, old)| new != old), "{replaced:?} {programs:?}");
    assert_eq!([names::FLOWS, names::EVENTS].map(|name| instance.map_id(name)), maps);

    second.remove_pins();
    assert!(!instance.folder().path().exists());
    drop(second);
    nothing_is_attached("lo");
    assert!(!instance.open().unwrap().adopted);
}

#[test]
fn the_gate_stays_attached_unless_the_next_agent_wants_another_mode() {
    let instance = Instance::new("gate");
    ip(&["link", "add", "front", "type", "veth", "peer", "name", "front-peer"]);
    // What `ip link` says of the interface: `xdp` is the driver's hook, `xdpgeneric` the kernel's.
    let shown = || {
        let shown = Command::new("ip").args(["link", "show", "front"]).output().unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        let words: Vec<_> = shown.split_whitespace().collect();
        let id = words.iter().skip_while(|word| **word != "prog/xdp").nth(2).map(|id| (*id).to_owned());
        let hook = ["xdp", "xdpgeneric"].into_iter().find(|hook| words.contains(hook));
        (hook, id)
    };
    let open = |mode| {
        let mut kernel = instance.open().unwrap();
        kernel.set_gate_mode(mode);
        let news = kernel.follow_gate(&interfaces(&["front"]), true, false);
        (kernel, news)
    };
    let (first, news) = open(GateMode::Native);
    assert_eq!(news, ["the gate is attached to front (native)"]);
    let before = shown();
    assert_eq!(before.0, Some("xdp"));
    drop(first);
    assert_eq!(shown(), before, "the program works on without an agent");
    let (next, news) = open(GateMode::Auto);
    assert_eq!(news, ["the gate is attached to front (native)"]);
    let replaced = shown();
    assert!(replaced.0 == Some("xdp") && replaced.1 != before.1, "{replaced:?} {before:?}");
    drop(next);
    let (mut last, news) = open(GateMode::Generic);
    assert_eq!(news, ["the gate is attached to front (generic)"]);
    assert_eq!(shown().0, Some("xdpgeneric"));
    assert_eq!(last.follow_gate(&interfaces(&["front"]), false, false), ["the gate is detached from front"]);
    let begin = Instant::now();
    while shown() != (None, None) {
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", shown());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_interface_in_the_place_of_one_that_moved_away_gets_the_gate() {
    let (instance, elsewhere) = (Instance::new("moved"), format!("sluice-moved-{}", std::process::id()));
    let add =
        |options: &[&str], peer| ip(&[&["link", "add"], options, &["type", "veth", "peer", "name", peer]].concat());
    let open = || {
        let mut kernel = instance.open().unwrap();
        kernel.set_gate_mode(GateMode::Native);
        kernel.follow_gate(&interfaces(&["moved"]), true, false)
    };
    add(&["name", "moved"], "first-peer");
    let index = interfaces(&["moved"]).attachable["moved"].to_string();
    assert_eq!(open(), ["the gate is attached to moved (native)"]);
    ip(&["netns", "add", &elsewhere]);
    ip(&["link", "set", "moved", "netns", &elsewhere]);
    add(&["name", "moved", "index", &index], "second-peer");
    assert_eq!(open(), ["the gate is attached to moved (native)"]);
    let shown = Command::new("ip").args(["link", "show", "moved"]).output().unwrap();
    ip(&["netns", "delete", &elsewhere]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("prog/xdp"), "{shown:?}");
}

#[test]
fn the_gate_is_attached_when_another_program_leaves_the_interface() {
    let (first, second) = (Instance::new("holder"), Instance::new("waiting"));
    ip(&["link", "add", "shared", "type", "veth", "peer", "name", "shared-peer"]);
    let open = |instance: &Instance| {
        let mut kernel = instance.open().unwrap();
        kernel.set_gate_mode(GateMode::Native);
        kernel
    };
    let (mut holder, mut waiting) = (open(&first), open(&second));
    let shared = interfaces(&["shared"]);
    assert_eq!(holder.follow_gate(&shared, true, false), ["the gate is attached to shared (native)"]);
    let failed = waiting.follow_gate(&shared, true, false);
    let why = waiting.gate_failed().remove(0).1;
    assert_eq!(failed, [format!("the gate cannot be attached to shared: {why}")]);
    let holder_is_named = why.strip_prefix("native: sluice_gate (id ").and_then(|rest| rest.split_once(") "));
    let (id, rest) = holder_is_named.expect(&why);
    assert!(
        id.parse::<u32>().is_ok() && rest == "has the interface's XDP hook; detach it, or move it to another interface"
    );
    assert_eq!(waiting.follow_gate(&shared, true, true), [""; 0], "it is logged once");
    assert_eq!(waiting.gate_failed(), [("shared".to_owned(), why)]);
    assert_eq!(holder.follow_gate(&shared, false, false), ["the gate is detached from shared"]);
    let begin = Instant::now();
    loop {
        let news = waiting.follow_gate(&shared, true, true);
        if news == ["the gate is attached to shared (native)"] {
            break;
        }
        assert!(news.is_empty() && begin.elapsed() < Duration::from_secs(10), "{news:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(waiting.gate_failed(), []);
}

#[test]
fn interfaces_that_went_came_back_or_are_down_leave_no_links_behind() {
    let instance = Instance::new("links");
    let add = |name| ip(&["link", "add", name, "type", "veth", "peer", "name", &format!("{name}-peer")]);
    for name in ["back.1", "gone"] {
        add(name);
    }
    let mut kernel = instance.open().unwrap();
    news(&mut kernel, &["lo", "back.1", "gone"]);
    assert_eq!(instance.links().len(), 6);
    // The interface is no longer attachable.
    assert_eq!(news(&mut kernel, &["lo", "back.1"]), ["interface gone is gone"]);
    assert_eq!(instance.links().len(), 4);
    nothing_is_attached("gone");
    news(&mut kernel, &["lo", "back.1", "gone"]);
    assert!(attached("gone").iter().all(|way| way.len() == 1));

    // While no agent runs, one interface is removed, and another is replaced by a new one of its name.
    drop(kernel);
    ip(&["link", "delete", "gone"]);
    ip(&["link", "delete", "back.1"]);
    add("back.1");
    let mut next = instance.open().unwrap();
    news(&mut next, &["lo", "back.1"]);
    assert_eq!(instance.links(), ["back%2e1-egress", "back%2e1-ingress", "lo-egress", "lo-ingress"]);
    assert!(attached("back.1").iter().all(|way| way.len() == 1), "the old link led nowhere");
}

#[test]
fn filters_of_older_kernels_are_replaced_too() {
    let instance = Instance::new("filters");
    let filters = || {
        ["ingress", "egress"].map(|way| {
            let shown = Command::new("tc").args(["filter", "show", "dev", "lo", way]).output().unwrap();
            let shown = String::from_utf8(shown.stdout).unwrap();
            let ids = shown.split_whitespace().zip(shown.split_whitespace().skip(1));
            ids.filter(|(word, _)| *word == "id").map(|(_, id)| id.to_owned()).collect::<Vec<_>>()
        })
    };
    let mut first = instance.open().unwrap();
    first.use_filters();
    assert_eq!(news(&mut first, &["lo"]), ["attached to lo"]);
    let programs = filters();
    assert!(programs.iter().all(|way| way.len() == 1), "{programs:?}");
    drop(first);
    assert_eq!(filters(), programs, "the programs work on without an agent");
    let mut second = instance.open().unwrap();
    second.use_filters();
    assert_eq!(news(&mut second, &["lo"]), ["attached to lo"]);
    let replaced = filters();
    assert!(replaced.iter().zip(&programs).all(|(new, old)| new.len() == 1 && new != old), "{replaced:?} {programs:?}");
    second.remove_pins();
    assert_eq!(filters(), [Vec::<String>::new(), Vec::new()]);

    // The remains of a killed agent are removed as well.
    let mut third = instance.open().unwrap();
    third.use_filters();
    news(&mut third, &["lo"]);
    drop(third);
    assert_eq!(clean_up(&instance.0).unwrap(), [instance.folder().path().display().to_string()]);
    assert_eq!(filters(), [Vec::<String>::new(), Vec::new()]);
}

#[test]
fn maps_of_another_build_are_refused_by_name() {
    let instance = Instance::new("mismatch");
    let mut kernel = instance.open().unwrap();
    news(&mut kernel, &["lo"]);
    drop(kernel);
    // Another map under the name of this one.
    let flows = instance.folder().map(names::FLOWS);
    fs::remove_file(&flows).unwrap();
    let refused = instance.open().err().unwrap().to_string();
    assert!(refused.contains(names::FLOWS) && refused.contains("not there"), "{refused}");
    MapData::from_pin(instance.folder().map(names::META)).unwrap().pin(&flows).unwrap();
    let refused = instance.open().err().unwrap().to_string();
    for part in [names::FLOWS, "its type is 2", "sluice bpf cleanup"] {
        assert!(refused.contains(part), "{part:?} is not in: {refused}");
    }
    assert_eq!(clean_up(&instance.0).unwrap().len(), 1);
    nothing_is_attached("lo");
    assert!(!instance.open().unwrap().adopted);
}

#[test]
fn what_a_start_left_unfinished_is_no_obstacle() {
    let instance = Instance::new("unfinished");
    drop(instance.open().unwrap());
    fs::remove_file(instance.folder().map(names::FLOWS)).unwrap();
    assert!(!instance.open().unwrap().adopted);
}

#[test]
fn a_folder_that_an_agent_uses_is_neither_taken_nor_cleaned_up_but_handed_over() {
    let instance = Instance::new("taken");
    drop(instance.open().unwrap());
    // Another process of this name, running once it has printed something; it exists until it is waited for.
    let mut other =
        Command::new(std::env::current_exe().unwrap()).arg("--list").stdout(Stdio::piped()).spawn().unwrap();
    other.stdout.take().unwrap().read_to_end(&mut Vec::new()).unwrap();
    let meta = MapData::from_pin(instance.folder().map(names::META)).unwrap();
    let mut meta = Array::<_, Raw<MapsMeta>>::try_from(Map::Array(meta)).unwrap();
    meta.set(0, Raw(MapsMeta { abi: ABI, pid: other.id(), revision: 1 }), 0).unwrap();
    let taken = instance.open().err().unwrap().to_string();
    assert!(taken.contains(&other.id().to_string()) && taken.contains("--instance"), "{taken}");
    assert!(matches!(clean_up(&instance.0), Err(KernelError::Taken { pid, .. }) if pid == other.id()));
    assert!(KernelPrograms::open(instance.folder(), BpfObject::Plain, true).unwrap().adopted);
    other.wait().unwrap();
    assert!(instance.open().unwrap().adopted);
}
