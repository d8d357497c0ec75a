//! Copies a request's body while it is read, without delaying the reader. If a copy is consumed more slowly than the
//! original, its data waits in memory up to a limit; beyond it the copy is abandoned.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use hyper::body::Frame;
use tokio::sync::mpsc;

use super::upload_error::UploadError;

/// Most waiting bytes of a copy.
pub const MAX_WAITING: usize = 256 * 1024;
/// Overhead of a waiting part in bytes.
const OVERHEAD: usize = 128;

#[derive(Debug)]
enum TeePart {
    Data(Bytes),
    Trailers(HeaderMap),
    End,
}

/// The copies of a body.
#[derive(Debug, Default)]
pub struct Tee(Vec<TeeWriter>);

/// The writing end of a copy. If it is dropped before the body's end, the copy is incomplete.
#[derive(Debug)]
pub struct TeeWriter {
    parts: mpsc::UnboundedSender<TeePart>,
    waiting: Arc<AtomicUsize>,
}

/// The reading end of a copy.
#[derive(Debug)]
pub struct CopyBody {
    parts: mpsc::UnboundedReceiver<TeePart>,
    waiting: Arc<AtomicUsize>,
    ended: bool,
}

/// Creates both ends of a copy.
pub fn copy() -> (TeeWriter, CopyBody) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let waiting = Arc::<AtomicUsize>::default();
    let writer = TeeWriter { parts: sender, waiting: Arc::clone(&waiting) };
    (writer, CopyBody { parts: receiver, waiting, ended: false })
}

impl Tee {
    /// Adds a copy that begins with the next frame.
    pub fn add(&mut self, writer: TeeWriter) {
        self.0.push(writer);
    }

    /// Copies a frame. `ended`: it is the last one.
    pub fn pass(&mut self, polled: &Poll<Option<Result<Frame<Bytes>, UploadError>>>, ended: bool) {
        match polled {
            Poll::Pending => {}
            Poll::Ready(Some(Ok(frame))) => {
                self.0.retain(|writer| writer.write(frame));
                if ended || frame.is_trailers() {
                    self.end();
                }
            }
            Poll::Ready(Some(Err(_))) => self.0.clear(),
            Poll::Ready(None) => self.end(),
        }
    }

    fn end(&mut self) {
        for writer in self.0.drain(..) {
            // An error means that the reader is gone.
            let _ = writer.parts.send(TeePart::End);
        }
    }
}

impl TeeWriter {
    /// False if the copy is to be abandoned: it is read too slowly, or not at all.
    fn write(&self, frame: &Frame<Bytes>) -> bool {
        let part = match (frame.data_ref(), frame.trailers_ref()) {
            (Some(data), _) => TeePart::Data(data.clone()),
            (None, Some(trailers)) => TeePart::Trailers(trailers.clone()),
            (None, None) => return true,
        };
        // A single part may wait, whatever its size.
        let before = self.waiting.fetch_add(part.size(), Ordering::Relaxed);
        (before == 0 || before + part.size() <= MAX_WAITING) && self.parts.send(part).is_ok()
    }
}

impl TeePart {
    fn size(&self) -> usize {
        let size = match self {
            TeePart::Data(data) => data.len(),
            TeePart::Trailers(trailers) => trailers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum(),
            TeePart::End => 0,
        };
        size + OVERHEAD
    }
}

impl CopyBody {
    /// The next frame; an error if the copy was abandoned or the body is incomplete.
    pub fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        self.parts.poll_recv(cx).map(|part| {
            let size = part.as_ref().map_or(0, TeePart::size);
            match part {
                Some(TeePart::Data(data)) => {
                    self.waiting.fetch_sub(size, Ordering::Relaxed);
                    Some(Ok(Frame::data(data)))
                }
                Some(TeePart::Trailers(trailers)) => {
                    self.waiting.fetch_sub(size, Ordering::Relaxed);
                    Some(Ok(Frame::trailers(trailers)))
                }
                Some(TeePart::End) => {
                    self.ended = true;
                    None
                }
                None => Some(Err(UploadError::GivenUp)),
            }
        })
    }

    /// Whether all of it was read.
    pub fn is_end_stream(&self) -> bool {
        self.ended
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use futures_util::FutureExt;

    use super::*;

    fn data(bytes: Vec<u8>) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        Poll::Ready(Some(Ok(Frame::data(bytes.into()))))
    }

    fn next(copy: &mut CopyBody) -> Option<Option<Result<Bytes, UploadError>>> {
        let part = poll_fn(|cx| copy.poll_frame(cx)).now_or_never()?;
        Some(part.map(|frame| frame.map(|frame| frame.into_data().unwrap())))
    }

    fn taken(copy: &mut CopyBody) -> Bytes {
        next(copy).unwrap().unwrap().unwrap()
    }

    #[test]
    fn each_copy_has_all_parts_and_the_end() {
        let mut tee = Tee::default();
        let mut copies: Vec<CopyBody> = (0..2)
            .map(|_| {
                let (writer, copy) = copy();
                tee.add(writer);
                copy
            })
            .collect();
        tee.pass(&Poll::Pending, false);
        tee.pass(&data(b"one".to_vec()), false);
        tee.pass(&data(b"two".to_vec()), true);
        for copy in &mut copies {
            assert_eq!((taken(copy), taken(copy)), (Bytes::from("one"), Bytes::from("two")));
            assert!(matches!(next(copy), Some(None)) && copy.is_end_stream());
        }
    }

    #[test]
    fn a_body_that_breaks_off_breaks_its_copies() {
        let mut tee = Tee::default();
        let (writer, mut copy) = copy();
        tee.add(writer);
        tee.pass(&data(b"one".to_vec()), false);
        drop(tee);
        assert_eq!(taken(&mut copy), "one");
        assert!(matches!(next(&mut copy), Some(Some(Err(UploadError::GivenUp)))));
    }

    #[test]
    fn only_the_slow_copy_is_given_up() {
        let mut tee = Tee::default();
        let (slow, mut slow_copy) = copy();
        let (quick, mut quick_copy) = copy();
        tee.add(slow);
        tee.add(quick);
        let part = 64 * 1024;
        for _ in 0..MAX_WAITING / part + 2 {
            tee.pass(&data(vec![0; part]), false);
            assert_eq!(taken(&mut quick_copy).len(), part);
        }
        assert_eq!(tee.0.len(), 1);
        tee.pass(&Poll::Ready(None), true);
        assert!(matches!(next(&mut quick_copy), Some(None)));
        let mut waited = 0;
        while let Some(Some(Ok(bytes))) = next(&mut slow_copy) {
            waited += bytes.len();
        }
        assert!(waited <= MAX_WAITING && waited > 0, "{waited}");
        assert!(!slow_copy.is_end_stream());
    }

    #[test]
    fn one_large_part_is_copied_and_many_small_ones_are_bounded() {
        let (writer, mut large) = copy();
        let mut tee = Tee::default();
        tee.add(writer);
        tee.pass(&data(vec![0; 2 * MAX_WAITING]), true);
        assert_eq!(taken(&mut large).len(), 2 * MAX_WAITING);
        let (writer, _small) = copy();
        tee.add(writer);
        for _ in 0..=MAX_WAITING / OVERHEAD {
            tee.pass(&data(vec![0]), false);
        }
        assert!(tee.0.is_empty());
    }
}
