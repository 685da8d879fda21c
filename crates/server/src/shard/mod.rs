//! The shard: one thread that owns the node, one that syncs its log, one for what can wait, and
//! those of scripts.
//!
//! ```text
//!  connection tasks ──► Inbox ──► shard thread (Node) ──► FlushJob ──► sync thread
//!        ▲                          │      ▲                               │
//!        └───── Mailbox ◄───────────┘      └────────── FlushOutcome ◄──────┘
//! ```
//!
//! Owns these threads and what goes between them and the connections. It refuses to know protocols
//! and sockets.

mod crier;
mod driver;
mod guard;
mod inbox;
mod mailbox;
mod outboxes;
mod pieces;
mod sync;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use tanda_engine::{ConnId, Request, VhostId};
use tanda_node::{BackupRefused, BackupSource, Node, NodeStats};
use tanda_wal::Disk;
use tokio::{
    sync::{oneshot, watch},
    time::timeout,
};

pub(crate) use self::{
    crier::{Crier, Listener},
    inbox::InboxLimits,
    mailbox::Mailbox,
};
use self::{
    driver::{Boards, Driver, Helpers},
    guard::abort_on_panic,
    inbox::{Inbox, Taken},
    sync::{Finished, Worker},
};
use crate::{
    alarms::Alarms,
    clock::Clock,
    disk::RealDisk,
    script::{Done, ScriptHost},
    users::Principals,
};

type ShardInbox<D> = Inbox<Finished<D>, Question<D>>;
type ShardTaken<D> = Taken<Finished<D>, Question<D>>;

/// Longer than a disk call takes on a disk that works.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(5);

/// Longer than the snapshot of a backup takes, also of a broker that holds very much.
const BACKUP_TIMEOUT: Duration = Duration::from_secs(120);

/// What is asked of the shard beside requests.
enum Question<D: Disk> {
    /// What it looks like.
    Snapshot(oneshot::Sender<Snapshot>),
    /// A backup.
    Backup(BackupReply<D>),
}

/// Virtual hosts that were deleted since the start.
pub(crate) type VhostsGone = Arc<BTreeSet<VhostId>>;

/// Where a backup goes once it can be read.
type BackupReply<D> = oneshot::Sender<Result<BackupSource<D>, BackupRefused>>;

/// What the shard looks like from outside.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// The node's figures.
    pub(crate) node: NodeStats,
    /// Why the log failed.
    pub(crate) failed: Option<String>,
    /// What runs short.
    pub(crate) alarms: Alarms,
}

/// The way to the shard for everyone else. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Shard {
    inbox: Arc<ShardInbox<RealDisk>>,
    principals: watch::Receiver<Principals>,
    alarms: watch::Sender<Alarms>,
    vhosts_gone: watch::Sender<VhostsGone>,
    crier: Crier,
    next_conn: Arc<AtomicU64>,
}

/// The shard's threads.
#[derive(Debug)]
pub(crate) struct Threads {
    shard: JoinHandle<()>,
    sync: JoinHandle<()>,
    background: JoinHandle<()>,
    scripts: [JoinHandle<()>; 2],
}

impl Shard {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the system makes no thread.
    pub(crate) fn start(
        node: Node<RealDisk>,
        clock: Clock,
        limits: InboxLimits,
        script_limits: tanda_script::Limits,
    ) -> io::Result<(Self, Threads)> {
        let inbox = Arc::new(ShardInbox::new(limits));
        let (flusher, sync) = Worker::sync(Arc::clone(&inbox))?;
        let (jobs, background) = Worker::background(Arc::clone(&inbox))?;
        let (script_host, scripts) = ScriptHost::start(script_limits, &script_done(&inbox))?;
        let helpers = Helpers {
            flusher,
            background: jobs,
            scripts: script_host,
        };
        // As much may wait for the disk as for the thread.
        let (publisher, principals) = watch::channel(Principals {
            keys: Arc::clone(node.keys()),
            users: Arc::clone(node.users()),
        });
        let (alarms, _) = watch::channel(Alarms::default());
        let (vhosts_gone, _) = watch::channel(VhostsGone::default());
        let boards = Boards {
            principals: publisher,
            alarms: alarms.clone(),
        };
        let driver = Driver::new(
            (node, boards),
            clock,
            Arc::clone(&inbox),
            helpers,
            limits.bytes_max,
        );
        let shard = std::thread::Builder::new()
            .name("tanda-shard".to_owned())
            .spawn(move || abort_on_panic("shard", || driver.run()))?;
        let next_conn = Arc::new(AtomicU64::new(1));
        Ok((
            Self {
                inbox,
                principals,
                alarms,
                vhosts_gone,
                crier: Crier::default(),
                next_conn,
            },
            Threads {
                shard,
                sync,
                background,
                scripts,
            },
        ))
    }

    /// The API keys and users that are on disk, and every change of them, before anybody is told
    /// that it was made.
    pub(crate) fn principals(&self) -> watch::Receiver<Principals> {
        self.principals.clone()
    }

    /// What runs short, and every change of it.
    pub(crate) const fn alarms(&self) -> &watch::Sender<Alarms> {
        &self.alarms
    }

    /// The virtual hosts that were deleted since the start, and every one that is.
    pub(crate) fn vhosts_gone(&self) -> watch::Receiver<VhostsGone> {
        self.vhosts_gone.subscribe()
    }

    /// A virtual host was deleted, which is on disk: whoever is in it has to go.
    pub(crate) fn note_vhost_gone(&self, id: VhostId) {
        self.vhosts_gone.send_modify(|gone| {
            Arc::make_mut(gone).insert(id);
        });
    }

    /// Who calls connections when one of these changes.
    pub(crate) const fn crier(&self) -> &Crier {
        &self.crier
    }

    /// A number for a new connection.
    pub(crate) fn new_conn(&self) -> ConnId {
        ConnId(self.next_conn.fetch_add(1, Ordering::Relaxed))
    }

    /// Where the events of a connection go. To be said before its first request, which must be
    /// `Connect`; its `Disconnect` ends it.
    pub(crate) fn open(&self, conn: ConnId, mailbox: Arc<Mailbox>) {
        self.inbox.open(conn, mailbox);
    }

    /// Sends requests; what found no room stays in `requests`.
    pub(crate) fn try_send(&self, requests: &mut Vec<Request>) {
        self.inbox.try_send(requests);
    }

    /// What the shard looks like now; `None` when it does not say within [`SNAPSHOT_TIMEOUT`].
    pub(crate) async fn snapshot(&self) -> Option<Snapshot> {
        let (reply, answer) = oneshot::channel();
        self.inbox.ask(Question::Snapshot(reply));
        timeout(SNAPSHOT_TIMEOUT, answer).await.ok()?.ok()
    }

    /// A backup of everything that is confirmed by now, to be read on a thread that may block;
    /// `None` when the shard does not answer within [`BACKUP_TIMEOUT`].
    pub(crate) async fn backup(&self) -> Option<Result<BackupSource<RealDisk>, BackupRefused>> {
        let (reply, answer) = oneshot::channel();
        self.inbox.ask(Question::Backup(reply));
        timeout(BACKUP_TIMEOUT, answer).await.ok()?.ok()
    }

    /// Asks the shard to finish what it has and end.
    pub(crate) fn stop(&self) {
        self.inbox.stop();
    }
}

impl Threads {
    /// Waits for all threads, which end after [`Shard::stop`].
    pub(crate) fn join(self) {
        // A panic there has ended the process already.
        drop(self.shard.join());
        drop(self.sync.join());
        drop(self.background.join());
        for scripts in self.scripts {
            drop(scripts.join());
        }
    }
}

/// Results of scripts come in as requests that are never refused.
fn script_done<D: Disk + 'static>(inbox: &Arc<ShardInbox<D>>) -> Done {
    let inbox = Arc::clone(inbox);
    Arc::new(move |job, outcome| {
        let job = Box::new(job);
        let mut requests = vec![Request::ScriptDone { job, outcome }];
        inbox.try_send(&mut requests);
        debug_assert!(requests.is_empty(), "results of scripts are never refused");
    })
}
