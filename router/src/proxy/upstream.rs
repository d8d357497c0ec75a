//! What lies between a request and the endpoint that answers it: which connections there are, how one is made, and
//! when a request may be sent again.

pub mod attempt;
pub mod connect;
mod gone;
pub mod heard;
pub mod pool;
pub mod wire;

pub use gone::gone;
