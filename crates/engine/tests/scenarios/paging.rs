//! Long backlogs leave memory in pages; who consumes does not see it.

use tanda_engine::{
    AdminReply, AdminRequest, EngineConfig, MaxLength, MessagePlace, Overflow, PageErrors,
    QueueSpec, SettleResult, Settlement, VhostId,
};

use crate::broker::{Broker, NACK, job, queue, transient};
use crate::harness::{Harness, Msg};

/// Pages of four messages from the ninth of a lane on.
fn paged(spec: QueueSpec) -> Broker {
    let config = EngineConfig {
        segment_shift: 12,
        page_messages: 4,
        lane_hot: 8,
        ..EngineConfig::default()
    };
    let mut b = Broker::over(Harness::with_config(config));
    b.h.create(spec);
    b
}

fn names(from: usize, to: usize) -> Vec<String> {
    (from..to).map(|n| format!("m{n}")).collect()
}

fn messages(from: usize, to: usize) -> Vec<Msg> {
    names(from, to).iter().map(|name| job(name)).collect()
}

impl Broker {
    fn pages(&self) -> usize {
        self.h.journal.pages.iter().flatten().count()
    }

    fn settle_all(&mut self, queue: &str, names: &[String], how: Settlement) {
        let items: Vec<_> = names.iter().map(|name| (name.as_str(), how)).collect();
        let results: Vec<SettleResult> = self.settle(queue, &items);
        assert!(results.iter().all(Result::is_ok), "{results:?}");
    }

    fn place(&mut self, name: &str) -> MessagePlace {
        let request = AdminRequest::Explain {
            vhost: VhostId::DEFAULT,
            name: "jobs".to_owned(),
            message: Some(self.id(name)),
        };
        match self.admin(request) {
            AdminReply::Explained(Ok(explained)) => explained.message.unwrap(),
            other => panic!("not {other:?}"),
        }
    }
}

#[test]
fn a_backlog_leaves_memory_and_comes_back_in_order() {
    let mut b = paged(queue("jobs"));
    b.send(&messages(0, 100));
    // Eight at the front, less than two pages at the back.
    assert_eq!(b.pages(), 22);
    let counts = b.counts("jobs");
    assert_eq!((counts.depth, counts.ready), (100, 100));
    b.worker("w", "jobs", None);
    assert_eq!(b.order(), names(0, 100));
    assert_eq!(b.pages(), 0);
    b.settle_all("jobs", &names(0, 100), Settlement::Ack);
    assert_eq!(b.held("jobs"), (0, 0));
    b.restart(0);
    assert_eq!(b.held("jobs"), (0, 0));
}

#[test]
fn a_restart_without_a_snapshot_finds_paged_messages_in_the_log() {
    let mut b = paged(queue("jobs"));
    b.send(&messages(0, 60));
    b.worker("w", "jobs", Some(20));
    let taken = b.order();
    b.settle_all("jobs", &taken, Settlement::Ack);
    b.restart(0);
    assert_eq!(b.held("jobs"), (40, 0));
    assert_eq!(b.pages(), 7, "pages are made at the start");
    b.worker("w", "jobs", None);
    assert_eq!(b.order(), names(20, 60));
}

#[test]
fn paging_in_is_recorded_before_the_lease() {
    let mut b = paged(queue("jobs"));
    b.send(&messages(0, 20));
    b.h.journal.records.clear();
    b.worker("w", "jobs", Some(9));
    let kinds: Vec<_> = b.h.journal.records.iter().map(|(_, it)| it[0]).collect();
    assert_eq!(kinds, [15, 4]);
}

#[test]
fn messages_that_come_back_keep_their_place_between_pages() {
    let mut b = paged(queue("jobs"));
    b.send(&messages(0, 10));
    let w = b.worker("w", "jobs", Some(10));
    b.got();
    b.send(&messages(10, 60));
    b.unsubscribe(w);
    b.settle_all("jobs", &names(3, 6), Settlement::Requeue);
    b.worker("v", "jobs", Some(8));
    let mut order = names(3, 6);
    order.extend(names(10, 15));
    assert_eq!(b.order(), order);
}

#[test]
fn transient_and_delayed_messages_stay_in_memory_and_in_order() {
    let mut b = paged(queue("jobs"));
    let mixed: Vec<Msg> = (0..60)
        .map(|n| match n % 3 {
            0 => transient(&format!("m{n}")),
            _ => job(&format!("m{n}")),
        })
        .collect();
    b.send(&mixed);
    b.send(&[job("late").delay(500)]);
    assert!(b.pages() > 5, "{} pages", b.pages());
    b.send(&messages(60, 80));
    b.advance(500);
    b.worker("w", "jobs", None);
    let mut order = names(0, 60);
    order.push("late".to_owned());
    order.extend(names(60, 80));
    assert_eq!(b.order(), order);
}

#[test]
fn keys_take_turns_across_pages() {
    let mut b = paged(queue("jobs"));
    let message = |n: usize| {
        let heavy = job(&format!("h{n}")).key("heavy").weight(3);
        [heavy, job(&format!("l{n}")).key("light")]
    };
    let all: Vec<Msg> = (0..60).flat_map(message).collect();
    b.send(&all);
    assert!(b.pages() > 20);
    b.worker("w", "jobs", Some(80));
    let order = b.order();
    for (turn, four) in order.chunks(4).enumerate() {
        let light = four.iter().filter(|name| name.starts_with('l')).count();
        assert_eq!(light, 1, "turn {turn}: {four:?}");
    }
}

#[test]
fn many_keys_leave_memory_before_each_of_them_is_long() {
    let config = EngineConfig {
        segment_shift: 12,
        page_messages: 4,
        lane_hot: 64,
        queue_hot: 100,
        ..EngineConfig::default()
    };
    let mut b = Broker::over(Harness::with_config(config));
    b.h.create(queue("jobs"));
    let keyed = |n: usize| job(&format!("m{n}")).key(&format!("k{}", n % 10));
    b.send(&(0..300).map(keyed).collect::<Vec<_>>());
    // A page at the front and less than two at the back of each, beside the first hundred.
    let in_memory = 300 - 4 * b.pages();
    assert!(in_memory <= 100 + 10 * 12, "{in_memory}");
    b.worker("w", "jobs", Some(400));
    let order = b.order();
    assert_eq!(order.len(), 300);
    for key in 0..10 {
        let own = |name: &&String| name[1..].parse::<usize>().unwrap() % 10 == key;
        let own: Vec<_> = order.iter().filter(own).cloned().collect();
        let expected: Vec<_> = (key..300).step_by(10).map(|n| format!("m{n}")).collect();
        assert_eq!(own, expected);
    }
}

#[test]
fn a_purge_empties_pages() {
    let mut b = paged(queue("jobs"));
    b.send(&messages(0, 200));
    b.worker("w", "jobs", Some(3));
    let name = "jobs".to_owned();
    let purged = b.admin(AdminRequest::PurgeQueue {
        vhost: VhostId::DEFAULT,
        name,
    });
    assert_eq!(purged, AdminReply::Purged(Ok(197)));
    assert_eq!((b.held("jobs"), b.pages()), ((0, 3), 0));
    b.restart(0);
    assert_eq!(b.held("jobs"), (0, 3));
}

#[test]
fn a_deleted_queue_frees_its_pages() {
    let mut b = paged(queue("jobs"));
    b.send(&messages(0, 200));
    assert!(b.pages() > 0);
    let name = "jobs".to_owned();
    let before = b.h.engine.memory_bytes();
    assert_eq!(
        b.admin(AdminRequest::DeleteQueue {
            vhost: VhostId::DEFAULT,
            name
        }),
        AdminReply::Deleted(Ok(()))
    );
    assert_eq!(b.pages(), 0);
    assert_eq!(b.h.engine.segments().count(), 0);
    assert!(b.h.engine.memory_bytes() < before);
}

#[test]
fn dead_letters_are_paged_and_redriven_oldest_first() {
    let mut b = paged(QueueSpec {
        max_attempts: 1,
        ..queue("jobs")
    });
    let w = b.worker("w", "jobs", None);
    let keyed = |name: &String| job(name).key(["x", "y"][name.len() % 2]);
    let all: Vec<Msg> = names(0, 150).iter().map(keyed).collect();
    b.send(&all);
    b.unsubscribe(w);
    b.settle_all("jobs", &names(0, 150), NACK);
    assert!(b.pages() > 20);
    b.got();
    assert_eq!(b.redrive("jobs.dlq", 40), 40);
    b.worker("v", "jobs", None);
    let mut back = b.order();
    back.sort_by_key(|name| name[1..].parse::<u32>().unwrap());
    assert_eq!(back, names(0, 40));
    assert_eq!(b.redrive("jobs.dlq", 0), 110);
    assert_eq!(b.held("jobs"), (0, 150));
}

#[test]
fn a_full_queue_drops_the_oldest_also_out_of_a_page() {
    let mut b = paged(QueueSpec {
        max_length: Some(MaxLength {
            messages: 50,
            overflow: Overflow::DropHead,
        }),
        ..queue("jobs")
    });
    for n in 0..90 {
        let key = ["x", "y", "z"][n % 3];
        b.send(&[job(&format!("m{n}")).key(key)]);
    }
    assert!(b.pages() > 0);
    assert_eq!(b.held("jobs"), (50, 0));
    b.worker("w", "jobs", None);
    let mut left = b.order();
    left.sort();
    assert_eq!(left, names(40, 90));
}

#[test]
fn an_unreadable_page_holds_its_lane_back_and_no_other() {
    let mut b = paged(queue("jobs"));
    b.send(&messages(0, 30));
    b.send(&[job("other").key("k")]);
    b.h.journal.pages_unreadable = true;
    b.worker("w", "jobs", Some(20));
    let mut readable = names(0, 8);
    readable.insert(1, "other".to_owned());
    assert_eq!(b.order(), readable);
    let errors = b.h.engine.page_errors();
    assert_eq!(errors.unreadable, 1);
    assert_eq!(b.held("jobs"), (22, 9));
    // A message that comes back goes first, and the page is tried again after it.
    b.settle_all("jobs", &names(5, 6), Settlement::Requeue);
    assert_eq!(b.order(), names(5, 6));
    b.advance(999);
    assert_eq!(b.order(), [""; 0]);
    b.h.journal.pages_unreadable = false;
    b.advance(1_001);
    assert_eq!(b.order(), names(8, 18));
}

#[test]
fn a_page_with_other_content_is_never_delivered() {
    let mut b = paged(queue("jobs"));
    b.send(&messages(0, 30));
    let kept = b.h.journal.pages.clone();
    b.h.journal.pages.rotate_left(1);
    b.worker("w", "jobs", None);
    assert_eq!(b.order(), names(0, 8));
    let wrong = PageErrors {
        unreadable: 0,
        wrong: 1,
    };
    assert_eq!(b.h.engine.page_errors(), wrong);
    b.h.journal.pages = kept;
    b.advance(1_000);
    assert_eq!(b.order(), names(8, 30));
}

#[test]
fn messages_stay_in_memory_when_no_page_can_be_written() {
    let mut b = paged(queue("jobs"));
    b.h.journal.pages_full = true;
    b.send(&messages(0, 100));
    assert_eq!(b.pages(), 0);
    b.h.journal.pages_full = false;
    b.send(&messages(100, 104));
    assert_eq!(b.pages(), 23);
    b.worker("w", "jobs", None);
    assert_eq!(b.order(), names(0, 104));
}

#[test]
fn a_paged_message_is_found() {
    let mut b = paged(queue("jobs"));
    b.send(&messages(0, 400));
    for n in [0, 7, 8, 200, 398, 399] {
        let place = b.place(&format!("m{n}"));
        let MessagePlace::Ready { ahead_in_key, .. } = place else {
            panic!("not {place:?}");
        };
        assert_eq!(ahead_in_key, n);
    }
}

#[test]
fn ordered_queues_are_not_paged() {
    let mut b = paged(QueueSpec {
        ordering: tanda_engine::Ordering::Queue,
        ..queue("jobs")
    });
    b.send(&messages(0, 100));
    assert_eq!(b.pages(), 0);
    b.worker("w", "jobs", None);
    assert_eq!(b.order(), names(0, 1));
}
