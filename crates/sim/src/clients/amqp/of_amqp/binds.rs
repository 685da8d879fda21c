//! Exchanges and bindings, as methods.

use tanda_wire::amqp::{Table, exchange, queue};

use super::super::link::Line;
use super::{short, tell};
use crate::history::amqp::{BindingDraw, args_of_exchange};

pub(super) fn declare_exchange(line: &mut Line, name: &str, kind: &str) {
    let args = args_of_exchange(name);
    tell(
        line,
        &exchange::Declare {
            exchange: short(name),
            exchange_type: short(kind),
            durable: true,
            arguments: Table::new(&args).unwrap_or_default(),
            ..exchange::Declare::default()
        },
    );
}

pub(super) fn bind(line: &mut Line, binding: &BindingDraw) {
    let args = binding.args();
    let arguments = Table::new(&args).unwrap_or_default();
    let (to, from) = (short(&binding.queue), short(binding.exchange));
    let routing_key = short(binding.key);
    if binding.to_exchange {
        let bind = exchange::Bind {
            destination: to,
            source: from,
            routing_key,
            no_wait: false,
            arguments,
        };
        return tell(line, &bind);
    }
    let bind = queue::Bind {
        queue: to,
        exchange: from,
        routing_key,
        no_wait: false,
        arguments,
    };
    tell(line, &bind);
}

pub(super) fn unbind(line: &mut Line, binding: &BindingDraw) {
    let args = binding.args();
    let arguments = Table::new(&args).unwrap_or_default();
    let (to, from) = (short(&binding.queue), short(binding.exchange));
    let routing_key = short(binding.key);
    if binding.to_exchange {
        let unbind = exchange::Unbind {
            destination: to,
            source: from,
            routing_key,
            no_wait: false,
            arguments,
        };
        return tell(line, &unbind);
    }
    let unbind = queue::Unbind {
        queue: to,
        exchange: from,
        routing_key,
        arguments,
    };
    tell(line, &unbind);
}
