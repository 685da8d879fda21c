//! Random histories: the engine and the model agree after every step.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tanda_engine::{
    AdminReply, AdminRequest, Event, ExchangeSpec, Output, PublishResult, Request, TopologyCode,
};
use tanda_wire::amqp::Value;

use crate::model::{Exchange, Model, Watch};
use crate::watches;
use crate::world::{Msg, QUEUES, World, durable, table};

const EXCHANGES: [&str; 5] = ["a", "b", "c", "d", "e"];
const KINDS: [&str; 4] = ["direct", "fanout", "topic", "headers"];
const KEYS: [&str; 8] = ["", "x", "x.y", "#", "*", "x.#", "#.y", "*.*"];
const ROUTING_KEYS: [&str; 6] = ["", "x", "x.y", "y.y", ".", "x.z.y"];

#[derive(Clone, Debug)]
enum Op {
    Declare {
        name: usize,
        kind: usize,
        durable: bool,
        auto_delete: bool,
        alternate: Option<usize>,
    },
    Delete(usize, bool),
    Bind(usize, usize, usize, u8),
    Unbind(usize, usize, usize, u8),
    DeleteQueue(usize),
    CreateQueue(usize),
    Publish(usize, usize, u8),
    Watch(u32, usize, usize, u32),
    Unwatch(u32),
    Drained(u32, u32),
    Restart,
    Snapshot,
}

fn op() -> impl Strategy<Value = Op> {
    let name = || 0..EXCHANGES.len();
    let to = || 0..EXCHANGES.len() + QUEUES.len();
    let key = || 0..KEYS.len();
    prop_oneof![
        4 => (name(), 0..4_usize, any::<bool>(), any::<bool>(), prop::option::of(name())).prop_map(
            |(name, kind, durable, auto_delete, alternate)| Op::Declare {
                name,
                kind,
                durable,
                auto_delete,
                alternate,
            }
        ),
        1 => (name(), any::<bool>()).prop_map(|(name, unused)| Op::Delete(name, unused)),
        8 => (name(), to(), key(), 0..3_u8).prop_map(|(a, b, c, d)| Op::Bind(a, b, c, d)),
        4 => (name(), to(), key(), 0..3_u8).prop_map(|(a, b, c, d)| Op::Unbind(a, b, c, d)),
        1 => (0..QUEUES.len()).prop_map(Op::DeleteQueue),
        2 => (0..QUEUES.len()).prop_map(Op::CreateQueue),
        8 => (name(), 0..ROUTING_KEYS.len(), 0..4_u8).prop_map(|(a, b, c)| Op::Publish(a, b, c)),
        4 => (1..5_u32, name(), key(), 1..3_u32).prop_map(|(a, b, c, d)| Op::Watch(a, b, c, d)),
        1 => (1..5_u32).prop_map(Op::Unwatch),
        2 => (1..5_u32, 0..3_u32).prop_map(|(a, b)| Op::Drained(a, b)),
        1 => Just(Op::Restart),
        1 => Just(Op::Snapshot),
    ]
}

fn destination(to: usize) -> &'static str {
    EXCHANGES
        .get(to)
        .copied()
        .unwrap_or_else(|| QUEUES[to - EXCHANGES.len()])
}

/// Arguments of this number: header `n` is to be there.
fn args(number: u8) -> Vec<(&'static str, Value<'static>)> {
    match number {
        0 => Vec::new(),
        1 => vec![("h1", Value::Void)],
        _ => vec![("h2", Value::Void)],
    }
}

#[expect(clippy::too_many_lines, reason = "one arm for each step")]
fn step(w: &mut World, model: &mut Model, op: &Op) {
    match *op {
        Op::Declare {
            name,
            kind,
            durable: durable_too,
            auto_delete,
            alternate,
        } => {
            let name = EXCHANGES[name];
            let alternate = alternate.map(|it| EXCHANGES[it]);
            let args = alternate.map(|it| ("alternate-exchange", Value::text(it)));
            let spec = ExchangeSpec {
                durable: durable_too,
                auto_delete,
                args: table(args.as_slice()).into(),
                ..durable(name, KINDS[kind])
            };
            let declared = Exchange {
                name: name.to_owned(),
                kind: KINDS[kind],
                durable: durable_too,
                auto_delete,
                alternate: alternate.map(str::to_owned),
            };
            let result = w.declare(spec);
            match model.exchange(name) {
                None => {
                    assert_eq!(result, Ok(()));
                    model.exchanges.push(declared);
                }
                Some(known) => {
                    let same = format!("{known:?}") == format!("{declared:?}");
                    assert_eq!(result.is_ok(), same, "{result:?}");
                }
            }
        }
        Op::Delete(name, if_unused) => {
            let name = EXCHANGES[name];
            let used = model.bindings.iter().any(|it| it.0 == name)
                || model.watches.iter().any(|it| it.exchange == name);
            let result = w.delete(name, if_unused);
            if if_unused && used {
                assert_eq!(result.unwrap_err().0, TopologyCode::PreconditionFailed);
            } else {
                assert_eq!(result, Ok(()));
                model.delete_exchange(name);
            }
        }
        Op::Bind(from, to, key, number) => {
            let (from, to, key) = (EXCHANGES[from], destination(to), KEYS[key]);
            let result = w.try_bind(from, to, key, &args(number));
            let bound = model.bind((from.into(), to.into(), key.into(), number));
            assert_eq!(result.is_ok(), bound, "{result:?}");
        }
        Op::Unbind(from, to, key, number) => {
            let (from, to, key) = (EXCHANGES[from], destination(to), KEYS[key]);
            assert_eq!(w.unbind(from, to, key, &args(number)), Ok(()));
            model.unbind(&(from.into(), to.into(), key.into(), number));
        }
        Op::DeleteQueue(at) => {
            if model.queues.contains(QUEUES[at]) {
                w.delete_queue(QUEUES[at]);
                model.delete_queue(QUEUES[at]);
            }
        }
        Op::CreateQueue(at) => {
            if model.queues.insert(QUEUES[at].to_owned()) {
                w.h.create_plain(QUEUES[at]);
            }
        }
        Op::Publish(exchange, key, headers) => {
            publish(w, model, (EXCHANGES[exchange], ROUTING_KEYS[key], headers));
        }
        Op::Watch(token, exchange, key, buffer) => {
            watch(w, model, (token, EXCHANGES[exchange], KEYS[key], buffer));
        }
        Op::Unwatch(token) => {
            let sub = watches::sub(token);
            w.h.handle(Request::Unwatch { sub });
            model.watches.retain(|it| it.token != token);
        }
        Op::Drained(token, events) => {
            let sub = watches::sub(token);
            w.h.handle(Request::WatchDrained { sub, events });
            for watch in model.watches.iter_mut().filter(|it| it.token == token) {
                watch.under_way = watch.under_way.saturating_sub(events);
            }
        }
        Op::Restart => {
            w.h.restart(0);
            model.restart();
        }
        Op::Snapshot => w.h.take_snapshot(),
    }
}

fn publish(w: &mut World, model: &mut Model, (exchange, key, mask): (&str, &str, u8)) {
    if model.exchange(exchange).is_none() {
        return;
    }
    let all = [("h1", Value::I32(1)), ("h2", Value::Bool(true))];
    let there: Vec<u8> = (1..3).filter(|n| mask & n != 0).collect();
    let headers: Vec<_> = there.iter().map(|n| all[usize::from(*n) - 1]).collect();
    let before = w.depths();
    let out = w.publish_all(&Msg {
        exchange,
        key,
        headers: &headers,
        ..Msg::default()
    });
    let after = w.depths();
    let more = before
        .iter()
        .zip(&after)
        .map(|(before, after)| after - before);
    let got: Vec<_> = QUEUES
        .iter()
        .zip(more)
        .filter(|(_, more)| *more > 0)
        .collect();
    assert!(got.iter().all(|(_, more)| *more == 1), "{got:?}");
    let got: BTreeSet<_> = got
        .into_iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    let (expected, seen) = model.route(exchange, key, &there);
    assert_eq!(got, expected, "{exchange:?} {key:?} {there:?}");
    let told = model.tell(&seen);
    let mut events: Vec<_> = out.iter().filter_map(watched).collect();
    events.sort_unstable();
    assert_eq!(events, told, "{exchange:?} {key:?}");
    let Some(Event::Published { results, .. }) = out.last().map(|it| &it.event) else {
        panic!("{out:?}");
    };
    match results[0] {
        PublishResult::Stored(_) => assert!(!expected.is_empty()),
        PublishResult::Sent { receivers } => {
            assert!(expected.is_empty() && !seen.is_empty());
            assert_eq!(receivers as usize, told.len());
        }
        PublishResult::Unroutable => assert!(expected.is_empty() && seen.is_empty()),
        other => panic!("{other:?}"),
    }
}

fn watched(output: &Output) -> Option<(u32, u64)> {
    match &output.event {
        Event::Watched { token, message } => Some((*token, message.dropped)),
        _ => None,
    }
}

fn watch(
    w: &mut World,
    model: &mut Model,
    (token, exchange, pattern, buffer): (u32, &str, &str, u32),
) {
    let (sub, spec) = (
        watches::sub(token),
        watches::spec(exchange, pattern, buffer),
    );
    let out = w.h.handle(Request::Watch { sub, spec });
    let [Event::Watching { result, .. }] = [&out[0].event] else {
        panic!("{out:?}");
    };
    model.watches.retain(|it| it.token != token);
    match model.exchange(exchange) {
        None => model.exchanges.push(Exchange {
            name: exchange.to_owned(),
            kind: "topic",
            durable: true,
            auto_delete: false,
            alternate: None,
        }),
        Some(it) if it.kind == "topic" => {}
        Some(_) => {
            let error = result.as_ref().unwrap_err();
            assert_eq!(error.code, TopologyCode::WrongType);
            return;
        }
    }
    assert_eq!(*result, Ok(()));
    model.watches.push(Watch {
        token,
        exchange: exchange.to_owned(),
        pattern: pattern.to_owned(),
        buffer,
        under_way: 0,
        dropped: 0,
    });
}

fn compare(w: &mut World, model: &Model) {
    let mut names: Vec<_> = model.exchanges.iter().map(|it| it.name.clone()).collect();
    names.sort();
    assert_eq!(w.exchanges(), names);
    let vhost = tanda_engine::VhostId::DEFAULT;
    let AdminReply::Bindings(Ok(all)) = w.h.admin(AdminRequest::ListBindings { vhost }) else {
        panic!("no bindings");
    };
    assert_eq!(
        all.len(),
        model.bindings.len(),
        "{all:?}\n{:?}",
        model.bindings
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_and_the_model_agree(ops in prop::collection::vec(op(), 1..60)) {
        let mut w = World::new();
        let mut model = Model {
            queues: QUEUES.iter().map(|it| (*it).to_owned()).collect(),
            ..Model::default()
        };
        for op in &ops {
            step(&mut w, &mut model, op);
            compare(&mut w, &model);
        }
        w.h.restart(0);
        model.restart();
        compare(&mut w, &model);
    }
}
