//! The access log: one event per connection that is relayed and per request that is proxied, and the words for why.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use router_core::model::{RouteId, RouterName};
use router_core::table::{Endpoint, ResolvedRoute};

use super::counters::Counters;
use super::limits::Visit;
use super::upstream::occupancy::Place;

/// Why a connection or request ended as it did: the `flags` of the access log, and the cause that a response names
/// when asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// Nothing to remark.
    Fine,
    /// No route serves this host and path.
    NoRoute,
    /// The route has no usable endpoint.
    NoEndpoints,
    /// No endpoint accepted a connection.
    UpstreamConnectFailure,
    /// An endpoint did not connect, answer or go on in time.
    UpstreamTimeout,
    /// The endpoint ended its connection before the response was complete, or reset it.
    UpstreamClosed,
    /// TLS with the endpoint failed; above all, its certificate was refused.
    UpstreamCertificate,
    /// There is no CA to verify the endpoint with, so nothing was sent.
    NoDestinationCa,
    /// The client ended the connection first.
    ClientGone,
    /// The client sent or read nothing for too long.
    ClientTimeout,
    /// The client's address is not in the route's allow-list.
    SourceNotAllowed,
    /// The client has shown no certificate whose subject is allowed (403).
    ClientCertificate,
    /// The request belongs on another connection (421).
    Misdirected,
    /// The request is not one that can be routed (4xx, 505).
    BadRequest,
    /// The first bytes are no ClientHello that can be routed.
    BadHello,
    /// The TLS handshake with the client failed.
    ClientHandshake,
    /// Nothing moved for the tunnel timeout.
    Idle,
    /// Every endpoint has as many requests as it may have, and none ended in time (503).
    Busy,
    /// The client's address has asked for more than the route's limits allow (429).
    RateLimited,
}

impl Flag {
    /// The short word in the access log.
    pub const fn code(self) -> &'static str {
        match self {
            Flag::Fine => "-",
            Flag::NoRoute => "NR",
            Flag::NoEndpoints => "NE",
            Flag::UpstreamConnectFailure => "UF",
            Flag::UpstreamTimeout => "UT",
            Flag::UpstreamClosed => "UC",
            Flag::UpstreamCertificate => "UV",
            Flag::NoDestinationCa => "NCA",
            Flag::ClientGone => "DC",
            Flag::ClientTimeout => "CT",
            Flag::SourceNotAllowed => "SNA",
            Flag::ClientCertificate => "CC",
            Flag::Misdirected => "MD",
            Flag::BadRequest => "BR",
            Flag::BadHello => "BH",
            Flag::ClientHandshake => "CH",
            Flag::Idle => "ID",
            Flag::Busy => "UO",
            Flag::RateLimited => "RL",
        }
    }

    /// The cause in words, as the `x-sluice-cause` response header gives it.
    pub const fn cause(self) -> &'static str {
        match self {
            Flag::Fine => "none",
            Flag::NoRoute => "no-route",
            Flag::NoEndpoints => "no-endpoints",
            Flag::UpstreamConnectFailure => "backend-unreachable",
            Flag::UpstreamTimeout => "backend-timeout",
            Flag::UpstreamClosed => "backend-closed",
            Flag::UpstreamCertificate => "backend-certificate",
            Flag::NoDestinationCa => "no-destination-ca",
            Flag::ClientGone => "client-gone",
            Flag::ClientTimeout => "client-timeout",
            Flag::SourceNotAllowed => "source-not-allowed",
            Flag::ClientCertificate => "client-certificate",
            Flag::Misdirected => "misdirected",
            Flag::BadRequest => "bad-request",
            Flag::BadHello => "bad-client-hello",
            Flag::ClientHandshake => "client-handshake",
            Flag::Idle => "idle",
            Flag::Busy => "backends-busy",
            Flag::RateLimited => "rate-limited",
        }
    }
}

/// Which part of the data path served it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataPath {
    /// Bytes were relayed unread.
    Relay,
    /// Requests were read.
    Proxy,
    /// The kernel carried or refused it.
    Kernel,
}

/// Body bytes of a request or payload bytes of a connection, counted while they move.
#[derive(Debug, Default)]
pub struct Traffic {
    /// From the client.
    pub bytes_in: AtomicU64,
    /// To the client.
    pub bytes_out: AtomicU64,
}

/// One entry of the access log. It is written, and the route's counters move, when it is dropped: whatever becomes
/// of the task that holds it, there is exactly one line.
#[derive(Debug)]
pub struct AccessRecord {
    /// Router that took the connection.
    pub router: RouterName,
    /// Who connected.
    pub client: SocketAddr,
    /// The address that was connected to.
    pub listener: SocketAddr,
    /// SNI or Host, when one could be read.
    pub host: Option<String>,
    /// Request method; `None` for relayed connections.
    pub method: Option<http::Method>,
    /// Request path without query; `None` for relayed connections.
    pub path: Option<String>,
    /// Response status; `None` when none was sent.
    pub status: Option<http::StatusCode>,
    /// The route that serves it.
    pub route: Option<Arc<ResolvedRoute>>,
    /// Where it went.
    pub endpoint: Option<Endpoint>,
    /// Its place among what the endpoint has to do, where that is counted. It lasts as long as the record.
    pub place: Option<Place>,
    /// Its client's visit to the route, where these are limited. It lasts as long as the record.
    pub visit: Option<Visit>,
    /// Bytes, shared with the bodies that count them.
    pub traffic: Arc<Traffic>,
    /// Why it ended.
    pub flag: Flag,
    /// Who served it.
    pub data_path: DataPath,
    started: Instant,
    counters: Arc<Counters>,
    discarded: bool,
}

impl AccessRecord {
    /// A record of something that begins now.
    pub fn new(
        router: RouterName,
        client: SocketAddr,
        listener: SocketAddr,
        data_path: DataPath,
        counters: Arc<Counters>,
    ) -> Self {
        AccessRecord {
            router,
            client,
            listener,
            host: None,
            method: None,
            path: None,
            status: None,
            route: None,
            endpoint: None,
            place: None,
            visit: None,
            traffic: Arc::default(),
            flag: Flag::ClientGone,
            data_path,
            started: Instant::now(),
            counters,
            discarded: false,
        }
    }

    /// Drops the record without a trace: what it was begun for has records of its own.
    pub fn discard(mut self) {
        self.discarded = true;
    }
}

impl Drop for AccessRecord {
    fn drop(&mut self) {
        if self.discarded {
            return;
        }
        let bytes_in = self.traffic.bytes_in.load(Ordering::Relaxed);
        let bytes_out = self.traffic.bytes_out.load(Ordering::Relaxed);
        if let Some(route) = &self.route {
            self.counters.add(&self.router, &route.id, bytes_in, bytes_out, self.flag);
        }
        write(&Line {
            router: &self.router,
            client: self.client,
            listener: self.listener,
            host: self.host.as_deref(),
            method: self.method.as_ref().map(|method| method.as_str()),
            path: self.path.as_deref(),
            status: self.status,
            route: self.route.as_ref().map(|route| &route.id),
            endpoint: self.endpoint.as_ref().map(|to| to.address),
            bytes_in,
            bytes_out,
            duration: self.started.elapsed(),
            flag: self.flag,
            data_path: self.data_path,
        });
    }
}

/// A connection that the kernel carried, or refused.
#[derive(Clone, Debug)]
pub struct Carried<'c> {
    /// Router that the listener belongs to.
    pub router: &'c RouterName,
    /// Who connected.
    pub client: SocketAddr,
    /// The address that was connected to.
    pub listener: SocketAddr,
    /// SNI or Host, or the wildcard that covers it when it is not known any more.
    pub host: &'c str,
    /// The route.
    pub route: &'c RouteId,
    /// Where it went.
    pub endpoint: Option<SocketAddr>,
    /// Payload bytes from the client.
    pub bytes_in: u64,
    /// Payload bytes to the client.
    pub bytes_out: u64,
    /// Why it ended.
    pub flag: Flag,
    /// From the first bytes to the end.
    pub duration: Duration,
}

/// The access log and the counters, for whoever serves connections beside the proxy.
#[derive(Clone, Debug)]
pub struct AccessLog(Arc<Counters>);

impl AccessLog {
    /// The log that goes with these counters.
    pub(super) fn new(counters: Arc<Counters>) -> Self {
        AccessLog(counters)
    }

    /// Counts a connection for its route, and writes its line.
    pub fn carried(&self, one: &Carried<'_>) {
        self.0.add(one.router, one.route, one.bytes_in, one.bytes_out, one.flag);
        write(&Line {
            router: one.router,
            client: one.client,
            listener: one.listener,
            host: Some(one.host),
            method: None,
            path: None,
            status: None,
            route: Some(one.route),
            endpoint: one.endpoint,
            bytes_in: one.bytes_in,
            bytes_out: one.bytes_out,
            duration: one.duration,
            flag: one.flag,
            data_path: DataPath::Kernel,
        });
    }
}

/// What a line says.
struct Line<'l> {
    router: &'l RouterName,
    client: SocketAddr,
    listener: SocketAddr,
    host: Option<&'l str>,
    method: Option<&'l str>,
    path: Option<&'l str>,
    status: Option<http::StatusCode>,
    route: Option<&'l RouteId>,
    endpoint: Option<SocketAddr>,
    bytes_in: u64,
    bytes_out: u64,
    duration: Duration,
    flag: Flag,
    data_path: DataPath,
}

fn write(line: &Line<'_>) {
    tracing::info!(
        target: "access",
        router = %line.router,
        client = %line.client,
        listener = %line.listener,
        host = line.host.unwrap_or("-"),
        method = line.method.unwrap_or("-"),
        path = line.path.unwrap_or("-"),
        status = line.status.map_or(0, |status| status.as_u16()),
        route = %line.route.map_or_else(|| "-".to_owned(), ToString::to_string),
        endpoint = %line.endpoint.map_or_else(|| "-".to_owned(), |to| to.to_string()),
        bytes_in = line.bytes_in,
        bytes_out = line.bytes_out,
        duration_ms = u64::try_from(line.duration.as_millis()).unwrap_or(u64::MAX),
        flags = line.flag.code(),
        datapath = match line.data_path {
            DataPath::Relay => "relay",
            DataPath::Proxy => "proxy",
            DataPath::Kernel => "kernel",
        },
    );
}
