//! Requests through the proxy, with clients and servers that are not ours: what they need of a router between them, and
//! what they do not notice of it.

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
