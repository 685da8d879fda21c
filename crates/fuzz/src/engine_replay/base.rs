//! The records of a sound log that has every kind: what a busy minute of an engine writes.

use std::sync::OnceLock;

use tanda_engine::{
    AdminRequest, ConnId, DeliveryDurability, Engine, EngineConfig, Event, KeyKind, KeyPart, Lsn,
    MaxLength, Millis, MissingOrderingKey, Ordering, Overflow, QueueSpec, Rebalancing, Request,
    Settlement, VhostId,
};

use super::journal::MemJournal;
use super::keys::use_keys;
use super::serve::{Checks, Driver, Message, NAMES};

/// When the records begin.
pub(super) const START: Millis = Millis(1_700_000_000_000);
/// A moment after the last of them.
pub(super) const END: Millis = Millis(START.0 + 600_000);

/// The records, the same in every process.
pub(super) fn records() -> &'static [Vec<u8>] {
    static RECORDS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    RECORDS.get_or_init(make)
}

fn specs() -> Vec<QueueSpec> {
    let key = vec![KeyPart {
        kind: KeyKind::Header,
        name: "k".to_owned(),
    }];
    let plain = QueueSpec {
        lease_ms: 1_000,
        backoff_initial_ms: 100,
        max_attempts: 2,
        ..QueueSpec::default()
    };
    let changes: [&dyn Fn(&mut QueueSpec); 4] = [
        &|_| {},
        &|spec| {
            spec.ordering = Ordering::Key {
                key: key.clone(),
                missing: MissingOrderingKey::Unordered,
            };
        },
        &|spec| {
            spec.durability = DeliveryDurability::Fast;
            spec.dedup_key = Some(key.clone());
        },
        &|spec| {
            spec.max_length = Some(MaxLength {
                messages: 3,
                overflow: Overflow::DropHead,
            });
        },
    ];
    let specs = NAMES.iter().zip(changes).map(|(name, change)| {
        let mut spec = QueueSpec {
            name: (*name).to_owned(),
            ..plain.clone()
        };
        change(&mut spec);
        spec
    });
    specs.collect()
}

fn make() -> Vec<Vec<u8>> {
    let config = EngineConfig {
        segment_shift: 12,
        page_messages: 3,
        lane_hot: 4,
        ..EngineConfig::default()
    };
    let mut journal = MemJournal::new(Lsn(4096));
    let mut engine = Engine::new(config);
    let started = engine.start(START, &mut journal);
    assert_eq!(started, Ok(()));
    let mut driver = Driver::new((engine, Checks::All), journal, START);
    driver.connect(ConnId(1));
    for spec in specs() {
        driver.admin(AdminRequest::CreateQueue(Box::new(spec)));
    }
    driver.admin(AdminRequest::SetRebalancing(Rebalancing::Paused {
        pause_ms: 5,
    }));
    driver.admin(AdminRequest::SetConfig {
        key: "a".to_owned(),
        value: "b".to_owned(),
    });
    use_keys(&mut driver);
    // More than stays in memory.
    driver.publish(
        &[Message {
            queue: NAMES[0],
            ..Message::default()
        }; 20],
    );
    driver.run();
    for round in 0..5_u8 {
        for queue in NAMES {
            let keys = ["", "x", "y", ""];
            for (n, key) in (0_u8..).zip(keys) {
                driver.publish(&[Message {
                    queue,
                    key,
                    header: if n % 2 == 0 { "1" } else { "2" },
                    dedup: (n == 3).then_some("once"),
                    delay_ms: u64::from(round % 2) * 50,
                    priority: n % 2,
                }]);
            }
        }
        for (at, queue) in NAMES.iter().enumerate() {
            let token = 100 + u32::try_from(at).unwrap_or_default();
            driver.subscribe(ConnId(1), token, queue, 3 + u32::from(round));
        }
        driver.run();
        settle(&mut driver);
        driver.wait(700);
    }
    driver.disconnect(ConnId(1));
    driver.wait(20_000);
    driver.connect(ConnId(2));
    clear(&mut driver);
    driver.wait(10);
    driver.journal.records
}

/// Dead letters go back, a queue is emptied, another one goes.
fn clear(driver: &mut Driver) {
    let [plain, _, fast, short] = NAMES.map(str::to_owned);
    let name = format!("{plain}.dlq");
    driver.admin(AdminRequest::Redrive {
        vhost: VhostId::DEFAULT,
        name,
        count: 0,
        reclassify: tanda_engine::Reclassify::All,
    });
    driver.admin(AdminRequest::PurgeQueue {
        vhost: VhostId::DEFAULT,
        name: short,
    });
    driver.admin(AdminRequest::DeleteQueue {
        vhost: VhostId::DEFAULT,
        name: fast,
    });
}

/// The first delivery did not leave; the others are settled, each message another way.
fn settle(driver: &mut Driver) {
    let settlements = [
        Settlement::Ack,
        Settlement::Requeue,
        Settlement::Extend { by_ms: 2_000 },
        Settlement::Reject,
        Settlement::Fail {
            error: tanda_engine::Span::default(),
            retry_after_ms: Some(30),
        },
    ];
    let mut settlements = settlements.iter().cycle();
    let mut is_first = true;
    for output in core::mem::take(&mut driver.out) {
        let Event::Delivery { batch, .. } = output.event else {
            continue;
        };
        if core::mem::take(&mut is_first) {
            driver.undelivered(ConnId(1), &batch);
            continue;
        }
        for (item, settlement) in batch.items.iter().zip(&mut settlements) {
            driver.settle(&batch.queue, item.id, *settlement);
        }
    }
    driver.request(Request::Drained {
        conn: ConnId(1),
        bytes: 1 << 20,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_a_running_log_is_there() {
        let kinds: std::collections::BTreeSet<u8> = records()
            .iter()
            .filter_map(|record| record.first().copied())
            .collect();
        // 13, 14 and 16 are those of snapshots.
        let expected = (1..=12).chain([15, 28]).collect();
        assert!(kinds.is_superset(&expected), "{kinds:?}");
    }
}
