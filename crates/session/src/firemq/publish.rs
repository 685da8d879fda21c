//! `publish`: a message comes in one frame.
//!
//! Its envelope is written to the end of the batch of this read, into which the body is copied
//! once.

use tanda_engine::{Form, PublishItem, PublishTarget, Request, Span};
use tanda_wire::firemq::frame::Frame;
use tanda_wire::firemq::publish::Publish;
use tanda_wire::firemq::{Properties, RawMap, ReplyCode, Value, peek_uint};
use tanda_wire::mapping::FireMessage;

use super::confirms::Rejection;
use super::fault::Fault;
use super::link::Link;
use super::open::Open;
use super::pending::{Segment, Waiting};
use super::topology::NAME_BYTES_MAX;
use crate::batch::{position, shifted};
use crate::envelope::Envelope;
use crate::login::Identity;

/// Bytes of a batch after which it is sent although more can be read.
const BATCH_BYTES_MAX: usize = 256 << 10;
/// Messages of a batch after which it is sent.
const BATCH_ITEMS_MAX: usize = 8 << 10;

impl Open {
    /// Takes a message.
    ///
    /// # Errors
    /// Only of messages that are not confirmed; a number that does not follow the last is fatal.
    #[inline]
    pub(super) fn on_publish(&mut self, link: &mut Link, frame: &Frame<'_>) -> Result<(), Fault> {
        let publish = match Publish::decode(frame.header) {
            Ok(publish) => publish,
            Err(error) => {
                let seq = peek_uint(frame.header, "seq").unwrap_or(0);
                return self.refuse(link, seq, Fault::of_header(&error));
            }
        };
        match self.check(link, &publish, frame.payload.len()) {
            Ok(checked) => self.add(link, &publish, frame.payload, checked),
            Err(fault) => self.refuse(link, publish.seq, fault),
        }
    }

    /// What can be refused now is refused now.
    #[inline]
    fn check(
        &mut self,
        link: &Link,
        publish: &Publish<'_>,
        body_bytes: usize,
    ) -> Result<Checked, Fault> {
        if publish.exchange.len() > NAME_BYTES_MAX || publish.key.len() > NAME_BYTES_MAX {
            let text = format!("an exchange or key has more than {NAME_BYTES_MAX} bytes");
            return Err(Fault::precondition(text));
        }
        let (exchange, key) = (publish.exchange.as_bytes(), publish.key.as_bytes());
        let demanded = link
            .permits()
            .demand_publish(&mut self.written, exchange, key);
        demanded.map_err(Fault::refused)?;
        let max = link.config.max_message_bytes;
        if body_bytes as u64 > max {
            return Err(Fault::precondition(format!(
                "message size {body_bytes} is larger than configured max size {max}"
            )));
        }
        if publish.props.is_empty() {
            return Ok(Checked::default());
        }
        let props = publish.props.fields();
        check_user(&props, &*link.identity)?;
        Ok(Checked {
            priority: props.priority,
            ttl_ms: (props.expiration_ms != 0).then_some(props.expiration_ms),
        })
    }

    #[inline]
    fn add(
        &mut self,
        link: &mut Link,
        publish: &Publish<'_>,
        body: &[u8],
        checked: Checked,
    ) -> Result<(), Fault> {
        let is_confirmed = publish.seq != 0;
        let joined = self.batch.joins(is_confirmed, publish.mandatory);
        let run = joined.and_then(|segment| segment.first_tag);
        self.count(publish.seq)?;
        let first_tag = is_confirmed.then(|| self.confirms.give(run));
        let start = self.batch.data.len();
        let data = &mut self.batch.data;
        let (exchange, key) = (publish.exchange.as_bytes(), publish.key.as_bytes());
        Envelope::write_names(data, exchange, key);
        let message = FireMessage {
            persistent: publish.persistent,
            props: publish.props,
            headers: publish.headers,
        };
        let length_at = data.len();
        data.extend_from_slice(&[0; 4]);
        message.encode(data);
        let properties = position(data.len() - length_at - 4).to_be_bytes();
        if let Some(place) = data.get_mut(length_at..length_at + 4) {
            place.copy_from_slice(&properties);
        }
        let headers_at = data.len() - publish.headers.as_bytes().len();
        data.reserve(4 + body.len());
        data.extend_from_slice(&position(body.len()).to_be_bytes());
        data.extend_from_slice(body);
        let mut item = PublishItem {
            target: PublishTarget::Route,
            content: Span {
                start: position(start),
                len: position(data.len() - start),
            },
            form: Form::Fire,
            priority: checked.priority,
            transient: !publish.persistent,
            ttl_ms: checked.ttl_ms,
            ..PublishItem::default()
        };
        let mut number_key = None;
        if !publish.headers.is_empty() {
            number_key = read_headers(publish.headers, position(headers_at), &mut item);
        }
        if let Some(key) = &number_key {
            item.fairness_key = self.batch.append(key.as_bytes());
        }
        let segment = Segment {
            kind: is_confirmed,
            first_tag,
            mandatory: publish.mandatory,
            start,
            count: 1,
            is_closed: number_key.is_some(),
        };
        self.batch.push(item, segment);
        if self.batch.data.len() >= BATCH_BYTES_MAX || self.batch.items.len() >= BATCH_ITEMS_MAX {
            self.send_batch(link);
        }
        Ok(())
    }

    /// Whether this number may come now.
    #[inline]
    fn count(&self, seq: u64) -> Result<(), Fault> {
        let next = self.confirms.next();
        if seq != 0 && seq != next {
            let text = format!("publish with seq {seq} where {next} must follow");
            return Err(Fault::new(ReplyCode::CommandInvalid, text).fatal());
        }
        Ok(())
    }

    /// A message is not taken: its confirm says so, or, when it has none, an error.
    #[cold]
    fn refuse(&mut self, link: &mut Link, seq: u64, fault: Fault) -> Result<(), Fault> {
        self.count(seq)?;
        if seq == 0 {
            return Err(fault);
        }
        if let Some(last) = self.batch.segments.last_mut() {
            // The numbers of a run follow each other.
            last.is_closed = true;
        }
        let first = self.confirms.give(None);
        let rejection = Rejection {
            code: fault.code,
            text: &fault.text,
        };
        let outcomes = core::iter::once(Err(rejection));
        self.confirms.answer(first, outcomes, &mut link.outbound);
        Ok(())
    }

    /// Sends what is complete.
    pub(super) fn send_batch(&mut self, link: &mut Link) {
        if self.batch.items.is_empty() {
            return;
        }
        let batch = core::mem::take(&mut self.batch);
        let (published, batch) = batch.into_request(link.vhost);
        let token = link.pending.insert(Waiting::Publish(published));
        let reply = link.reply_to(token);
        link.requests.push(Request::Publish { reply, batch });
    }
}

/// What the properties say to the broker.
#[derive(Clone, Copy, Debug, Default)]
struct Checked {
    priority: u8,
    ttl_ms: Option<u64>,
}

fn check_user(props: &Properties<'_>, identity: &dyn Identity) -> Result<(), Fault> {
    let (user, name) = (props.user_id, identity.name());
    if user.is_empty() || user == name || identity.may_impersonate() {
        return Ok(());
    }
    Err(Fault::precondition(format!(
        "user_id is '{user}', but the connection's user is '{name}'"
    )))
}

/// What Tanda's own headers say. Values that mean nothing are no error: such headers may be
/// somebody else's. `at` is where the headers stand in the batch. Returns a fairness key that is a
/// number.
fn read_headers(headers: RawMap<'_>, at: u32, item: &mut PublishItem) -> Option<String> {
    let mut number_key = None;
    for (key, value) in headers {
        let Value::Str(key) = key else { continue };
        if !key.starts_with("x-") {
            continue;
        }
        let uint = if let Value::Uint(number) = value {
            Some(number)
        } else {
            None
        };
        // Of a repeated key the last counts.
        match (key, value) {
            ("x-fairness-key", Value::Str(text)) => {
                number_key = None;
                item.fairness_key = shifted(span_in(headers, text), at);
            }
            ("x-fairness-key", Value::Uint(number)) => number_key = Some(number.to_string()),
            ("x-fairness-key", Value::Int(number)) => number_key = Some(number.to_string()),
            ("x-idempotency-key", Value::Str(text)) => {
                item.idempotency_key = Some(shifted(span_in(headers, text), at));
            }
            ("x-weight", _) => {
                let weight = uint.and_then(|number| u32::try_from(number).ok());
                item.weight = weight.unwrap_or(item.weight);
            }
            ("x-delay", _) => item.delay_ms = uint.unwrap_or(item.delay_ms),
            _ => {}
        }
    }
    number_key
}

/// Where a text of the headers stands in them.
fn span_in(headers: RawMap<'_>, part: &str) -> Span {
    let start = part.as_ptr().addr() - headers.as_bytes().as_ptr().addr();
    Span {
        start: position(start),
        len: position(part.len()),
    }
}
