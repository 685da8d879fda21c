//! An open connection: which frame is allowed, and who takes it.

use tanda_engine::{AdminRequest, Request, SettleBatch, SettleItem};
use tanda_wire::amqp::{
    Arguments, Frame, FrameType, Method, MethodError, MethodId, ReplyCode, basic, channel,
    connection,
};
use tanda_wire::cursor::Reader;

use super::channel::{Batch, Channel, ChannelState, Channels, Phase};
use super::consume::Consumers;
use super::fault::Fault;
use super::link::Link;
use super::pending::{Call, Waiting};
use super::publish::{NO_BODY, NO_HEADER, unexpected};
use super::repeat::Repeat;
use super::sasl;
use crate::heartbeat::Heartbeat;
use crate::pending::NO_ANSWER;

/// What a frame does to the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It stays open.
    Stay,
    /// The peer has closed it.
    Closed,
}

/// A connection after its handshake.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) heartbeat: Heartbeat,
    pub(super) channels: Channels,
    pub(super) consumers: Consumers,
    /// Messages of this read.
    pub(super) batch: Batch,
    /// The channel whose unfinished message stands at the end of the batch.
    pub(super) tail: Option<u16>,
    /// Bytes of unfinished messages in buffers of their own.
    pub(super) partial_bytes: usize,
    /// The last publish, for those that are like it.
    pub(super) repeat: Repeat,
    /// Settlements of this read.
    pub(super) settled: Vec<SettleItem>,
    /// By consumer: how many of its messages were settled in this read.
    pub(super) freed: Vec<(u32, u32)>,
    /// By channel: how many messages of its consumers were.
    pub(super) pool_freed: Vec<(u16, i64)>,
    /// It asked for queues of its own, which have to be gone when it is closed.
    pub(super) has_own_queues: bool,
    pub(super) alarm: Option<String>,
    /// It has published.
    pub(super) is_publisher: bool,
    /// It was told of the alarm.
    pub(super) said_blocked: bool,
}

impl Open {
    pub(super) fn new(link: &Link, heartbeat_ms: u64, alarm: Option<String>) -> Self {
        Self {
            heartbeat: Heartbeat::new(link.now, heartbeat_ms),
            channels: Channels::default(),
            consumers: Consumers::default(),
            batch: Batch::default(),
            tail: None,
            partial_bytes: 0,
            repeat: Repeat::default(),
            settled: Vec::new(),
            freed: Vec::new(),
            pool_freed: Vec::new(),
            has_own_queues: false,
            alarm,
            is_publisher: false,
            said_blocked: false,
        }
    }

    /// Bytes held for the peer, but for its output.
    pub(super) fn held_bytes(&self) -> usize {
        let channels = self.channels.iter().map(Channel::held_bytes);
        self.batch.data.len() + channels.sum::<usize>()
    }

    /// Takes one frame.
    #[inline]
    pub(super) fn on_frame(&mut self, link: &mut Link, frame: Frame<'_>) -> Result<Next, Fault> {
        let number = frame.channel;
        if number == 0 {
            return on_connection_frame(link, frame);
        }
        if frame.frame_type == FrameType::Heartbeat {
            return Err(unexpected("a heartbeat belongs to channel 0"));
        }
        let Some(channel) = self.channels.find(number) else {
            return self.on_unopened(link, frame);
        };
        if channel.state == ChannelState::Closing {
            self.on_closing_frame(link, frame);
            return Ok(Next::Stay);
        }
        match frame.frame_type {
            FrameType::Body => self.on_body(link, number, frame.payload)?,
            FrameType::Header => self.on_header(link, number, frame.payload)?,
            FrameType::Method => {
                match channel.partial.phase {
                    Phase::Idle => {}
                    Phase::Header => return Err(unexpected(NO_HEADER)),
                    Phase::Body(_) => return Err(unexpected(NO_BODY)),
                }
                self.on_method_frame(link, number, frame.payload)?;
            }
            FrameType::Heartbeat => {}
        }
        Ok(Next::Stay)
    }

    /// The two methods that come a million times a second, then all others.
    #[inline]
    fn on_method_frame(
        &mut self,
        link: &mut Link,
        number: u16,
        payload: &[u8],
    ) -> Result<(), Fault> {
        let Some((id, arguments)) = payload.split_first_chunk::<4>() else {
            return Err(bad_method(&MethodError::NoId { len: payload.len() }));
        };
        let mut reader = Reader::new(arguments);
        if *id == const { basic::Publish::ID.to_bytes() } {
            let publish = basic::Publish::read_arguments(&mut reader)
                .map_err(|error| Fault::of_layout("basic.publish", error))?;
            return self
                .on_publish(link, number, &publish)
                .map_err(|fault| fault.by(basic::Publish::ID));
        }
        if *id == const { basic::Ack::ID.to_bytes() } {
            let ack = basic::Ack::read_arguments(&mut reader)
                .map_err(|error| Fault::of_layout("basic.ack", error))?;
            return self
                .on_ack(link, number, &ack)
                .map_err(|fault| fault.by(basic::Ack::ID));
        }
        let method = Method::decode(payload).map_err(|error| bad_method(&error))?;
        self.on_method(link, number, &method)
            .map_err(|fault| fault.by(method.id()))
    }

    /// A channel that is not open takes `channel.open` only.
    fn on_unopened(&mut self, link: &mut Link, frame: Frame<'_>) -> Result<Next, Fault> {
        if frame.frame_type != FrameType::Method {
            return Err(unexpected(
                "expected method frame, got non method frame instead",
            ));
        }
        let method = Method::decode(frame.payload).map_err(|error| bad_method(&error))?;
        match method {
            Method::Channel(channel::Method::Open(_)) => {
                let max = link.channel_max;
                let count = self.channels.count();
                if frame.channel > max {
                    let text = format!(
                        "number of channels opened ({count}) has reached the negotiated \
                         channel_max ({max})"
                    );
                    return Err(Fault::new(ReplyCode::NotAllowed, text).by(method.id()));
                }
                self.channels.open(frame.channel);
                link.outbound.method(frame.channel, channel::OpenOk {});
                Ok(Next::Stay)
            }
            // The answer to a close that crossed the peer's own.
            Method::Channel(channel::Method::CloseOk(_)) => Ok(Next::Stay),
            Method::Connection(_)
            | Method::Channel(_)
            | Method::Access(_)
            | Method::Exchange(_)
            | Method::Queue(_)
            | Method::Basic(_)
            | Method::Confirm(_)
            | Method::Tx(_) => {
                let text = "expected 'channel.open'";
                Err(Fault::new(ReplyCode::ChannelError, text).by(method.id()))
            }
        }
    }

    /// The server closed the channel, and the peer may not have seen it yet.
    fn on_closing_frame(&mut self, link: &mut Link, frame: Frame<'_>) {
        let closes = const {
            [
                channel::CloseOk::ID.to_bytes(),
                channel::Close::ID.to_bytes(),
            ]
        };
        let [close_ok, close] = closes;
        if frame.frame_type != FrameType::Method {
            return;
        }
        if frame.payload.starts_with(&close_ok) {
            self.channels.remove(frame.channel);
        } else if frame.payload.starts_with(&close) {
            // Both sides closed at once: neither may wait for the other's answer.
            link.outbound.method(frame.channel, channel::CloseOk {});
            self.channels.remove(frame.channel);
        }
    }

    /// A channel did what it may not: says so, and gives back what it held.
    pub(super) fn fail_channel(&mut self, link: &mut Link, number: u16, fault: &Fault) {
        let Some(channel) = self.channels.find(number) else {
            return;
        };
        if channel.state == ChannelState::Closing {
            return;
        }
        link.close_channel(number, fault);
        self.end_channel(link, number);
        if let Some(channel) = self.channels.find(number) {
            channel.state = ChannelState::Closing;
        }
    }

    /// A channel ends, on either side's word: what it held goes back.
    pub(super) fn end_channel(&mut self, link: &mut Link, number: u16) {
        self.drop_partial(number);
        self.flush(link);
        if let Some(channel) = self.channels.find(number) {
            channel.forget_tx();
        }
        self.end_consumers(link, number);
        let Some(channel) = self.channels.find(number) else {
            return;
        };
        let is_busy = channel.is_busy;
        let epoch = channel.epoch;
        let ended = core::mem::replace(channel, Channel::new(number, epoch));
        // An answer that is still due must find its channel, and let no frame pass before.
        channel.is_busy = is_busy;
        self.give_back(link, ended);
    }

    /// Sends what was gathered from this read: messages first, so that a message that is passed on
    /// is safe before its original goes.
    pub(super) fn flush(&mut self, link: &mut Link) {
        self.send_batch(link);
        if !self.settled.is_empty() {
            let items = core::mem::take(&mut self.settled);
            let token = link.pending.insert(Waiting::Settle);
            let reply = link.reply_to(token);
            let batch = SettleBatch {
                vhost: link.vhost,
                items,
                ..SettleBatch::default()
            };
            link.requests.push(Request::Settle { reply, batch });
        }
        self.grant(link);
    }

    /// Asks the engine on behalf of a method, with whether its sender wants no answer. The channel
    /// takes nothing before the answer.
    pub(super) fn call_for(
        &mut self,
        link: &mut Link,
        (channel, method, no_wait): (u16, MethodId, bool),
        call: Call,
        request: AdminRequest,
    ) {
        self.flush(link);
        self.occupy(channel);
        let waiting = Waiting::Call {
            channel,
            method,
            no_wait,
            call,
        };
        link.ask(waiting, request);
    }

    /// No further frame of the channel is taken for now.
    pub(super) fn occupy(&mut self, number: u16) {
        if let Some(channel) = self.channels.find(number) {
            channel.is_busy = true;
        }
    }

    /// Settles messages whose settlement nobody asked for.
    pub(super) fn settle_now(link: &mut Link, items: Vec<SettleItem>) {
        if items.is_empty() {
            return;
        }
        let reply = link.reply_to(NO_ANSWER);
        let batch = SettleBatch {
            vhost: link.vhost,
            items,
            ..SettleBatch::default()
        };
        link.requests.push(Request::Settle { reply, batch });
    }

    /// Whether the frame has to wait: its channel owes an answer, or it is a message that the
    /// server has no room for.
    #[inline]
    pub(super) fn must_wait(&mut self, frame: &Frame<'_>) -> bool {
        if self.alarm.is_some() && is_publish(frame) {
            return true;
        }
        frame.channel != 0 && self.is_busy(frame.channel)
    }

    /// Whether the channel waits for an answer.
    pub(super) fn is_busy(&self, number: u16) -> bool {
        self.channels.peek(number).is_some_and(|it| it.is_busy)
    }
}

/// Whether a message begins here.
#[inline]
pub(super) fn is_publish(frame: &Frame<'_>) -> bool {
    let id = const { basic::Publish::ID.to_bytes() };
    frame.frame_type == FrameType::Method && frame.payload.starts_with(&id)
}

/// Channel 0 is the connection.
fn on_connection_frame(link: &mut Link, frame: Frame<'_>) -> Result<Next, Fault> {
    match frame.frame_type {
        FrameType::Heartbeat => return Ok(Next::Stay),
        FrameType::Method => {}
        FrameType::Header | FrameType::Body => {
            return Err(unexpected("content belongs to a channel"));
        }
    }
    let method = Method::decode(frame.payload).map_err(|error| bad_method(&error))?;
    match method {
        Method::Connection(connection::Method::Close(_)) => Ok(Next::Closed),
        Method::Connection(connection::Method::UpdateSecret(it)) => {
            if core::mem::replace(&mut link.is_renewing, true) {
                let text = "a new secret is being checked already";
                let fault = Fault::new(ReplyCode::CommandInvalid, text);
                return Err(fault.by(connection::UpdateSecret::ID));
            }
            link.login = Some(sasl::renewal(link.identity.name(), it.new_secret));
            Ok(Next::Stay)
        }
        Method::Connection(_)
        | Method::Channel(_)
        | Method::Access(_)
        | Method::Exchange(_)
        | Method::Queue(_)
        | Method::Basic(_)
        | Method::Confirm(_)
        | Method::Tx(_) => {
            let text = "unexpected method in connection state running";
            Err(Fault::new(ReplyCode::ChannelError, text).by(method.id()))
        }
    }
}

/// A method frame that cannot be read.
pub(super) fn bad_method(error: &MethodError) -> Fault {
    match error {
        MethodError::Unknown { id } => {
            let text = format!("unknown method ({},{})", id.class, id.method);
            Fault::new(ReplyCode::NotImplemented, text).by(*id)
        }
        MethodError::NoId { .. } => Fault::new(ReplyCode::FrameError, error.to_string()),
        MethodError::Malformed { id, error } => {
            let what = id.name().unwrap_or("method");
            Fault::of_layout(what, *error).by(*id)
        }
    }
}
