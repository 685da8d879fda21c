//! Keys as one would write them down without a care for time and memory: what each command must
//! come to.

use std::collections::{BTreeMap, BTreeSet};

use tanda_engine::{
    AddedPart, KeyAnswer, KeyError, KeyOp, KeyRead, KeyType, KeyWrite, ListSide, Places,
    RankingSpan, RemovedPart,
};

use super::world::{Outcome, text};

/// A value, or what else a key holds.
#[derive(Clone, Debug, PartialEq)]
enum Body {
    Value(String, u64),
    Counter(i64),
    Map(BTreeMap<String, String>),
    List(Vec<String>),
    Set(BTreeSet<String>),
    Ranking(BTreeMap<String, f64>),
    Lock(u64),
}

#[derive(Clone, Debug)]
struct Key {
    /// Keys that were made before it.
    made: u64,
    ends: Option<u64>,
    body: Body,
}

#[derive(Clone, Debug)]
struct Wait {
    token: u32,
    key: String,
    ends: u64,
    /// An item of this side, or a lock for so long.
    wanted: Result<ListSide, u64>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) now: u64,
    keys: BTreeMap<String, Key>,
    waits: Vec<Wait>,
    versions_gone: u64,
    tokens: u64,
    made: u64,
    /// Who got an answer in this step, and which.
    pub(crate) told: Vec<(u32, String)>,
}

/// An outcome as text, without what only the engine knows.
pub(crate) fn show(outcome: &Outcome) -> String {
    match outcome {
        Ok(KeyAnswer::Bool(it)) => it.to_string(),
        Ok(KeyAnswer::Kind(kind)) => kind.name().to_owned(),
        Ok(KeyAnswer::ExpiresAt(at)) => format!("until {}", at.0),
        Ok(KeyAnswer::TtlMs(ms)) => format!("{ms:?}"),
        Ok(KeyAnswer::Version(version)) => format!("version {version}"),
        Ok(KeyAnswer::Value(it)) => format!("{} v{}", text(&it.value), it.version),
        Ok(KeyAnswer::Swapped { previous, version }) => {
            format!("{:?} v{version}", previous.as_ref().map(text))
        }
        Ok(KeyAnswer::Integer(value)) => value.to_string(),
        Ok(KeyAnswer::Datum(it)) => text(it),
        Ok(KeyAnswer::Fields(fields)) => {
            let fields = fields
                .iter()
                .map(|(name, it)| format!("{name}={}", text(it)));
            fields.collect::<Vec<_>>().join(",")
        }
        Ok(KeyAnswer::Count(count)) => format!("#{count}"),
        Ok(KeyAnswer::Taken { item, .. }) => text(item),
        Ok(KeyAnswer::Items(items)) => items.iter().map(text).collect::<Vec<_>>().join(","),
        Ok(KeyAnswer::Members(names)) => names.join(","),
        Ok(KeyAnswer::Score(score)) => format!("{score}"),
        Ok(KeyAnswer::Ranked(members)) => {
            let members = members
                .iter()
                .map(|(name, score)| format!("{name}:{score}"));
            members.collect::<Vec<_>>().join(",")
        }
        Ok(KeyAnswer::Locked {
            token, expires_at, ..
        }) => format!("token {token} until {}", expires_at.0),
        Ok(other) => format!("{other:?}"),
        Err(KeyError::WrongType { found }) => format!("is a {}", found.name()),
        Err(error) => format!("{error:?}"),
    }
}

const NOT_FOUND: &str = "NotFound";

impl Body {
    fn name(&self) -> &'static str {
        match self {
            Self::Value(..) => "value",
            Self::Counter(_) => "counter",
            Self::Map(_) => "map",
            Self::List(_) => "list",
            Self::Set(_) => "set",
            Self::Ranking(_) => "ranking",
            Self::Lock(_) => "lock",
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Value(..) | Self::Counter(_) | Self::Lock(_) => false,
            Self::Map(it) => it.is_empty(),
            Self::List(it) => it.is_empty(),
            Self::Set(it) => it.is_empty(),
            Self::Ranking(it) => it.is_empty(),
        }
    }

    fn ranked(&self) -> Vec<(String, f64)> {
        let Self::Ranking(members) = self else {
            return Vec::new();
        };
        let mut members: Vec<_> = members
            .iter()
            .map(|(name, at)| (name.clone(), *at))
            .collect();
        members.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
        members
    }
}

fn slice<T: Clone>(of: &[T], places: Places) -> Vec<T> {
    let len = i64::try_from(of.len()).unwrap();
    let at = |place: i64| if place < 0 { place + len } else { place };
    let (start, stop) = (at(places.start).max(0), at(places.stop));
    let kept = of
        .iter()
        .zip(0_i64..)
        .filter(|(_, place)| (start..=stop).contains(place));
    kept.map(|(item, _)| item.clone()).collect()
}

impl Model {
    pub(crate) fn at(now: u64) -> Self {
        Self {
            now,
            ..Self::default()
        }
    }

    /// Carries out a command; what it came to, if it does not wait, comes first.
    pub(crate) fn ask(&mut self, token: u32, op: &KeyOp) {
        self.told.clear();
        let told = match op {
            KeyOp::Read { key, read } => Some(self.read(key, read)),
            KeyOp::Write { key, write } => {
                self.end(key);
                Some(self.write(key, write).unwrap_or_else(|error| error))
            }
            KeyOp::Pop { key, side, wait_ms } => {
                self.end(key);
                match self.keys.get(&**key).map(|key| key.body.clone()) {
                    Some(Body::List(_)) => Some(self.pop(key, *side)),
                    Some(other) => Some(format!("is a {}", other.name())),
                    None if *wait_ms == 0 => Some(NOT_FOUND.to_owned()),
                    None => {
                        self.wait(token, key, *wait_ms, Ok(*side));
                        None
                    }
                }
            }
            KeyOp::Acquire {
                key,
                ttl_ms,
                wait_ms,
            } => {
                self.end(key);
                match self.keys.get(&**key).cloned() {
                    None => Some(self.grant(key, *ttl_ms)),
                    Some(Key {
                        body: Body::Lock(_),
                        ends,
                        ..
                    }) => {
                        let until = tanda_engine::Millis(ends.unwrap_or(u64::MAX));
                        if *wait_ms == 0 {
                            Some(format!("{:?}", KeyError::Held { until }))
                        } else {
                            self.wait(token, key, *wait_ms, Err(*ttl_ms));
                            None
                        }
                    }
                    Some(other) => Some(format!("is a {}", other.body.name())),
                }
            }
            KeyOp::GetMany { .. } | KeyOp::Scan(_) => None,
        };
        if let Some(told) = told {
            self.told.insert(0, (token, told));
        }
    }

    fn wait(&mut self, token: u32, key: &str, wait_ms: u64, wanted: Result<ListSide, u64>) {
        self.waits.push(Wait {
            token,
            key: key.to_owned(),
            ends: self.now + wait_ms,
            wanted,
        });
    }

    pub(crate) fn cancel(&mut self, token: u32) {
        self.told.clear();
        let before = self.waits.len();
        self.waits.retain(|wait| wait.token != token);
        if self.waits.len() < before {
            self.told.push((token, "Cancelled".to_owned()));
        }
    }

    pub(crate) fn restart(&mut self) {
        self.waits.clear();
    }

    /// Time passes: waits end, then keys.
    pub(crate) fn go(&mut self, ms: u64) {
        self.told.clear();
        self.now += ms;
        self.end_waits();
        let ends = |key: &Key| key.ends.filter(|at| *at <= self.now);
        let over = self.keys.iter();
        let over = over.filter_map(|(name, key)| Some((ends(key)?, key.made, name.clone())));
        let over: BTreeSet<_> = over.collect();
        for (_, _, name) in over {
            self.end(&name);
        }
    }

    fn end_waits(&mut self) {
        let mut over: Vec<_> = self.waits.iter().filter(|it| it.ends <= self.now).collect();
        over.sort_by_key(|wait| wait.ends);
        self.told
            .extend(over.iter().map(|wait| (wait.token, "TimedOut".to_owned())));
        let now = self.now;
        self.waits.retain(|wait| wait.ends > now);
    }

    /// A key that is over goes.
    fn end(&mut self, key: &str) {
        let ends = self.keys.get(key).and_then(|key| key.ends);
        if ends.is_some_and(|at| at <= self.now) {
            self.remove(key);
        }
    }

    fn remove(&mut self, name: &str) {
        if let Some(Key {
            body: Body::Value(_, version),
            ..
        }) = self.keys.remove(name)
        {
            self.versions_gone = self.versions_gone.max(version);
        }
        self.serve_lock(name);
    }

    fn next_wait(&mut self, key: &str, is_item: bool) -> Option<Wait> {
        let is_it = |wait: &Wait| wait.key == key && wait.wanted.is_ok() == is_item;
        if !self.waits.iter().any(is_it) {
            return None;
        }
        self.end_waits();
        let at = self.waits.iter().position(is_it)?;
        Some(self.waits.remove(at))
    }

    fn serve_lock(&mut self, key: &str) {
        let ends = self.keys.get(key).map(|key| key.ends);
        if ends.is_some_and(|ends| ends.is_none_or(|at| at > self.now)) {
            return;
        }
        if let Some(Wait {
            token,
            wanted: Err(ttl_ms),
            ..
        }) = self.next_wait(key, false)
        {
            let told = self.grant(key, ttl_ms);
            self.told.push((token, told));
        }
    }

    fn serve_items(&mut self, key: &str) {
        while let Some(Body::List(_)) = self.keys.get(key).map(|key| &key.body) {
            let Some(Wait {
                token,
                wanted: Ok(side),
                ..
            }) = self.next_wait(key, true)
            else {
                return;
            };
            let told = self.pop(key, side);
            self.told.push((token, told));
        }
    }

    fn grant(&mut self, key: &str, ttl_ms: u64) -> String {
        self.tokens += 1;
        let ends = self.now + ttl_ms;
        let body = Body::Lock(self.tokens);
        self.make(key, Some(ends), body);
        format!("token {} until {ends}", self.tokens)
    }

    fn make(&mut self, key: &str, ends: Option<u64>, body: Body) {
        self.made += 1;
        let made = self.made;
        self.keys.insert(key.to_owned(), Key { made, ends, body });
    }

    fn pop(&mut self, key: &str, side: ListSide) -> String {
        let Some(Body::List(items)) = self.keys.get_mut(key).map(|key| &mut key.body) else {
            return NOT_FOUND.to_owned();
        };
        let item = match side {
            ListSide::Front => items.remove(0),
            ListSide::Back => items.pop().unwrap(),
        };
        self.remove_if_empty(key);
        item
    }

    fn remove_if_empty(&mut self, key: &str) {
        if self.keys.get(key).is_some_and(|key| key.body.is_empty()) {
            self.remove(key);
        }
    }

    fn read(&self, name: &str, read: &KeyRead) -> String {
        let live = self.keys.get(name);
        let live = live.filter(|key| key.ends.is_none_or(|at| at > self.now));
        let Some(key) = live else {
            let exists = matches!(read, KeyRead::Exists);
            return if exists { "false" } else { NOT_FOUND }.to_owned();
        };
        let not_found = || NOT_FOUND.to_owned();
        match (read, &key.body) {
            (KeyRead::Exists, _) => "true".to_owned(),
            (KeyRead::Kind, body) => body.name().to_owned(),
            (KeyRead::Ttl, _) => format!("{:?}", key.ends.map(|at| at - self.now)),
            (KeyRead::Value, Body::Value(value, version)) => format!("{value} v{version}"),
            (KeyRead::Counter, Body::Counter(value)) => value.to_string(),
            (KeyRead::Field(field), Body::Map(map)) => {
                map.get(&**field).cloned().unwrap_or_else(not_found)
            }
            (KeyRead::Fields, Body::Map(map)) => {
                let fields = map.iter().map(|(name, it)| format!("{name}={it}"));
                fields.collect::<Vec<_>>().join(",")
            }
            (KeyRead::Items(places), Body::List(items)) => slice(items, *places).join(","),
            (KeyRead::Contains(member), Body::Set(set)) => set.contains(&**member).to_string(),
            (KeyRead::Members, Body::Set(set)) => set.iter().cloned().collect::<Vec<_>>().join(","),
            (KeyRead::Score(member), Body::Ranking(it)) => {
                it.get(&**member).map_or_else(not_found, f64::to_string)
            }
            (KeyRead::Rank { member, reverse }, body @ Body::Ranking(_)) => {
                let mut members = body.ranked();
                if *reverse {
                    members.reverse();
                }
                let at = members.iter().position(|(name, _)| **name == **member);
                at.map_or_else(not_found, |at| format!("#{at}"))
            }
            (KeyRead::Range(part), body @ Body::Ranking(_)) => {
                let mut members = body.ranked();
                if part.reverse {
                    members.reverse();
                }
                let mut found = match part.span {
                    RankingSpan::Places(places) => slice(&members, places),
                    RankingSpan::Scores { min, max } => {
                        members.retain(|(_, at)| (min..=max).contains(at));
                        members
                    }
                };
                let limit = part
                    .limit
                    .map_or(usize::MAX, |it| usize::try_from(it).unwrap());
                found.truncate(limit);
                let told = found.iter().map(|(name, at)| format!("{name}:{at}"));
                told.collect::<Vec<_>>().join(",")
            }
            (KeyRead::Length(KeyType::Map), Body::Map(it)) => format!("#{}", it.len()),
            (KeyRead::Length(KeyType::List), Body::List(it)) => format!("#{}", it.len()),
            (KeyRead::Length(KeyType::Set), Body::Set(it)) => format!("#{}", it.len()),
            (KeyRead::Length(KeyType::Ranking), Body::Ranking(it)) => format!("#{}", it.len()),
            (_, body) => format!("is a {}", body.name()),
        }
    }

    /// The body of a key of this kind, made if it is not there and wanted.
    fn body(&mut self, key: &str, empty: Body, make: Option<Option<u64>>) -> BodyOf<'_> {
        if let Some(found) = self.keys.get(key) {
            if found.body.name() != empty.name() {
                return Err(format!("is a {}", found.body.name()));
            }
        } else if let Some(ttl_ms) = make {
            let ends = ttl_ms.map(|ms| self.now + ms);
            self.make(key, ends, empty);
        }
        Ok(self.keys.get_mut(key).map(|key| &mut key.body))
    }

    fn write(&mut self, name: &str, write: &KeyWrite) -> Result<String, String> {
        match write {
            KeyWrite::Delete => {
                let is_there = self.keys.contains_key(name);
                if is_there {
                    self.remove(name);
                }
                Ok(is_there.to_string())
            }
            KeyWrite::Expire { ttl_ms } => {
                let at = self.now + ttl_ms;
                self.keys.get_mut(name).ok_or(NOT_FOUND)?.ends = Some(at);
                Ok(format!("until {at}"))
            }
            KeyWrite::Persist => {
                let ends = &mut self.keys.get_mut(name).ok_or(NOT_FOUND)?.ends;
                Ok(ends.take().is_some().to_string())
            }
            KeyWrite::Rename { to } => self.rename(name, to),
            KeyWrite::SetValue { .. }
            | KeyWrite::DeleteValue { .. }
            | KeyWrite::SwapValue { .. } => self.write_value(name, write),
            KeyWrite::AddCounter { by, ttl_ms } => {
                let found = self.body(name, Body::Counter(0), None)?.cloned();
                let value = if let Some(Body::Counter(value)) = found {
                    value
                } else {
                    0
                };
                let overflow = || format!("{:?}", KeyError::Overflow { value });
                let sum = value.checked_add(*by).ok_or_else(overflow)?;
                let body = self.body(name, Body::Counter(0), Some(*ttl_ms))?.unwrap();
                *body = Body::Counter(sum);
                Ok(sum.to_string())
            }
            KeyWrite::SetCounter { value, ttl_ms } => {
                let body = self.body(name, Body::Counter(0), Some(*ttl_ms))?.unwrap();
                *body = Body::Counter(*value);
                Ok(value.to_string())
            }
            KeyWrite::RenewLock { token, ttl_ms } => {
                self.held(name, *token)?;
                self.write(name, &KeyWrite::Expire { ttl_ms: *ttl_ms })
            }
            KeyWrite::ReleaseLock { token } => {
                self.held(name, *token)?;
                self.remove(name);
                Ok("true".to_owned())
            }
            KeyWrite::Add { part, ttl_ms } => self.add(name, part, *ttl_ms),
            KeyWrite::Remove(part) => {
                let told = self.remove_part(name, part)?;
                self.remove_if_empty(name);
                Ok(told)
            }
        }
    }

    fn held(&mut self, name: &str, token: u64) -> Result<(), String> {
        let found = self.body(name, Body::Lock(0), None)?.cloned();
        match found.ok_or(NOT_FOUND)? {
            Body::Lock(held) if held == token => Ok(()),
            _ => Err("StaleToken".to_owned()),
        }
    }

    fn rename(&mut self, name: &str, to: &str) -> Result<String, String> {
        self.end(to);
        let key = self.keys.get(name).ok_or(NOT_FOUND)?;
        if let Body::Lock(_) = key.body {
            return Err("is a lock".to_owned());
        }
        if self.keys.contains_key(to) {
            return Err("Exists".to_owned());
        }
        let mut key = self.keys.remove(name).unwrap();
        if let Body::Value(_, version) = &mut key.body {
            self.versions_gone = self.versions_gone.max(*version);
            *version = self.versions_gone + 1;
        }
        self.keys.insert(to.to_owned(), key);
        self.serve_items(to);
        self.serve_lock(name);
        Ok("true".to_owned())
    }

    fn write_value(&mut self, name: &str, write: &KeyWrite) -> Result<String, String> {
        let empty = Body::Value(String::new(), 0);
        let before = match self.body(name, empty.clone(), None)? {
            Some(Body::Value(value, version)) => Some((value.clone(), *version)),
            _ => None,
        };
        let found = before.as_ref().map_or(0, |(_, version)| *version);
        let conflict = Err(format!("{:?}", KeyError::VersionConflict { found }));
        let next = before.as_ref().map_or(self.versions_gone, |(_, it)| *it) + 1;
        match write {
            KeyWrite::SetValue {
                value,
                ttl_ms,
                condition,
            } => {
                if condition.if_absent && before.is_some() {
                    return Err("Exists".to_owned());
                }
                if condition.if_version.is_some_and(|it| it != found) {
                    return conflict;
                }
                let ends = ttl_ms.map(|ms| self.now + ms);
                let body = Body::Value(text(value), next);
                match self.keys.get_mut(name) {
                    Some(key) => (key.ends, key.body) = (ends, body),
                    None => self.make(name, ends, body),
                }
                Ok(format!("version {next}"))
            }
            KeyWrite::SwapValue { value, ttl_ms } => {
                let body = self.body(name, empty, Some(*ttl_ms))?.unwrap();
                *body = Body::Value(text(value), next);
                Ok(format!("{:?} v{next}", before.map(|(value, _)| value)))
            }
            KeyWrite::DeleteValue { if_version } => {
                if before.is_some() && if_version.is_some_and(|it| it != found) {
                    return conflict;
                }
                self.write(name, &KeyWrite::Delete)
            }
            other => panic!("{other:?}"),
        }
    }

    fn add(&mut self, name: &str, part: &AddedPart, ttl: Option<u64>) -> Result<String, String> {
        match part {
            AddedPart::Field { field, value } => {
                let body = self.body(name, Body::Map(BTreeMap::new()), Some(ttl))?;
                let Some(Body::Map(map)) = body else { panic!() };
                let before = map.insert(field.to_string(), text(value));
                Ok(before.is_none().to_string())
            }
            AddedPart::ToField { field, by } => {
                let found = self.body(name, Body::Map(BTreeMap::new()), None)?.cloned();
                let Some(Body::Map(mut map)) = found.or(Some(Body::Map(BTreeMap::new()))) else {
                    panic!()
                };
                // What is set as a field is a text here, never a number.
                let value = match map.get(&**field) {
                    None => 0,
                    Some(text) => text.parse().ok().ok_or("is a map")?,
                };
                let overflow = || format!("{:?}", KeyError::Overflow { value });
                let sum: i64 = i64::checked_add(value, *by).ok_or_else(overflow)?;
                map.insert(field.to_string(), sum.to_string());
                let body = self.body(name, Body::Map(BTreeMap::new()), Some(ttl))?;
                *body.unwrap() = Body::Map(map);
                Ok(sum.to_string())
            }
            AddedPart::Items { values, side } => {
                let make = (!values.is_empty()).then_some(ttl);
                let Some(Body::List(items)) = self.body(name, Body::List(Vec::new()), make)? else {
                    return Ok("#0".to_owned());
                };
                for value in values {
                    match side {
                        ListSide::Front => items.insert(0, text(value)),
                        ListSide::Back => items.push(text(value)),
                    }
                }
                let len = items.len();
                if !values.is_empty() {
                    self.serve_items(name);
                }
                Ok(format!("#{len}"))
            }
            AddedPart::Members(members) => {
                let make = (!members.is_empty()).then_some(ttl);
                let Some(Body::Set(set)) = self.body(name, Body::Set(BTreeSet::new()), make)?
                else {
                    return Ok("#0".to_owned());
                };
                let before = set.len();
                set.extend(members.iter().map(|it| it.to_string()));
                Ok(format!("#{}", set.len() - before))
            }
            AddedPart::Score { member, score } => {
                let body = self.body(name, Body::Ranking(BTreeMap::new()), Some(ttl))?;
                let Some(Body::Ranking(it)) = body else {
                    panic!()
                };
                let before = it.insert(member.to_string(), *score);
                Ok(before.is_none().to_string())
            }
        }
    }

    fn remove_part(&mut self, name: &str, part: &RemovedPart) -> Result<String, String> {
        match part {
            RemovedPart::Field(field) => {
                let body = self.body(name, Body::Map(BTreeMap::new()), None)?;
                let Some(Body::Map(map)) = body else {
                    return Ok("false".to_owned());
                };
                Ok(map.remove(&**field).is_some().to_string())
            }
            RemovedPart::ItemsBut(places) => {
                let body = self.body(name, Body::List(Vec::new()), None)?;
                let Some(Body::List(items)) = body else {
                    return Ok("#0".to_owned());
                };
                *items = slice(items, *places);
                Ok(format!("#{}", items.len()))
            }
            RemovedPart::Members(members) => {
                let body = self.body(name, Body::Set(BTreeSet::new()), None)?;
                let Some(Body::Set(set)) = body else {
                    return Ok("#0".to_owned());
                };
                let before = set.len();
                set.retain(|it| !members.iter().any(|member| **member == **it));
                Ok(format!("#{}", before - set.len()))
            }
            RemovedPart::Score(member) => {
                let body = self.body(name, Body::Ranking(BTreeMap::new()), None)?;
                let Some(Body::Ranking(it)) = body else {
                    return Ok("false".to_owned());
                };
                Ok(it.remove(&**member).is_some().to_string())
            }
        }
    }
}

type BodyOf<'a> = Result<Option<&'a mut Body>, String>;
