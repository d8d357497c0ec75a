//! The access log entry of a connection or request in progress.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use http::header::{COOKIE, SET_COOKIE};
use http::{HeaderMap, Version};
use router_access_log::{AccessLog, Captured, Flag, Line, LineRoute, ServedBy};
use router_model::names::RouterName;
use router_table::policy::AccessLogPolicy;
use router_table::policy::access_log::{CookieCapture, HeaderCapture};
use router_table::table::ResolvedRoute;

use super::limits::Visit;
use super::upstream::concurrency_limit::Permit;
use super::upstream::plan::Prepared;

/// An access log entry. Dropping it writes the line and updates the route's counters, so there is exactly one line
/// however the task ends.
#[derive(Debug)]
pub struct AccessRecord {
    /// Router of the listener.
    pub router: RouterName,
    /// Client address.
    pub client: SocketAddr,
    /// Local address.
    pub listener: SocketAddr,
    /// Whether TLS was terminated here.
    pub tls: bool,
    /// SNI or Host, if it could be parsed and a line is wanted.
    pub host: Option<String>,
    /// Request method and version; `None` for relayed connections.
    pub method: Option<(http::Method, Version)>,
    /// Request path without query, when a line is wanted; `None` for relayed connections.
    pub path: Option<String>,
    /// Response status; `None` when none was sent.
    pub status: Option<http::StatusCode>,
    /// The selected route.
    pub route: Option<Arc<ResolvedRoute>>,
    /// The endpoint.
    pub endpoint: Option<SocketAddr>,
    /// Permit of the endpoint, if it has a concurrency limit. Held as long as the record.
    pub place: Option<Permit>,
    /// Visit of the client, if the route has per-client limits. Held as long as the record.
    pub visit: Option<Visit>,
    /// Bytes from the client: request body, or payload of a connection; without those of `upload`.
    pub bytes_in: u64,
    /// Bytes to the client.
    pub bytes_out: u64,
    /// Bytes of the request body, counted by the body.
    pub upload: Option<Arc<AtomicU64>>,
    /// Interim responses that were dropped because they exceeded a limit.
    pub interim_dropped: u64,
    /// Number of attempts to reach an endpoint.
    pub tries: u32,
    /// Why it ended.
    pub flag: Flag,
    /// Which data path served it.
    pub data_path: ServedBy,
    /// Start time.
    pub started: Instant,
    answered: Option<Duration>,
    captured: Option<Box<Captured>>,
    log: AccessLog,
    has_line: bool,
    discarded: bool,
}

impl AccessRecord {
    /// A record that begins now.
    pub fn new(
        router: RouterName,
        client: SocketAddr,
        listener: SocketAddr,
        data_path: ServedBy,
        log: &AccessLog,
    ) -> Self {
        AccessRecord {
            router,
            client,
            listener,
            tls: false,
            host: None,
            method: None,
            path: None,
            status: None,
            route: None,
            endpoint: None,
            place: None,
            visit: None,
            bytes_in: 0,
            bytes_out: 0,
            upload: None,
            interim_dropped: 0,
            tries: 0,
            flag: Flag::ClientGone,
            data_path,
            started: Instant::now(),
            answered: None,
            captured: None,
            log: log.clone(),
            has_line: true,
            discarded: false,
        }
    }

    /// Whether a line is written; if not, its values need not be collected.
    pub fn is_wanted(&self) -> bool {
        self.has_line && self.log.is_wanted()
    }

    /// Drops the record without a line: requests of the connection have records of their own.
    pub fn discard(mut self) {
        self.discarded = true;
    }

    /// Suppresses the line; the route's counters are still updated.
    pub fn discard_line(&mut self) {
        self.has_line = false;
    }

    /// Captures request fields for the log, as the client sent them.
    pub fn capture_request(&mut self, policy: &AccessLogPolicy, headers: &HeaderMap) {
        if !self.is_wanted() || (policy.request_headers.is_empty() && policy.cookie.is_none()) {
            return;
        }
        let captured = self.captured.get_or_insert_default();
        captured.request = values(&policy.request_headers, headers);
        captured.request_cookie = policy.cookie.as_ref().and_then(|wanted| {
            let cookies = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
            cookies.flat_map(|line| line.split(';')).find_map(|cookie| cookie_of(cookie.trim(), wanted))
        });
    }

    /// The captured fields.
    #[cfg(test)]
    pub fn captured(&self) -> Option<&Captured> {
        self.captured.as_deref()
    }

    /// Captures response fields for the log, as the endpoint sent them, and the time.
    pub fn capture_response(&mut self, policy: &AccessLogPolicy, headers: &HeaderMap) {
        if !self.is_wanted() {
            return;
        }
        self.answered = Some(self.started.elapsed());
        if policy.response_headers.is_empty() && policy.cookie.is_none() {
            return;
        }
        let captured = self.captured.get_or_insert_default();
        captured.response = values(&policy.response_headers, headers);
        captured.response_cookie = policy.cookie.as_ref().and_then(|wanted| {
            let cookies = headers.get_all(SET_COOKIE).iter().filter_map(|line| line.to_str().ok());
            cookies.filter_map(|line| line.split(';').next()).find_map(|cookie| cookie_of(cookie.trim(), wanted))
        });
    }
}

fn values(wanted: &[HeaderCapture], headers: &HeaderMap) -> Vec<(Arc<str>, Option<String>)> {
    let value = |capture: &HeaderCapture| {
        let last = headers.get_all(&*capture.name).iter().next_back()?.as_bytes();
        let kept = last.get(..capture.max_length).unwrap_or(last);
        Some(String::from_utf8_lossy(kept).into_owned())
    };
    wanted.iter().map(|capture| (Arc::clone(&capture.name), value(capture))).collect()
}

fn cookie_of(cookie: &str, wanted: &CookieCapture) -> Option<String> {
    let (name, _) = cookie.split_once('=')?;
    let is_it = if wanted.is_prefix { name.starts_with(&*wanted.name) } else { name == &*wanted.name };
    is_it.then(|| cookie.get(..wanted.max_length).unwrap_or(cookie).to_owned())
}

impl Drop for AccessRecord {
    fn drop(&mut self) {
        if self.discarded {
            return;
        }
        let uploaded = self.upload.as_ref().map_or(0, |upload| upload.load(Ordering::Relaxed));
        let (bytes_in, bytes_out) = (self.bytes_in + uploaded, self.bytes_out);
        if let Some(route) = &self.route {
            let find = || self.log.counters().totals(&self.router, &route.id);
            match route.derived.get::<Prepared>() {
                Some(prepared) => prepared.totals(find).add(bytes_in, bytes_out, self.flag),
                // Rejected before an endpoint was chosen.
                None => find().add(bytes_in, bytes_out, self.flag),
            }
        }
        if !self.is_wanted() {
            return;
        }
        let duration = self.started.elapsed();
        let now = SystemTime::now();
        self.log.write(Line {
            began: now.checked_sub(duration).unwrap_or(now),
            router: self.router.clone(),
            client: self.client,
            listener: self.listener,
            tls: self.tls,
            host: self.host.take(),
            method: self.method.take(),
            path: self.path.take(),
            status: self.status,
            route: self.route.take().map(LineRoute::Resolved),
            endpoint: self.endpoint,
            bytes_in,
            bytes_out,
            answered: self.answered,
            duration,
            interim_dropped: self.interim_dropped,
            retries: self.tries.saturating_sub(1),
            flag: self.flag,
            data_path: self.data_path,
            captured: self.captured.take(),
        });
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;
    use router_access_log::{AccessLogForm, Counters};

    #[test]
    fn what_is_captured_is_cut_to_its_length() {
        let log = AccessLog::start(AccessLogForm::Json, Arc::new(Counters::default()));
        let (client, listener) = (([127, 0, 0, 1], 1).into(), ([127, 0, 0, 1], 2).into());
        let mut record = AccessRecord::new(RouterName("r".into()), client, listener, ServedBy::Proxy, &log);
        let capture = |name: &str, max_length| HeaderCapture { name: name.into(), max_length };
        let policy = AccessLogPolicy {
            request_headers: [capture("X-Long", 3), capture("X-None", 3)].into(),
            cookie: Some(CookieCapture { name: "id".into(), is_prefix: true, max_length: 6 }),
            ..AccessLogPolicy::default()
        };
        let fields = [("x-long", "first"), ("x-long", "abcdef"), ("cookie", "a=b; identity=long; id=2")];
        let fields = fields.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let headers: HeaderMap = fields.into_iter().collect();
        record.capture_request(&policy, &headers);
        let expected = Captured {
            request: vec![("X-Long".into(), Some("abc".to_owned())), ("X-None".into(), None)],
            request_cookie: Some("identi".to_owned()),
            ..Captured::default()
        };
        assert_eq!(record.captured().cloned(), Some(expected));
        record.discard();
    }
}
