//! Large batches, handled piece by piece so that they do not stall everybody else.
//!
//! A batch of more than [`PIECE_ITEMS`] items goes to the node in pieces, one each round, with all
//! that others want in between. Later requests of its connection wait behind it, so their order
//! stays. The node answers pieces under a connection of our own; when all are answered, one answer
//! goes to where the batch came from.

use std::collections::{HashMap, VecDeque};

use tanda_engine::{
    ConnId, Event, PublishBatch, PublishItem, PublishResult, ReplyTo, Request, SettleBatch,
    SettleItem, SettleResult,
};

/// Items of a piece: a few milliseconds of work.
pub(super) const PIECE_ITEMS: usize = 4096;

/// Who asks for pieces. Real connections have other numbers.
const PIECES: ConnId = ConnId(0);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// Batches of which pieces are left, in turn.
    batches: VecDeque<Batch>,
    /// Answers under construction, by the reply that is owed.
    owed: HashMap<u64, Owed>,
    next_owed: u64,
    /// Pieces that the node has not answered: the answer they belong to, and their place in it.
    out: HashMap<u32, (u64, usize)>,
    next_token: u32,
}

#[derive(Debug)]
struct Batch {
    conn: ConnId,
    owed: u64,
    /// What is left of it.
    rest: Rest,
    pieces_out: usize,
    /// Later requests of the same connection.
    behind: VecDeque<Request>,
}

#[derive(Debug)]
enum Rest {
    Publish(PublishBatch, std::vec::IntoIter<PublishItem>),
    Settle(SettleBatch, std::vec::IntoIter<SettleItem>),
}

#[derive(Debug)]
struct Owed {
    reply: ReplyTo,
    /// By piece; `None` = not answered yet.
    parts: Vec<Option<Part>>,
    answered: usize,
}

#[derive(Debug)]
enum Part {
    Published(Vec<PublishResult>),
    Settled(Vec<SettleResult>),
    Failed,
}

impl Pieces {
    /// Whether no batch has pieces left.
    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// What is kept here, for the bounds of what may wait.
    pub(super) fn requests(&self) -> impl Iterator<Item = &Request> {
        self.batches.iter().flat_map(|batch| &batch.behind)
    }

    /// Bytes of the batches of which pieces are left, each.
    pub(super) fn batch_bytes(&self) -> impl Iterator<Item = usize> {
        self.batches.iter().map(|batch| batch.rest.weight_bytes())
    }

    /// Returns the request if it is to be handled now and as it is. A large batch, and what comes
    /// behind it from the same connection, is kept for [`Pieces::next`].
    pub(super) fn pass(&mut self, request: Request) -> Option<Request> {
        if self.batches.is_empty() && !is_large(&request) {
            return Some(request);
        }
        let conn = request.conn();
        let mut batches = self.batches.iter_mut();
        if let Some(batch) = batches.find(|batch| Some(batch.conn) == conn) {
            batch.behind.push_back(request);
            return None;
        }
        self.begin(request)
    }

    /// The next piece of the batch whose turn it is. When it was the last one, what waited behind
    /// the batch goes to the front of `requests`.
    pub(super) fn next(&mut self, requests: &mut VecDeque<Request>) -> Option<Request> {
        let mut batch = self.batches.pop_front()?;
        let token = self.next_token;
        self.next_token = token.wrapping_add(1);
        self.out.insert(token, (batch.owed, batch.pieces_out));
        batch.pieces_out += 1;
        let reply = ReplyTo {
            conn: PIECES,
            token,
        };
        let piece = batch.rest.piece(reply);
        if batch.rest.is_empty() {
            while let Some(request) = batch.behind.pop_back() {
                requests.push_front(request);
            }
        } else {
            self.batches.push_back(batch);
        }
        Some(piece)
    }

    /// Puts the answers to pieces together: takes them out of `released`, and adds the answer of a
    /// batch once all of its pieces are answered.
    pub(super) fn join(&mut self, released: &mut Vec<(ConnId, Event)>) {
        if self.out.is_empty() {
            return;
        }
        for (conn, event) in std::mem::take(released) {
            if conn == PIECES {
                released.extend(self.on_answer(event));
            } else {
                released.push((conn, event));
            }
        }
    }

    fn begin(&mut self, request: Request) -> Option<Request> {
        if !is_large(&request) {
            return Some(request);
        }
        let (reply, rest, items) = match request {
            Request::Publish { reply, mut batch } => {
                let items = std::mem::take(&mut batch.items);
                let count = items.len();
                (reply, Rest::Publish(batch, items.into_iter()), count)
            }
            Request::Settle { reply, mut batch } => {
                let items = std::mem::take(&mut batch.items);
                let count = items.len();
                (reply, Rest::Settle(batch, items.into_iter()), count)
            }
            Request::Connect { .. }
            | Request::Disconnect { .. }
            | Request::Drained { .. }
            | Request::Subscribe { .. }
            | Request::Grant { .. }
            | Request::Unsubscribe { .. }
            | Request::Get { .. }
            | Request::Pool { .. }
            // It is one step of the log: it cannot be taken in pieces.
            | Request::Transaction { .. }
            | Request::Admin { .. }
            | Request::Keys { .. }
            | Request::CancelWait { .. }
            | Request::KeysUndelivered { .. }
            | Request::GotUndelivered { .. }
            | Request::Watch { .. }
            | Request::Unwatch { .. }
            | Request::WatchDrained { .. }
            | Request::ScriptDone { .. } => return Some(request),
        };
        let owed = self.next_owed;
        self.next_owed += 1;
        let pieces = items.div_ceil(PIECE_ITEMS);
        let answer = Owed {
            reply,
            parts: std::iter::repeat_with(|| None).take(pieces).collect(),
            answered: 0,
        };
        self.owed.insert(owed, answer);
        self.batches.push_back(Batch {
            conn: reply.conn,
            owed,
            rest,
            pieces_out: 0,
            behind: VecDeque::new(),
        });
        None
    }

    fn on_answer(&mut self, event: Event) -> Option<(ConnId, Event)> {
        let (token, part) = match event {
            Event::Published { token, results } => (token, Part::Published(results)),
            Event::Settled { token, results } => (token, Part::Settled(results)),
            Event::StorageFailed { token } => (token, Part::Failed),
            Event::Subscribed { .. }
            | Event::SubscribeFailed { .. }
            | Event::Delivery { .. }
            | Event::SubscriptionEnded { .. }
            | Event::Committed { .. }
            | Event::Got { .. }
            | Event::Keys { .. }
            | Event::Watching { .. }
            | Event::Watched { .. }
            | Event::WatchEnded { .. }
            | Event::Admin { .. } => return None,
        };
        let (id, index) = self.out.remove(&token)?;
        let owed = self.owed.get_mut(&id)?;
        *owed.parts.get_mut(index)? = Some(part);
        owed.answered += 1;
        if owed.answered < owed.parts.len() {
            return None;
        }
        let owed = self.owed.remove(&id)?;
        Some((owed.reply.conn, owed.answer()))
    }
}

impl Rest {
    /// Takes the next items, as a request with this reply.
    fn piece(&mut self, reply: ReplyTo) -> Request {
        match self {
            Self::Publish(batch, items) => Request::Publish {
                reply,
                batch: PublishBatch {
                    items: items.take(PIECE_ITEMS).collect(),
                    ..batch.clone()
                },
            },
            Self::Settle(batch, items) => Request::Settle {
                reply,
                batch: SettleBatch {
                    items: items.take(PIECE_ITEMS).collect(),
                    ..batch.clone()
                },
            },
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Publish(_, items) => items.len() == 0,
            Self::Settle(_, items) => items.len() == 0,
        }
    }

    fn weight_bytes(&self) -> usize {
        match self {
            Self::Publish(batch, items) => {
                batch.data.len() + items.len() * size_of::<PublishItem>()
            }
            Self::Settle(batch, items) => batch.data.len() + items.len() * size_of::<SettleItem>(),
        }
    }
}

impl Owed {
    /// One answer out of all parts. When the log failed for one of them, it failed for the batch:
    /// what became of the others is as unknown.
    fn answer(self) -> Event {
        let token = self.reply.token;
        let (mut published, mut settled) = (Vec::new(), Vec::new());
        for part in self.parts {
            match part {
                Some(Part::Published(results)) => published.extend(results),
                Some(Part::Settled(results)) => settled.extend(results),
                Some(Part::Failed) | None => return Event::StorageFailed { token },
            }
        }
        if settled.is_empty() {
            let results = published;
            Event::Published { token, results }
        } else {
            let results = settled;
            Event::Settled { token, results }
        }
    }
}

fn is_large(request: &Request) -> bool {
    let items = match request {
        Request::Publish { batch, .. } => batch.items.len(),
        Request::Settle { batch, .. } => batch.items.len(),
        Request::Connect { .. }
        | Request::Disconnect { .. }
        | Request::Drained { .. }
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
        | Request::ScriptDone { .. } => 0,
    };
    items > PIECE_ITEMS
}

#[cfg(test)]
mod tests {
    use tanda_engine::{MessageId, PublishError, PublishTarget, Span};

    use super::*;

    fn batch(conn: u64, token: u32, items: usize) -> Request {
        let empty = Span { start: 0, len: 0 };
        let item = PublishItem {
            target: PublishTarget::Refused(PublishError::TooLarge),
            content: empty,
            fairness_key: empty,
            weight: 0,
            delay_ms: 0,
            idempotency_key: None,
            priority: 0,
            transient: false,
            ..PublishItem::default()
        };
        let reply = ReplyTo {
            conn: ConnId(conn),
            token,
        };
        Request::Publish {
            reply,
            batch: PublishBatch {
                items: vec![item; items],
                ..PublishBatch::default()
            },
        }
    }

    /// Token and number of items.
    fn shape(request: &Request) -> (u32, usize) {
        let Request::Publish { reply, batch } = request else {
            panic!("{request:?}")
        };
        (reply.token, batch.items.len())
    }

    fn published(token: u32, time: u64, count: usize) -> (ConnId, Event) {
        let id = MessageId::from_bytes([u8::try_from(time).unwrap(); 16]);
        let results = vec![PublishResult::Stored(id); count];
        (PIECES, Event::Published { token, results })
    }

    #[test]
    fn small_requests_of_others_pass_and_those_of_its_connection_wait_in_order() {
        let mut pieces = Pieces::default();
        let mut requests = VecDeque::new();
        assert!(pieces.pass(batch(1, 1, PIECE_ITEMS)).is_some());
        assert!(pieces.pass(batch(1, 2, 2 * PIECE_ITEMS + 1)).is_none());
        assert!(pieces.pass(batch(1, 3, 1)).is_none());
        assert!(pieces.pass(batch(1, 4, PIECE_ITEMS + 1)).is_none());
        assert!(pieces.pass(batch(2, 5, 1)).is_some());
        assert!(pieces.pass(batch(3, 6, PIECE_ITEMS + 1)).is_none());
        assert_eq!(pieces.requests().count(), 2);
        // In turn with the other large batch.
        let sizes: Vec<usize> = std::iter::from_fn(|| pieces.next(&mut requests))
            .map(|piece| shape(&piece).1)
            .collect();
        assert_eq!(sizes, [PIECE_ITEMS, PIECE_ITEMS, PIECE_ITEMS, 1, 1]);
        let freed: Vec<u32> = requests.iter().map(|it| shape(it).0).collect();
        assert_eq!(freed, [3, 4]);
        assert!(pieces.is_empty());
    }

    #[test]
    fn one_answer_in_order_though_pieces_are_answered_in_any() {
        let mut pieces = Pieces::default();
        pieces.pass(batch(1, 7, 2 * PIECE_ITEMS + 1));
        let mut none = VecDeque::new();
        let tokens: Vec<u32> = std::iter::from_fn(|| pieces.next(&mut none))
            .map(|piece| shape(&piece).0)
            .collect();
        let other = (ConnId(2), Event::StorageFailed { token: 9 });
        let mut released = vec![published(tokens[2], 3, 1), other];
        pieces.join(&mut released);
        assert_eq!(released.len(), 1);
        released.clear();
        released.push(published(tokens[0], 1, PIECE_ITEMS));
        pieces.join(&mut released);
        assert!(released.is_empty());
        released.push(published(tokens[1], 2, PIECE_ITEMS));
        pieces.join(&mut released);
        let Some((ConnId(1), Event::Published { token: 7, results })) = released.pop() else {
            panic!("no answer")
        };
        let time = |result: &PublishResult| match result {
            PublishResult::Stored(id) => id.to_bytes()[0],
            PublishResult::Duplicate(_)
            | PublishResult::Sent { .. }
            | PublishResult::Unroutable
            | PublishResult::Refused(_) => 0,
        };
        let times: Vec<u8> = results.iter().map(time).collect();
        let expected = [vec![1; PIECE_ITEMS], vec![2; PIECE_ITEMS], vec![3]].concat();
        assert_eq!(times, expected);
    }

    #[test]
    fn when_the_log_failed_for_a_piece_it_failed_for_the_batch() {
        let mut pieces = Pieces::default();
        pieces.pass(batch(1, 7, PIECE_ITEMS + 1));
        let mut none = VecDeque::new();
        let first = shape(&pieces.next(&mut none).unwrap()).0;
        let second = shape(&pieces.next(&mut none).unwrap()).0;
        let failed = (PIECES, Event::StorageFailed { token: second });
        let mut released = vec![published(first, 1, PIECE_ITEMS), failed];
        pieces.join(&mut released);
        assert!(matches!(
            released[..],
            [(ConnId(1), Event::StorageFailed { token: 7 })]
        ));
    }
}
