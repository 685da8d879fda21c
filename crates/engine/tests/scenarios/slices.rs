//! Long work goes in slices, on the messages present at the request, while the rest goes on.

use tanda_engine::{
    AdminReply, AdminRequest, Event, MessagePlace, Ordering, Output, QueueSpec, Redriven, ReplyTo,
    Request, VhostId,
};

use crate::broker::{Broker, CLIENT, NACK, job, jobs, queue};
use crate::harness::Msg;

const MANY: usize = 5_000;

fn many(prefix: &str, count: usize) -> Vec<Msg> {
    let key = |n: usize| ["", "x", "y"][n % 3];
    (0..count)
        .map(|n| {
            job(&format!("{prefix}{n}"))
                .key(key(n))
                .header("n", &n.to_string())
        })
        .collect()
}

impl Broker {
    /// Messages delivered and rare answers given that nobody looked at.
    fn seen(&self) -> (usize, usize) {
        let mut seen = (0, 0);
        for output in &self.out {
            match &output.event {
                Event::Delivery { batch, .. } => seen.0 += batch.items.len(),
                Event::Admin { .. } => seen.1 += 1,
                _ => {}
            }
        }
        seen
    }

    /// Asks without a pass; the token of the answer.
    fn ask(&mut self, request: AdminRequest) -> u32 {
        let token = self.h.token();
        let reply = ReplyTo {
            conn: CLIENT,
            token,
        };
        self.handle(Request::Admin { reply, request });
        token
    }

    /// Passes, publishing one message after each; how many were published.
    fn pass_and_publish(&mut self) -> u64 {
        let mut published = 0;
        while self.pass() {
            published += 1;
            let name = format!("new{published}");
            assert_eq!(self.publish(&[job(&name).key("x")]), [name]);
        }
        published
    }
}

#[test]
fn a_purge_takes_what_was_there() {
    let mut b = Broker::with(queue("jobs"));
    b.worker("w", "jobs", Some(3));
    b.send(&many("old", MANY));
    b.send(&[job("delayed").delay(60_000)]);
    let name = "jobs".to_owned();
    let token = b.ask(AdminRequest::PurgeQueue {
        vhost: VhostId::DEFAULT,
        name,
    });
    let published = b.pass_and_publish();
    assert!(published >= 4, "in slices");
    assert_eq!(b.answer(token), AdminReply::Purged(Ok(MANY as u64 - 3 + 1)));
    assert_eq!(b.held("jobs"), (published, 3));
    b.restart(0);
    assert_eq!(b.held("jobs"), (published, 3));
}

#[test]
fn a_purge_of_an_ordered_queue_leaves_new_messages_in_order() {
    let mut b = Broker::with(QueueSpec {
        ordering: Ordering::Queue,
        ..queue("jobs")
    });
    b.worker("w", "jobs", Some(1));
    b.send(&many("old", MANY));
    assert_eq!(b.got(), ["w: old0"]);
    let name = "jobs".to_owned();
    let token = b.ask(AdminRequest::PurgeQueue {
        vhost: VhostId::DEFAULT,
        name,
    });
    let published = b.pass_and_publish();
    assert_eq!(b.answer(token), AdminReply::Purged(Ok(MANY as u64 - 1)));
    b.worker("w", "jobs", None);
    b.ack("jobs", ["old0"]);
    for n in 1..=published {
        assert_eq!(b.got(), [format!("w: new{n}")]);
        b.ack("jobs", [&format!("new{n}")]);
    }
    assert_eq!(b.held("jobs"), (0, 0));
}

#[test]
fn a_redrive_takes_what_was_there() {
    let mut b = Broker::with(QueueSpec {
        max_attempts: 1,
        ..queue("jobs")
    });
    let w = b.worker("w", "jobs", None);
    b.send(&many("old", MANY));
    let names: Vec<String> = (0..MANY).map(|n| format!("old{n}")).collect();
    let nacks: Vec<_> = names.iter().map(|n| (n.as_str(), NACK)).collect();
    b.settle("jobs", &nacks);
    b.got();
    let name = "jobs.dlq".to_owned();
    let token = b.ask(AdminRequest::Redrive {
        vhost: VhostId::DEFAULT,
        name,
        count: 0,
        reclassify: tanda_engine::Reclassify::All,
    });
    // Each redriven message is delivered and dies again at once: behind the limit of the request.
    let (mut delivered, mut answer) = (0, None);
    let is_answer = |o: &Output| matches!(o.event, Event::Admin { .. });
    while b.pass() {
        if b.out.iter().any(is_answer) {
            answer = Some(b.answer(token));
        }
        let batches = b.batches();
        let items = batches.iter().flat_map(|batch| &batch.items);
        let nacks: Vec<_> = items.map(|item| (item.id, NACK)).collect();
        delivered += nacks.len();
        b.h.settle("jobs", &nacks);
    }
    let redriven = MANY as u64;
    let answer = answer.unwrap_or_else(|| b.answer(token));
    assert_eq!(
        answer,
        AdminReply::Redriven(Ok(Redriven {
            redriven,
            ..Redriven::default()
        }))
    );
    b.unsubscribe(w);
    assert!(delivered > 1_000, "deliveries went on between the slices");
    let (waiting, leased) = b.held("jobs");
    let (dead, _) = b.held("jobs.dlq");
    assert_eq!(waiting + leased + dead, MANY as u64);
}

#[test]
fn a_redrive_of_some_counts_across_slices() {
    let mut b = Broker::with(QueueSpec {
        max_attempts: 1,
        ..queue("jobs")
    });
    let w = b.worker("w", "jobs", None);
    b.send(&many("old", MANY));
    let names: Vec<String> = (0..MANY).map(|n| format!("old{n}")).collect();
    let nacks: Vec<_> = names.iter().map(|n| (n.as_str(), NACK)).collect();
    b.settle("jobs", &nacks);
    b.unsubscribe(w);
    b.got();
    for (count, redriven) in [(2_048, 2_048), (1_500, 1_500), (1_024, 1_024), (9_999, 428)] {
        assert_eq!(b.redrive("jobs.dlq", count), redriven);
    }
    b.worker("w", "jobs", None);
    // In the order in which they died, as far as turns between keys allow: each key on its own.
    let order = b.order();
    for key in 0..3 {
        let of_key = |n: &&usize| **n % 3 == key;
        let numbers: Vec<usize> = order
            .iter()
            .map(|name| name[3..].parse().unwrap())
            .collect();
        let seen: Vec<_> = numbers.iter().filter(of_key).copied().collect();
        assert!(seen.is_sorted() && seen.len() > MANY / 4, "key {key}");
    }
}

#[test]
fn a_deleted_queue_goes_in_slices_beside_a_new_one_of_its_name() {
    let mut b = Broker::with(queue("jobs"));
    b.send(&many("old", 40_000));
    b.send(&[Msg {
        transient: true,
        ..job("brief")
    }]);
    let name = "jobs".to_owned();
    let token = b.ask(AdminRequest::DeleteQueue {
        vhost: VhostId::DEFAULT,
        name,
    });
    assert_eq!(b.answer(token), AdminReply::Deleted(Ok(())));
    let token = b.ask(AdminRequest::CreateQueue(Box::new(queue("jobs"))));
    assert!(matches!(b.answer(token), AdminReply::Created(Ok(_))));
    let published = b.pass_and_publish();
    assert!(published >= 2, "in slices");
    assert_eq!(b.held("jobs"), (published, 0));
    b.restart(0);
    assert_eq!(b.held("jobs"), (published, 0));
}

#[test]
fn work_on_a_queue_that_is_deleted_is_answered() {
    let mut b = Broker::with(queue("jobs"));
    b.send(&many("old", MANY));
    let id = b.id("old4999");
    let name = || "jobs".to_owned();
    let purge = b.ask(AdminRequest::PurgeQueue {
        vhost: VhostId::DEFAULT,
        name: name(),
    });
    let redrive = b.ask(AdminRequest::Redrive {
        vhost: VhostId::DEFAULT,
        name: "jobs.dlq".to_owned(),
        count: 0,
        reclassify: tanda_engine::Reclassify::All,
    });
    let find = b.ask(AdminRequest::Explain {
        vhost: VhostId::DEFAULT,
        name: name(),
        message: Some(id),
    });
    b.pass();
    let delete = b.ask(AdminRequest::DeleteQueue {
        vhost: VhostId::DEFAULT,
        name: name(),
    });
    b.run();
    assert_eq!(b.answer(delete), AdminReply::Deleted(Ok(())));
    let AdminReply::Purged(Ok(purged)) = b.answer(purge) else {
        panic!("not purged");
    };
    assert!((1..MANY as u64).contains(&purged), "{purged} is a part");
    let none = Redriven::default();
    assert_eq!(b.answer(redrive), AdminReply::Redriven(Ok(none)));
    let gone = Err(tanda_engine::QueueNotFound);
    assert_eq!(b.answer(find), AdminReply::Explained(gone));
}

#[test]
fn one_message_is_looked_for_in_slices_also_among_the_dead() {
    let mut b = Broker::with(QueueSpec {
        max_attempts: 1,
        ..queue("jobs")
    });
    let w = b.worker("w", "jobs", None);
    b.send(&many("dead", 20_000));
    let names: Vec<String> = (0..20_000).map(|n| format!("dead{n}")).collect();
    let nacks: Vec<_> = names.iter().map(|n| (n.as_str(), NACK)).collect();
    b.settle("jobs", &nacks);
    b.unsubscribe(w);
    b.got();
    b.send(&many("old", 20_000));
    let place = |b: &mut Broker, message| {
        let token = b.ask(AdminRequest::Explain {
            vhost: VhostId::DEFAULT,
            name: "jobs".to_owned(),
            message: Some(message),
        });
        let mut passes = 1;
        while b.pass() {
            passes += 1;
        }
        match b.answer(token) {
            AdminReply::Explained(Ok(explained)) => (passes, explained.message.unwrap()),
            other => panic!("not {other:?}"),
        }
    };
    let dead = MessagePlace::DeadLettered {
        queue: "jobs.dlq".to_owned(),
    };
    let last_dead = b.id("dead19999");
    assert_eq!(place(&mut b, last_dead), (4, dead));
    let nobody = tanda_engine::MessageId(7);
    assert_eq!(place(&mut b, nobody), (4, MessagePlace::Unknown));
    let last = b.id("old19999");
    let (passes, found) = place(&mut b, last);
    assert_eq!(passes, 2);
    assert!(
        matches!(
            found,
            MessagePlace::Ready {
                ahead_in_key: 6_666,
                ..
            }
        ),
        "{found:?}"
    );
}

#[test]
fn a_purge_finds_old_messages_below_new_ones_of_higher_priority() {
    let mut b = Broker::with(queue("jobs"));
    b.send(&many("old", 3_000));
    let name = "jobs".to_owned();
    let token = b.ask(AdminRequest::PurgeQueue {
        vhost: VhostId::DEFAULT,
        name,
    });
    let urgent = many("new", 3_000).into_iter().map(|message| Msg {
        priority: 5,
        ..message
    });
    b.send(&urgent.collect::<Vec<_>>());
    assert_eq!(b.answer(token), AdminReply::Purged(Ok(3_000)));
    b.worker("w", "jobs", None);
    let order = b.order();
    assert_eq!(order.len(), 3_000);
    assert!(order.iter().all(|name| name.starts_with("new")));
}

#[test]
fn many_keys_are_counted_beside_other_work() {
    let mut b = Broker::with(queue("jobs"));
    let keyed = |n: usize| job(&format!("m{n}")).key(&format!("k{n:05}"));
    b.send(&(0..20_000).map(keyed).collect::<Vec<_>>());
    let name = "jobs".to_owned();
    let sub = b.worker("w", "jobs", Some(0));
    let token = b.ask(AdminRequest::QueueStats {
        vhost: VhostId::DEFAULT,
        name,
    });
    b.handle(Request::Grant { sub, credit: 5 });
    b.pass();
    assert_eq!(b.seen(), (5, 0), "deliveries wait for the statistics");
    b.run();
    let AdminReply::Stats(Ok(stats)) = b.answer(token) else {
        panic!("no statistics");
    };
    let mut keys: Vec<_> = stats.keys.iter().map(|it| &it.key).collect();
    keys.sort();
    keys.dedup();
    // The first were counted before they were delivered.
    assert_eq!((keys.len(), stats.keys.len()), (20_000, 20_000));
    assert_eq!((stats.counts.depth, stats.counts.in_flight), (19_995, 5));
}

#[test]
fn many_queues_are_listed_beside_other_work() {
    let mut b = Broker::with(queue("jobs"));
    for n in 0..3_000 {
        b.h.create(queue(&format!("q{n:04}")));
    }
    b.send(&jobs(["a"]));
    let sub = b.worker("w", "jobs", Some(0));
    let token = b.ask(AdminRequest::ListQueues);
    b.handle(Request::Grant { sub, credit: 5 });
    b.pass();
    assert_eq!(b.seen(), (1, 0), "deliveries wait for the list");
    b.run();
    let AdminReply::Queues(queues) = b.answer(token) else {
        panic!("no list");
    };
    let mut names: Vec<_> = queues.iter().map(|it| &it.name).collect();
    names.sort();
    names.dedup();
    assert_eq!((names.len(), queues.len()), (6_002, 6_002));
}
