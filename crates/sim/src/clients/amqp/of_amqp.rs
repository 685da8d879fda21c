//! AMQP 0-9-1 on a client's side: the handshake, frames, and contents put together.

use bytes::{Buf, BytesMut};
use tanda_wire::amqp::{
    Arguments, ContentHeader, FrameType, LongStr, Method, Properties, ShortStr, Split, Table,
    TableWriter, Value, basic, channel, confirm, connection, encode, exchange, frame, queue,
    split_frame, tx,
};

use super::contents;
use super::link::{Ask, Content, Delivered, Done, Line, Said};
use crate::failure::Violation;
use crate::history::amqp::Settlement;
use crate::invariants::amqp::unexpected;

/// The channel that clients use.
const CHANNEL: u16 = 1;
/// Seconds between heartbeats.
const HEARTBEAT_S: u16 = 20;

/// See the module.
pub(super) struct OfAmqp {
    inbox: BytesMut,
    frame_max: u32,
    /// A method whose content has not all come.
    partial: Option<Partial>,
}

struct Partial {
    method: Vec<u8>,
    properties: Vec<u8>,
    missing: Option<u64>,
    body: Vec<u8>,
}

/// A method that came, with its content.
struct Incoming {
    method: Vec<u8>,
    properties: Vec<u8>,
    body: Vec<u8>,
}

/// A short string that surely fits.
pub(super) const fn short(text: &str) -> ShortStr<'_> {
    ShortStr::clip(text)
}

fn say<'a>(line: &mut Line, number: u16, method: &impl Arguments<'a>) {
    encode::write_method(&mut line.out, number, method);
}

/// On the channel.
fn tell<'a>(line: &mut Line, method: &impl Arguments<'a>) {
    say(line, CHANNEL, method);
}

impl OfAmqp {
    /// Says hello.
    pub(super) fn new(line: &mut Line) -> Self {
        line.out.extend_from_slice(&frame::PROTOCOL_HEADER);
        Self {
            inbox: BytesMut::new(),
            frame_max: u32::MAX,
            partial: None,
        }
    }

    pub(super) fn ask(&self, line: &mut Line, ask: Ask<'_>) {
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
            Ask::Consume { tag, queue, no_ack } => tell(
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

    /// Agrees to the end of the channel, and opens another.
    pub(super) fn reopen(line: &mut Line) {
        tell(line, &channel::CloseOk {});
        tell(line, &channel::Open {});
    }

    pub(super) fn agree(line: &mut Line) {
        say(line, 0, &connection::CloseOk {});
    }

    /// Bytes came.
    pub(super) fn receive(&mut self, bytes: &[u8]) {
        self.inbox.extend_from_slice(bytes);
    }

    /// The next thing the broker says.
    pub(super) fn next(&mut self, line: &mut Line) -> Result<Option<Said>, Violation> {
        let incoming = self.next_method(line)?;
        incoming.map(|incoming| said(&incoming)).transpose()
    }

    /// The next method for the client, with its content.
    fn next_method(&mut self, line: &mut Line) -> Result<Option<Incoming>, Violation> {
        loop {
            let split = split_frame(&self.inbox, self.frame_max);
            let split = split.map_err(|error| unexpected::of(error.to_string()))?;
            let Split::Frame(frame) = split else {
                return Ok(None);
            };
            let (kind, number, consumed) = (frame.frame_type, frame.channel, frame.consumed());
            let payload = frame.payload.to_vec();
            self.inbox.advance(consumed);
            match kind {
                FrameType::Heartbeat if !line.has_ended && !line.is_over => {
                    encode::write_heartbeat(&mut line.out);
                }
                FrameType::Heartbeat => {}
                FrameType::Method => {
                    if let Some(incoming) = self.on_method(line, number, payload)? {
                        return Ok(Some(incoming));
                    }
                }
                FrameType::Header => {
                    let header = ContentHeader::decode(&payload)
                        .map_err(|error| unexpected::of(error.to_string()))?;
                    let partial = self.partial.as_mut().ok_or_else(stray_content)?;
                    partial.properties = header.properties.raw().to_vec();
                    partial.missing = Some(header.body_size);
                }
                FrameType::Body => {
                    let partial = self.partial.as_mut().ok_or_else(stray_content)?;
                    let missing = partial.missing.ok_or_else(stray_content)?;
                    let missing = missing.checked_sub(payload.len() as u64);
                    partial.missing = Some(missing.ok_or_else(stray_content)?);
                    partial.body.extend_from_slice(&payload);
                }
            }
            if let Some(whole) = self.partial.take_if(|partial| partial.missing == Some(0)) {
                return Ok(Some(Incoming {
                    method: whole.method,
                    properties: whole.properties,
                    body: whole.body,
                }));
            }
        }
    }

    /// The handshake is answered here.
    fn on_method(
        &mut self,
        line: &mut Line,
        number: u16,
        payload: Vec<u8>,
    ) -> Result<Option<Incoming>, Violation> {
        let method = Method::decode(&payload).map_err(|it| unexpected::of(it.to_string()))?;
        if self.partial.is_some() {
            return Err(stray_content());
        }
        if method.has_content() {
            self.partial = Some(Partial {
                method: payload,
                properties: Vec::new(),
                missing: None,
                body: Vec::new(),
            });
            return Ok(None);
        }
        if number == 0
            && let Method::Connection(it) = method
            && self.on_connection(line, &it)
        {
            return Ok(None);
        }
        if let Method::Channel(channel::Method::OpenOk(_)) = method {
            line.is_open = true;
            return Ok(None);
        }
        Ok(Some(Incoming {
            method: payload,
            properties: Vec::new(),
            body: Vec::new(),
        }))
    }

    /// False when the client has to know.
    fn on_connection(&mut self, line: &mut Line, method: &connection::Method<'_>) -> bool {
        if line.has_ended {
            return !matches!(method, connection::Method::Close(_));
        }
        if let connection::Method::Start(_) = method {
            on_start(line);
        } else if let connection::Method::Tune(tune) = method {
            self.frame_max = tune.frame_max;
            say(
                line,
                0,
                &connection::TuneOk {
                    channel_max: tune.channel_max,
                    frame_max: tune.frame_max,
                    heartbeat: HEARTBEAT_S,
                },
            );
            let virtual_host = short("/");
            say(line, 0, &connection::Open { virtual_host });
        } else if let connection::Method::OpenOk(_) = method {
            tell(line, &channel::Open {});
        } else {
            return false;
        }
        true
    }
}

fn on_start(line: &mut Line) {
    let mut properties = Vec::new();
    TableWriter::new(&mut properties).table(short("capabilities"), |table| {
        for name in ["authentication_failure_close", "consumer_cancel_notify"] {
            table.value(short(name), &Value::Bool(true));
        }
    });
    let start_ok = connection::StartOk {
        client_properties: Table::new(&properties).unwrap_or_default(),
        mechanism: short("PLAIN"),
        response: LongStr::new(b"\0guest\0guest").unwrap_or_default(),
        locale: short("en_US"),
    };
    say(line, 0, &start_ok);
}

/// Asks for a change of the topology, or about it.
fn change(line: &mut Line, ask: Ask<'_>) {
    if let Ask::Exchange(name, kind) = ask {
        tell(
            line,
            &exchange::Declare {
                exchange: short(name),
                exchange_type: short(kind),
                durable: true,
                ..exchange::Declare::default()
            },
        );
    } else if let Ask::Queue(name, draw) = ask {
        tell(
            line,
            &queue::Declare {
                queue: short(name),
                durable: draw.durable,
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
        tell(
            line,
            &queue::Bind {
                queue: short(&binding.queue),
                exchange: short(binding.exchange),
                routing_key: short(binding.key),
                no_wait: false,
                arguments: Table::default(),
            },
        );
    } else if let Ask::Unbind(binding) = ask {
        tell(
            line,
            &queue::Unbind {
                queue: short(&binding.queue),
                exchange: short(binding.exchange),
                routing_key: short(binding.key),
                arguments: Table::default(),
            },
        );
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

/// What a method means to a client.
fn said(incoming: &Incoming) -> Result<Said, Violation> {
    let method = Method::decode(&incoming.method);
    let method = method.map_err(|error| unexpected::of(error.to_string()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(match method {
        Method::Basic(basic::Method::Deliver(it)) => Said::Delivered(Delivered {
            consumer: Some(text(it.consumer_tag.as_bytes())),
            delivery_tag: it.delivery_tag,
            is_redelivered: it.redelivered,
            exchange: text(it.exchange.as_bytes()),
            key: text(it.routing_key.as_bytes()),
            content: content(incoming)?,
        }),
        Method::Basic(basic::Method::GetOk(it)) => Said::Delivered(Delivered {
            consumer: None,
            delivery_tag: it.delivery_tag,
            is_redelivered: it.redelivered,
            exchange: text(it.exchange.as_bytes()),
            key: text(it.routing_key.as_bytes()),
            content: content(incoming)?,
        }),
        Method::Basic(basic::Method::Return(_)) => Said::Returned(content(incoming)?),
        Method::Basic(basic::Method::Ack(it)) => Said::Verdict {
            number: it.delivery_tag,
            multiple: it.multiple,
            is_taken: true,
        },
        Method::Basic(basic::Method::Nack(it)) => Said::Verdict {
            number: it.delivery_tag,
            multiple: it.multiple,
            is_taken: false,
        },
        Method::Basic(basic::Method::Cancel(it)) => {
            Said::Cancelled(text(it.consumer_tag.as_bytes()))
        }
        Method::Channel(channel::Method::Close(it)) => {
            Said::ChannelClosed(it.reply_code, it.reply_text.to_string())
        }
        Method::Connection(connection::Method::Close(it)) => {
            Said::Closed(it.reply_code, it.reply_text.to_string())
        }
        Method::Connection(connection::Method::CloseOk(_)) => Said::Goodbye,
        Method::Connection(_)
        | Method::Channel(_)
        | Method::Access(_)
        | Method::Exchange(_)
        | Method::Queue(_)
        | Method::Basic(_)
        | Method::Confirm(_)
        | Method::Tx(_) => {
            let stray = || unexpected::of(format!("{method:?} answers nothing"));
            Said::Done(done(&method).ok_or_else(stray)?)
        }
    })
}

/// What a method says was done.
const fn done(method: &Method<'_>) -> Option<Done> {
    Some(match method {
        Method::Queue(queue::Method::DeclareOk(_)) => Done::Declared,
        Method::Queue(queue::Method::PurgeOk(_)) => Done::Purged,
        Method::Queue(
            queue::Method::BindOk(_) | queue::Method::UnbindOk(_) | queue::Method::DeleteOk(_),
        )
        | Method::Exchange(
            exchange::Method::DeclareOk(_)
            | exchange::Method::DeleteOk(_)
            | exchange::Method::BindOk(_)
            | exchange::Method::UnbindOk(_),
        ) => Done::Changed,
        Method::Confirm(confirm::Method::SelectOk(_)) | Method::Tx(tx::Method::SelectOk(_)) => {
            Done::Selected
        }
        Method::Tx(tx::Method::CommitOk(_)) => Done::Committed,
        Method::Tx(tx::Method::RollbackOk(_)) => Done::RolledBack,
        Method::Basic(basic::Method::QosOk(_)) => Done::Prefetch,
        Method::Basic(basic::Method::ConsumeOk(_)) => Done::Consuming,
        Method::Basic(basic::Method::CancelOk(_)) => Done::Cancelled,
        Method::Basic(basic::Method::GetEmpty(_)) => Done::Empty,
        Method::Basic(basic::Method::RecoverOk(_)) => Done::Recovered,
        Method::Connection(_)
        | Method::Channel(_)
        | Method::Access(_)
        | Method::Exchange(_)
        | Method::Queue(_)
        | Method::Basic(_)
        | Method::Confirm(_)
        | Method::Tx(_) => return None,
    })
}

fn content(incoming: &Incoming) -> Result<Content, Violation> {
    let (tag, deaths) = contents::read(&incoming.properties)?;
    Ok(Content {
        properties: incoming.properties.clone(),
        body: incoming.body.clone(),
        tag,
        deaths,
    })
}

fn stray_content() -> Violation {
    unexpected::of("a content where none belongs".to_owned())
}
