//! What the broker says, out of methods.

use tanda_wire::amqp::{Method, basic, channel, confirm, connection, exchange, queue, tx};

use super::super::contents;
use super::super::link::{Content, Delivered, Done, Said};
use super::Incoming;
use crate::failure::Violation;
use crate::history::amqp::Door;
use crate::invariants::amqp::unexpected;

/// What a method means to a client.
pub(super) fn said(incoming: &Incoming) -> Result<Said, Violation> {
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
        Method::Connection(connection::Method::Blocked(_)) => Said::Pause(true),
        Method::Connection(connection::Method::Unblocked(_)) => Said::Pause(false),
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
fn done(method: &Method<'_>) -> Option<Done> {
    Some(match method {
        Method::Queue(queue::Method::DeclareOk(it)) => Done::Declared(it.queue.to_string()),
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
    let (tag, deaths) = contents::read(Door::Amqp, &incoming.properties)?;
    Ok(Content {
        properties: incoming.properties.clone(),
        body: incoming.body.clone(),
        tag,
        deaths,
    })
}
