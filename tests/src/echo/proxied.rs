//! PROXY protocol headers of both versions.

use std::io::{self, ErrorKind};

use proxy_header::{ParseConfig, ProxyHeader};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Signature of version 2; the last of the next 4 bytes is the length of the rest.
const V2: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Maximum length of a header of version 1, in bytes.
const LONGEST_V1: usize = 107;

/// Reads exactly a header; returns its content without the client's port.
pub async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<String> {
    let mut bytes = vec![0; V2.len()];
    stream.read_exact(&mut bytes).await?;
    let version = if bytes == V2 {
        let mut rest = [0; 4];
        stream.read_exact(&mut rest).await?;
        bytes.extend_from_slice(&rest);
        let at = bytes.len();
        bytes.resize(at + usize::from(u16::from_be_bytes([rest[2], rest[3]])), 0);
        stream.read_exact(&mut bytes[at..]).await?;
        2
    } else {
        while !bytes.ends_with(b"\n") && bytes.len() < LONGEST_V1 {
            bytes.push(stream.read_u8().await?);
        }
        1
    };
    let (header, _) = ProxyHeader::parse(&bytes, ParseConfig::default())
        .map_err(|error| io::Error::new(ErrorKind::InvalidData, format!("{error:?}")))?;
    Ok(match header.proxied_address() {
        Some(addresses) => {
            format!("PROXY version {version}: {} to {}", addresses.source.ip(), addresses.destination)
        }
        None => format!("PROXY version {version}: local"),
    })
}
