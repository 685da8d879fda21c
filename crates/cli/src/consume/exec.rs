//! Runs a command for each message, several at a time.

use tokio::task::JoinSet;

use super::{
    job::{Job, Outcome},
    take::{Take, give_back},
};
use crate::{
    failure::{Failure, explain},
    note::note,
    table::counted,
};

/// Commands that run, and messages that come. The subscription's prefetch is the number of commands
/// at a time, so each message begins when it comes.
#[derive(Debug)]
pub(super) struct Workers {
    take: Take,
    job: Job,
    running: JoinSet<Outcome>,
    tally: Tally,
}

/// How messages ended.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    done: u64,
    failed: u64,
    later: u64,
    unsettled: u64,
    given_back: u64,
}

impl Workers {
    pub(super) fn new(take: Take, job: Job) -> Self {
        Self {
            take,
            job,
            running: JoinSet::new(),
            tally: Tally::default(),
        }
    }

    pub(super) async fn run(mut self) -> Result<(), Failure> {
        let taken = self.take_all().await;
        let rest = self.take.rest().await;
        self.tally.given_back = give_back(rest, "not begun by tanda consume").await;
        let finished = self.finish().await;
        let Tally {
            done,
            failed,
            later,
            unsettled,
            given_back,
        } = self.tally;
        note(format_args!(
            "{done} done, {failed} failed, {later} to be retried later, {unsettled} not settled, \
             {given_back} given back"
        ));
        taken.and(finished)?;
        if unsettled > 0 {
            return Err(Failure::Refused(format!(
                "{} may be delivered again although a command ran",
                counted(unsettled, "message")
            )));
        }
        Ok(())
    }

    /// Begins a run for each message until there are no more to take.
    async fn take_all(&mut self) -> Result<(), Failure> {
        loop {
            self.take.set_working(self.running.len());
            tokio::select! {
                Some(ended) = self.running.join_next() => {
                    self.on_ended(ended);
                }
                batch = self.take.next(1) => {
                    let batch = batch?;
                    if batch.is_empty() {
                        return Ok(());
                    }
                    for delivery in batch {
                        self.running.spawn(self.job.clone().run(delivery));
                    }
                }
            }
        }
    }

    /// Waits for what runs. A second signal ends the wait and the commands.
    async fn finish(&mut self) -> Result<(), Failure> {
        loop {
            tokio::select! {
                ended = self.running.join_next() => match ended {
                    Some(ended) => self.on_ended(ended),
                    None => return Ok(()),
                },
                () = self.take.asked_to_stop() => {
                    let running = counted(self.running.len() as u64, "command");
                    self.running.shutdown().await;
                    return Err(Failure::Refused(format!(
                        "stopped {running} that did not end; their messages come again when their \
                         leases end"
                    )));
                }
            }
        }
    }

    fn on_ended(&mut self, ended: Result<Outcome, tokio::task::JoinError>) {
        let tally = &mut self.tally;
        match ended {
            Ok(Outcome::Done) => tally.done += 1,
            Ok(Outcome::Later) => tally.later += 1,
            Ok(Outcome::Failed(reason)) => {
                tally.failed += 1;
                note(format_args!("a message failed: {reason}"));
            }
            Ok(Outcome::Lost) => {
                tally.unsettled += 1;
                note("stopped a command: the lease of its message was lost");
            }
            Ok(Outcome::Unsettled(error)) => {
                tally.unsettled += 1;
                note(format_args!("a command ended, but: {}", explain(&error)));
            }
            Err(error) => {
                tally.unsettled += 1;
                note(format_args!("a task ended badly: {error}"));
            }
        }
    }
}
