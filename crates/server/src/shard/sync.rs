//! The threads that run what blocks on the disk: one syncs the log, one does what can wait.

use std::{
    io,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tanda_node::{BackgroundJob, BackgroundOutcome};
use tanda_wal::{Disk, FlushJob, FlushOutcome};

use super::{ShardInbox, guard::abort_on_panic};

/// After a job the background thread rests so many times as long as the job took: at least so much
/// of the disk's time is the log's.
const REST_PER_WORK: u32 = 4;
/// It rests this long at least: a fast disk is not filled in one go either, because what it is told
/// at once holds up the log. Snapshots are written at 60 MiB/s so, at most.
const REST_MIN: Duration = Duration::from_millis(2);
/// It rests no longer than this: a disk that hung once is no reason to wait.
const REST_MAX: Duration = Duration::from_millis(20);

/// What came of a job.
pub(crate) enum Finished<D: Disk> {
    /// Of the sync thread.
    Flush(FlushOutcome<D>),
    /// Of the background thread.
    Background(BackgroundOutcome<D>),
}

/// The shard's end of such a thread. Dropping it ends the thread.
#[derive(Debug)]
pub(super) struct Worker<J> {
    jobs: SyncSender<J>,
}

impl<D: Disk> Worker<FlushJob<D>> {
    /// Starts the sync thread; outcomes go to `inbox`.
    pub(super) fn sync(inbox: Arc<ShardInbox<D>>) -> io::Result<(Self, JoinHandle<()>)> {
        spawn("sync", move |work: Receiver<FlushJob<D>>| {
            for job in work {
                inbox.finished(Finished::Flush(job.run()));
            }
        })
    }
}

impl<D: Disk> Worker<BackgroundJob<D>> {
    /// Starts the background thread; outcomes go to `inbox`.
    pub(super) fn background(inbox: Arc<ShardInbox<D>>) -> io::Result<(Self, JoinHandle<()>)> {
        spawn("background", move |work: Receiver<BackgroundJob<D>>| {
            for job in work {
                let began = Instant::now();
                let outcome = job.run();
                let rest = (began.elapsed() * REST_PER_WORK).clamp(REST_MIN, REST_MAX);
                inbox.finished(Finished::Background(outcome));
                std::thread::sleep(rest);
            }
        })
    }
}

impl<J> Worker<J> {
    /// Hands a job over; its outcome comes through the inbox.
    pub(super) fn begin(&self, job: J) {
        // The thread ends only after this sender is gone, so there is someone to take it.
        let sent = self.jobs.send(job);
        debug_assert!(sent.is_ok(), "a worker thread is gone");
    }
}

fn spawn<J: Send + 'static>(
    name: &'static str,
    run: impl FnOnce(Receiver<J>) + Send + 'static,
) -> io::Result<(Worker<J>, JoinHandle<()>)> {
    // One job of each kind is out at a time, so the channel never holds more.
    let (jobs, work) = sync_channel(1);
    let thread = std::thread::Builder::new()
        .name(format!("tanda-{name}"))
        .spawn(move || abort_on_panic(name, || run(work)))?;
    Ok((Worker { jobs }, thread))
}
