//! Reads files that other processes may be writing.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::source::walk::Stamp;

/// Coarsest resolution of file times: a file changed more recently than this may change again with equal times.
const TIME_GRAIN: Duration = Duration::from_millis(50);
/// Maximum size of a file, in bytes.
const MAX_FILE: u64 = 64 << 20;
/// Maximum number of attempts to read a file that changes while it is read.
const READ_ATTEMPTS: usize = 3;

/// The text of a file, and its stamp when it was read.
pub struct FileText {
    /// The text.
    pub text: String,
    /// Its digest.
    pub digest: u64,
    /// The stamp when it was read.
    pub stamp: Stamp,
    /// True if the stamp was the same before and after reading.
    is_settled: bool,
}

impl FileText {
    /// Reads a file.
    pub fn read(path: &Path, hasher: &RandomState) -> io::Result<FileText> {
        let (text, stamp, is_settled) = read_settled(path)?;
        Ok(FileText { digest: hasher.hash_one(&text), text, stamp, is_settled })
    }

    /// True if the file must be read again although its stamp is the same.
    pub fn is_unsettled(&self) -> bool {
        !self.is_settled || is_recent(&self.stamp, TIME_GRAIN)
    }
}

/// Reads a file and its stamp before and after. The last value is true if both stamps are equal.
fn read_settled(path: &Path) -> io::Result<(String, Stamp, bool)> {
    let mut attempts = READ_ATTEMPTS;
    loop {
        let mut file = File::open(path)?;
        let before = Stamp::of(&file.metadata()?);
        // One more byte, so that reading detects the end without growing the buffer.
        let mut bytes = Vec::with_capacity(usize::try_from(before.size().min(MAX_FILE)).unwrap_or_default() + 1);
        let read = Read::by_ref(&mut file).take(MAX_FILE + 1).read_to_end(&mut bytes)?;
        if read as u64 > MAX_FILE {
            return Err(io::Error::other(format!("is larger than {MAX_FILE} bytes; split it")));
        }
        let after = Stamp::of(&file.metadata()?);
        attempts -= 1;
        if before == after || attempts == 0 {
            let text = String::from_utf8(bytes).map_err(|error| {
                let at = error.utf8_error().valid_up_to();
                io::Error::other(format!("byte {at} is no UTF-8; save the file as UTF-8"))
            })?;
            return Ok((text, after, before == after));
        }
    }
}

/// True if the file changed within this time, or in the (near) future.
pub fn is_recent(stamp: &Stamp, span: Duration) -> bool {
    let (seconds, nanoseconds) = stamp.latest();
    let (Ok(seconds), Ok(nanoseconds)) = (u64::try_from(seconds), u32::try_from(nanoseconds)) else { return false };
    let changed = UNIX_EPOCH + Duration::new(seconds, nanoseconds);
    match SystemTime::now().duration_since(changed) {
        Ok(age) => age < span,
        Err(ahead) => ahead.duration() < Duration::from_secs(60),
    }
}
