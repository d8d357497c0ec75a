//! Attaching the sock_ops program to the cgroup of this process: accepted sockets are of their listener's
//! cgroup. The link is pinned, so that sockets which end with a killed agent are noticed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use aya::programs::links::FdLink;
use aya::programs::{CgroupAttachMode, ProgramError, SockOps};

use super::links::removed;
use crate::pin_folder::PinFolder;

/// The attachment.
#[derive(Debug)]
pub struct SocketLink {
    pin: Option<PathBuf>,
    /// Without a pin, dropping it detaches the program.
    link: Option<FdLink>,
    failed: Option<String>,
    /// Why the program could not be loaded.
    unloaded: Option<String>,
    is_swept: bool,
}

impl SocketLink {
    /// A link pinned in the folder; without one, a link that ends with its program.
    pub fn new(folder: Option<&PinFolder>, unloaded: Option<String>) -> Self {
        let pin = folder.map(PinFolder::socket_link);
        SocketLink { pin, link: None, failed: None, unloaded, is_swept: false }
    }

    /// Attaches if connections are counted, else detaches. Returns the change as text.
    pub fn follow(&mut self, program: &mut SockOps, is_wanted: bool) -> Option<String> {
        if !is_wanted {
            let was_attached = self.link.take().is_some();
            self.failed = None;
            if was_attached || !std::mem::replace(&mut self.is_swept, true) {
                self.remove_pin().err()?;
            }
            return was_attached.then(|| "sockets are not counted any more".to_owned());
        }
        if self.link.is_some() || self.failed.is_some() {
            return None;
        }
        match self.attach(program) {
            Ok(cgroup) => Some(format!("sockets of the cgroup {} are counted", cgroup.display())),
            Err(why) => {
                let news = format!("ends of sockets are found by sweeps only: {why}");
                self.failed = Some(why);
                Some(news)
            }
        }
    }

    /// Why it could not be attached.
    pub fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    fn attach(&mut self, program: &mut SockOps) -> Result<PathBuf, String> {
        if let Some(why) = &self.unloaded {
            return Err(format!("this kernel rejects the program (Linux 5.15 has what it needs): {why}"));
        }
        let cgroup = own_cgroup().map_err(|error| error.to_string())?;
        let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", cgroup.display());
        let file = File::open(&cgroup).map_err(|error| fail(&error))?;
        let id = program.attach(file, CgroupAttachMode::Single).map_err(|error| fail(&reason(&error)))?;
        let link = program.take_link(id).map_err(|error| fail(&error))?;
        let link = FdLink::try_from(link).map_err(|error| fail(&error))?;
        // An earlier agent's has been in force until now: both do the same, and what either does the other finds done.
        self.remove_pin().map_err(|error| fail(&error))?;
        self.link = Some(match &self.pin {
            Some(pin) => link.pin(pin).map_err(|error| fail(&error))?.into(),
            None => link,
        });
        Ok(cgroup)
    }

    fn remove_pin(&self) -> io::Result<()> {
        self.pin.as_deref().map_or(Ok(()), removed)
    }
}

fn reason(error: &ProgramError) -> String {
    match error {
        ProgramError::SyscallError(error) if error.io_error.kind() == io::ErrorKind::PermissionDenied => {
            "another program is attached there, or above it, that permits no other".to_owned()
        }
        _ => error.to_string(),
    }
}

/// The cgroup of this process in the file system of cgroups, version 2.
fn own_cgroup() -> io::Result<PathBuf> {
    let (own, mounts) = (fs::read_to_string("/proc/self/cgroup")?, fs::read_to_string("/proc/self/mountinfo")?);
    cgroup(&own, &mounts).ok_or_else(|| io::Error::other("no file system of cgroups (version 2) is mounted"))
}

/// The same, given `/proc/self/cgroup` and `/proc/self/mountinfo` (proc(5)).
fn cgroup(own: &str, mounts: &str) -> Option<PathBuf> {
    let own = Path::new(own.lines().find_map(|line| line.strip_prefix("0::"))?);
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let is_cgroup = kind.split(' ').next() == Some("cgroup2");
        own.strip_prefix(root).ok().filter(|_| is_cgroup).map(|below| Path::new(point).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_cgroup_is_found_in_its_file_system() {
        let mount = |root: &str, point: &str, kind: &str| {
            format!("22 1 0:20 / /proc rw - proc proc rw\n41 31 0:38 {root} {point} rw,relatime - {kind} x rw\n")
        };
        let hybrid = "4:memory:/a\n0::/system.slice/sluice.service\n";
        let of = |own: &str, mounts: String| cgroup(own, &mounts).map(|path| path.display().to_string());
        let unified = "/sys/fs/cgroup/unified";
        let expected = format!("{unified}/system.slice/sluice.service");
        assert_eq!(of(hybrid, mount("/", unified, "cgroup2")), Some(expected));
        assert_eq!(of(hybrid, mount("/system.slice/sluice.service", "/c", "cgroup2")).as_deref(), Some("/c/"));
        assert_eq!(of("0::/\n", mount("/", "/sys/fs/cgroup", "cgroup2")).as_deref(), Some("/sys/fs/cgroup/"));
        assert_eq!(of(hybrid, mount("/other", "/c", "cgroup2")), None);
        assert_eq!(of(hybrid, mount("/", "/c", "cgroup")), None);
        assert_eq!(of("4:memory:/a\n", mount("/", "/c", "cgroup2")), None);
    }
}
