//! The shard's threads over a disk in memory that can fail.

use std::{io, sync::Arc, thread::JoinHandle};

use tanda_engine::{
    AdminReply, AdminRequest, ConnId, ConnLimits, DeliveryDurability, Event, GetSpec, Millis,
    PublishBatch, PublishItem, PublishResult, PublishTarget, QueueSpec, ReplyTo, Request, Span,
    Take,
};
use tanda_node::{Node, NodeConfig};
use tanda_wal::{
    DiskCall,
    mem_disk::{Fault, MemDisk},
};

use super::{
    InboxLimits, Mailbox, Question, ShardInbox, Snapshot,
    driver::{Boards, Driver, Helpers},
    sync::Worker,
};
use crate::{alarms::Alarms, clock::Clock, script::ScriptHost, users::Principals};

const CONN: ConnId = ConnId(1);

/// A shard over a memory disk, and one connection to it.
struct Bench {
    disk: Arc<MemDisk>,
    inbox: Arc<ShardInbox<MemDisk>>,
    mailbox: Arc<Mailbox>,
    runtime: tokio::runtime::Runtime,
    threads: [JoinHandle<()>; 3],
}

impl Bench {
    fn start() -> Self {
        let disk = Arc::new(MemDisk::new(1));
        let mut config = NodeConfig::new(1);
        config.log = tanda_wal::Config::small(1, 0);
        let node = Node::open(Arc::clone(&disk), config, Millis(1)).unwrap();
        let clock = Clock::start(node.clock_floor());
        let inbox = Arc::new(ShardInbox::new(InboxLimits {
            requests_max: 1000,
            bytes_max: 1 << 20,
        }));
        let (flusher, sync) = Worker::sync(Arc::clone(&inbox)).unwrap();
        let (jobs, background) = Worker::background(Arc::clone(&inbox)).unwrap();
        let (principals, _) = tokio::sync::watch::channel(Principals::default());
        let (alarms, _) = tokio::sync::watch::channel(Alarms::default());
        let node = (node, Boards { principals, alarms });
        let done = super::script_done(&inbox);
        let (scripts, _) = ScriptHost::start(tanda_script::Limits::default(), &done).unwrap();
        let helpers = Helpers {
            flusher,
            background: jobs,
            scripts,
        };
        let driver = Driver::new(node, clock, Arc::clone(&inbox), helpers, 1 << 20);
        let shard = std::thread::spawn(move || driver.run());
        let mailbox = Arc::new(Mailbox::default());
        inbox.open(CONN, Arc::clone(&mailbox));
        let bench = Self {
            disk,
            inbox,
            mailbox,
            runtime: tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap(),
            threads: [shard, sync, background],
        };
        bench.send(connect(CONN));
        bench
    }

    fn send(&self, request: Request) {
        self.send_all(vec![request]);
    }

    /// Sends requests that are handled in one round.
    fn send_all(&self, mut requests: Vec<Request>) {
        self.inbox.try_send(&mut requests);
        assert!(requests.is_empty(), "refused");
    }

    /// The next event; there is only ever one under way.
    fn event(&self) -> Event {
        let mut events = Vec::new();
        while events.is_empty() {
            self.runtime.block_on(self.mailbox.arrived());
            self.mailbox.take(&mut events);
        }
        assert_eq!(events.len(), 1, "{events:?}");
        events.remove(0)
    }

    fn create(&self, name: &str) -> Event {
        self.create_as(QueueSpec {
            name: name.to_owned(),
            ..QueueSpec::default()
        })
    }

    fn create_as(&self, spec: QueueSpec) -> Event {
        self.send(Request::Admin {
            reply: reply(1),
            request: AdminRequest::CreateQueue(Box::new(spec)),
        });
        self.event()
    }

    fn publish(&self, queue: &str) -> Event {
        self.send(publishing(queue));
        self.event()
    }

    fn snapshot(&self) -> Snapshot {
        let (reply, answer) = tokio::sync::oneshot::channel();
        self.inbox.ask(Question::Snapshot(reply));
        self.runtime.block_on(answer).unwrap()
    }

    fn stop(self) {
        self.inbox.stop();
        for thread in self.threads {
            thread.join().unwrap();
        }
    }
}

const fn connect(conn: ConnId) -> Request {
    Request::Connect {
        conn,
        limits: ConnLimits {
            outbound_bytes_max: 1 << 20,
            subscriptions_max: 1,
        },
    }
}

/// Leases a message of the queue "q" for longer than any test.
fn pop(conn: ConnId, wait_ms: u64) -> Request {
    let spec = GetSpec {
        queue: "q".to_owned(),
        take: Take::Leased {
            max: 1,
            lease_ms: Some(3_600_000),
            wait_ms,
        },
        ..GetSpec::default()
    };
    let reply = ReplyTo { conn, token: 7 };
    Request::Get { reply, spec }
}

fn publishing(queue: &str) -> Request {
    let name = Span {
        start: 0,
        len: u32::try_from(queue.len()).unwrap(),
    };
    let mut data = queue.as_bytes().to_vec();
    data.extend([0; 6]);
    let item = PublishItem {
        target: PublishTarget::Name(name),
        content: Span {
            start: name.len,
            len: 6,
        },
        fairness_key: Span::default(),
        weight: 1,
        delay_ms: 0,
        idempotency_key: None,
        priority: 0,
        transient: false,
        ..PublishItem::default()
    };
    Request::Publish {
        reply: reply(2),
        batch: PublishBatch {
            data: data.into(),
            items: vec![item],
            ..PublishBatch::default()
        },
    }
}

const fn reply(token: u32) -> ReplyTo {
    ReplyTo { conn: CONN, token }
}

#[test]
fn a_publish_is_answered_when_it_is_durable() {
    let bench = Bench::start();
    let created = bench.create("q");
    let Event::Admin { reply, .. } = &created else {
        panic!("{created:?}")
    };
    assert!(matches!(**reply, AdminReply::Created(Ok(_))), "{created:?}");
    let syncs = bench.disk.calls(DiskCall::Sync);
    let published = bench.publish("q");
    let Event::Published { results, .. } = &published else {
        panic!("{published:?}")
    };
    assert!(
        matches!(results[..], [PublishResult::Stored(_)]),
        "{published:?}"
    );
    assert!(
        bench.disk.calls(DiskCall::Sync) > syncs,
        "answered before a sync"
    );
    assert!(bench.snapshot().failed.is_none());
    bench.stop();
}

#[test]
fn a_failed_sync_confirms_nothing_more_and_the_shard_stays_up_for_diagnosis() {
    let bench = Bench::start();
    bench.create("q");
    bench
        .disk
        .inject(DiskCall::Sync, 1, Fault::Fail(io::ErrorKind::Other));
    let lost = bench.publish("q");
    assert!(
        matches!(lost, Event::StorageFailed { token: 2 }),
        "{lost:?}"
    );
    let after = bench.publish("q");
    assert!(
        matches!(after, Event::StorageFailed { token: 2 }),
        "{after:?}"
    );
    let cause = bench.snapshot().failed.unwrap();
    assert!(cause.contains("sync"), "{cause}");
    bench.stop();
}

/// Whatever part of the way the answer had gone when its client was gone.
#[test]
fn what_was_popped_for_who_is_gone_goes_back_at_once() {
    use DeliveryDurability::{Committed, Fast};
    let gone = ConnId(2);
    for (durability, together, waits) in [
        (Fast, true, false),
        (Fast, false, false),
        (Fast, true, true),
        (Committed, true, false),
        (Committed, false, false),
        (Committed, true, true),
    ] {
        let bench = Bench::start();
        bench.create_as(QueueSpec {
            name: "q".to_owned(),
            durability,
            ..QueueSpec::default()
        });
        let mailbox = Arc::new(Mailbox::default());
        bench.inbox.open(gone, Arc::clone(&mailbox));
        let mut requests = vec![connect(gone), pop(gone, 3_600_000)];
        if waits {
            // The publish serves it, in the same round as its end.
            bench.send_all(requests);
            requests = vec![publishing("q")];
        } else {
            bench.publish("q");
        }
        let disconnect = Request::Disconnect { conn: gone };
        if together {
            requests.push(disconnect);
            bench.send_all(requests);
        } else {
            bench.send_all(requests);
            bench.runtime.block_on(mailbox.arrived());
            bench.send(disconnect);
        }
        if waits {
            let published = bench.event();
            assert!(
                matches!(published, Event::Published { .. }),
                "{published:?}"
            );
        }
        bench.send(pop(CONN, 0));
        let answer = bench.event();
        let Event::Got {
            result: Ok(got), ..
        } = &answer
        else {
            panic!("{answer:?}")
        };
        let items = got.batch.iter().flat_map(|batch| &batch.items);
        // Nobody has seen it before.
        let attempts: Vec<u32> = items.map(|item| item.attempts).collect();
        assert_eq!(attempts, [1], "{durability:?}, {together}, {waits}");
        bench.stop();
    }
}
