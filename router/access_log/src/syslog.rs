//! Sends lines to a syslog server as HAProxy does: RFC 3164 over UDP, with the host's name, one line per datagram.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::OnceLock;
use std::time::SystemTime;

use jiff::tz::TimeZone;
use router_table::policy::access_log::Syslog;

/// `info` (RFC 3164 §4.1.1).
const SEVERITY: u16 = 6;

/// The sending sockets, opened on first use.
#[derive(Debug, Default)]
pub struct SyslogSender {
    v4: Option<UdpSocket>,
    v6: Option<UdpSocket>,
}

impl SyslogSender {
    /// Sends a line without waiting.
    ///
    /// # Errors
    /// When it cannot be sent, or the socket's buffer is full.
    pub fn send(&mut self, to: &Syslog, at: SystemTime, text: &str) -> io::Result<()> {
        let socket = match (to.address, &mut self.v4, &mut self.v6) {
            (SocketAddr::V4(_), Some(socket), _) | (SocketAddr::V6(_), _, Some(socket)) => socket,
            (SocketAddr::V4(_), none, _) => none.insert(open((Ipv4Addr::UNSPECIFIED, 0).into())?),
            (SocketAddr::V6(_), _, none) => none.insert(open((Ipv6Addr::UNSPECIFIED, 0).into())?),
        };
        socket.send_to(message(to, at, text).as_bytes(), to.address).map(drop)
    }
}

fn open(from: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(from)?;
    // The log must not wait for the network.
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// A message, truncated to the server's limit.
fn message(to: &Syslog, at: SystemTime, text: &str) -> String {
    let at = jiff::Timestamp::try_from(at).unwrap_or_default().to_zoned(TimeZone::UTC);
    let priority = u16::from(to.facility) * 8 + SEVERITY;
    let host = host_name().unwrap_or_else(|| "-".to_owned());
    let (at, process) = (at.strftime("%b %e %H:%M:%S"), std::process::id());
    let mut message = format!("<{priority}>{at} {host} sluice[{process}]: {text}");
    // HAProxy appends a line feed, which counts towards the limit.
    let mut end = message.len().min(to.max_length.saturating_sub(1));
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.truncate(end);
    message.push('\n');
    message
}

/// The host's name.
pub fn host_name() -> Option<String> {
    static NAME: OnceLock<Option<String>> = OnceLock::new();
    let read = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    NAME.get_or_init(|| read().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty())).clone()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn server(max_length: usize) -> Syslog {
        Syslog { address: ([127, 0, 0, 1], 514).into(), facility: 17, max_length }
    }

    #[test]
    fn a_message_has_the_header_of_rfc_3164_and_fits() {
        let at = UNIX_EPOCH + Duration::from_secs(1_699_400_000);
        let header = format!("<142>Nov  7 23:33:20 {} sluice[{}]: ", host_name().unwrap(), std::process::id());
        assert_eq!(message(&server(1024), at, "a line"), format!("{header}a line\n"));
        let long = message(&server(480), at, &"x".repeat(1000));
        assert_eq!((long.len(), long.ends_with("x\n")), (480, true));
        // Of two bytes the last would be cut.
        let text = "x".repeat(478 - header.len()) + "é";
        assert_eq!(message(&server(480), at, &text), format!("{header}{}\n", "x".repeat(478 - header.len())));
    }

    #[test]
    fn lines_arrive_over_both_families_and_a_server_that_cannot_be_sent_to_is_an_error() {
        let mut sender = SyslogSender::default();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let socket = UdpSocket::bind(address).unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            let to = Syslog { address: socket.local_addr().unwrap(), ..server(1024) };
            for text in ["one", "two"] {
                sender.send(&to, SystemTime::now(), text).unwrap();
                let mut buffer = [0; 2048];
                let length = socket.recv(&mut buffer).unwrap();
                let message = std::str::from_utf8(&buffer[..length]).unwrap();
                assert!(message.starts_with("<142>") && message.ends_with(&format!(": {text}\n")), "{message}");
            }
        }
        let nowhere = Syslog { address: "127.0.0.1:0".parse().unwrap(), ..server(1024) };
        assert!(sender.send(&nowhere, SystemTime::now(), "lost").is_err());
    }
}
