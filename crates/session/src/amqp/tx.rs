//! `tx`: publishes and settlements of a channel that take effect together, or not at all.

use tanda_engine::{PublishError, PublishResult, Request, SettleBatch, SettleResult, Settlement};
use tanda_wire::amqp::{Arguments, tx};

use super::channel::{Batch, Channel, Mode, Published, Tx};
use super::fault::Fault;
use super::link::Link;
use super::open::Open;
use super::pending::{Call, Waiting};
use crate::unacked::HeldMessage;

/// A settlement that waits for a commit.
type Settled = (u64, HeldMessage, Settlement);

impl Channel {
    /// Nothing comes of what waits for a commit; the messages stay unacknowledged.
    pub(super) fn forget_tx(&mut self) {
        if let Mode::Tx(tx) = &mut self.mode {
            let tx = core::mem::take(&mut **tx);
            let settled = tx.settled.into_iter();
            let settled = settled.map(|(tag, message, _)| (tag, message)).collect();
            self.unacked.put_back(settled);
        }
    }
}

impl Open {
    pub(super) fn on_select(&mut self, link: &mut Link, number: u16) -> Result<(), Fault> {
        // What came before is not part of it.
        self.flush(link);
        let Some(channel) = self.channels.find(number) else {
            return Ok(());
        };
        match channel.mode {
            Mode::Plain => channel.mode = Mode::Tx(Box::default()),
            Mode::Tx(_) => {}
            Mode::Confirm(_) => {
                let text = "cannot switch from confirm to tx mode";
                return Err(Fault::precondition(text));
            }
        }
        link.outbound.method(number, tx::SelectOk {});
        Ok(())
    }

    pub(super) fn on_commit(&mut self, link: &mut Link, number: u16) -> Result<(), Fault> {
        self.flush(link);
        let Some(channel) = self.channels.find(number) else {
            return Ok(());
        };
        let Mode::Tx(tx) = &mut channel.mode else {
            return Err(Fault::precondition("channel is not transactional"));
        };
        if tx.is_empty() {
            link.outbound.method(number, tx::CommitOk {});
            return Ok(());
        }
        let Tx { batch, settled, .. } = core::mem::take(&mut **tx);
        let batch = Batch {
            confirm: true,
            ..batch
        };
        let (published, publish) = batch.into_request(link.vhost);
        let items = settled.iter().map(|(_, message, it)| message.settled(*it));
        let settle = SettleBatch {
            vhost: link.vhost,
            items: items.collect(),
            ..SettleBatch::default()
        };
        channel.is_busy = true;
        let token = link.pending.insert(Waiting::Call {
            channel: number,
            method: tx::Commit::ID,
            no_wait: false,
            call: Call::Commit { published, settled },
        });
        let reply = link.reply_to(token);
        link.requests.push(Request::Transaction {
            reply,
            publish,
            settle,
        });
        Ok(())
    }

    pub(super) fn on_rollback(&mut self, link: &mut Link, number: u16) -> Result<(), Fault> {
        let Some(channel) = self.channels.find(number) else {
            return Ok(());
        };
        if !matches!(channel.mode, Mode::Tx(_)) {
            return Err(Fault::precondition("channel is not transactional"));
        }
        channel.forget_tx();
        link.outbound.method(number, tx::RollbackOk {});
        Ok(())
    }

    /// A commit was answered.
    pub(super) fn on_committed(
        &mut self,
        link: &mut Link,
        number: u16,
        (published, settled): (&Published, Vec<Settled>),
        (stored, done): (&[PublishResult], &[SettleResult]),
    ) {
        let refused = stored.iter().find_map(|result| match result {
            PublishResult::Refused(error) => Some(*error),
            PublishResult::Stored(_)
            | PublishResult::Duplicate(_)
            | PublishResult::Sent { .. }
            | PublishResult::Unroutable => None,
        });
        if let Some(error) = refused {
            return self.on_commit_failed(link, number, settled, partial_commit(error));
        }
        // A message that somebody else took meanwhile (its acknowledgement came too late) is no
        // reason to fail: RabbitMQ does not look either.
        debug_assert!(done.len() == settled.len() || done.is_empty());
        for (_, message, _) in &settled {
            self.note_freed(number, message);
        }
        self.grant(link);
        let mut rest = stored;
        for segment in &published.segments {
            let (mine, others) = rest.split_at_checked(segment.count).unwrap_or((rest, &[]));
            rest = others;
            self.say_returned(link, published, segment, mine);
        }
        link.outbound.method(number, tx::CommitOk {});
    }

    /// Nothing of a commit took effect.
    pub(super) fn on_commit_failed(
        &mut self,
        link: &mut Link,
        number: u16,
        settled: Vec<Settled>,
        fault: Fault,
    ) {
        if let Some(channel) = self.channels.find(number) {
            let settled = settled.into_iter();
            let settled = settled.map(|(tag, message, _)| (tag, message)).collect();
            channel.unacked.put_back(settled);
        }
        self.fail_channel(link, number, &fault.by(tx::Commit::ID));
    }
}

fn partial_commit(error: PublishError) -> Fault {
    Fault::precondition(format!("partial tx completion: {error:?}"))
}
