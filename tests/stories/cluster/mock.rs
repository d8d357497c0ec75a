//! The mock API server: it answers as the real one does, and its faults are what they say.

mod alike;
mod client;
mod faults;
mod scale;
