//! Archives of the format ustar (POSIX.1-1988), without times and owners.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};

const BLOCK: usize = 512;

/// An archive.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    folders: BTreeSet<String>,
}

impl Archive {
    /// Adds a file that everyone may run.
    ///
    /// # Errors
    /// When its name has more than 99 bytes.
    pub fn program(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        self.file(name, 0o755, bytes)
    }

    /// Adds a file that everyone may read.
    ///
    /// # Errors
    /// When its name has more than 99 bytes.
    pub fn text(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        self.file(name, 0o644, bytes)
    }

    /// The bytes of the archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.extend([0; 2 * BLOCK]);
        self.bytes
    }

    fn file(&mut self, name: &str, mode: u32, bytes: &[u8]) -> Result<()> {
        for (end, _) in name.match_indices('/') {
            let folder = &name[..=end];
            if self.folders.insert(folder.to_owned()) {
                self.header(folder, 0o755, 0, b'5')?;
            }
        }
        self.header(name, mode, bytes.len(), b'0')?;
        self.bytes.extend(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(BLOCK), 0);
        Ok(())
    }

    fn header(&mut self, name: &str, mode: u32, size: usize, kind: u8) -> Result<()> {
        ensure!(name.len() < 100, "{name} is too long for an archive");
        let mut header = [0; BLOCK];
        let mut put = |at: usize, field: &[u8]| header[at..at + field.len()].copy_from_slice(field);
        put(0, name.as_bytes());
        put(100, format!("{mode:07o}").as_bytes());
        // Owner and group, and the time of the last change, are 0.
        put(108, b"0000000");
        put(116, b"0000000");
        put(124, format!("{size:011o}").as_bytes());
        put(136, b"00000000000");
        // The checksum counts its own field as spaces.
        put(148, b"        ");
        put(156, &[kind]);
        put(257, b"ustar\x0000");
        let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.bytes.extend(header);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn tar_unpacks_what_was_packed() {
        let mut archive = Archive::default();
        let long = vec![7; 1000];
        archive.program("usr/bin/program", &long).unwrap();
        archive.text("usr/share/text", b"text").unwrap();
        archive.text("empty", b"").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("archive.tar");
        fs::write(&file, archive.finish()).unwrap();
        let unpacked = Command::new("tar").arg("-xf").arg(&file).arg("-C").arg(folder.path()).output().unwrap();
        assert!(unpacked.status.success() && unpacked.stderr.is_empty(), "{unpacked:?}");
        let program = folder.path().join("usr/bin/program");
        assert_eq!(fs::read(&program).unwrap(), long);
        assert_eq!(fs::metadata(program).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read(folder.path().join("usr/share/text")).unwrap(), b"text");
        assert_eq!(fs::read(folder.path().join("empty")).unwrap(), b"");
        assert!(Archive::default().text(&"a".repeat(100), b"").is_err());
    }
}
