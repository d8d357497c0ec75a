//! Coalesces short slices into one write: `send` with one slice is cheaper than `writev` with several, and nearly every
//! head, alone or with a short body, is short.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Up to this many bytes are copied instead of written in place.
const SHORT: usize = 1024;

/// As `AsyncWrite::poll_write_vectored`.
pub fn poll_write<S: AsyncWrite>(
    stream: Pin<&mut S>,
    cx: &mut Context<'_>,
    slices: &[IoSlice<'_>],
) -> Poll<io::Result<usize>> {
    let mut filled = slices.iter().filter(|slice| !slice.is_empty());
    match (filled.next(), filled.next()) {
        (None, _) => return Poll::Ready(Ok(0)),
        (Some(only), None) => return stream.poll_write(cx, only),
        _ => {}
    }
    if slices.iter().map(|slice| slice.len()).sum::<usize>() > SHORT {
        return stream.poll_write_vectored(cx, slices);
    }
    let mut joined = [0; SHORT];
    let mut rest = &mut joined[..];
    for slice in slices {
        let (place, behind) = rest.split_at_mut_checked(slice.len()).unwrap_or_default();
        place.copy_from_slice(slice);
        rest = behind;
    }
    let left = rest.len();
    stream.poll_write(cx, joined.get(..SHORT - left).unwrap_or_default())
}

/// A stream whose writes are coalesced.
#[derive(Debug)]
pub struct CoalescedWrite<S>(pub S);

impl<S: AsyncRead + Unpin> AsyncRead for CoalescedWrite<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CoalescedWrite<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        poll_write(Pin::new(&mut self.0), cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    /// Every split of a message, with room for all of it: the bytes keep their order, and all are counted.
    #[tokio::test]
    async fn slices_are_written_in_their_order() -> anyhow::Result<()> {
        for length in [0, 1, 2, SHORT - 1, SHORT, SHORT + 1, 3 * SHORT] {
            let message: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            for (one, two) in [(0, 0), (0, length), (1, 2), (length / 3, length / 2), (length, length)] {
                let (one, two) = (one.min(length), two.min(length));
                let slices =
                    [&message[..one], &message[one..two], &[], &message[two..]].map(|part: &[u8]| IoSlice::new(part));
                let (mut to, mut from) = tokio::io::duplex(4 * SHORT);
                let written =
                    std::future::poll_fn(|cx| Pin::new(&mut CoalescedWrite(&mut to)).poll_write_vectored(cx, &slices))
                        .await?;
                drop(to);
                let mut read = Vec::new();
                from.read_to_end(&mut read).await?;
                assert_eq!(read, message[..written], "{length} bytes cut at {one} and {two}");
                assert!(written == length || length > SHORT, "{written} of {length}");
            }
        }
        Ok(())
    }
}
