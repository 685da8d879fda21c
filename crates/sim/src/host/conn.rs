//! The broker's end of one connection, and the bytes on the way in both directions.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::BytesMut;
use tanda_engine::{DeliveryItem, Event, Got, KeyTable, Millis, Request};
use tanda_session::Session;

use crate::invariants::bounded_memory::Bounds;

/// See the module.
pub(crate) struct Conn {
    pub(crate) session: Box<dyn Session>,
    /// Read from the socket, not yet taken by the session.
    pub(crate) input: BytesMut,
    pub(crate) to_broker: BytesMut,
    pub(crate) to_client: BytesMut,
    pub(crate) mail: VecDeque<Event>,
    /// The client's index in the world.
    pub(crate) client: usize,
    /// What the client's end of the connection is like.
    pub(crate) far_end: FarEnd,
    /// Nothing arrives at the broker before.
    pub(crate) to_broker_from: Millis,
    /// Nothing arrives at the client before, or it reads nothing.
    pub(crate) to_client_from: Millis,
    /// Bytes that the network keeps for a client that does not read.
    pub(crate) window_bytes: usize,
    /// Bytes that the network has taken so far.
    pub(crate) sent_bytes: u64,
    /// The table of keys that the session knows.
    pub(super) keys: Option<Arc<KeyTable>>,
    /// What the session knows to be short, if it hears of that.
    pub(super) alarm: Option<&'static str>,
    pub(super) hears_alarms: bool,
    /// Its session notices who has vanished.
    pub(crate) has_pings: bool,
    /// What was given to the session and has not left.
    pub(crate) load: Load,
    /// What it may take of memory.
    pub(super) bounds: Bounds,
    /// The server waits no longer for its peer.
    pub(crate) is_given_up: bool,
    /// When bytes last came.
    pub(super) read_at: Millis,
    /// Since when the network has taken nothing of what waits.
    blocked_at: Option<Millis>,
}

/// The client's end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FarEnd {
    /// It sends and reads.
    Open,
    /// It has ended its sending side, and reads. The broker has not noticed.
    HalfClosed,
    /// It is gone; the broker has not noticed, and will when it looks.
    Cut,
    /// It is gone, and nothing will tell the broker.
    Vanished,
}

/// Deliveries on their way through the session, as the engine counts them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    /// Released, and not reported as drained.
    pub(crate) budget_bytes: u64,
    /// The heaviest single delivery so far.
    pub(crate) heaviest_bytes: u64,
    /// The heaviest message that was got so far: it comes whatever else is on its way.
    pub(crate) got_bytes: u64,
    /// Items of the largest request so far.
    pub(crate) items_max: usize,
}

/// How long the server waits for the rest of a frame, and for a peer that reads nothing.
pub(crate) const PATIENCE_MS: u64 = 60_000;

impl Conn {
    pub(crate) fn new(
        (client, window_bytes): (usize, usize),
        (session, bounds): (Box<dyn Session>, Bounds),
        now: Millis,
    ) -> Self {
        Self {
            session,
            bounds,
            input: BytesMut::new(),
            to_broker: BytesMut::new(),
            to_client: BytesMut::new(),
            mail: VecDeque::new(),
            client,
            far_end: FarEnd::Open,
            to_broker_from: now,
            to_client_from: now,
            window_bytes,
            sent_bytes: 0,
            keys: None,
            alarm: None,
            hears_alarms: false,
            has_pings: true,
            load: Load::default(),
            is_given_up: false,
            read_at: now,
            blocked_at: None,
        }
    }

    /// The client reads what arrives.
    pub(crate) const fn is_read(&self) -> bool {
        matches!(self.far_end, FarEnd::Open | FarEnd::HalfClosed)
    }

    /// Nothing more will come from the client than what is on its way.
    pub(crate) const fn is_ended(&self) -> bool {
        matches!(self.far_end, FarEnd::Cut | FarEnd::HalfClosed)
    }

    /// The session asks this of the engine.
    pub(crate) fn note(&mut self, request: &Request) {
        let items = match request {
            Request::Publish { batch, .. } => batch.items.len(),
            Request::Settle { batch, .. } => batch.items.len(),
            Request::Drained { bytes, .. } => {
                let load = self.load.budget_bytes;
                self.load.budget_bytes = load.saturating_sub(*bytes);
                return;
            }
            Request::Connect { .. }
            | Request::Disconnect { .. }
            | Request::Subscribe { .. }
            | Request::Grant { .. }
            | Request::Unsubscribe { .. }
            | Request::Get { .. }
            | Request::Pool { .. }
            | Request::Transaction { .. }
            | Request::Admin { .. }
            | Request::Keys { .. }
            | Request::CancelWait { .. }
            | Request::KeysUndelivered { .. }
            | Request::GotUndelivered { .. }
            | Request::Watch { .. }
            | Request::Unwatch { .. }
            | Request::WatchDrained { .. }
            | Request::ScriptDone { .. } => return,
        };
        self.load.items_max = self.load.items_max.max(items);
    }

    /// The engine says this to the session.
    pub(crate) fn load_with(&mut self, event: &Event) {
        if let Event::Got {
            result: Ok(Got {
                batch: Some(batch), ..
            }),
            ..
        } = event
        {
            self.load.budget_bytes += batch.budget_bytes();
            self.load.got_bytes = self.load.got_bytes.max(batch.budget_bytes());
        }
        if let Event::Watched { message, .. } = event {
            self.load.budget_bytes += message.budget_bytes();
            self.load.heaviest_bytes = self.load.heaviest_bytes.max(message.budget_bytes());
        }
        if let Event::Delivery { batch, .. } = event {
            self.load.budget_bytes += batch.budget_bytes();
            let items = batch.items.iter().map(DeliveryItem::budget_bytes);
            let heaviest = items.max().unwrap_or(0);
            self.load.heaviest_bytes = self.load.heaviest_bytes.max(heaviest);
        }
    }

    pub(crate) const fn on_read(&mut self, now: Millis) {
        self.read_at = now;
    }

    /// The network took so many bytes of what waits.
    pub(crate) fn on_taken(&mut self, now: Millis, count: usize) {
        if self.session.output().is_empty() {
            self.blocked_at = None;
        } else if count > 0 || self.blocked_at.is_none() {
            self.blocked_at = Some(now);
        }
    }

    /// When the server gives up on a peer that stopped in a frame, or reads nothing.
    pub(crate) fn socket_deadline(&self) -> Option<Millis> {
        let in_a_frame = !self.input.is_empty() && self.session.wants_read();
        let read = in_a_frame.then(|| self.read_at.after_ms(PATIENCE_MS));
        let written = self.blocked_at.map(|at| at.after_ms(PATIENCE_MS));
        read.into_iter().chain(written).min()
    }

    /// The next moment at which something is due.
    pub(crate) fn next_deadline(&self) -> Option<Millis> {
        let own = self.session.next_deadline();
        own.into_iter().chain(self.socket_deadline()).min()
    }

    /// Frames that were read before there was room for them.
    pub(crate) fn decode_rest(&mut self, now: Millis) {
        if !self.input.is_empty() && self.session.wants_input() {
            self.session.on_bytes(now, &mut self.input);
        }
    }

    /// The session is done and all it said is on its way.
    pub(crate) fn is_finished(&mut self) -> bool {
        self.session.is_closing() && self.session.output().is_empty()
    }
}
