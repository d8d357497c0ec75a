//! Debian's cloud kernels: downloaded by apt as packages, without installing them, and kept unpacked in `target/kernels`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::process;

/// A suite of Debian's archive.
pub struct Suite {
    /// Its name.
    pub name: &'static str,
    /// Whether its kernel has links of TCX (Linux 6.6).
    pub tcx: bool,
}

/// Suites whose kernels are booted: 6.1, with the strictest supported verifier; 6.12; and the newest.
pub const SUITES: [Suite; 3] =
    [Suite { name: "bookworm", tcx: false }, Suite { name: "trixie", tcx: true }, Suite { name: "sid", tcx: true }];

/// The package that depends on the suite's current kernel.
const CURRENT: &str = "linux-image-cloud-amd64";
const MIRROR: &str = "http://deb.debian.org/debian";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// How long a suite's kernel is used before apt is asked for a newer one.
const FRESH: Duration = Duration::from_secs(7 * 24 * 3600);

/// A kernel, unpacked.
pub struct UnpackedKernel {
    /// Release, as `uname -r` prints it.
    pub version: String,
    /// The kernel image.
    pub image: PathBuf,
    modules: PathBuf,
}

impl UnpackedKernel {
    /// The current kernel of a suite, downloaded unless that was done within a week; without a network, the last
    /// download.
    ///
    /// # Errors
    /// There is none.
    pub fn of(folder: &Path, suite: &Suite) -> Result<UnpackedKernel> {
        let folder = folder.join(suite.name);
        let stamp = folder.join("downloaded");
        let age = fs::metadata(&stamp).and_then(|file| file.modified()).ok().and_then(|time| time.elapsed().ok());
        if age.is_none_or(|age| age > FRESH) {
            match download(&folder, suite.name) {
                Ok(()) => fs::write(&stamp, "")?,
                Err(error) if age.is_some() => {
                    eprintln!("xtask: going on with an older kernel of {}: {error:#}", suite.name)
                }
                Err(error) => return Err(error.context(format!("the kernel of Debian's {} cannot be had", suite.name))),
            }
        }
        UnpackedKernel::unpacked(&folder.join("root"))
    }

    fn unpacked(root: &Path) -> Result<UnpackedKernel> {
        // Where `/lib` is a link the package may have either.
        let modules =
            ["usr/lib/modules", "lib/modules"].map(|path| root.join(path)).into_iter().find(|path| path.is_dir());
        let modules = modules.with_context(|| format!("no kernel modules in {}", root.display()))?;
        let version = fs::read_dir(&modules)?.next().context("no kernel's modules")??.file_name();
        let version = version.to_string_lossy().into_owned();
        let modules = modules.join(&version);
        let images = [root.join("boot").join(format!("vmlinuz-{version}")), modules.join("vmlinuz")];
        let image = images.into_iter().find(|path| path.is_file());
        let image = image.with_context(|| format!("no image of Linux {version} in {}", root.display()))?;
        Ok(UnpackedKernel { version, image, modules })
    }

    /// A module, by name.
    ///
    /// # Errors
    /// When the kernel has no such module.
    pub fn module(&self, name: &str) -> Result<PathBuf> {
        let file = |path: &Path| {
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            file.split_once(".ko").is_some_and(|(stem, compressed)| stem == name && ["", ".xz"].contains(&compressed))
        };
        walk(&self.modules, &file)?.with_context(|| format!("Linux {} has no module {name}", self.version))
    }
}

/// The first matching file below a folder.
fn walk(folder: &Path, wanted: &dyn Fn(&Path) -> bool) -> Result<Option<PathBuf>> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let found = if entry.file_type()?.is_dir() {
            walk(&entry.path(), wanted)?
        } else {
            Some(entry.path()).filter(|path| wanted(path))
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Downloads and unpacks the packages of a suite's current kernel. apt keeps its lists in the folder, and what this system
/// knows and has installed is not touched; its proxy, if it has one, is used.
fn download(folder: &Path, suite: &str) -> Result<()> {
    let apt = Apt::new(folder, suite)?;
    apt.run("apt-get", &["update"])?;
    let current = apt.depends(CURRENT, |name| name.starts_with("linux-image-"))?;
    let image = current.first().with_context(|| format!("{CURRENT} depends on no kernel"))?;
    // Newer ones have the image and the modules in packages of their own.
    let parts = |name: &str| name.starts_with("linux-binary-") || name.starts_with("linux-modules-");
    let mut packages = apt.depends(image, parts)?;
    packages.push(image.clone());
    let archives = folder.join("archives");
    remove(&archives)?;
    fs::create_dir_all(&archives)?;
    for package in &packages {
        apt.run("apt-get", &["download", package])?;
    }
    let root = folder.join("root");
    remove(&root)?;
    for archive in fs::read_dir(&archives)? {
        process::run(Command::new("dpkg").arg("-x").arg(archive?.path()).arg(&root))?;
    }
    remove(&archives)
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// apt with one suite and a state of its own.
struct Apt {
    folder: PathBuf,
}

impl Apt {
    fn new(folder: &Path, suite: &str) -> Result<Apt> {
        for part in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(folder.join(part))?;
        }
        let source = format!("deb [signed-by={KEYRING}] {MIRROR} {suite} main\n");
        fs::write(folder.join("sources.list"), source)?;
        Ok(Apt { folder: folder.to_owned() })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let folder = self.folder.display();
        for option in [
            format!("Dir::Etc::SourceList={folder}/sources.list"),
            "Dir::Etc::SourceParts=-".to_owned(),
            format!("Dir::State::Lists={folder}/lists"),
            format!("Dir::Cache={folder}/cache"),
            // The folder may be where apt's own user cannot go.
            "APT::Sandbox::User=root".to_owned(),
            "Acquire::Languages=none".to_owned(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".to_owned(),
        ] {
            command.args(["-o", &option]);
        }
        command.stdin(Stdio::null()).env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive");
        command
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let mut command = self.command(program);
        let archives = self.folder.join("archives");
        if archives.is_dir() {
            command.current_dir(archives);
        }
        let output = command.args(arguments).output().with_context(|| format!("{program} could not be started"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`{program} {}` failed: {}", arguments.join(" "), said.trim());
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Packages that one depends on.
    fn depends(&self, package: &str, wanted: impl Fn(&str) -> bool) -> Result<Vec<String>> {
        Ok(dependencies(&self.run("apt-cache", &["depends", package])?).filter(|name| wanted(name)).collect())
    }
}

/// The names in lines such as `  Depends: linux-image-6.1.0-50-cloud-amd64`.
fn dependencies(said: &str) -> impl Iterator<Item = String> {
    let names = said.lines().filter_map(|line| line.trim().trim_start_matches('|').strip_prefix("Depends: "));
    names.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_read() {
        let said = "linux-image-7.2.13+deb14-cloud-amd64\n |Depends: dracut\n  Depends: linux-binary-7.2.13+deb14-cloud-amd64\n  \
                    Suggests: grub-pc\n";
        assert_eq!(dependencies(said).collect::<Vec<_>>(), ["dracut", "linux-binary-7.2.13+deb14-cloud-amd64"]);
    }
}
