//! What a client asks for, as methods.

use tanda_wire::amqp::{Properties, Table, basic, confirm, connection, encode, queue, tx};

use super::super::link::{Ask, Line};
use super::binds::{bind, declare_exchange, unbind};
use super::{CHANNEL, OfAmqp, say, short, tell};
use crate::history::amqp::Settlement;

impl OfAmqp {
    pub(in super::super) fn ask(&self, line: &mut Line, ask: Ask<'_>) {
        match ask {
            Ask::Confirms => tell(line, &confirm::Select { no_wait: false }),
            Ask::Transactions => tell(line, &tx::Select {}),
            Ask::Prefetch { count, is_global } => tell(
                line,
                &basic::Qos {
                    prefetch_size: 0,
                    prefetch_count: count,
                    global: is_global,
                },
            ),
            Ask::Exchange(..)
            | Ask::Queue(..)
            | Ask::Check(_)
            | Ask::Bind(_)
            | Ask::Unbind(_)
            | Ask::Delete(_)
            | Ask::Purge(_) => change(line, ask),
            Ask::Consume {
                tag, queue, no_ack, ..
            } => tell(
                line,
                &basic::Consume {
                    queue: short(queue),
                    consumer_tag: short(tag),
                    no_ack,
                    arguments: Table::default(),
                    ..basic::Consume::default()
                },
            ),
            Ask::Cancel(tag) => tell(
                line,
                &basic::Cancel {
                    consumer_tag: short(tag),
                    no_wait: false,
                },
            ),
            Ask::Get(queue) => tell(
                line,
                &basic::Get {
                    queue: short(queue),
                    no_ack: false,
                },
            ),
            Ask::Settle { .. } => settle(line, ask),
            // Prefetch is what holds consumers back here.
            Ask::Credit(..) => {}
            Ask::Recover => tell(line, &basic::Recover { requeue: true }),
            Ask::Commit => tell(line, &tx::Commit {}),
            Ask::RollBack => tell(line, &tx::Rollback {}),
            Ask::Publish { .. } => self.publish(line, ask),
            Ask::Close => say(
                line,
                0,
                &connection::Close {
                    reply_code: 200,
                    reply_text: short("bye"),
                    class_id: 0,
                    method_id: 0,
                },
            ),
        }
    }

    fn publish(&self, line: &mut Line, ask: Ask<'_>) {
        let Ask::Publish {
            exchange,
            key,
            is_mandatory,
            properties,
            body,
            ..
        } = ask
        else {
            return;
        };
        let publish = basic::Publish {
            exchange: short(exchange),
            routing_key: short(key),
            mandatory: is_mandatory,
            immediate: false,
        };
        let properties = Properties::decode(properties).unwrap_or_default();
        let frame_max = self.frame_max;
        encode::write_content(
            &mut line.out,
            CHANNEL,
            &publish,
            properties,
            body,
            frame_max,
        );
    }
}

/// Asks for a change of the topology, or about it.
fn change(line: &mut Line, ask: Ask<'_>) {
    if let Ask::Exchange(name, kind) = ask {
        declare_exchange(line, name, kind);
    } else if let Ask::Queue(name, draw) = ask {
        tell(
            line,
            &queue::Declare {
                queue: short(name),
                durable: draw.durable,
                exclusive: draw.exclusive,
                auto_delete: draw.auto_delete,
                arguments: Table::new(&draw.args()).unwrap_or_default(),
                ..queue::Declare::default()
            },
        );
    } else if let Ask::Check(name) = ask {
        tell(
            line,
            &queue::Declare {
                queue: short(name),
                passive: true,
                ..queue::Declare::default()
            },
        );
    } else if let Ask::Bind(binding) = ask {
        bind(line, binding);
    } else if let Ask::Unbind(binding) = ask {
        unbind(line, binding);
    } else if let Ask::Delete(name) = ask {
        tell(
            line,
            &queue::Delete {
                queue: short(name),
                ..queue::Delete::default()
            },
        );
    } else if let Ask::Purge(name) = ask {
        tell(
            line,
            &queue::Purge {
                queue: short(name),
                no_wait: false,
            },
        );
    }
}

fn settle(line: &mut Line, ask: Ask<'_>) {
    let Ask::Settle {
        delivery_tag,
        multiple,
        settlement,
        by_nack,
    } = ask
    else {
        return;
    };
    let requeue = settlement == Settlement::Requeue;
    match settlement {
        Settlement::Ack => tell(
            line,
            &basic::Ack {
                delivery_tag,
                multiple,
            },
        ),
        Settlement::Requeue | Settlement::Reject if by_nack => tell(
            line,
            &basic::Nack {
                delivery_tag,
                multiple,
                requeue,
            },
        ),
        Settlement::Requeue | Settlement::Reject => tell(
            line,
            &basic::Reject {
                delivery_tag,
                requeue,
            },
        ),
    }
}
