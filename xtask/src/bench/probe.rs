//! Looking whether a change has arrived: in the proxy by a request, in the kernel by a map lookup.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// Longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A backend on a port of its own that answers every request with 200, until the process ends.
pub fn backend() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream));
        }
    });
    Ok(address)
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            read => request.extend_from_slice(&buffer[..read]),
        }
        if request.ends_with(b"\r\n\r\n") {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")?;
            request.clear();
        }
    }
}

/// Whether the proxy serves a host: the status code of a request on a new connection is 200.
pub fn serves(port: u16, host: &str) -> Result<bool> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut head = [0; 12];
    stream.read_exact(&mut head).context("the proxy answers")?;
    Ok(head == *b"HTTP/1.1 200")
}

/// A pinned map with keys of router, padding and host.
pub struct HostMap {
    pin: PathBuf,
    router: [u8; 4],
}

/// Bytes of the host in a key.
const HOST_FIELD: usize = 256;

impl HostMap {
    /// Opens it. The router's id is read from the first key that is there.
    pub fn open(pin: &Path) -> Result<HostMap> {
        let output = Command::new("bpftool").args(["-j", "map", "getnext", "pinned"]).arg(pin).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "bpftool map getnext pinned {}: {}", pin.display(), text.trim());
        let (_, key) = text.split_once("\"next_key\":[").context("bpftool printed no key")?;
        let bytes: Vec<u8> = key
            .split('"')
            .filter_map(|part| part.strip_prefix("0x"))
            .filter_map(|hex| u8::from_str_radix(hex, 16).ok())
            .collect();
        let router = bytes.get(..4).and_then(|id| id.try_into().ok()).context("the key is too short")?;
        Ok(HostMap { pin: pin.to_owned(), router })
    }

    /// Whether the kernel has an entry for the host.
    pub fn has(&self, host: &str) -> Result<bool> {
        let mut key = Vec::from(self.router);
        key.extend([0; 4]);
        key.extend(host.bytes());
        key.resize(8 + HOST_FIELD, 0);
        let mut command = Command::new("bpftool");
        command.args(["map", "lookup", "pinned"]).arg(&self.pin).args(["key", "hex"]);
        command.args(key.iter().map(|byte| format!("{byte:02x}")));
        Ok(command.output().context("bpftool cannot be run")?.status.success())
    }
}

/// A port that is free now.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?.local_addr()?.port())
}
