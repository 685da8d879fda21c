//! An engine with a log in memory, whose longest step is measured.

use std::time::Duration;

use bytes::Bytes;
use tanda_engine::{
    AdminReply, AdminRequest, CallContent, ConnId, ConnLimits, ContentRead, DeliveryBatch, Engine,
    EngineConfig, Event, Journal, LeaseMode, Lsn, Millis, Output, PageSlot, PublishBatch,
    PublishItem, PublishTarget, QueueSpec, ReplyTo, Request, ScriptFault, ScriptOutcome,
    ScriptTask, Span, SubId, SubscribeSpec,
};
use tanda_script::thread_cpu_time;

/// Messages of most cases.
pub(crate) const MILLION: u32 = 1_000_000;
/// Messages of one batch.
pub(crate) const BATCH: u32 = 1000;
pub(crate) const CONN: ConnId = ConnId(1);
pub(crate) const QUEUE: &str = "q";

/// A log that is not kept, but for what has to be read of it. Nothing goes into pages.
struct Log {
    end: Lsn,
    kept: Option<Vec<(Lsn, Vec<u8>)>>,
}

impl Journal for Log {
    fn append(&mut self, record: &[u8]) -> Lsn {
        let at = Lsn(self.end.0 + 4);
        self.end = Lsn(at.0 + record.len() as u64);
        if let Some(kept) = &mut self.kept {
            kept.push((at, record.to_vec()));
        }
        at
    }

    fn end(&self) -> Lsn {
        self.end
    }

    fn read_content(&mut self, at: Lsn, len: u32, into: &mut Vec<u8>) -> ContentRead {
        let kept = self.kept.as_ref().expect("this case keeps its log");
        let (start, record) = &kept[kept.partition_point(|it| it.0 <= at) - 1];
        let from = usize::try_from(at.0 - start.0).unwrap();
        let to = record.len().min(from + len as usize);
        into.extend_from_slice(&record[from..to]);
        ContentRead::Cached
    }

    fn write_page(&mut self, _: &[u8]) -> Option<PageSlot> {
        None
    }

    fn read_page(&mut self, _: PageSlot, _: &mut Vec<u8>) -> bool {
        false
    }

    fn free_page(&mut self, _: PageSlot) {}
}

/// What a message of a case looks like.
#[derive(Clone, Copy, Default)]
pub(crate) struct Shape {
    /// Fairness keys; 0 = none.
    pub(crate) keys: u32,
    /// The header `h` of each is its own.
    pub(crate) header: bool,
    pub(crate) idempotency: bool,
    pub(crate) delay_ms: u64,
    pub(crate) ttl_ms: Option<u64>,
}

pub(crate) struct Lab {
    engine: Engine,
    log: Log,
    pub(crate) now: Millis,
    out: Vec<Output>,
    /// The longest step since [`Lab::measure`].
    longest: Duration,
    total: Duration,
    steps: u64,
    token: u32,
    /// What the host says of each message.
    pub(crate) fault: ScriptFault,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self::with_log(None)
    }

    /// Contents can be read.
    pub(crate) fn keeping() -> Self {
        Self::with_log(Some(Vec::new()))
    }

    fn with_log(kept: Option<Vec<(Lsn, Vec<u8>)>>) -> Self {
        let mut lab = Self {
            engine: Engine::new(EngineConfig {
                has_script_host: true,
                lane_hot: u32::MAX,
                throttled_hot: u32::MAX,
                ..EngineConfig::default()
            }),
            log: Log { end: Lsn(64), kept },
            now: Millis(1_000_000),
            out: Vec::new(),
            longest: Duration::ZERO,
            total: Duration::ZERO,
            steps: 0,
            token: 0,
            fault: ScriptFault::TimedOut,
        };
        lab.engine.start(lab.now, &mut lab.log).unwrap();
        lab.connect(CONN);
        lab
    }

    pub(crate) fn connect(&mut self, conn: ConnId) {
        let limits = ConnLimits {
            outbound_bytes_max: u64::MAX,
            subscriptions_max: 1000,
        };
        self.handle(Request::Connect { conn, limits });
    }

    /// From here on the longest step counts.
    pub(crate) fn measure(&mut self) {
        (self.longest, self.total, self.steps) = Default::default();
    }

    pub(crate) fn report(&self, what: &str) {
        let ms = |it: Duration| it.as_secs_f64() * 1000.0;
        let (longest, total, steps) = (ms(self.longest), ms(self.total), self.steps);
        println!("| {what} | {longest:.1} | {total:.0} | {steps} |");
    }

    fn note(&mut self, began: Duration) {
        let took = thread_cpu_time().saturating_sub(began);
        self.longest = self.longest.max(took);
        self.total += took;
        self.steps += 1;
    }

    /// One request; its outputs stay for [`Lab::outputs`].
    pub(crate) fn handle(&mut self, request: Request) {
        let began = thread_cpu_time();
        self.engine
            .handle(self.now, &mut self.log, request, &mut self.out);
        self.note(began);
        self.let_go();
    }

    fn let_go(&mut self) {
        for output in &mut self.out {
            if let Event::Delivery { batch, .. } = &mut output.event {
                self.engine.released(self.now, batch);
            }
        }
    }

    /// One pass.
    pub(crate) fn pass(&mut self) -> bool {
        let began = thread_cpu_time();
        let more = self.engine.run(self.now, &mut self.log, &mut self.out);
        self.note(began);
        self.let_go();
        more
    }

    /// Passes until nothing more can be done now, scripts included.
    pub(crate) fn run(&mut self) {
        loop {
            while self.pass() {}
            let mut jobs = Vec::new();
            self.engine.take_script_jobs(&mut jobs);
            if jobs.is_empty() {
                return;
            }
            for mut job in jobs {
                let outcome = match &mut job.task {
                    ScriptTask::Check => ScriptOutcome::Checked(Ok(())),
                    ScriptTask::Enqueue(calls) => {
                        for call in calls.iter_mut() {
                            if let CallContent::Log { .. } = call.content {
                                call.content = CallContent::Here(content(None, b"x").into());
                            }
                        }
                        let fault = || Err(self.fault.clone());
                        ScriptOutcome::Enqueue(calls.iter().map(|_| fault()).collect())
                    }
                    ScriptTask::Failure(calls) => {
                        ScriptOutcome::Failure(calls.iter().map(|_| Ok(None)).collect())
                    }
                };
                let job = Box::new(job);
                self.handle(Request::ScriptDone { job, outcome });
            }
        }
    }

    pub(crate) fn outputs(&mut self) -> Vec<Event> {
        let out = core::mem::take(&mut self.out);
        out.into_iter().map(|output| output.event).collect()
    }

    pub(crate) fn deliveries(&mut self) -> Vec<DeliveryBatch> {
        let deliveries = self.outputs().into_iter().filter_map(|event| match event {
            Event::Delivery { batch, .. } => Some(batch),
            _ => None,
        });
        deliveries.collect()
    }

    pub(crate) fn reply(&mut self) -> ReplyTo {
        self.token += 1;
        ReplyTo {
            conn: CONN,
            token: self.token,
        }
    }

    /// Asks, and passes until the answer is there.
    pub(crate) fn admin(&mut self, request: AdminRequest) -> AdminReply {
        let reply = self.reply();
        self.handle(Request::Admin { reply, request });
        self.run();
        let mut answers = self.outputs().into_iter().filter_map(|event| match event {
            Event::Admin { token, reply: it } if token == reply.token => Some(*it),
            _ => None,
        });
        answers.next().expect("an answer")
    }

    pub(crate) fn create(&mut self, spec: QueueSpec) {
        let made = self.admin(AdminRequest::CreateQueue(Box::new(spec)));
        assert!(matches!(made, AdminReply::Created(Ok(_))), "{made:?}");
    }

    /// Stores messages, in batches of [`BATCH`].
    pub(crate) fn publish(&mut self, count: u32, shape: Shape) {
        for from in (0..count).step_by(BATCH as usize) {
            let batch = batch(from..count.min(from + BATCH), shape);
            let reply = self.reply();
            self.handle(Request::Publish { reply, batch });
            self.run();
            self.out.clear();
        }
    }

    pub(crate) fn subscribe(&mut self, conn: ConnId, lease: LeaseMode) -> SubId {
        self.subscribe_with(
            conn,
            SubscribeSpec {
                lease,
                ..SubscribeSpec::default()
            },
        )
    }

    pub(crate) fn subscribe_with(&mut self, conn: ConnId, spec: SubscribeSpec) -> SubId {
        let token = self.reply().token;
        let sub = SubId { conn, token };
        let spec = SubscribeSpec {
            queue: QUEUE.to_owned(),
            ..spec
        };
        self.handle(Request::Subscribe { sub, spec });
        sub
    }
}

fn content(header: Option<u32>, payload: &[u8]) -> Vec<u8> {
    let mut out = u16::from(header.is_some()).to_be_bytes().to_vec();
    if let Some(value) = header {
        let value = value.to_string();
        for text in ["h", &value] {
            out.extend_from_slice(&u16::try_from(text.len()).unwrap().to_be_bytes());
            out.extend_from_slice(text.as_bytes());
        }
    }
    out.extend_from_slice(&u32::try_from(payload.len()).unwrap().to_be_bytes());
    out.extend_from_slice(payload);
    out
}

fn batch(numbers: core::ops::Range<u32>, shape: Shape) -> PublishBatch {
    let mut data = Vec::new();
    let mut put = |bytes: &[u8]| {
        let start = u32::try_from(data.len()).unwrap();
        data.extend_from_slice(bytes);
        let len = u32::try_from(bytes.len()).unwrap();
        Span { start, len }
    };
    let queue = put(QUEUE.as_bytes());
    let items = numbers.map(|n| {
        let key = if shape.keys == 0 {
            String::new()
        } else {
            format!("key-{}", n % shape.keys)
        };
        PublishItem {
            target: PublishTarget::Name(queue),
            content: put(&content(shape.header.then_some(n), b"x")),
            fairness_key: put(key.as_bytes()),
            idempotency_key: shape.idempotency.then(|| put(n.to_string().as_bytes())),
            delay_ms: shape.delay_ms,
            ttl_ms: shape.ttl_ms,
            ..PublishItem::default()
        }
    });
    let items = items.collect();
    PublishBatch {
        data: Bytes::from(data),
        items,
        ..PublishBatch::default()
    }
}

/// A queue of Fila.
pub(crate) fn queue() -> QueueSpec {
    QueueSpec {
        name: QUEUE.to_owned(),
        lease_ms: 3_600_000,
        ..QueueSpec::default()
    }
}
