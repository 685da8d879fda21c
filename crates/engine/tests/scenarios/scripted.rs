//! A broker with scripts, whose outputs read as lines.
//!
//! A publish answers `#1 stored stored =dup ScriptFailed`, a settlement `#2 ok MessageNotFound`. A
//! delivery reads `jobs: a(tenant*3)`: message `a` under the fairness key `tenant` of weight 3, on
//! its first attempt; `a(*1)#2` is unkeyed, of weight 1, on its second.

use tanda_engine::{
    AdminReply, AdminRequest, Content, Event, Form, LeaseMode, MessageId, Millis, Output,
    PublishResult, QueueChanges, QueueCounts, QueueSpec, ReplyTo, Request, ScriptFailure,
    ScriptJob, SettleBatch, SettleItem, SettleQueue, Settlement, Span, VhostId,
};

use crate::harness::{CONN, Harness, Msg, batch};

pub(crate) struct Scripted {
    pub(crate) h: Harness,
    token: u32,
}

/// A queue with an `on_enqueue` script.
pub(crate) fn classified(name: &str, script: &str) -> QueueSpec {
    QueueSpec {
        name: name.to_owned(),
        on_enqueue: Some(script.to_owned()),
        ..QueueSpec::default()
    }
}

/// The same, and what the script fails on is parked.
pub(crate) fn parking(name: &str, script: &str) -> QueueSpec {
    QueueSpec {
        script_failure: ScriptFailure::Park,
        ..classified(name, script)
    }
}

/// A message for `jobs` that says who it is.
pub(crate) fn msg(name: &str) -> Msg {
    Msg::to("jobs").payload(name)
}

impl Scripted {
    pub(crate) fn with(spec: QueueSpec) -> Self {
        let mut h = Harness::with_scripts();
        h.create(spec);
        Self::over(h)
    }

    pub(crate) const fn over(h: Harness) -> Self {
        Self { h, token: 0 }
    }

    fn reply(&mut self) -> ReplyTo {
        self.token += 1;
        ReplyTo {
            conn: CONN,
            token: self.token,
        }
    }

    /// Publishes; scripts do not run yet.
    pub(crate) fn send(&mut self, messages: &[Msg]) -> Vec<String> {
        let reply = self.reply();
        let batch = batch(messages);
        let out = self.h.handle(Request::Publish { reply, batch });
        self.lines(&out)
    }

    /// Publishes and lets scripts run.
    pub(crate) fn publish(&mut self, messages: &[Msg]) -> Vec<String> {
        let mut lines = self.send(messages);
        lines.extend(self.run());
        lines
    }

    /// Lets scripts run and everything else that can go now.
    pub(crate) fn run(&mut self) -> Vec<String> {
        let out = self.h.run_scripts();
        self.lines(&out)
    }

    pub(crate) fn after(&mut self, ms: u64) -> Vec<String> {
        self.h.now = self.h.now.after_ms(ms);
        self.run()
    }

    pub(crate) fn finish(&mut self, job: ScriptJob) -> Vec<String> {
        let out = self.h.finish(job);
        self.lines(&out)
    }

    /// What a new subscriber of a queue gets, with everything else that can go now.
    pub(crate) fn consume(&mut self, queue: &str) -> Vec<String> {
        self.h.subscribe_as(CONN, queue, None, LeaseMode::Timed);
        self.run()
    }

    pub(crate) fn settle(&mut self, queue: &str, items: &[(MessageId, Settlement)]) -> Vec<String> {
        let reply = self.reply();
        let words = b"the words of a consumer";
        let data = [queue.as_bytes(), words].concat();
        let len = u32::try_from(queue.len()).unwrap();
        let items = items.iter().map(|(id, settlement)| SettleItem {
            queue: SettleQueue::Name(Span { start: 0, len }),
            id: *id,
            settlement: match *settlement {
                Settlement::Fail { retry_after_ms, .. } => Settlement::Fail {
                    error: Span {
                        start: len,
                        len: u32::try_from(words.len()).unwrap(),
                    },
                    retry_after_ms,
                },
                other => other,
            },
        });
        let batch = SettleBatch {
            items: items.collect(),
            data: data.into(),
            ..SettleBatch::default()
        };
        let out = self.h.handle(Request::Settle { reply, batch });
        self.lines(&out)
    }

    /// Says that a message failed; scripts do not run yet.
    pub(crate) fn nack(&mut self, id: MessageId, retry_after_ms: Option<u64>) -> Vec<String> {
        let error = Span::default();
        let fail = Settlement::Fail {
            error,
            retry_after_ms,
        };
        self.settle("jobs", &[(id, fail)])
    }

    pub(crate) fn update(&mut self, changes: QueueChanges) -> AdminReply {
        self.h.admin(AdminRequest::UpdateQueue {
            vhost: VhostId::DEFAULT,
            name: "jobs".to_owned(),
            changes: Box::new(changes),
        })
    }

    /// Gives `jobs` another `on_enqueue` script, or none.
    pub(crate) fn set_script(&mut self, script: Option<&str>) {
        let reply = self.update(QueueChanges {
            on_enqueue: Some(script.map(str::to_owned)),
            ..QueueChanges::default()
        });
        assert_eq!(reply, AdminReply::Updated(Ok(())));
    }

    pub(crate) fn counts(&mut self, name: &str) -> QueueCounts {
        let name = name.to_owned();
        match self.h.admin(AdminRequest::InspectQueue {
            vhost: VhostId::DEFAULT,
            name,
        }) {
            AdminReply::Inspected(Ok(details)) => details.counts,
            other => panic!("{other:?}"),
        }
    }

    /// Depth, in flight, unclassified, stopped.
    pub(crate) fn figures(&mut self, name: &str) -> [u64; 4] {
        let it = self.counts(name);
        [it.depth, it.in_flight, it.unclassified, it.stopped]
    }

    /// A rare request; nothing runs yet.
    pub(crate) fn ask(&mut self, request: AdminRequest) -> Vec<Output> {
        let reply = ReplyTo {
            conn: CONN,
            token: 1_000,
        };
        self.h.handle(Request::Admin { reply, request })
    }

    /// Depth and in flight of `jobs`, without letting anything run.
    pub(crate) fn figures_now(&mut self) -> [u64; 2] {
        self.figures_now_of("jobs")
    }

    pub(crate) fn figures_now_of(&mut self, name: &str) -> [u64; 2] {
        let name = name.to_owned();
        let out = self.ask(AdminRequest::InspectQueue {
            vhost: VhostId::DEFAULT,
            name,
        });
        match out.first().map(|output| &output.event) {
            Some(Event::Admin { reply, .. }) => match &**reply {
                AdminReply::Inspected(Ok(it)) => [it.counts.depth, it.counts.in_flight],
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    /// What a new subscriber gets, by id.
    pub(crate) fn take(&mut self, queue: &str) -> Vec<MessageId> {
        self.h.subscribe_as(CONN, queue, None, LeaseMode::Timed);
        let out = self.h.run_scripts();
        crate::harness::delivered_ids(&out)
    }

    pub(crate) fn lines(&self, out: &[Output]) -> Vec<String> {
        let lines = out.iter().flat_map(|output| self.lines_of(&output.event));
        lines.collect()
    }

    fn lines_of(&self, event: &Event) -> Vec<String> {
        match event {
            Event::Published { token, results } => {
                let results = results.iter().map(|result| match result {
                    PublishResult::Stored(_) => "stored".to_owned(),
                    PublishResult::Duplicate(_) => "=dup".to_owned(),
                    PublishResult::Sent { receivers } => format!("sent to {receivers}"),
                    PublishResult::Unroutable => "unroutable".to_owned(),
                    PublishResult::Refused(error) => format!("{error:?}"),
                });
                let results: Vec<_> = results.collect();
                vec![format!("#{token} {}", results.join(" "))]
            }
            Event::Settled { token, results } => {
                let results = results.iter().map(|result| match result {
                    Ok(Millis(0)) => "ok".to_owned(),
                    Ok(end) => format!("until {}", end.0),
                    Err(error) => format!("{error:?}"),
                });
                let results: Vec<_> = results.collect();
                vec![format!("#{token} {}", results.join(" "))]
            }
            Event::Delivery { batch, .. } => {
                let lines = batch.items.iter().map(|item| {
                    let content = self.h.journal.content(item.at, item.len).unwrap();
                    let content = Content::new(Form::Fila, &content);
                    let name = String::from_utf8(content.payload().unwrap().to_vec()).unwrap();
                    let key = batch.fairness_key(item);
                    let attempt = match item.attempts {
                        1 => String::new(),
                        n => format!("#{n}"),
                    };
                    assert_eq!(item.has_attributes, content.attributes().count() > 0);
                    let has = if item.has_attributes { "@" } else { "" };
                    let weight = item.weight;
                    format!("{}: {name}{has}({key}*{weight}){attempt}", batch.queue)
                });
                lines.collect()
            }
            Event::Admin { reply, .. } => vec![format!("{reply:?}")],
            other => panic!("{other:?}"),
        }
    }
}
