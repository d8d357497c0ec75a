//! Contour's IngressRoute, HTTPProxy and TLSCertificateDelegation: from objects to sites and statuses.

pub mod spec;
