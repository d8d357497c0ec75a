//! The XDP gate as the reconciler runs it: its maps follow the table, and it is attached while a listener has a policy or is
//! flooded with SYNs, or established connections are to be forwarded.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

use router_common::maps::{FlowKey, names};
use router_listener::ListenerState;
use router_table::table::RoutingTable;
use tokio::time::Instant;

use super::cookies::{CookieReconciler, CookieReport};
use crate::gate::{ConnectionSweep, GateContent, GateImage, GateMaps, lower, reconcile};
use crate::host::state::HostState;
use crate::interfaces::Interfaces;
use crate::kernel::{GateMode, KernelError, KernelPrograms};
use crate::xdp_forward::{ForwardReport, XdpForward};

/// State of the gate, as the agent's views show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GateReport {
    /// Listening addresses with a policy.
    pub listeners: usize,
    /// Networks of all lists.
    pub networks: usize,
    /// Interfaces that have the program, and how: `native` or `generic`, beside others or not.
    pub attached: Vec<(String, &'static str)>,
    /// Interfaces that cannot have it, and why.
    pub failed: Vec<(String, String)>,
    /// Why ends of sockets are found by sweeps only.
    pub sweeps_only: Option<String>,
    /// There are policies, and `--xdp off`.
    pub is_off: bool,
    /// The first write that failed; it is repeated.
    pub error: Option<String>,
    /// SYN cookies.
    pub cookies: CookieReport,
    /// Forwarding of established connections; `None` without `--xdp-forward`.
    pub forward: Option<ForwardReport>,
}

/// The gate's maps, and what they hold.
pub struct GateReconciler {
    maps: GateMaps,
    content: GateContent,
    wanted: GateImage,
    /// When to write more.
    next_part: Option<Instant>,
    /// Ids of policies with a token bucket.
    buckets: BTreeSet<u32>,
    connections: ConnectionSweep,
    mode: GateMode,
    cookies: CookieReconciler,
    forward: Option<XdpForward>,
    /// Why the rates of SYNs could not be written.
    unwritten: Option<String>,
}

impl GateReconciler {
    /// Takes the maps, how the program is attached, and whether it forwards.
    ///
    /// # Errors
    /// [`KernelError::Map`].
    pub fn new(kernel: &mut KernelPrograms, mode: GateMode, forwards: bool) -> Result<Self, KernelError> {
        kernel.set_gate_mode(mode);
        let forward = if forwards { Some(XdpForward::new(kernel, mode)?) } else { None };
        Ok(GateReconciler {
            maps: kernel.take_gate_maps()?,
            content: GateContent::default(),
            wanted: GateImage::default(),
            next_part: None,
            buckets: BTreeSet::new(),
            connections: ConnectionSweep::new(&kernel.take(names::GATE_CONNS)?)?,
            mode,
            cookies: CookieReconciler::new(kernel)?,
            forward,
            unwritten: None,
        })
    }

    /// Reads what an earlier agent left.
    ///
    /// # Errors
    /// The system call's.
    pub fn adopt(&mut self) -> io::Result<()> {
        (self.content, self.buckets) = (GateContent::of(self.maps.read()?), self.maps.buckets()?);
        self.next_part = None;
        self.connections.adopt()
    }

    /// Writes what differs, or the first part of it, and attaches the program if there is a policy.
    pub fn follow(
        &mut self,
        kernel: &mut KernelPrograms,
        (table, listeners): (&RoutingTable, &[ListenerState]),
        interfaces: &Interfaces,
        host: &HostState,
    ) -> GateReport {
        let local: Vec<IpAddr> = interfaces.addresses.iter().copied().collect();
        self.unwritten = self.cookies.follow(table, listeners, &local, host).err().map(|error| error.to_string());
        self.wanted = lower(table, listeners, &local, &self.content.now);
        if self.mode == GateMode::Off {
            self.wanted.policies.values_mut().for_each(|policy| policy.source_connections = 0);
        }
        self.go_on(kernel, interfaces)
    }

    /// When to write the next part of a long list; `None`: all is written.
    pub fn next_part(&self) -> Option<Instant> {
        self.next_part
    }

    /// Writes what is left, or the next part of it.
    pub fn go_on(&mut self, kernel: &mut KernelPrograms, interfaces: &Interfaces) -> GateReport {
        let written = reconcile(&mut self.maps, &mut self.content, &self.wanted);
        self.next_part = matches!(written, Ok(false)).then(|| Instant::now() + self.content.pause);
        let removed = self.remove_buckets();
        let error = written.and(removed).err().map(|error| error.to_string()).or_else(|| self.unwritten.clone());
        if let Some(error) = &error {
            tracing::warn!(error, "the gate's policies cannot be written; it is tried again");
        }
        let cookies = self.look(kernel, interfaces);
        self.attach_to_sockets(kernel);
        let listeners = self.content.now.policies.keys().filter(|(_, port)| *port != 0).count();
        let is_off = self.mode == GateMode::Off && listeners > 0;
        let (attached, failed) = attachments(kernel);
        let sweeps_only = kernel.sockets_failed().map(str::to_owned);
        let forward = self.renew_forward(kernel, interfaces);
        GateReport {
            listeners,
            networks: self.content.networks(),
            attached,
            failed,
            sweeps_only,
            is_off,
            error,
            cookies,
            forward,
        }
    }

    /// Tries again where the program could not be attached: another one there may have been detached.
    pub fn retry(&self, kernel: &mut KernelPrograms, interfaces: &Interfaces, report: &mut GateReport) {
        self.attach(kernel, interfaces, true);
        (report.attached, report.failed) = attachments(kernel);
    }

    /// Releases counted connections that have ended otherwise than before a program. `carries`: whether the kernel carries one.
    pub fn sweep(&mut self, kernel: &mut KernelPrograms, carries: impl Fn(&FlowKey) -> bool) {
        if !self.counts() {
            return;
        }
        let has_callbacks = kernel.sockets_failed().is_none();
        if let Err(error) = self.connections.sweep(has_callbacks, carries, |connection| kernel.release(connection)) {
            tracing::warn!(%error, "the gate's counted connections cannot be swept");
        }
        self.attach_to_sockets(kernel);
    }

    /// Whether connections are counted, or some still are.
    fn counts(&self) -> bool {
        self.content.now.policies.values().any(|policy| policy.source_connections != 0) || self.connections.count() != 0
    }

    fn attach_to_sockets(&self, kernel: &mut KernelPrograms) {
        if let Some(news) = kernel.follow_sockets(self.counts()) {
            tracing::info!(target: "datapath", "{news}");
        }
    }

    /// Attaches the program if a listener has a policy or is flooded, or it is to forward, else detaches it; returns who is flooded.
    pub fn look(&mut self, kernel: &mut KernelPrograms, interfaces: &Interfaces) -> CookieReport {
        let mut report = CookieReport::default();
        let looked = self.cookies.look(&mut report);
        self.attach(kernel, interfaces, false);
        let answers = self.cookies.follow_links(&kernel.gate_links(), interfaces, &mut report);
        if let Err(error) = looked.and(answers) {
            tracing::warn!(%error, "the maps of SYN cookies cannot be read or written; it is tried again");
        }
        report
    }

    /// Follows [`GateReconciler::look`] in a report; whether it changed.
    pub fn renew(&mut self, kernel: &mut KernelPrograms, interfaces: &Interfaces, report: &mut GateReport) -> bool {
        let cookies = self.look(kernel, interfaces);
        let (attached, failed) = attachments(kernel);
        let forward = self.renew_forward(kernel, interfaces);
        let renewed = GateReport { cookies, attached, failed, forward, ..report.clone() };
        let is_new = *report != renewed;
        *report = renewed;
        is_new
    }

    fn renew_forward(&mut self, kernel: &KernelPrograms, interfaces: &Interfaces) -> Option<ForwardReport> {
        self.forward.as_mut().map(|forward| forward.renew(kernel, interfaces).clone())
    }

    fn attach(&self, kernel: &mut KernelPrograms, interfaces: &Interfaces, is_retried: bool) {
        let is_wanted = !self.content.now.policies.is_empty() || self.cookies.asks() || self.forward.is_some();
        for news in kernel.follow_gate(interfaces, is_wanted, is_retried) {
            tracing::info!(target: "datapath", "{news}");
        }
    }

    /// Removes the token buckets of policies that are gone.
    fn remove_buckets(&mut self) -> io::Result<()> {
        let used = self.content.now.buckets();
        self.buckets.extend(&used);
        let gone: Vec<u32> = self.buckets.difference(&used).copied().collect();
        gone.into_iter().try_for_each(|policy| {
            self.maps.remove_bucket(policy)?;
            self.buckets.remove(&policy);
            Ok(())
        })
    }
}

type Attachments = (Vec<(String, &'static str)>, Vec<(String, String)>);

fn attachments(kernel: &KernelPrograms) -> Attachments {
    (kernel.gate_attached(), kernel.gate_failed())
}
