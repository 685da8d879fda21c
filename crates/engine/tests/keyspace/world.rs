//! An engine with a journal in memory and a clock that is set by hand, and shorthands for commands.

use std::sync::Arc;

use tanda_engine::{
    AddedPart, AdminReply, AdminRequest, Caller, Condition, ConnId, ContentRead, Datum, DatumForm,
    Engine, EngineConfig, Event, Journal, KeyAnswer, KeyError, KeyOp, KeyRead, KeyRequest, KeyScan,
    KeyWrite, ListSide, Lsn, Millis, Output, PageSlot, Places, RankingPart, RankingSpan,
    RemovedPart, ReplyTo, Request, VhostId,
};

pub(crate) type Outcome = Result<KeyAnswer, KeyError>;

/// Records with the positions behind them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(pub(crate) Vec<(Lsn, Vec<u8>)>);

impl Journal for Log {
    fn append(&mut self, record: &[u8]) -> Lsn {
        let at = self.end();
        self.0.push((at, record.to_vec()));
        at
    }

    fn end(&self) -> Lsn {
        let last = self.0.last();
        last.map_or(Lsn(64), |(at, it)| Lsn(at.0 + it.len() as u64))
    }

    fn read_content(&mut self, _at: Lsn, _len: u32, _into: &mut Vec<u8>) -> ContentRead {
        ContentRead::Unavailable
    }

    fn write_page(&mut self, _page: &[u8]) -> Option<PageSlot> {
        None
    }

    fn read_page(&mut self, _slot: PageSlot, _into: &mut Vec<u8>) -> bool {
        false
    }

    fn free_page(&mut self, _slot: PageSlot) {}
}

/// An answer: to whom, after which position, what.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) reply: ReplyTo,
    pub(crate) after: Lsn,
    pub(crate) outcome: Outcome,
}

pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) log: Log,
    pub(crate) now: u64,
    pub(crate) vhost: VhostId,
    pub(crate) answers: Vec<Answer>,
    token: u32,
}

pub(crate) const START: u64 = 1_000_000;

fn config() -> EngineConfig {
    EngineConfig {
        seed: [1, 2, 3, 4],
        ..EngineConfig::default()
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(config())
    }

    pub(crate) fn with(config: EngineConfig) -> Self {
        let mut log = Log::default();
        let mut engine = Engine::new(config);
        engine.start(Millis(START), &mut log).unwrap();
        Self {
            engine,
            log,
            now: START,
            vhost: VhostId::DEFAULT,
            answers: Vec::new(),
            token: 0,
        }
    }

    /// The same broker, started again from records.
    pub(crate) fn started(records: &[(Lsn, Vec<u8>)], now: u64) -> Self {
        let mut engine = Engine::new(config());
        for (at, record) in records {
            engine.replay(*at, record).unwrap();
        }
        let mut log = Log(records.to_vec());
        engine.start(Millis(now), &mut log).unwrap();
        engine.assert_invariants();
        Self {
            engine,
            log,
            now,
            vhost: VhostId::DEFAULT,
            answers: Vec::new(),
            token: 0,
        }
    }

    pub(crate) fn restarted(&self) -> Self {
        Self::started(&self.log.0, self.now)
    }

    fn request(&mut self, request: Request) {
        let mut out = Vec::new();
        let now = Millis(self.now);
        self.engine.handle(now, &mut self.log, request, &mut out);
        self.keep(out);
    }

    fn keep(&mut self, out: Vec<Output>) {
        for Output { conn, after, event } in out {
            let Event::Keys { token, result, .. } = event else {
                continue;
            };
            self.answers.push(Answer {
                reply: ReplyTo { conn, token },
                after,
                outcome: *result,
            });
        }
        self.engine.assert_invariants();
    }

    /// Asks on a connection; the answer is among the answers.
    pub(crate) fn ask(&mut self, conn: u64, op: KeyOp) -> ReplyTo {
        self.token += 1;
        let reply = ReplyTo {
            conn: ConnId(conn),
            token: self.token,
        };
        let request = Box::new(KeyRequest {
            vhost: self.vhost,
            answer_bytes_max: 1 << 20,
            op,
        });
        self.request(Request::Keys { reply, request });
        reply
    }

    /// Asks and keeps no answer, and does not look at the whole state.
    pub(crate) fn ask_quietly(&mut self, op: KeyOp) {
        let reply = ReplyTo {
            conn: ConnId(1),
            token: 0,
        };
        let request = Box::new(KeyRequest {
            vhost: self.vhost,
            answer_bytes_max: 1 << 20,
            op,
        });
        let (now, request) = (Millis(self.now), Request::Keys { reply, request });
        self.engine
            .handle(now, &mut self.log, request, &mut Vec::new());
    }

    /// That of the last request.
    pub(crate) const fn token(&self) -> u32 {
        self.token
    }

    pub(crate) const fn set_token(&mut self, token: u32) {
        self.token = token;
    }

    /// Asks and expects an answer at once, to nobody else.
    pub(crate) fn does(&mut self, op: KeyOp) -> Outcome {
        let before = self.answers.len();
        let reply = self.ask(1, op);
        let answer = self.answers.get(before..).unwrap();
        let [answer] = answer else {
            panic!("{answer:?}");
        };
        assert_eq!(answer.reply, reply);
        assert!(answer.after <= self.log.end());
        self.answers.pop().unwrap().outcome
    }

    pub(crate) fn write(&mut self, key: &str, write: KeyWrite) -> Outcome {
        let key = key.into();
        self.does(KeyOp::Write { key, write })
    }

    /// A write that is done.
    pub(crate) fn did(&mut self, key: &str, write: KeyWrite) {
        let outcome = self.write(key, write);
        assert!(outcome.is_ok(), "{outcome:?}");
    }

    pub(crate) fn read(&mut self, key: &str, read: KeyRead) -> Outcome {
        let key = key.into();
        self.does(KeyOp::Read { key, read })
    }

    pub(crate) fn cancel(&mut self, reply: ReplyTo) {
        self.request(Request::CancelWait { reply });
    }

    pub(crate) fn disconnect(&mut self, conn: u64) {
        let conn = ConnId(conn);
        self.request(Request::Disconnect { conn });
    }

    /// An answer never reached its client.
    pub(crate) fn undelivered(&mut self, answer: Answer) {
        let vhost = self.vhost;
        self.request(Request::KeysUndelivered {
            reply: answer.reply,
            vhost,
            answer: Box::new(answer.outcome.unwrap()),
        });
    }

    /// Goes to a time and does what is due.
    pub(crate) fn go(&mut self, ms: u64) {
        self.now += ms;
        let mut out = Vec::new();
        while self.engine.run(Millis(self.now), &mut self.log, &mut out) {}
        self.keep(out);
    }

    pub(crate) fn admin(&mut self, request: AdminRequest) -> AdminReply {
        let reply = ReplyTo {
            conn: ConnId(9),
            token: 0,
        };
        let mut out = Vec::new();
        let request = Request::Admin { reply, request };
        self.engine
            .handle(Millis(self.now), &mut self.log, request, &mut out);
        let Some(Event::Admin { reply, .. }) = out.pop().map(|output| output.event) else {
            panic!("no answer");
        };
        self.keep(out);
        *reply
    }

    /// All answers so far, in order: the token and what it came to.
    pub(crate) fn taken(&mut self) -> Vec<Answer> {
        std::mem::take(&mut self.answers)
    }

    /// Everything there is, as what reads tell: for comparing states.
    pub(crate) fn everything(&mut self) -> Vec<String> {
        let mut names = self.scan_all(None, 7);
        names.sort();
        let mut told = Vec::new();
        for name in names {
            let Ok(KeyAnswer::Kind(kind)) = self.read(&name, KeyRead::Kind) else {
                panic!("{name} is gone");
            };
            let ttl = self.read(&name, KeyRead::Ttl);
            let all = Places { start: 0, stop: -1 };
            let holds = match kind.name() {
                "value" => self.read(&name, KeyRead::Value),
                "counter" => self.read(&name, KeyRead::Counter),
                "map" => self.read(&name, KeyRead::Fields),
                "list" => self.read(&name, KeyRead::Items(all)),
                "set" => self.read(&name, KeyRead::Members),
                "ranking" => self.read(&name, range(all)),
                _ => Err(KeyError::NotFound),
            };
            told.push(format!("{name} {kind:?} {ttl:?} {holds:?}"));
        }
        told
    }

    /// The names of all keys, a few at a time.
    pub(crate) fn scan_all(&mut self, glob: Option<&str>, limit: usize) -> Vec<String> {
        let mut names = Vec::new();
        let mut cursor = None;
        loop {
            let scan = KeyScan {
                caller: Caller::Anyone,
                glob: glob.map(Into::into),
                cursor,
                limit,
            };
            let answer = self.does(KeyOp::Scan(scan));
            let Ok(KeyAnswer::Scanned { keys, cursor: next }) = answer else {
                panic!("{answer:?}");
            };
            assert!(keys.len() <= limit);
            names.extend(keys.iter().map(|key| key.to_string()));
            cursor = next;
            if cursor.is_none() {
                return names;
            }
        }
    }
}

pub(crate) fn range(places: Places) -> KeyRead {
    KeyRead::Range(RankingPart {
        span: RankingSpan::Places(places),
        reverse: false,
        limit: None,
    })
}

pub(crate) fn datum(text: &str) -> Datum {
    Datum::new(DatumForm::Text, text.as_bytes())
}

pub(crate) fn set(value: &str) -> KeyWrite {
    KeyWrite::SetValue {
        value: datum(value),
        ttl_ms: None,
        condition: Condition::default(),
    }
}

pub(crate) fn push(items: &[&str], side: ListSide) -> KeyWrite {
    let values = items.iter().map(|item| datum(item)).collect();
    add(AddedPart::Items { values, side })
}

pub(crate) fn add(part: AddedPart) -> KeyWrite {
    KeyWrite::Add { part, ttl_ms: None }
}

pub(crate) fn members(names: &[&str]) -> Vec<Box<str>> {
    names.iter().map(|name| (*name).into()).collect()
}

pub(crate) fn field(name: &str, value: &str) -> KeyWrite {
    add(AddedPart::Field {
        field: name.into(),
        value: datum(value),
    })
}

pub(crate) fn score(member: &str, score: f64) -> KeyWrite {
    let member = member.into();
    add(AddedPart::Score { member, score })
}

pub(crate) fn remove(part: RemovedPart) -> KeyWrite {
    KeyWrite::Remove(part)
}

pub(crate) fn pop(key: &str, side: ListSide, wait_ms: u64) -> KeyOp {
    let key = key.into();
    KeyOp::Pop { key, side, wait_ms }
}

pub(crate) fn acquire(key: &str, ttl_ms: u64, wait_ms: u64) -> KeyOp {
    KeyOp::Acquire {
        key: key.into(),
        ttl_ms,
        wait_ms,
    }
}

pub(crate) fn count(count: u64) -> Outcome {
    Ok(KeyAnswer::Count(count))
}

pub(crate) fn bool(value: bool) -> Outcome {
    Ok(KeyAnswer::Bool(value))
}

/// The text of an item that was taken, or what else there is.
pub(crate) fn item(outcome: &Outcome) -> String {
    match outcome {
        Ok(KeyAnswer::Taken { item, .. }) => text(item),
        other => format!("{other:?}"),
    }
}

pub(crate) fn text(datum: &Datum) -> String {
    let bytes: &Arc<[u8]> = &datum.bytes;
    String::from_utf8(bytes.to_vec()).unwrap()
}
