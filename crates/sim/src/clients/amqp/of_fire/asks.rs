//! What a client asks for, as frames.

use tanda_wire::amqp::{self, Table};
use tanda_wire::firemq::consume::{Ack, Credit, Get, Nack, Subscribe, Unsubscribe};
use tanda_wire::firemq::publish::Publish;
use tanda_wire::firemq::topology::{
    Bind, DeclareExchange, DeclareQueue, DeleteQueue, PurgeQueue, Unbind,
};
use tanda_wire::firemq::writer::MapWriter;
use tanda_wire::firemq::{RawMap, Value};
use tanda_wire::mapping::FireMessage;

use super::super::link::{Ask, Done, Line};
use super::{OfFire, say, say_with};
use crate::history::amqp::{BindingDraw, Settlement, args_of_exchange};

impl OfFire {
    pub(in super::super) fn ask(&mut self, line: &mut Line, ask: Ask<'_>) {
        match ask {
            // What this protocol has not; its clients do not ask for it.
            Ask::Confirms
            | Ask::Transactions
            | Ask::Prefetch { .. }
            | Ask::Recover
            | Ask::Commit
            | Ask::RollBack => {}
            Ask::Exchange(..) | Ask::Queue(..) | Ask::Check(_) => self.declare(line, ask),
            Ask::Bind(_) | Ask::Unbind(_) | Ask::Delete(_) | Ask::Purge(_) => {
                self.change(line, ask);
            }
            Ask::Consume { .. } => self.subscribe(line, ask),
            Ask::Credit(tag, credit) => {
                let mut subs = self.subs.iter();
                if let Some((sub, _)) = subs.find(|(_, it)| *it == tag) {
                    say(line, &Credit { sub: *sub, credit });
                }
            }
            Ask::Cancel(tag) => {
                let mut subs = self.subs.iter();
                // One that has ended already is answered, too.
                let sub = subs.find(|(_, it)| *it == tag).map_or(0, |(sub, _)| *sub);
                let rid = self.rid(Done::Cancelled);
                say(line, &Unsubscribe { rid, sub });
            }
            Ask::Get(queue) => {
                let rid = self.rid(Done::Empty);
                let no_ack = false;
                say(line, &Get { rid, queue, no_ack });
            }
            Ask::Settle {
                delivery_tag: tag,
                multiple,
                settlement,
                ..
            } => match settlement {
                Settlement::Ack => say(line, &Ack { tag, multiple }),
                Settlement::Requeue | Settlement::Reject => {
                    let requeue = settlement == Settlement::Requeue;
                    say(
                        line,
                        &Nack {
                            tag,
                            multiple,
                            requeue,
                        },
                    );
                }
            },
            Ask::Publish { .. } => self.publish(line, ask),
            Ask::Close => Self::agree(line),
        }
    }

    fn subscribe(&mut self, line: &mut Line, ask: Ask<'_>) {
        let Ask::Consume {
            tag,
            queue,
            no_ack,
            credit,
        } = ask
        else {
            return;
        };
        self.last_sub += 1;
        let sub = self.last_sub;
        self.subs.insert(sub, tag.to_owned());
        let rid = self.rid(Done::Consuming);
        say(
            line,
            &Subscribe {
                rid,
                sub,
                queue,
                credit,
                no_ack,
                tag,
                ..Subscribe::default()
            },
        );
    }

    fn publish(&mut self, line: &mut Line, ask: Ask<'_>) {
        let Ask::Publish {
            exchange,
            key,
            is_mandatory,
            is_persistent,
            is_confirmed,
            properties,
            body,
        } = ask
        else {
            return;
        };
        self.published += u64::from(is_confirmed);
        let FireMessage { props, headers, .. } = FireMessage::decode(properties);
        let publish = Publish {
            seq: if is_confirmed { self.published } else { 0 },
            exchange,
            key,
            mandatory: is_mandatory,
            persistent: is_persistent,
            props,
            headers,
        };
        say_with(line, &publish, body);
    }

    /// Declares, or asks whether something is there.
    fn declare(&mut self, line: &mut Line, ask: Ask<'_>) {
        let is_exchange = matches!(ask, Ask::Exchange(..));
        let rid = self.rid(if is_exchange {
            Done::Changed
        } else {
            Done::Declared(String::new())
        });
        if let Ask::Exchange(name, kind) = ask {
            let args = map_of(&args_of_exchange(name));
            let args = RawMap::from_checked(&args);
            say(
                line,
                &DeclareExchange {
                    rid,
                    name,
                    kind,
                    durable: true,
                    args,
                    ..DeclareExchange::default()
                },
            );
        } else if let Ask::Queue(name, draw) = ask {
            let args = map_of(&draw.args());
            let args = RawMap::from_checked(&args);
            let durable = draw.durable;
            say(
                line,
                &DeclareQueue {
                    rid,
                    name,
                    durable,
                    exclusive: draw.exclusive,
                    auto_delete: draw.auto_delete,
                    args,
                    ..DeclareQueue::default()
                },
            );
        } else if let Ask::Check(name) = ask {
            let passive = true;
            say(
                line,
                &DeclareQueue {
                    rid,
                    name,
                    passive,
                    ..DeclareQueue::default()
                },
            );
        }
    }

    /// Changes or empties what is there.
    fn change(&mut self, line: &mut Line, ask: Ask<'_>) {
        let is_purge = matches!(ask, Ask::Purge(_));
        let rid = self.rid(if is_purge {
            Done::Purged
        } else {
            Done::Changed
        });
        if let Ask::Bind(binding) | Ask::Unbind(binding) = ask {
            let args = map_of(&binding.args());
            let args = RawMap::from_checked(&args);
            let BindingDraw { exchange, key, .. } = *binding;
            let (queue, to_exchange) = if binding.to_exchange {
                ("", binding.queue.as_str())
            } else {
                (binding.queue.as_str(), "")
            };
            if matches!(ask, Ask::Bind(_)) {
                let bind = Bind {
                    rid,
                    exchange,
                    queue,
                    to_exchange,
                    key,
                    args,
                };
                return say(line, &bind);
            }
            let unbind = Unbind {
                rid,
                exchange,
                queue,
                to_exchange,
                key,
                args,
            };
            say(line, &unbind);
        } else if let Ask::Delete(name) = ask {
            say(
                line,
                &DeleteQueue {
                    rid,
                    name,
                    ..DeleteQueue::default()
                },
            );
        } else if let Ask::Purge(name) = ask {
            say(line, &PurgeQueue { rid, name });
        }
    }
}

/// Arguments as this protocol writes them: they are drawn as a table of AMQP.
fn map_of(args: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut map = MapWriter::begin(&mut out);
    for entry in Table::new(args).unwrap_or_default().iter().flatten() {
        let key = String::from_utf8_lossy(entry.key.as_bytes());
        if let amqp::Value::Bool(value) = entry.value {
            map.entry(&key, &Value::Bool(value));
        } else if let amqp::Value::LongString(text) = entry.value {
            let text = String::from_utf8_lossy(text.as_bytes());
            map.entry(&key, &Value::Str(&text));
        } else if let amqp::Value::Void = entry.value {
            map.entry(&key, &Value::Nil);
        } else {
            let number = entry.value.as_i64().and_then(|it| u64::try_from(it).ok());
            map.entry(&key, &Value::Uint(number.unwrap_or(0)));
        }
    }
    map.finish();
    out
}
