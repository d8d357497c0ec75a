//! The last step of the shipped build: BOLT reorders its machine code by the profile of the load (Panchenko et al., CGO
//! 2019; the README of LLVM's `bolt`). The compiler lays out each function before the linker knows them all; here,
//! blocks on hot paths are placed together across functions, and cold ones elsewhere.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use anyhow::{Context, Result, ensure};

use crate::{install, process};

/// Relocations that BOLT needs in the build.
pub const LINK: &str = "-Clink-arg=-Wl,--emit-relocs";
/// Debian's package.
const PACKAGE: &str = "bolt-19";
/// Its programs, or whatever is on the path. Called by its name on the path Debian's does not find its own library.
const PROGRAMS: [(&str, &str); 2] =
    [("/usr/lib/llvm-19/bin/llvm-bolt", "/usr/lib/llvm-19/bin/merge-fdata"), ("llvm-bolt", "merge-fdata")];
/// Blocks by how likely one follows another, functions by who calls whom; cold blocks and cold functions elsewhere; lines
/// of backtraces as they were.
const ORDER: [&str; 7] = [
    "-reorder-blocks=ext-tsp",
    "-reorder-functions=cdsort",
    "-split-functions",
    "-split-strategy=profile2",
    "-split-all-cold",
    "-icf=1",
    "-update-debug-sections",
];

/// LLVM's programs.
pub struct Layout {
    bolt: &'static str,
    merge: &'static str,
}

impl Layout {
    /// The programs, installed if Debian has them. Without them, which is reported, the code keeps the compiler's
    /// layout.
    pub fn find() -> Option<Layout> {
        let find = || PROGRAMS.into_iter().find(|(bolt, _)| process::succeeds(Command::new(bolt).arg("--version")));
        if find().is_none()
            && let Err(error) = install::packages(&[PACKAGE])
        {
            eprintln!("xtask: {error:#}; the code stays as the compiler lays it out");
        }
        find().map(|(bolt, merge)| Layout { bolt, merge })
    }

    /// Lays `built` out by what `load` runs through, in a folder for the steps between; where the result is.
    ///
    /// # Errors
    /// When a step fails.
    pub fn of(&self, built: &Path, folder: &Path, load: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
        }
        let [counts, counting, merged, laid_out] =
            ["counts", "sluice.counting", "sluice.fdata", "sluice"].map(|name| folder.join(name));
        fs::create_dir_all(&counts).with_context(|| format!("making {}", counts.display()))?;
        let mut to = OsString::from("-instrumentation-file=");
        to.push(counts.join("counts"));
        // One file for each process.
        let instrument = [OsStr::new("-instrument"), &to, OsStr::new("-instrumentation-file-append-pid")];
        self.bolt(built, &counting, instrument)?;
        load(&counting)?;

        let counts: Vec<PathBuf> = fs::read_dir(&counts)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
        ensure!(!counts.is_empty(), "the build that counts for the layout has written nothing");
        let to = fs::File::create(&merged).with_context(|| format!("writing {}", merged.display()))?;
        process::run(Command::new(self.merge).args(&counts).stdout(to).stderr(Stdio::null()))?;
        let mut by = OsString::from("-data=");
        by.push(&merged);
        self.bolt(built, &laid_out, ORDER.iter().map(OsStr::new).chain([by.as_os_str()]))?;
        Ok(laid_out)
    }

    fn bolt<'a>(&self, from: &Path, to: &Path, how: impl IntoIterator<Item = &'a OsStr>) -> Result<()> {
        let output = Command::new(self.bolt).arg(from).arg("-o").arg(to).args(how).output().context(self.bolt)?;
        // BOLT warns at length about assembler code that it leaves unchanged: only a failure is worth printing, from
        // its end.
        let said = String::from_utf8_lossy(&output.stderr);
        let first = said.len().saturating_sub(2000);
        let end = said.get(said.ceil_char_boundary(first)..).unwrap_or_default();
        ensure!(output.status.success(), "{} failed ({}): … {end}", self.bolt, output.status);
        Ok(())
    }
}
