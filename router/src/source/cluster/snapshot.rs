//! A file of the objects held, for a start while the API server cannot be reached.
//!
//! It is a log: a header, then one line for each object set or removed, with a checksum. What follows a damaged line is
//! lost. A new file is begun beside the old one at each start, and replaces it when every kind was listed. It is copied
//! without what was superseded when that is more than what is in force. It has Secrets in clear.

pub mod writer;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::SystemTime;

use router_model::kind::Kind;
use router_model::object::{ObjectKey, ObjectRef};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum length of a line, in bytes; the API server's limit of an object is 3 MiB.
const MAX_LINE: u64 = 16 << 20;
/// Number of bytes of the checksum before a line's text.
const SUM: usize = 9;

/// Where a snapshot is, and of what.
#[derive(Clone, Debug)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// URL of the API server.
    pub server: String,
    /// Namespaces that are read, separated by commas.
    pub namespaces: String,
}

/// The first line.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    version: u32,
    server: String,
    namespaces: String,
}

impl Place {
    fn header(&self) -> Header {
        Header { version: 1, server: self.server.clone(), namespaces: self.namespaces.clone() }
    }

    /// Name of a file that is not complete.
    fn beside(&self) -> PathBuf {
        self.path.with_extension("new")
    }
}

/// A snapshot that was left by an earlier agent.
pub struct Snapshot {
    file: File,
    /// Offset and length of the newest line of each object that was not removed.
    lines: BTreeMap<ObjectRef, (u64, usize)>,
    /// Length of what is intact.
    intact: u64,
}

impl Snapshot {
    /// Opens a snapshot; `None` if there is none of this cluster.
    ///
    /// # Errors
    /// The file cannot be read. Damage is no error.
    pub fn open(place: &Place) -> io::Result<Option<Snapshot>> {
        let file = match File::open(&place.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let (header, snapshot) = Snapshot::read(file)?;
        if snapshot.intact < snapshot.file.metadata()?.len() {
            tracing::warn!(path = %place.path.display(), offset = snapshot.intact,
                "the snapshot is damaged: what follows is not used");
        }
        let is_of_cluster = header == Some(place.header());
        if !is_of_cluster {
            tracing::info!(path = %place.path.display(), "the snapshot is of another API server, or of other namespaces: it is not used");
        }
        Ok(is_of_cluster.then_some(snapshot))
    }

    fn read(mut file: File) -> io::Result<(Option<Header>, Snapshot)> {
        file.rewind()?;
        let (mut reader, mut line) = (BufReader::new(file), Vec::new());
        let (mut intact, mut lines) = (0, BTreeMap::new());
        let header = next_line(&mut reader, &mut line)?.and_then(|text| serde_json::from_slice(text).ok());
        while header.is_some() {
            intact += line.len() as u64;
            let Some(text) = next_line(&mut reader, &mut line)? else { break };
            type Record = (String, String, String, Option<IgnoredAny>);
            let Ok((kind, namespace, name, value)) = serde_json::from_slice::<Record>(text) else { break };
            // Another version may read kinds that this one does not.
            let Some(kind) = Kind::ALL.into_iter().find(|known| known.name() == kind) else { continue };
            let object = ObjectRef { kind, key: ObjectKey::new(&namespace, &name) };
            match value {
                Some(_) => lines.insert(object, (intact, line.len())),
                None => lines.remove(&object),
            };
        }
        Ok((header, Snapshot { file: reader.into_inner(), lines, intact }))
    }

    /// When it was last known to be current.
    ///
    /// # Errors
    /// Of the file.
    pub fn as_of(&self) -> io::Result<SystemTime> {
        self.file.metadata()?.modified()
    }

    /// The objects.
    pub fn objects(&self) -> impl Iterator<Item = &ObjectRef> {
        self.lines.keys()
    }

    /// An object, with `apiVersion` and `kind`.
    pub fn value(&self, object: &ObjectRef) -> Option<Value> {
        let line = self.line(*self.lines.get(object)?).ok()?;
        let record = serde_json::from_slice::<(IgnoredAny, IgnoredAny, IgnoredAny, Value)>(line.get(SUM..)?);
        Some(record.ok()?.3)
    }

    fn line(&self, (offset, length): (u64, usize)) -> io::Result<Vec<u8>> {
        let mut line = vec![0; length];
        self.file.read_exact_at(&mut line, offset)?;
        Ok(line)
    }
}

/// Reads a line. Returns its text; `None` at the end, or if the line is damaged.
fn next_line<'a>(reader: &mut impl BufRead, line: &'a mut Vec<u8>) -> io::Result<Option<&'a [u8]>> {
    line.clear();
    io::Read::take(reader, MAX_LINE).read_until(b'\n', line)?;
    let parts = line.strip_suffix(b"\n").and_then(|line| line.split_at_checked(SUM));
    Ok(parts.filter(|(sum, text)| *sum == checksum(text).as_bytes()).map(|(_, text)| text))
}

/// Appends a line.
fn append(lines: &mut Vec<u8>, record: &impl Serialize) {
    let begin = lines.len();
    lines.extend([0; SUM]);
    // Neither the record's maps nor a vector fail.
    let _ = serde_json::to_writer(&mut *lines, record);
    let sum = checksum(lines.get(begin + SUM..).unwrap_or_default());
    lines.splice(begin..begin + SUM, sum.bytes());
    lines.push(b'\n');
}

fn checksum(text: &[u8]) -> String {
    format!("{:08x} ", crc32fast::hash(text))
}
