//! Virtual hosts, exchanges and bindings: which queues a message goes to.

mod on_topology;
mod request;

pub use request::{
    BindingInfo, BindingSpec, DeclareQueue, DeclaredQueue, Destination, ExchangeInfo, ExchangeKind,
    ExchangeSpec, TopologyCode, TopologyError, VhostInfo,
};
