//! Access to a Kubernetes API server: the client, and objects as JSON.

pub mod api_object;
pub mod client;
