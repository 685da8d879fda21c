//! What a copy of the disk holds of AMQP's queues is what was confirmed at one moment: at a crash,
//! or between the request for a backup and when it could be read.
//!
//! Source: `broker-model`, publisher confirms and life; `docs/recovery.md`, backups: "everything
//! that was confirmed when it was asked for, and whatever came until its snapshot began".

use std::collections::BTreeSet;

use crate::failure::{Check, Violation, ensure};
use crate::history::amqp::{Amqp, CopyId, Outcome, origin_of, tag_of};
use crate::world::Emptied;

use super::topology;

pub(crate) const NAME: &str = "a copy of AMQP queues is one moment";

/// What was there at `asked` and is there now is in the copy; what is in it may be there.
pub(crate) fn when_opened(asked: &Amqp, now: &Amqp, emptied: &Emptied) -> Check {
    topology::when_restored(asked, now, &emptied.found)?;
    let mut taken: BTreeSet<CopyId> = BTreeSet::new();
    for (queue, messages) in &emptied.taken {
        for message in messages {
            let tag = tag_of(&message.body).ok_or_else(|| Violation {
                invariant: NAME,
                what: format!("{queue:?} held a message that nobody published"),
            })?;
            let id = (tag, origin_of(queue).to_owned());
            may_be_there(asked, now, &id, &message.body)?;
            ensure(!taken.contains(&id), NAME, || {
                format!("message {tag} was in {queue:?}, and somewhere else too")
            })?;
            taken.insert(id);
        }
    }
    for (tag, sent) in asked.sent.iter().enumerate() {
        for queue in &sent.must {
            let id = (tag, queue.clone());
            if !now.outlives(&id) || taken.contains(&id) {
                continue;
            }
            let was_there = asked.must_be_there(tag, queue)?;
            let is_lost = was_there && now.must_be_there(tag, queue)?;
            ensure(!is_lost, NAME, || {
                format!(
                    "message {tag} was {:?} and is not in {queue:?}: {:?}",
                    sent.outcome,
                    now.copies.get(&id)
                )
            })?;
        }
    }
    Ok(())
}

fn may_be_there(asked: &Amqp, now: &Amqp, id: &CopyId, body: &[u8]) -> Check {
    let (tag, queue) = id;
    let sent = now.published(*tag)?;
    ensure(body == sent.body, NAME, || {
        format!("the body of message {tag} has changed")
    })?;
    let is_nowhere = sent.is_returned || sent.outcome == Outcome::RolledBack;
    ensure(sent.may.contains(queue) && !is_nowhere, NAME, || {
        format!("message {tag} was in {queue:?}, where it never went: {sent:?}")
    })?;
    ensure(now.outlives(id), NAME, || {
        format!("message {tag} in {queue:?} is transient, and was on disk")
    })?;
    let copy = asked.copies.get(id);
    ensure(copy.is_none_or(|it| !it.is_gone_for_good), NAME, || {
        format!("message {tag} was in {queue:?}, and its acknowledgement was committed")
    })
}
