//! Definitions of kinds.

use std::path::PathBuf;

use anyhow::Result;

use super::built::built;
use crate::workspace;

/// Whose definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definitions {
    /// Gateway API's standard channel.
    GatewayStandard,
    /// Gateway API's experimental channel.
    GatewayExperimental,
    /// Contour's.
    Contour,
    /// Those of `deploy/crds`: Sluice's own kinds, and OpenShift's.
    Sluice,
}

impl Definitions {
    /// The folder of their manifests.
    ///
    /// # Errors
    /// When it has not been made.
    pub fn folder(self) -> Result<PathBuf> {
        let name = match self {
            Definitions::GatewayStandard => "gateway-api/standard",
            Definitions::GatewayExperimental => "gateway-api/experimental",
            Definitions::Contour => "contour",
            Definitions::Sluice => return Ok(workspace().join("deploy/crds")),
        };
        Ok(built("definitions")?.join(name))
    }
}
