//! The files of a guest, in an initramfs: an archive of the format `newc` (Linux,
//! Documentation/driver-api/early-userspace/buffer-format.rst).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::process;

const FOLDERS: [&str; 9] = ["bin", "dev", "etc", "modules", "proc", "root", "run", "sys", "tmp"];
const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// What all guests have.
pub struct Initramfs {
    /// Files of this machine, by their path in the guest.
    files: BTreeMap<PathBuf, PathBuf>,
    /// Folders that are to be there.
    folders: Vec<PathBuf>,
    /// Where stripped programs are put.
    stripped: PathBuf,
}

impl Initramfs {
    /// Without any file; `stripped` is a folder for programs without their symbols.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn new(stripped: PathBuf) -> Result<Initramfs> {
        fs::create_dir_all(&stripped)?;
        Ok(Initramfs { files: BTreeMap::new(), folders: Vec::new(), stripped })
    }

    /// Adds a file unchanged.
    ///
    /// # Errors
    /// It does not exist.
    pub fn file(&mut self, to: impl Into<PathBuf>, from: &Path) -> Result<()> {
        let from = fs::canonicalize(from).with_context(|| format!("no {}", from.display()))?;
        self.files.insert(to.into(), from);
        Ok(())
    }

    /// A folder, empty.
    pub fn folder(&mut self, folder: &Path) {
        self.folders.push(folder.strip_prefix("/").unwrap_or(folder).to_owned());
    }

    /// A folder with all that is in it, where it is on this machine.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn tree(&mut self, folder: &Path) -> Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                self.tree(&path)?;
            } else {
                self.file(path.strip_prefix("/").unwrap_or(&path), &path)?;
            }
        }
        Ok(())
    }

    /// A program as `/bin/NAME`, without its symbols, and the libraries that it is linked with.
    ///
    /// # Errors
    /// When it cannot be read or its libraries cannot be found.
    pub fn program(&mut self, name: &str, from: &Path) -> Result<()> {
        let stripped = self.stripped.join(name);
        process::run(Command::new("strip").arg("-o").arg(&stripped).arg(from))?;
        let output = Command::new("ldd").arg(&stripped).output().context("`ldd` could not be started")?;
        ensure!(output.status.success(), "`ldd {}` failed", stripped.display());
        for library in libraries(&String::from_utf8_lossy(&output.stdout)) {
            self.file(library.trim_start_matches('/'), Path::new(library))?;
        }
        self.file(Path::new("bin").join(name), &stripped)
    }

    /// Writes the archive, with this guest's own files: its init script, and modules, which are loaded in order.
    ///
    /// # Errors
    /// A file cannot be read, or the archive cannot be written.
    pub fn write(&self, to: &Path, init: &str, modules: &[PathBuf]) -> Result<()> {
        let mut archive = Archive { to: BufWriter::new(File::create(to)?), at: 0, entries: 0 };
        let mut folders: BTreeSet<&Path> = FOLDERS.iter().map(Path::new).collect();
        for folder in &self.folders {
            folders.extend(folder.ancestors().filter(|folder| !folder.as_os_str().is_empty()));
        }
        for path in self.files.keys() {
            folders.extend(path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()));
        }
        for folder in folders {
            archive.entry(folder, FOLDER, &[])?;
        }
        archive.entry(Path::new("init"), PROGRAM, init.as_bytes())?;
        for (number, module) in modules.iter().enumerate() {
            let name = module.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let content = match name.strip_suffix(".xz") {
                Some(_) => decompressed(module)?,
                None => fs::read(module)?,
            };
            archive.entry(Path::new(&format!("modules/{number}-{name}")), PROGRAM, &content)?;
        }
        for (path, from) in &self.files {
            let content = fs::read(from).with_context(|| format!("reading {}", from.display()))?;
            archive.entry(path, PROGRAM, &content)?;
        }
        archive.end()
    }
}

/// The paths in what `ldd` prints: `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x…)`, `/lib64/ld-linux-x86-64.so.2 (0x…)`.
fn libraries(said: &str) -> impl Iterator<Item = &str> {
    said.split_whitespace().filter(|word| word.starts_with('/'))
}

fn decompressed(module: &Path) -> Result<Vec<u8>> {
    let output = Command::new("busybox").arg("xzcat").arg(module).output().context("`busybox` could not be started")?;
    ensure!(output.status.success(), "{} cannot be decompressed", module.display());
    Ok(output.stdout)
}

struct Archive<W> {
    to: W,
    at: usize,
    entries: usize,
}

impl<W: Write> Archive<W> {
    fn entry(&mut self, path: &Path, mode: u32, content: &[u8]) -> Result<()> {
        self.entries += 1;
        let name = path.as_os_str().as_bytes();
        // Magic, inode, mode, user, group, links, time, size, device and that of a device file (two numbers each), length of
        // the name with its zero, checksum.
        let header = format!(
            "070701{:08X}{mode:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}",
            self.entries,
            0,
            0,
            1,
            0,
            u32::try_from(content.len())?,
            0,
            0,
            0,
            0,
            name.len() + 1,
            0
        );
        self.put(header.as_bytes())?;
        self.put(name)?;
        self.put(&[0])?;
        self.align()?;
        self.put(content)?;
        self.align()
    }

    fn end(&mut self) -> Result<()> {
        self.entry(Path::new("TRAILER!!!"), 0, &[])?;
        Ok(self.to.flush()?)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.at += bytes.len();
        Ok(self.to.write_all(bytes)?)
    }

    /// Headers and contents begin at multiples of four.
    fn align(&mut self) -> Result<()> {
        self.put(&[0; 3][..self.at.wrapping_neg() % 4])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_headers_names_and_contents_at_multiples_of_four() {
        let mut archive = Archive { to: Vec::new(), at: 0, entries: 0 };
        archive.entry(Path::new("bin"), FOLDER, &[]).unwrap();
        archive.entry(Path::new("init"), PROGRAM, b"12345").unwrap();
        archive.end().unwrap();
        let text = String::from_utf8(archive.to).unwrap();
        assert_eq!(text.len() % 4, 0);
        let headers: Vec<usize> = text.match_indices("070701").map(|(at, _)| at).collect();
        // 110 bytes of header, a name with its zero, the content; each filled up.
        assert_eq!(headers, [0, 116, 116 + 116 + 8], "{text:?}");
        assert!(text[116..].starts_with("07070100000002000081ED"), "{text:?}");
        let expected = ["init\0\0", "12345\0\0\0"].concat();
        assert_eq!(text[116 + 110..116 + 116 + 8], expected);
        assert!(text.trim_end_matches('\0').ends_with("TRAILER!!!"));
    }

    #[test]
    fn libraries_are_read_from_what_ldd_prints() {
        let said =
            "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/libc.so.6 (0x2)\n\t/lib64/ld-linux-x86-64.so.2 (0x3)\n";
        assert_eq!(libraries(said).collect::<Vec<_>>(), ["/lib/libc.so.6", "/lib64/ld-linux-x86-64.so.2"]);
    }
}
