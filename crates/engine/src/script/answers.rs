//! Answers that wait until scripts have decided on all items of a batch.

use crate::engine::{Cx, Engine};
use crate::{Event, Lsn, PublishError, PublishResult, ReplyTo, SettleResult};

/// An item of an answer that is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owed {
    answer: u32,
    /// Which item of the batch.
    item: u32,
}

/// All answers that wait.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    slots: Vec<Option<Answer>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Answer {
    reply: ReplyTo,
    results: Results,
    sent: Vec<Sent>,
    /// Items that are not decided.
    left: u32,
    after: Lsn,
}

#[derive(Debug)]
enum Results {
    Published(Vec<PublishResult>),
    Settled(Vec<SettleResult>),
}

/// Stands for an item that is not decided; an item of several queues may be decided in part.
pub(crate) const UNDECIDED: PublishResult = PublishResult::Refused(PublishError::Overloaded);

/// An answer under construction: becomes one that waits with the first item that does.
#[derive(Debug)]
pub(crate) struct NewAnswer {
    reply: ReplyTo,
    answer: Option<u32>,
    /// Queues that stored the message before, or will when their script says so, if several were
    /// asked.
    pub(crate) stored_in: u32,
    sent: Vec<Sent>,
}

/// An item whose answer says how many got it.
#[derive(Clone, Copy, Debug)]
struct Sent {
    item: usize,
    receivers: u32,
}

impl NewAnswer {
    pub(crate) const fn new(reply: ReplyTo) -> Self {
        Self {
            reply,
            answer: None,
            stored_in: 0,
            sent: Vec::new(),
        }
    }

    /// An item that is not decided went to so many.
    pub(crate) fn note_sent(&mut self, item: usize, receivers: u32) {
        self.sent.push(Sent { item, receivers });
    }
}

impl Answers {
    /// Item number `item` of an answer is decided later.
    pub(crate) fn owe(&mut self, new: &mut NewAnswer, item: usize) -> Owed {
        let answer = *new.answer.get_or_insert_with(|| {
            let empty = Answer {
                reply: new.reply,
                results: Results::Published(Vec::new()),
                sent: Vec::new(),
                left: 0,
                after: Lsn::ZERO,
            };
            self.insert(empty)
        });
        if let Some(Some(it)) = self.slots.get_mut(answer as usize) {
            it.left += 1;
        }
        let item = u32::try_from(item).unwrap_or(u32::MAX);
        Owed { answer, item }
    }

    fn insert(&mut self, answer: Answer) -> u32 {
        if let Some(free) = self.free.pop()
            && let Some(slot) = self.slots.get_mut(free as usize)
        {
            *slot = Some(answer);
            return free;
        }
        self.slots.push(Some(answer));
        u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
    }

    fn take_if_decided(&mut self, answer: u32) -> Option<Answer> {
        let slot = self.slots.get_mut(answer as usize)?;
        let taken = slot.take_if(|it| it.left == 0)?;
        self.free.push(answer);
        if self.free.len() == self.slots.len() {
            self.slots = Vec::new();
            self.free = Vec::new();
        }
        Some(taken)
    }

    fn at_mut(&mut self, owed: Owed) -> Option<&mut Answer> {
        self.slots.get_mut(owed.answer as usize)?.as_mut()
    }

    /// Whom answers are owed to.
    pub(crate) fn replies(&self) -> impl Iterator<Item = ReplyTo> {
        self.slots.iter().flatten().map(|it| it.reply)
    }

    /// Rough bytes of memory.
    pub(crate) const fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Option<Answer>>()
    }
}

/// An item of several queues counts as stored when one of them stored it.
fn merge(before: PublishResult, now: PublishResult) -> PublishResult {
    let rank = |result| match result {
        PublishResult::Stored(_) | PublishResult::Sent { .. } => 3,
        PublishResult::Duplicate(_) => 2,
        PublishResult::Refused(PublishError::Overloaded) => 0,
        PublishResult::Refused(_) | PublishResult::Unroutable => 1,
    };
    if rank(now) > rank(before) {
        now
    } else {
        before
    }
}

impl Engine {
    /// Answers a publish, now or when its last item is decided.
    pub(crate) fn answer_publish(
        &mut self,
        cx: &mut Cx<'_>,
        new: NewAnswer,
        results: Vec<PublishResult>,
        after: Lsn,
    ) {
        let NewAnswer {
            reply,
            answer,
            sent,
            ..
        } = new;
        let Some(answer) = answer else {
            let token = reply.token;
            return cx.emit(reply.conn, after, Event::Published { token, results });
        };
        let answers = &mut self.scripts.answers;
        if let Some(Some(it)) = answers.slots.get_mut(answer as usize) {
            it.results = Results::Published(results);
            it.sent = sent;
            it.after = after;
        }
        self.emit_decided(cx, answer);
    }

    /// Answers a settlement, now or when its last item is decided.
    pub(crate) fn answer_settle(
        &mut self,
        cx: &mut Cx<'_>,
        new: NewAnswer,
        results: Vec<SettleResult>,
        after: Lsn,
    ) {
        let NewAnswer { reply, answer, .. } = new;
        let Some(answer) = answer else {
            let token = reply.token;
            return cx.emit(reply.conn, after, Event::Settled { token, results });
        };
        let answers = &mut self.scripts.answers;
        if let Some(Some(it)) = answers.slots.get_mut(answer as usize) {
            it.results = Results::Settled(results);
            it.after = after;
        }
        self.emit_decided(cx, answer);
    }

    /// An item of a publish is decided.
    pub(crate) fn decide_publish(
        &mut self,
        cx: &mut Cx<'_>,
        owed: Owed,
        result: PublishResult,
        after: Lsn,
    ) {
        if let Some(it) = self.scripts.answers.at_mut(owed) {
            it.left -= 1;
            it.after = it.after.max(after);
            if let Results::Published(results) = &mut it.results
                && let Some(slot) = results.get_mut(owed.item as usize)
            {
                *slot = merge(*slot, result);
            }
            self.emit_decided(cx, owed.answer);
        }
    }

    /// An item of a settlement is decided.
    pub(crate) fn decide_settle(
        &mut self,
        cx: &mut Cx<'_>,
        owed: Owed,
        result: SettleResult,
        after: Lsn,
    ) {
        if let Some(it) = self.scripts.answers.at_mut(owed) {
            it.left -= 1;
            it.after = it.after.max(after);
            if let Results::Settled(results) = &mut it.results
                && let Some(slot) = results.get_mut(owed.item as usize)
            {
                *slot = result;
            }
            self.emit_decided(cx, owed.answer);
        }
    }

    fn emit_decided(&mut self, cx: &mut Cx<'_>, answer: u32) {
        let Some(it) = self.scripts.answers.take_if_decided(answer) else {
            return;
        };
        let token = it.reply.token;
        let event = match it.results {
            Results::Published(mut results) => {
                for Sent { item, receivers } in it.sent {
                    if let Some(result) = results.get_mut(item)
                        && !matches!(result, PublishResult::Refused(_))
                    {
                        *result = PublishResult::Sent { receivers };
                    }
                }
                Event::Published { token, results }
            }
            Results::Settled(results) => Event::Settled { token, results },
        };
        cx.emit(it.reply.conn, it.after, event);
    }
}
