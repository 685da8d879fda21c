//! Messages as FireMQ delivers them.
//!
//! | from | exchange, key | props and headers |
//! |---|---|---|
//! | FireMQ | as published | the bytes that came |
//! | AMQP | as published | as [`tanda_wire::mapping`] says |
//! | Fila | "", the queue | headers as texts, the rest from what the broker knows |
//!
//! What does not fit the peer's frames is not delivered to it.

use std::borrow::Cow;

use tanda_engine::{Content, DeliveryBatch, DeliveryItem, Form};
use tanda_wire::amqp::Properties;
use tanda_wire::fila::headers::Headers;
use tanda_wire::firemq::{Props, RawMap};
use tanda_wire::mapping::{FilaMessage, FireMessage, write_fire_map, write_fire_props};

use super::Unfit;
use crate::envelope::Envelope;

/// A message in FireMQ's terms.
#[derive(Clone, Debug)]
pub(crate) struct FireForm<'a> {
    /// The exchange it was published to.
    pub(crate) exchange: Cow<'a, str>,
    /// The routing key it was published with.
    pub(crate) key: Cow<'a, str>,
    /// Its properties.
    pub(crate) props: Props<'a>,
    /// Its headers.
    pub(crate) headers: RawMap<'a>,
    /// The body.
    pub(crate) body: &'a [u8],
}

/// What converted messages are made in; reused between them.
#[derive(Debug, Default)]
pub(crate) struct FireScratch {
    props: Vec<u8>,
    headers: Vec<u8>,
}

/// A message of a batch. `frame_max` bounds its headers; whether all of it fits a frame is seen
/// when it is written.
///
/// # Errors
/// The headers need more, or have no form here.
#[inline]
pub(crate) fn to_fire<'a>(
    batch: &'a DeliveryBatch,
    item: &DeliveryItem,
    frame_max: usize,
    scratch: &'a mut FireScratch,
) -> Result<FireForm<'a>, Unfit> {
    let bytes = batch.content(item);
    match item.form {
        Form::Fire => Ok(fire_form(&Envelope::read(bytes).unwrap_or_default())),
        Form::Amqp => of_amqp(bytes, frame_max, scratch),
        Form::Fila => of_fila(batch, item, frame_max, scratch),
    }
}

/// A message that this protocol brought.
#[inline]
pub(crate) fn fire_form<'a>(envelope: &Envelope<'a>) -> FireForm<'a> {
    let message = FireMessage::decode(envelope.properties);
    FireForm {
        exchange: String::from_utf8_lossy(envelope.exchange),
        key: String::from_utf8_lossy(envelope.routing_key),
        props: message.props,
        headers: message.headers,
        body: envelope.body,
    }
}

fn of_amqp<'a>(
    bytes: &'a [u8],
    frame_max: usize,
    scratch: &'a mut FireScratch,
) -> Result<FireForm<'a>, Unfit> {
    let FireScratch { props, headers } = scratch;
    props.clear();
    headers.clear();
    let envelope = Envelope::read(bytes).unwrap_or_default();
    let properties = Properties::decode(envelope.properties).unwrap_or_default();
    write_fire_props(props, &properties);
    let table = properties.headers().unwrap_or_default();
    write_fire_map(headers, table, frame_max)?;
    Ok(FireForm {
        exchange: String::from_utf8_lossy(envelope.exchange),
        key: String::from_utf8_lossy(envelope.routing_key),
        props: Props::from_checked(props),
        headers: RawMap::from_checked(headers),
        body: envelope.body,
    })
}

fn of_fila<'a>(
    batch: &'a DeliveryBatch,
    item: &DeliveryItem,
    frame_max: usize,
    scratch: &'a mut FireScratch,
) -> Result<FireForm<'a>, Unfit> {
    let FireScratch { props, headers } = scratch;
    props.clear();
    headers.clear();
    let bytes = batch.content(item);
    let body = Content::new(item.form, bytes).payload().unwrap_or_default();
    let message = FilaMessage {
        message_id: item.id.to_bytes(),
        enqueued_at_ms: item.id.enqueued_at().0,
        headers: Headers::decode(bytes).unwrap_or_default(),
    };
    message.write_fire_props(props);
    message.write_fire_headers(headers, frame_max)?;
    Ok(FireForm {
        exchange: Cow::Borrowed(""),
        key: Cow::Borrowed(&batch.queue),
        props: Props::from_checked(props),
        headers: RawMap::from_checked(headers),
        body,
    })
}
