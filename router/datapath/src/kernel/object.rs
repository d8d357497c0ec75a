//! The two builds of the kernel program: without and with log lines.

use std::io;

use aya::EbpfLoader;

use super::error::KernelError;

/// The object, compiled by `cargo xtask build-ebpf`; empty in a build without it.
static PLAIN: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/sluice.bpf.o"));
/// The object with log lines, likewise.
#[cfg(feature = "kernel-log")]
static LOGGING: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/sluice-log.bpf.o"));
#[cfg(not(feature = "kernel-log"))]
static LOGGING: &[u8] = &[];
/// The dispatcher of libxdp's protocol, likewise.
static DISPATCHER: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/dispatcher.bpf.o"));

/// Constant of the object with log lines: the highest enabled level. The verifier removes the others.
const LOG_LEVEL: &str = "AYA_LOG_LEVEL";

/// Which of the two objects to load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BpfObject {
    /// Without log lines.
    #[default]
    Plain,
    /// With log lines up to this level.
    Logging(LogLevel),
}

impl BpfObject {
    /// True if this build has the object with log lines.
    pub fn can_log() -> bool {
        !LOGGING.is_empty()
    }

    /// The object's bytes.
    ///
    /// # Errors
    /// [`KernelError::NoObject`], [`KernelError::NoLog`] if this build does not contain it.
    pub(super) fn bytes(self) -> Result<&'static [u8], KernelError> {
        match self {
            BpfObject::Plain if PLAIN.is_empty() => Err(KernelError::NoObject),
            BpfObject::Plain => Ok(PLAIN),
            BpfObject::Logging(_) if LOGGING.is_empty() => Err(KernelError::NoLog),
            BpfObject::Logging(_) => Ok(LOGGING),
        }
    }

    /// Sets the object's constants.
    pub(super) fn configure(self, loader: &mut EbpfLoader<'_>) {
        if let BpfObject::Logging(level) = self {
            loader.override_global(LOG_LEVEL, level.constant(), true);
        }
    }
}

/// Name of the section of an XDP program that handles packets in several parts: in the table of names, and in the BTF's.
const FRAGS_SECTION: &[u8] = b"xdp.frags\0";

/// The dispatcher's object, whose program handles packets in several parts or does not.
///
/// # Errors
/// This build does not contain it.
pub(super) fn dispatcher_object(is_frags: bool) -> io::Result<Vec<u8>> {
    if DISPATCHER.is_empty() {
        return Err(io::Error::other(KernelError::NoObject));
    }
    let mut object = DISPATCHER.to_vec();
    let length = FRAGS_SECTION.len();
    for at in (0..object.len().saturating_sub(length)).filter(|_| !is_frags) {
        if object[at..at + length] == *FRAGS_SECTION {
            // The section is called `xdp`.
            object[at + 3] = 0;
        }
    }
    Ok(object)
}

/// Levels of the kernel program's log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// None.
    Off,
    /// Decisions, dials, ends.
    Debug,
    /// Also each endpoint's acknowledgement of the first payload.
    Trace,
}

impl LogLevel {
    /// The level that the process' log filter enables for [`LOG_TARGET`].
    pub fn of_filter() -> LogLevel {
        if tracing::enabled!(target: LOG_TARGET, tracing::Level::TRACE) {
            LogLevel::Trace
        } else if tracing::enabled!(target: LOG_TARGET, tracing::Level::DEBUG) {
            LogLevel::Debug
        } else {
            LogLevel::Off
        }
    }

    /// Value of [`LOG_LEVEL`] (`Level` of aya-log-common).
    fn constant(self) -> &'static u8 {
        match self {
            LogLevel::Off => &0,
            LogLevel::Debug => &4,
            LogLevel::Trace => &5,
        }
    }
}

/// Target of the kernel program's log lines.
pub const LOG_TARGET: &str = "sluice::kernel";
