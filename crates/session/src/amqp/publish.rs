//! `basic.publish`: a message comes in a method, a header and any number of bodies.
//!
//! Its envelope grows at the end of the connection's batch, where it is copied once, from the
//! frames. Only a message that is not finished with its read, or that another channel interrupts,
//! moves to a buffer of its own.

use tanda_engine::{AdminRequest, ExchangeSpec, Request, Span};
use tanda_wire::amqp::{Arguments, ContentHeader, ReplyCode, basic};

use super::channel::{Batch, Channel, Mode, Phase, Segment, Tx};
use super::checks::{self, Found, Publisher};
use super::fault::Fault;
use super::link::Link;
use super::open::Open;
use super::pending::{Call, Waiting};
use crate::batch::{position, shifted};
use crate::envelope::Envelope;

/// Bytes of a batch after which it is sent although more can be read.
pub(super) const BATCH_BYTES_MAX: usize = 256 << 10;
/// Messages of a batch after which it is sent.
pub(super) const BATCH_ITEMS_MAX: usize = 8 << 10;
/// A message of its own buffer that is small enough to be copied into a batch.
const COPY_BYTES_MAX: usize = 64 << 10;
/// Room made for a body that was only announced.
const ROOM_AHEAD_MAX: u64 = 1 << 20;

/// Whether the peer may use the routing keys in a message's headers, where keys are restricted.
#[inline]
fn demand_more_keys(
    link: &Link,
    channel: &Channel,
    (found, properties): (&Found, &[u8]),
) -> Result<(), Fault> {
    if found.cc.is_empty() && found.bcc.is_empty() {
        return Ok(());
    }
    let properties = found.rewritten.as_deref().unwrap_or(properties);
    let cc = found.cc.iter().map(|key| key.of(properties));
    let bcc = found.bcc.iter().map(Vec::as_slice);
    for key in cc.chain(bcc) {
        let permits = link.permits();
        let demanded = permits.demand_key_of(channel.written.as_ref(), key);
        demanded.map_err(Fault::refused)?;
    }
    Ok(())
}

impl Open {
    /// The method. What can be refused now is refused now.
    pub(super) fn on_publish(
        &mut self,
        link: &mut Link,
        number: u16,
        publish: &basic::Publish<'_>,
    ) -> Result<(), Fault> {
        if publish.immediate {
            return Err(Fault::new(ReplyCode::NotImplemented, "immediate=true"));
        }
        self.note_publisher(link);
        let Some(channel) = self.channels.find(number) else {
            return Ok(());
        };
        let (exchange, key) = (publish.exchange, publish.routing_key);
        link.permits()
            .demand_publish(&mut channel.written, exchange.as_bytes(), key.as_bytes())
            .map_err(Fault::refused)?;
        self.free_tail(number);
        let Some(channel) = self.channels.find(number) else {
            return Ok(());
        };
        let partial = &mut channel.partial;
        partial.phase = Phase::Header;
        partial.mandatory = publish.mandatory;
        partial.tail_at = Some(self.batch.data.len());
        self.tail = Some(number);
        let (exchange, key) = (publish.exchange.as_bytes(), publish.routing_key.as_bytes());
        Envelope::write_names(&mut self.batch.data, exchange, key);
        Ok(())
    }

    /// The content header.
    pub(super) fn on_header(
        &mut self,
        link: &mut Link,
        number: u16,
        payload: &[u8],
    ) -> Result<(), Fault> {
        let Some(channel) = self.channels.find(number) else {
            return Ok(());
        };
        match channel.partial.phase {
            Phase::Header => {}
            Phase::Idle => return Err(unexpected(NO_METHOD)),
            Phase::Body(_) => return Err(unexpected(NO_BODY)),
        }
        let header = ContentHeader::decode(payload)
            .map_err(|error| Fault::of_layout("content header", error))?;
        if header.class_id != basic::CLASS {
            let class = header.class_id;
            return Err(unexpected(&format!(
                "expected content header for class 60, got one for class {class} instead"
            )));
        }
        if header.weight != 0 {
            return Err(unexpected("a content header has weight 0"));
        }
        check_size(link, header.body_size)?;
        let publisher = Publisher {
            identity: &*link.identity,
            reply_queue: channel.reply_queue.as_deref(),
        };
        let found = checks::check(header.properties, &publisher)?;
        demand_more_keys(link, channel, (&found, header.properties.raw()))?;
        let partial = &mut channel.partial;
        let (envelope_at, data) = match partial.tail_at {
            Some(at) => (at, &mut self.batch.data),
            None => (0, &mut partial.own),
        };
        let before = data.len();
        let properties = found
            .rewritten
            .as_deref()
            .unwrap_or_else(|| header.properties.raw());
        data.extend_from_slice(&position(properties.len()).to_be_bytes());
        let base = position(data.len() - envelope_at);
        data.extend_from_slice(properties);
        let body_size = u32::try_from(header.body_size).unwrap_or(u32::MAX);
        data.extend_from_slice(&body_size.to_be_bytes());
        let room = header.body_size.min(ROOM_AHEAD_MAX);
        data.reserve(usize::try_from(room).unwrap_or_default());
        if partial.tail_at.is_none() {
            self.partial_bytes += data.len() - before;
        }
        partial.item = found.item;
        partial.item.fairness_key = shifted(found.item.fairness_key, base);
        partial.item.idempotency_key = found.item.idempotency_key.map(|it| shifted(it, base));
        partial.extra_keys.clear();
        let cc = found.cc.iter().map(|key| shifted(*key, base));
        partial.extra_keys.extend(cc);
        partial.bcc = found.bcc;
        partial.number_key = found.number_key;
        partial.phase = Phase::Body(header.body_size);
        if header.body_size == 0 {
            return self.on_message(link, number);
        }
        Ok(())
    }

    /// A part of the body.
    pub(super) fn on_body(
        &mut self,
        link: &mut Link,
        number: u16,
        part: &[u8],
    ) -> Result<(), Fault> {
        let Some(channel) = self.channels.find(number) else {
            return Ok(());
        };
        let partial = &mut channel.partial;
        let missing = match partial.phase {
            Phase::Body(missing) => missing,
            Phase::Idle => return Err(unexpected(NO_METHOD)),
            Phase::Header => return Err(unexpected(NO_HEADER)),
        };
        let Some(missing) = missing.checked_sub(part.len() as u64) else {
            let text = "content body frame exceeds remaining content size";
            return Err(Fault::new(ReplyCode::FrameError, text));
        };
        partial.phase = Phase::Body(missing);
        match partial.tail_at {
            Some(_) => self.batch.data.extend_from_slice(part),
            None => {
                partial.own.extend_from_slice(part);
                self.partial_bytes += part.len();
                if self.partial_bytes > link.config.partial_bytes_max {
                    let text = "too much of unfinished messages";
                    return Err(Fault::new(ReplyCode::ResourceError, text));
                }
            }
        }
        if missing == 0 {
            return self.on_message(link, number);
        }
        Ok(())
    }

    /// A message is complete.
    fn on_message(&mut self, link: &mut Link, number: u16) -> Result<(), Fault> {
        let envelope_at = self.join_batch(link, number);
        let Some(channel) = self.channels.find(number) else {
            return Ok(());
        };
        if let Mode::Tx(_) = channel.mode {
            return self.on_tx_message(link, number, envelope_at);
        }
        let id = (channel.number, channel.epoch);
        let first_tag = if let Mode::Confirm(confirms) = &mut channel.mode {
            let joined = self.batch.joins(id, channel.partial.mandatory);
            Some(confirms.give(joined.and_then(|segment| segment.first_tag)))
        } else {
            None
        };
        finish(channel, &mut self.batch, envelope_at, first_tag);
        if self.batch.data.len() >= BATCH_BYTES_MAX || self.batch.items.len() >= BATCH_ITEMS_MAX {
            self.send_batch(link);
        }
        Ok(())
    }

    /// Brings a complete envelope to the end of the batch. Returns where it begins.
    fn join_batch(&mut self, link: &mut Link, number: u16) -> usize {
        let Some(channel) = self.channels.find(number) else {
            return self.batch.data.len();
        };
        if let Some(at) = channel.partial.tail_at.take() {
            self.tail = None;
            return at;
        }
        let own = core::mem::take(&mut channel.partial.own);
        self.partial_bytes = self.partial_bytes.saturating_sub(own.len());
        self.free_tail(number);
        if own.len() <= COPY_BYTES_MAX && !self.batch.is_empty() {
            let at = self.batch.data.len();
            self.batch.data.extend_from_slice(&own);
            return at;
        }
        self.send_batch(link);
        self.batch.data = own;
        0
    }

    /// No unfinished message stands at the end of the batch afterwards, except this channel's.
    pub(super) fn free_tail(&mut self, number: u16) {
        if self.tail.is_some_and(|owner| owner != number) {
            self.move_tail();
        }
    }

    /// The unfinished message at the end of the batch goes to a buffer of its own.
    pub(super) fn move_tail(&mut self) {
        let Some(owner) = self.tail.take() else {
            return;
        };
        let Some(channel) = self.channels.find(owner) else {
            return;
        };
        let partial = &mut channel.partial;
        if let Some(at) = partial.tail_at.take() {
            partial.own = self.batch.data.split_off(at.min(self.batch.data.len()));
            self.partial_bytes += partial.own.len();
        }
    }

    /// Drops what has come of a channel's message.
    pub(super) fn drop_partial(&mut self, number: u16) {
        let Some(channel) = self.channels.find(number) else {
            return;
        };
        let partial = core::mem::take(&mut channel.partial);
        self.partial_bytes = self.partial_bytes.saturating_sub(partial.own.len());
        if let Some(at) = partial.tail_at {
            self.batch.data.truncate(at);
            self.tail = None;
        }
    }

    /// Sends what is complete.
    pub(super) fn send_batch(&mut self, link: &mut Link) {
        self.move_tail();
        if self.batch.items.is_empty() {
            return;
        }
        let batch = core::mem::take(&mut self.batch);
        self.repeat.expect(&batch);
        let (published, batch) = batch.into_request(link.vhost);
        let token = link.pending.insert(Waiting::Publish(published));
        let reply = link.reply_to(token);
        link.requests.push(Request::Publish { reply, batch });
    }

    /// A message in a transaction waits for the commit; its exchange has to be there now.
    fn on_tx_message(
        &mut self,
        link: &mut Link,
        number: u16,
        envelope_at: usize,
    ) -> Result<(), Fault> {
        let envelope = self.batch.data.split_off(envelope_at);
        let Some(channel) = self.channels.find(number) else {
            return Ok(());
        };
        let Mode::Tx(tx) = &mut channel.mode else {
            return Ok(());
        };
        if tx.batch.data.len().saturating_add(envelope.len()) > link.config.tx_bytes_max {
            return Err(Fault::precondition("the transaction holds too much"));
        }
        let at = tx.batch.data.len();
        tx.batch.data.extend_from_slice(&envelope);
        let exchange = envelope
            .split_first()
            .and_then(|(len, rest)| rest.get(..usize::from(*len)))
            .unwrap_or_default();
        let must_find = !exchange.is_empty() && tx.found.as_deref() != Some(exchange);
        let exchange = exchange.to_vec();
        let mut tx_batch = core::mem::take(&mut tx.batch);
        finish(channel, &mut tx_batch, at, None);
        if let Mode::Tx(tx) = &mut channel.mode {
            tx.batch = tx_batch;
        }
        if must_find {
            let name = String::from_utf8_lossy(&exchange).into_owned();
            let spec = ExchangeSpec {
                vhost: link.vhost,
                name,
                passive: true,
                ..ExchangeSpec::default()
            };
            let request = AdminRequest::DeclareExchange(Box::new(spec));
            let to = (number, basic::Publish::ID, true);
            self.call_for(link, to, Call::FindExchange { exchange }, request);
        }
        Ok(())
    }
}

const NO_METHOD: &str = "expected method frame, got non method frame instead";
pub(super) const NO_HEADER: &str =
    "expected content header for class 60, got non content header frame instead";
pub(super) const NO_BODY: &str = "expected content body, got non content body frame instead";

/// A frame that may not come now.
pub(super) fn unexpected(text: &str) -> Fault {
    Fault::new(ReplyCode::UnexpectedFrame, text)
}

fn check_size(link: &Link, body_size: u64) -> Result<(), Fault> {
    let max = link.config.max_message_bytes.min(u64::from(u32::MAX >> 1));
    if body_size > max {
        return Err(Fault::precondition(format!(
            "message size {body_size} is larger than configured max size {max}"
        ))
        .by(basic::Publish::ID));
    }
    Ok(())
}

/// Adds a message whose envelope stands from `at` to the end of the batch's data.
fn finish(channel: &mut Channel, batch: &mut Batch, at: usize, first_tag: Option<u64>) {
    let partial = &mut channel.partial;
    partial.phase = Phase::Idle;
    let base = position(at);
    let mut item = partial.item;
    item.content = Span {
        start: base,
        len: position(batch.data.len() - at),
    };
    item.fairness_key = shifted(item.fairness_key, base);
    item.idempotency_key = item.idempotency_key.map(|key| shifted(key, base));
    let mut is_closed = false;
    if !partial.extra_keys.is_empty() || !partial.bcc.is_empty() {
        let start = position(batch.extra_keys.len());
        let cc = partial.extra_keys.drain(..);
        batch.extra_keys.extend(cc.map(|key| shifted(key, base)));
        for key in partial.bcc.drain(..) {
            is_closed = true;
            let key = batch.append(&key);
            batch.extra_keys.push(key);
        }
        let len = position(batch.extra_keys.len()) - start;
        item.extra_keys = Span { start, len };
    }
    if let Some(key) = partial.number_key.take() {
        is_closed = true;
        item.fairness_key = batch.append(key.as_bytes());
    }
    let segment = Segment {
        kind: (channel.number, channel.epoch),
        first_tag,
        mandatory: channel.partial.mandatory,
        start: at,
        count: 1,
        is_closed,
    };
    batch.push(item, segment);
}

impl Tx {
    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.batch.items.is_empty() && self.settled.is_empty()
    }
}
