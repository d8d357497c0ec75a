//! Requests through the proxy by third-party clients and servers: features that they need of an intermediary, and its
//! transparency.

mod annotations;
mod events;
mod expect;
mod faults;
mod floods;
mod grpc;
mod grpc_streams;
mod idle;
mod load;
mod rotation;
mod slow;
mod smuggler;
mod smuggling;
mod stage;
mod trailers;
mod transfers;
mod websocket;
