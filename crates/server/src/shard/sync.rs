//! The sync thread: runs what blocks on the disk.

use std::{
    io,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::JoinHandle,
};

use tanda_wal::{Disk, FlushJob};

use super::{ShardInbox, guard::abort_on_panic};

/// The shard's end of the sync thread. Dropping it ends the thread.
#[derive(Debug)]
pub(super) struct Flusher<D: Disk> {
    jobs: SyncSender<FlushJob<D>>,
}

impl<D: Disk> Flusher<D> {
    /// Starts the thread; outcomes go to `inbox`.
    pub(super) fn spawn(inbox: Arc<ShardInbox<D>>) -> io::Result<(Self, JoinHandle<()>)> {
        // One job at a time is out, so the channel never holds more.
        let (jobs, work) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("tanda-sync".to_owned())
            .spawn(move || abort_on_panic("sync", || run(&work, &inbox)))?;
        Ok((Self { jobs }, thread))
    }

    /// Hands a job over; its outcome comes through the inbox.
    pub(super) fn begin(&self, job: FlushJob<D>) {
        // The thread ends only after this sender is gone, so there is someone to take it.
        let sent = self.jobs.send(job);
        debug_assert!(sent.is_ok(), "the sync thread is gone");
    }
}

fn run<D: Disk>(work: &Receiver<FlushJob<D>>, inbox: &ShardInbox<D>) {
    for job in work {
        inbox.flushed(job.run());
    }
}
