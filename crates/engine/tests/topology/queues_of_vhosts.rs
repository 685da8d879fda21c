//! Requests that name a queue mean the one of the virtual host that they name, too.

use tanda_engine::{
    AdminReply, AdminRequest, CreateQueueError, DeclareQueue, DeleteQueueError, QueueChanges,
    QueueDetails, QueueNotFound, QueueSpec, Reclassify, RedriveError, TopologyCode,
    UpdateQueueError, VhostId,
};

use crate::vhosts::{create, delete};
use crate::world::{Msg, World};

const NAME: &str = "jobs";
const GONE: VhostId = VhostId(99);

fn name() -> String {
    NAME.to_owned()
}

fn spec(vhost: VhostId, max_attempts: u32) -> AdminRequest {
    AdminRequest::CreateQueue(Box::new(QueueSpec {
        vhost,
        name: name(),
        max_attempts,
        ..QueueSpec::default()
    }))
}

/// Two queues of one name, with 3 attempts and one message in "/", 5 and two in the other one.
fn twins() -> (World, VhostId) {
    let mut w = World::new();
    let dev = create(&mut w, "dev");
    for (vhost, attempts, messages) in [(VhostId::DEFAULT, 3, 1), (dev, 5, 2)] {
        let made = w.h.admin(spec(vhost, attempts));
        assert!(matches!(made, AdminReply::Created(Ok(_))), "{made:?}");
        for _ in 0..messages {
            let msg = Msg {
                key: NAME,
                vhost,
                ..Msg::default()
            };
            w.publish(&msg);
        }
    }
    (w, dev)
}

fn inspect(w: &mut World, vhost: VhostId) -> Option<QueueDetails> {
    let request = AdminRequest::InspectQueue {
        vhost,
        name: name(),
    };
    match w.h.admin(request) {
        AdminReply::Inspected(found) => found.ok(),
        other => panic!("{other:?}"),
    }
}

/// The pending messages and the attempts of both.
fn both(w: &mut World, dev: VhostId) -> [Option<(u64, u32)>; 2] {
    [VhostId::DEFAULT, dev].map(|vhost| {
        let it = inspect(w, vhost)?;
        Some((it.counts.depth, it.config.retry.max_attempts))
    })
}

#[test]
fn queues_of_one_name_are_apart_also_after_a_restart() {
    let (mut w, dev) = twins();
    assert_eq!(both(&mut w, dev), [Some((1, 3)), Some((2, 5))]);
    let again = w.h.admin(spec(dev, 1));
    let taken = AdminReply::Created(Err(CreateQueueError::AlreadyExists));
    assert_eq!(again, taken);
    w.h.restart(0);
    assert_eq!(both(&mut w, dev), [Some((1, 3)), Some((2, 5))]);
    w.h.take_snapshot();
    w.h.restart(0);
    assert_eq!(both(&mut w, dev), [Some((1, 3)), Some((2, 5))]);
}

#[test]
fn a_change_is_made_to_one_of_them() {
    let (mut w, dev) = twins();
    let reply = w.h.admin(AdminRequest::UpdateQueue {
        vhost: dev,
        name: name(),
        changes: Box::new(QueueChanges {
            max_attempts: Some(7),
            ..QueueChanges::default()
        }),
    });
    assert_eq!(reply, AdminReply::Updated(Ok(())));
    assert_eq!(both(&mut w, dev), [Some((1, 3)), Some((2, 7))]);
}

#[test]
fn statistics_and_explanations_are_of_one_of_them() {
    let (mut w, dev) = twins();
    for (vhost, depth) in [(VhostId::DEFAULT, 1), (dev, 2)] {
        let asked = AdminRequest::QueueStats {
            vhost,
            name: name(),
        };
        let AdminReply::Stats(Ok(stats)) = w.h.admin(asked) else {
            panic!("no statistics");
        };
        let asked = AdminRequest::Explain {
            vhost,
            name: name(),
            message: None,
        };
        let AdminReply::Explained(Ok(explained)) = w.h.admin(asked) else {
            panic!("no explanation");
        };
        assert_eq!((stats.counts.depth, explained.counts.depth), (depth, depth));
    }
}

#[test]
fn a_purge_empties_one_of_them() {
    let (mut w, dev) = twins();
    let purged = w.h.admin(AdminRequest::PurgeQueue {
        vhost: dev,
        name: name(),
    });
    assert_eq!(purged, AdminReply::Purged(Ok(2)));
    assert_eq!(both(&mut w, dev), [Some((1, 3)), Some((0, 5))]);
}

#[test]
fn a_deletion_takes_one_of_them() {
    let (mut w, dev) = twins();
    let deleted = w.h.admin(AdminRequest::DeleteQueue {
        vhost: dev,
        name: name(),
    });
    assert_eq!(deleted, AdminReply::Deleted(Ok(())));
    assert_eq!(both(&mut w, dev), [Some((1, 3)), None]);
    w.h.restart(0);
    assert_eq!(both(&mut w, dev), [Some((1, 3)), None]);
}

#[test]
fn a_redrive_finds_the_dead_letter_queue_of_its_virtual_host() {
    let mut w = World::new();
    let dev = create(&mut w, "dev");
    w.h.admin(spec(dev, 5));
    let redrive = |vhost| AdminRequest::Redrive {
        vhost,
        name: format!("{NAME}.dlq"),
        count: 0,
        reclassify: Reclassify::All,
    };
    let done = w.h.admin(redrive(dev));
    assert!(matches!(done, AdminReply::Redriven(Ok(_))), "{done:?}");
    let none = AdminReply::Redriven(Err(RedriveError::NotFound));
    assert_eq!(w.h.admin(redrive(VhostId::DEFAULT)), none);
}

/// The deletion of a virtual host may overtake what a connection to it asked for.
#[test]
fn nothing_is_made_or_found_in_a_virtual_host_that_is_gone() {
    let (mut w, dev) = twins();
    assert_eq!(delete(&mut w, "dev"), Ok(()));
    for vhost in [dev, GONE] {
        let refused = AdminReply::Created(Err(CreateQueueError::VhostNotFound));
        assert_eq!(w.h.admin(spec(vhost, 1)), refused);
        let declare = DeclareQueue {
            vhost,
            name: name(),
            ..DeclareQueue::default()
        };
        let reply = w.h.admin(AdminRequest::DeclareQueue(Box::new(declare)));
        let AdminReply::QueueDeclared(Err(error)) = reply else {
            panic!("{reply:?}");
        };
        assert_eq!(error.code, TopologyCode::NotFound);
        let (purge, delete, update) = (
            w.h.admin(AdminRequest::PurgeQueue {
                vhost,
                name: name(),
            }),
            w.h.admin(AdminRequest::DeleteQueue {
                vhost,
                name: name(),
            }),
            w.h.admin(AdminRequest::UpdateQueue {
                vhost,
                name: name(),
                changes: Box::default(),
            }),
        );
        assert_eq!(purge, AdminReply::Purged(Err(QueueNotFound)));
        assert_eq!(delete, AdminReply::Deleted(Err(DeleteQueueError::NotFound)));
        assert_eq!(update, AdminReply::Updated(Err(UpdateQueueError::NotFound)));
        assert_eq!(inspect(&mut w, vhost), None);
    }
    assert_eq!(both(&mut w, dev), [Some((1, 3)), None]);
    w.h.restart(0);
    assert_eq!(both(&mut w, dev), [Some((1, 3)), None]);
}
