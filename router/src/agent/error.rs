//! Why an agent cannot start.

use router_datapath::kernel::KernelError;

use crate::admin::AdminError;
use crate::source::SourceError;

/// Why an agent cannot start.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The source of objects.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The admin socket.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// The kernel data path is required and not available.
    #[error("no kernel data path")]
    Kernel(#[from] KernelError),
    /// The operating system.
    #[error(transparent)]
    System(#[from] std::io::Error),
}
