//! An engine at work: a few requests of each kind, with its invariants after each.

use bytes::Bytes;
use tanda_engine::{
    AdminRequest, ConnId, ConnLimits, DeliveryBatch, Engine, Event, LeaseMode, MessageId, Millis,
    Output, PublishBatch, PublishItem, PublishTarget, ReplyTo, Request, SettleBatch, SettleItem,
    SettleQueue, Settlement, Span, SubId, SubscribeSpec, VhostId,
};
use tanda_wire::fila::enqueue::encode_content;

use super::journal::MemJournal;
use super::keys::use_keys;

/// Queues that the sound log knows.
pub(super) const NAMES: [&str; 4] = ["plain", "grouped", "fast", "short"];

/// Turns of the engine before its answer that there is more to do is doubted.
const TURNS_MAX: usize = 1_000;

/// A message to publish.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Message<'a> {
    pub(super) queue: &'a str,
    pub(super) key: &'a str,
    pub(super) header: &'a str,
    pub(super) dedup: Option<&'a str>,
    pub(super) delay_ms: u64,
    pub(super) priority: u8,
}

/// Whether the engine's invariants must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checks {
    /// It was given a sound log.
    All,
    /// It was given nonsense.
    None,
}

/// An engine with its journal and clock.
pub(super) struct Driver {
    engine: Engine,
    checks: Checks,
    pub(super) journal: MemJournal,
    now: Millis,
    /// Outputs since they were last taken.
    pub(super) out: Vec<Output>,
}

impl Driver {
    pub(super) fn new(
        (engine, checks): (Engine, Checks),
        journal: MemJournal,
        now: Millis,
    ) -> Self {
        Self {
            engine,
            checks,
            journal,
            now,
            out: Vec::new(),
        }
    }

    pub(super) fn request(&mut self, request: Request) {
        self.engine
            .handle(self.now, &mut self.journal, request, &mut self.out);
        self.check();
    }

    fn check(&self) {
        if self.checks == Checks::All {
            self.engine.assert_invariants();
        }
    }

    pub(super) fn run(&mut self) {
        for _ in 0..TURNS_MAX {
            let more = self.engine.run(self.now, &mut self.journal, &mut self.out);
            if !more {
                self.check();
                return;
            }
        }
        // A queue whose counters are nonsense may stand in line for ever.
        assert!(self.checks == Checks::None, "the engine comes to no rest");
    }

    /// A delivery that could not be passed on.
    pub(super) fn undelivered(&mut self, conn: ConnId, batch: &DeliveryBatch) {
        self.engine
            .undelivered(self.now, &mut self.journal, conn, batch);
        self.check();
    }

    pub(super) fn wait(&mut self, ms: u64) {
        self.now = self.now.after_ms(ms);
        self.run();
    }

    pub(super) fn connect(&mut self, conn: ConnId) {
        let limits = ConnLimits {
            outbound_bytes_max: 1 << 20,
            subscriptions_max: 100,
        };
        self.request(Request::Connect { conn, limits });
    }

    pub(super) fn disconnect(&mut self, conn: ConnId) {
        self.request(Request::Disconnect { conn });
    }

    pub(super) fn subscribe(&mut self, conn: ConnId, token: u32, queue: &str, credit: u32) {
        let spec = SubscribeSpec {
            queue: queue.to_owned(),
            credit: Some(credit),
            lease: if token.is_multiple_of(2) {
                LeaseMode::Timed
            } else {
                LeaseMode::Connection
            },
            throttles: Vec::new(),
            ..SubscribeSpec::default()
        };
        let sub = SubId { conn, token };
        self.request(Request::Subscribe { sub, spec });
        self.request(Request::Grant { sub, credit });
    }

    pub(super) fn admin(&mut self, request: AdminRequest) {
        self.request(Request::Admin {
            reply: REPLY,
            request,
        });
        self.run();
    }

    pub(super) fn publish(&mut self, messages: &[Message<'_>]) {
        let mut data = Vec::new();
        let items = messages
            .iter()
            .map(|message| PublishItem {
                target: PublishTarget::Name(put(&mut data, message.queue.as_bytes())),
                content: {
                    let mut content = Vec::new();
                    let headers = [("k", message.header)];
                    let written = encode_content(&mut content, headers, b"payload");
                    assert_eq!(written, Ok(()));
                    put(&mut data, &content)
                },
                fairness_key: put(&mut data, message.key.as_bytes()),
                weight: 0,
                delay_ms: message.delay_ms,
                idempotency_key: message.dedup.map(|key| put(&mut data, key.as_bytes())),
                priority: message.priority,
                transient: false,
                ..PublishItem::default()
            })
            .collect();
        let batch = PublishBatch {
            data: Bytes::from(data),
            items,
            ..PublishBatch::default()
        };
        self.request(Request::Publish {
            reply: REPLY,
            batch,
        });
    }

    pub(super) fn settle(&mut self, queue: &str, id: MessageId, settlement: Settlement) {
        let mut data = Vec::new();
        let queue = put(&mut data, queue.as_bytes());
        let batch = SettleBatch {
            data: Bytes::from(data),
            items: vec![SettleItem {
                queue: SettleQueue::Name(queue),
                id,
                settlement,
            }],
            ..SettleBatch::default()
        };
        self.request(Request::Settle {
            reply: REPLY,
            batch,
        });
    }
}

const REPLY: ReplyTo = ReplyTo {
    conn: ConnId(1),
    token: 7,
};

fn put(data: &mut Vec<u8>, bytes: &[u8]) -> Span {
    let at = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
    let start = at(data.len());
    data.extend_from_slice(bytes);
    Span {
        start,
        len: at(bytes.len()),
    }
}

/// A few requests to an engine that has just started: it delivers, settles, lists and deletes.
pub(super) fn serve(mut driver: Driver) {
    driver.check();
    driver.connect(ConnId(1));
    driver.run();
    for (at, queue) in NAMES.iter().enumerate() {
        let token = 10 + u32::try_from(at).unwrap_or_default();
        driver.subscribe(ConnId(1), token, queue, 4);
        driver.publish(&[Message {
            queue,
            key: "x",
            header: "1",
            ..Message::default()
        }]);
    }
    driver.run();
    let out = core::mem::take(&mut driver.out);
    let settlements = [Settlement::Ack, Settlement::Requeue, Settlement::Reject];
    let mut settlements = settlements.iter().cycle();
    for output in out {
        let Event::Delivery { batch, .. } = output.event else {
            continue;
        };
        for item in &batch.items {
            if let Some(settlement) = settlements.next() {
                driver.settle(&batch.queue, item.id, *settlement);
            }
        }
    }
    driver.run();
    driver.admin(AdminRequest::ListQueues);
    let [plain, grouped, ..] = NAMES.map(str::to_owned);
    let name = plain.clone();
    driver.admin(AdminRequest::QueueStats {
        vhost: VhostId::DEFAULT,
        name,
    });
    let name = format!("{plain}.dlq");
    driver.admin(AdminRequest::Redrive {
        vhost: VhostId::DEFAULT,
        name,
        count: 2,
        reclassify: tanda_engine::Reclassify::All,
    });
    driver.admin(AdminRequest::PurgeQueue {
        vhost: VhostId::DEFAULT,
        name: plain,
    });
    driver.admin(AdminRequest::DeleteQueue {
        vhost: VhostId::DEFAULT,
        name: grouped,
    });
    use_keys(&mut driver);
    driver.disconnect(ConnId(1));
    driver.wait(120_000);
}
