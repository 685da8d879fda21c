//! Random histories: every answer is the model's, a restart changes nothing, and neither does a
//! start from a capture that was taken in slices while commands went on.

use tanda_engine::{
    AddedPart, Condition, KeyOp, KeyRead, KeyType, KeyWrite, ListSide, Lsn, Millis, Places,
    RankingPart, RankingSpan, RemovedPart, ReplyTo,
};

use super::model::{Model, show};
use super::world::{START, World, datum};

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn name(&mut self, of: &str, n: u64) -> Box<str> {
        format!("{of}{}", self.below(n)).into()
    }

    fn small(&mut self) -> i64 {
        i64::try_from(self.below(9)).unwrap() - 4
    }

    fn ttl(&mut self) -> Option<u64> {
        self.chance(30).then(|| 1 + self.below(40))
    }

    fn places(&mut self) -> Places {
        Places {
            start: self.small(),
            stop: self.small(),
        }
    }

    fn side(&mut self) -> ListSide {
        if self.chance(50) {
            ListSide::Front
        } else {
            ListSide::Back
        }
    }

    fn names(&mut self) -> Vec<Box<str>> {
        (0..self.below(4)).map(|_| self.name("m", 5)).collect()
    }

    fn read(&mut self) -> KeyRead {
        match self.below(14) {
            0 => KeyRead::Exists,
            1 => KeyRead::Kind,
            2 => KeyRead::Ttl,
            3 => KeyRead::Value,
            4 => KeyRead::Counter,
            5 => KeyRead::Field(self.name("f", 4)),
            6 => KeyRead::Fields,
            7 => KeyRead::Items(self.places()),
            8 => KeyRead::Contains(self.name("m", 5)),
            9 => KeyRead::Members,
            10 => KeyRead::Score(self.name("m", 5)),
            11 => KeyRead::Rank {
                member: self.name("m", 5),
                reverse: self.chance(50),
            },
            12 => KeyRead::Range(RankingPart {
                span: if self.chance(50) {
                    RankingSpan::Places(self.places())
                } else {
                    let (min, max) = (self.small(), self.small());
                    let of = |it: i64| f64::from(i32::try_from(it).unwrap());
                    RankingSpan::Scores {
                        min: of(min),
                        max: of(max),
                    }
                },
                reverse: self.chance(50),
                limit: self.chance(30).then(|| self.below(4)),
            }),
            _ => KeyRead::Length(match self.below(4) {
                0 => KeyType::Map,
                1 => KeyType::List,
                2 => KeyType::Set,
                _ => KeyType::Ranking,
            }),
        }
    }

    fn write(&mut self) -> KeyWrite {
        match self.below(24) {
            0 => KeyWrite::Delete,
            1 => KeyWrite::Expire {
                ttl_ms: 1 + self.below(40),
            },
            2 => KeyWrite::Persist,
            3 => KeyWrite::Rename {
                to: self.name("k", 6),
            },
            4 | 5 => KeyWrite::SetValue {
                value: datum(&self.name("v", 9)),
                ttl_ms: self.ttl(),
                condition: Condition {
                    if_absent: self.chance(20),
                    if_version: self.chance(30).then(|| self.below(4)),
                },
            },
            6 => KeyWrite::DeleteValue {
                if_version: self.chance(50).then(|| self.below(4)),
            },
            7 => KeyWrite::SwapValue {
                value: datum(&self.name("v", 9)),
                ttl_ms: self.ttl(),
            },
            8 => KeyWrite::AddCounter {
                by: if self.chance(10) {
                    i64::MAX
                } else {
                    self.small()
                },
                ttl_ms: self.ttl(),
            },
            9 => KeyWrite::SetCounter {
                value: self.small(),
                ttl_ms: self.ttl(),
            },
            10 => KeyWrite::RenewLock {
                token: self.below(6),
                ttl_ms: 1 + self.below(40),
            },
            11 => KeyWrite::ReleaseLock {
                token: self.below(6),
            },
            12..20 => {
                let part = self.part();
                let ttl_ms = self.ttl();
                KeyWrite::Add { part, ttl_ms }
            }
            20 => KeyWrite::Remove(RemovedPart::Field(self.name("f", 4))),
            21 => KeyWrite::Remove(RemovedPart::ItemsBut(self.places())),
            22 => KeyWrite::Remove(RemovedPart::Members(self.names())),
            _ => KeyWrite::Remove(RemovedPart::Score(self.name("m", 5))),
        }
    }

    fn part(&mut self) -> AddedPart {
        match self.below(6) {
            0 => AddedPart::Field {
                field: self.name("f", 4),
                value: datum(&self.name("v", 9)),
            },
            1 => AddedPart::ToField {
                field: self.name("n", 3),
                by: self.small(),
            },
            2 | 3 => AddedPart::Items {
                values: (0..self.below(4))
                    .map(|_| datum(&self.name("i", 99)))
                    .collect(),
                side: self.side(),
            },
            4 => AddedPart::Members(self.names()),
            _ => AddedPart::Score {
                member: self.name("m", 5),
                score: f64::from(i32::try_from(self.small()).unwrap()),
            },
        }
    }

    fn op(&mut self) -> KeyOp {
        let key = self.name("k", 6);
        match self.below(10) {
            0..3 => KeyOp::Read {
                key,
                read: self.read(),
            },
            3 => KeyOp::Pop {
                key,
                side: self.side(),
                wait_ms: self.below(3) * 20,
            },
            4 => KeyOp::Acquire {
                key,
                ttl_ms: 1 + self.below(30),
                wait_ms: self.below(3) * 20,
            },
            _ => KeyOp::Write {
                key,
                write: self.write(),
            },
        }
    }
}

struct Capture {
    at: Lsn,
    records: Vec<Vec<u8>>,
    done: bool,
}

struct Run {
    world: World,
    model: Model,
    random: Random,
    capture: Option<Capture>,
    asked: Vec<ReplyTo>,
    /// Starts from a capture.
    captured: u32,
}

impl Run {
    fn compare(&mut self, what: &str) {
        let answers = self.world.taken();
        let told = answers.iter().map(|it| (it.reply.token, show(&it.outcome)));
        let told: Vec<_> = told.collect();
        assert_eq!(told, self.model.told, "{what}");
    }

    fn step(&mut self) {
        match self.random.below(40) {
            0 | 1 => {
                let ms = self.random.below(30);
                self.world.go(ms);
                self.model.go(ms);
                self.compare("time");
            }
            2 => {
                let at = self.random.below(self.asked.len() as u64 + 1);
                let asked = self.asked.get(usize::try_from(at).unwrap()).copied();
                if let Some(reply) = asked {
                    self.world.cancel(reply);
                    self.model.cancel(reply.token);
                    self.compare("cancel");
                }
            }
            3 if self.capture.is_none() => {
                let now = Millis(self.world.now);
                let at = self.world.engine.begin_capture(now, &self.world.log);
                let records = Vec::new();
                let done = false;
                self.capture = Some(Capture { at, records, done });
            }
            4..8 => {
                let budget = usize::try_from(1 + self.random.below(6)).unwrap();
                if let Some(capture) = self.capture.as_mut().filter(|it| !it.done) {
                    let engine = &mut self.world.engine;
                    capture.done = engine.capture_slice(budget, &mut capture.records);
                }
            }
            8 if self.random.chance(30) => self.restart(),
            _ => {
                let op = self.random.op();
                let reply = self.world.ask(1, op.clone());
                self.asked.push(reply);
                self.model.now = self.world.now;
                self.model.ask(reply.token, &op);
                self.compare(&format!("{op:?}"));
            }
        }
    }

    fn restart(&mut self) {
        let before = self.world.everything();
        let token = self.world.token();
        self.world = self.world.restarted();
        self.world.set_token(token);
        assert_eq!(self.world.everything(), before, "after a restart");
        if let Some(capture) = self.finished_capture() {
            let mut records: Vec<_> = capture.records.into_iter().map(|it| (Lsn(1), it)).collect();
            let log = self.world.log.0.iter().filter(|(at, _)| *at >= capture.at);
            records.extend(log.cloned());
            let mut captured = World::started(&records, self.world.now);
            assert_eq!(
                captured.everything(),
                before,
                "after a start from a capture"
            );
            self.captured += 1;
            // What only grows has grown as far: the next answers are the same.
            captured.log = std::mem::take(&mut self.world.log);
            captured.set_token(self.world.token());
            self.world = captured;
        }
        self.model.restart();
        // A start removes what is over.
        self.model.go(0);
    }

    fn finished_capture(&mut self) -> Option<Capture> {
        let capture = self.capture.take()?;
        capture.done.then_some(capture)
    }
}

#[test]
fn histories_are_those_of_the_model() {
    let seeds = if cfg!(debug_assertions) {
        400_u32
    } else {
        4_000
    };
    let mut captured = 0;
    for seed in 0..seeds {
        let mut run = Run {
            world: World::new(),
            model: Model::at(START),
            random: Random(seed.into()),
            capture: None,
            asked: Vec::new(),
            captured: 0,
        };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..250 {
                run.step();
            }
            run.restart();
        }));
        assert!(outcome.is_ok(), "seed {seed}");
        captured += run.captured;
    }
    assert!(captured > seeds / 4, "{captured} starts from captures");
}
