//! Commands on keys, as the engine knows them.
//!
//! Each function knows the commands of one family.

use std::borrow::Cow;

use tanda_engine::{
    AddedPart, Caller, Condition, Datum, DatumForm, KeyOp, KeyRead, KeyScan, KeyType, KeyWrite,
    ListSide, Places, RankingPart, RankingSpan, RemovedPart,
};
use tanda_wire::amaquet::Payload;
use tanda_wire::amaquet::command::{self, Command, Key, Member, Side, TtlMs};

/// What a command on keys asks the engine; `None` when it is about no key.
pub(super) fn key_op(command: &Command<'_>, caller: &Caller) -> Option<KeyOp> {
    any_key(command, caller)
        .or_else(|| value(command))
        .or_else(|| counter(command))
        .or_else(|| map(command))
        .or_else(|| list(command))
        .or_else(|| set(command))
        .or_else(|| ranking(command))
        .or_else(|| lock(command))
}

fn name(key: &Key<'_>) -> Box<str> {
    (&*key.0).into()
}

fn member(member: &Member<'_>) -> Box<str> {
    (&*member.0).into()
}

fn ttl_ms(ttl: Option<TtlMs>) -> Option<u64> {
    ttl.map(|ttl| ttl.0)
}

fn datum(payload: &Payload<'_>) -> Datum {
    match payload {
        Payload::Json(text) => Datum::new(DatumForm::Json, text.as_bytes()),
        Payload::Text(text) => Datum::new(DatumForm::Text, text.as_bytes()),
        Payload::Bytes(bytes) => Datum::new(DatumForm::Bytes, bytes),
    }
}

fn read(key: &Key<'_>, read: KeyRead) -> KeyOp {
    let key = name(key);
    KeyOp::Read { key, read }
}

fn write(key: &Key<'_>, write: KeyWrite) -> KeyOp {
    let key = name(key);
    KeyOp::Write { key, write }
}

fn add(key: &Key<'_>, part: AddedPart, ttl: Option<TtlMs>) -> KeyOp {
    let ttl_ms = ttl_ms(ttl);
    write(key, KeyWrite::Add { part, ttl_ms })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "see the module")]
fn any_key(command: &Command<'_>, caller: &Caller) -> Option<KeyOp> {
    Some(match command {
        Command::KeyExists(it) => read(&it.key, KeyRead::Exists),
        Command::KeyKind(it) => read(&it.key, KeyRead::Kind),
        Command::KeyDelete(it) => write(&it.key, KeyWrite::Delete),
        Command::KeyExpire(it) => {
            let ttl_ms = it.ttl_ms.0;
            write(&it.key, KeyWrite::Expire { ttl_ms })
        }
        Command::KeyTtl(it) => read(&it.key, KeyRead::Ttl),
        Command::KeyPersist(it) => write(&it.key, KeyWrite::Persist),
        Command::KeyRename(it) => {
            let to = name(&it.to);
            write(&it.key, KeyWrite::Rename { to })
        }
        Command::KeyScan(it) => {
            let text = |text: &Option<Cow<'_, str>>| text.as_deref().map(Into::into);
            KeyOp::Scan(KeyScan {
                caller: caller.clone(),
                glob: text(&it.glob),
                cursor: text(&it.cursor),
                limit: usize::try_from(it.limit.0).unwrap_or(usize::MAX),
            })
        }
        _ => return None,
    })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "see the module")]
fn value(command: &Command<'_>) -> Option<KeyOp> {
    Some(match command {
        Command::ValueSet(it) => {
            let set = KeyWrite::SetValue {
                value: datum(&it.value),
                ttl_ms: ttl_ms(it.ttl_ms),
                condition: Condition {
                    if_absent: it.if_absent,
                    if_version: it.if_version,
                },
            };
            write(&it.key, set)
        }
        Command::ValueGet(it) => read(&it.key, KeyRead::Value),
        Command::ValueGetMany(it) => KeyOp::GetMany {
            keys: it.keys.iter().map(name).collect(),
        },
        Command::ValueDelete(it) => {
            let if_version = it.if_version;
            write(&it.key, KeyWrite::DeleteValue { if_version })
        }
        Command::ValueSwap(it) => {
            let swap = KeyWrite::SwapValue {
                value: datum(&it.value),
                ttl_ms: ttl_ms(it.ttl_ms),
            };
            write(&it.key, swap)
        }
        _ => return None,
    })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "see the module")]
fn counter(command: &Command<'_>) -> Option<KeyOp> {
    Some(match command {
        Command::CounterAdd(it) => {
            let (by, ttl_ms) = (it.by, ttl_ms(it.ttl_ms));
            write(&it.key, KeyWrite::AddCounter { by, ttl_ms })
        }
        Command::CounterGet(it) => read(&it.key, KeyRead::Counter),
        Command::CounterSet(it) => {
            let (value, ttl_ms) = (it.value, ttl_ms(it.ttl_ms));
            write(&it.key, KeyWrite::SetCounter { value, ttl_ms })
        }
        _ => return None,
    })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "see the module")]
fn map(command: &Command<'_>) -> Option<KeyOp> {
    Some(match command {
        Command::MapSet(it) => {
            let (field, value) = (member(&it.field), datum(&it.value));
            add(&it.key, AddedPart::Field { field, value }, it.ttl_ms)
        }
        Command::MapGet(it) => read(&it.key, KeyRead::Field(member(&it.field))),
        Command::MapRemove(it) => {
            let part = RemovedPart::Field(member(&it.field));
            write(&it.key, KeyWrite::Remove(part))
        }
        Command::MapAll(it) => read(&it.key, KeyRead::Fields),
        Command::MapLength(it) => read(&it.key, KeyRead::Length(KeyType::Map)),
        Command::MapAdd(it) => {
            let (field, by) = (member(&it.field), it.by);
            add(&it.key, AddedPart::ToField { field, by }, it.ttl_ms)
        }
        _ => return None,
    })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "see the module")]
fn list(command: &Command<'_>) -> Option<KeyOp> {
    let side = |side| match side {
        Side::Front => ListSide::Front,
        Side::Back => ListSide::Back,
    };
    let places = |start, stop| Places { start, stop };
    Some(match command {
        Command::ListPush(it) => {
            let (values, side) = (it.values.iter().map(datum).collect(), side(it.side));
            add(&it.key, AddedPart::Items { values, side }, it.ttl_ms)
        }
        Command::ListPop(it) => KeyOp::Pop {
            key: name(&it.key),
            side: side(it.side),
            wait_ms: it.wait_ms.0,
        },
        Command::ListRange(it) => read(&it.key, KeyRead::Items(places(it.start, it.stop))),
        Command::ListLength(it) => read(&it.key, KeyRead::Length(KeyType::List)),
        Command::ListTrim(it) => {
            let part = RemovedPart::ItemsBut(places(it.start, it.stop));
            write(&it.key, KeyWrite::Remove(part))
        }
        _ => return None,
    })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "see the module")]
fn set(command: &Command<'_>) -> Option<KeyOp> {
    let members = |members: &[Member<'_>]| members.iter().map(member).collect();
    Some(match command {
        Command::SetAdd(it) => {
            let part = AddedPart::Members(members(&it.members));
            add(&it.key, part, it.ttl_ms)
        }
        Command::SetRemove(it) => {
            let part = RemovedPart::Members(members(&it.members));
            write(&it.key, KeyWrite::Remove(part))
        }
        Command::SetContains(it) => read(&it.key, KeyRead::Contains(member(&it.member))),
        Command::SetMembers(it) => read(&it.key, KeyRead::Members),
        Command::SetLength(it) => read(&it.key, KeyRead::Length(KeyType::Set)),
        _ => return None,
    })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "see the module")]
fn ranking(command: &Command<'_>) -> Option<KeyOp> {
    Some(match command {
        Command::RankingAdd(it) => {
            let (member, score) = (member(&it.member), it.score.0);
            add(&it.key, AddedPart::Score { member, score }, it.ttl_ms)
        }
        Command::RankingRemove(it) => {
            let part = RemovedPart::Score(member(&it.member));
            write(&it.key, KeyWrite::Remove(part))
        }
        Command::RankingScore(it) => read(&it.key, KeyRead::Score(member(&it.member))),
        Command::RankingRank(it) => {
            let (member, reverse) = (member(&it.member), it.reverse);
            read(&it.key, KeyRead::Rank { member, reverse })
        }
        Command::RankingRange(it) => {
            let part = RankingPart {
                // The parser has looked at it before.
                span: ranking_span(it.span().ok()?),
                reverse: it.reverse,
                limit: it.limit,
            };
            read(&it.key, KeyRead::Range(part))
        }
        Command::RankingLength(it) => read(&it.key, KeyRead::Length(KeyType::Ranking)),
        _ => return None,
    })
}

const fn ranking_span(span: command::RankingSpan) -> RankingSpan {
    match span {
        command::RankingSpan::Places { start, stop } => RankingSpan::Places(Places { start, stop }),
        command::RankingSpan::Scores { min, max } => RankingSpan::Scores { min, max },
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "see the module")]
fn lock(command: &Command<'_>) -> Option<KeyOp> {
    Some(match command {
        Command::LockAcquire(it) => KeyOp::Acquire {
            key: name(&it.key),
            ttl_ms: it.ttl_ms.0,
            wait_ms: it.wait_ms.0,
        },
        Command::LockRenew(it) => {
            let (token, ttl_ms) = (it.token, it.ttl_ms.0);
            write(&it.key, KeyWrite::RenewLock { token, ttl_ms })
        }
        Command::LockRelease(it) => {
            let token = it.token;
            write(&it.key, KeyWrite::ReleaseLock { token })
        }
        _ => return None,
    })
}
