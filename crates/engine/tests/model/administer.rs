//! What administrators do, to the engine and to the model.

use tanda_engine::{
    AdminReply, AdminRequest, Event, QueueChanges, QueueNotFound, Redriven, ReplyTo, Request,
    SubscriptionEnd, VhostId,
};

use crate::model::Place;
use crate::ops::SOURCES;
use crate::world::{ADMIN, World};

impl World {
    pub(crate) fn create(&mut self, number: u8) {
        let spec = self.setup.queues[usize::from(number % SOURCES)].clone();
        let config = spec.resolve(&tanda_engine::Defaults::default());
        let is_new = self.model.create(&spec.name, &config);
        let reply = self.admin(AdminRequest::CreateQueue(Box::new(spec)));
        let is_created = matches!(reply, AdminReply::Created(Ok(_)));
        assert_eq!(is_created, is_new, "{reply:?}");
    }

    pub(crate) fn purge(&mut self, number: u8, dead: bool) {
        let name = format!("q{number}{}", if dead { ".dlq" } else { "" });
        let found = self.model.queue(&name).is_some();
        let purged = found.then(|| self.model.purge(&name));
        let reply = self.admin(AdminRequest::PurgeQueue {
            vhost: VhostId::DEFAULT,
            name,
        });
        assert_eq!(reply, AdminReply::Purged(purged.ok_or(QueueNotFound)));
    }

    /// Leases become longer only: what a restart made of one, a shorter length would show again or
    /// not, as a snapshot has it.
    pub(crate) fn change_times(&mut self, name: String) {
        let config = self.model.queue(&name).map(|q| q.config.clone());
        let changes = QueueChanges {
            lease_ms: config.as_ref().map(|it| it.lease_ms + 50),
            dedup_window_ms: config.map(|it| (it.dedup_window_ms / 2).max(1)),
            ..QueueChanges::default()
        };
        self.update(name, changes);
    }

    pub(crate) fn limit_attempts(&mut self, name: String, attempts: u32) {
        let changes = QueueChanges {
            max_attempts: Some(attempts),
            ..QueueChanges::default()
        };
        self.update(name, changes);
    }

    fn update(&mut self, name: String, changes: QueueChanges) {
        let found = self.model.queue(&name).is_some();
        self.model.update(&name, &changes);
        let changes = Box::new(changes);
        let reply = self.admin(AdminRequest::UpdateQueue {
            vhost: VhostId::DEFAULT,
            name,
            changes,
        });
        assert_eq!(reply == AdminReply::Updated(Ok(())), found, "{reply:?}");
    }

    /// Nothing says which of two dead letters that are due at the same time goes first: with such
    /// ones nothing is redriven.
    pub(crate) fn redrive(&mut self, name: &str, count: u64) {
        let dead_letters = format!("{name}.dlq");
        let Some(queue) = self.model.queue(&dead_letters) else {
            return;
        };
        let mut dues: Vec<_> = queue
            .messages
            .iter()
            .filter(|m| matches!(m.place, Place::Delayed(_)))
            .map(|m| format!("{:?}", m.place))
            .collect();
        dues.sort_unstable();
        if dues.windows(2).any(|two| two[0] == two[1]) {
            return;
        }
        let redriven = self.model.redrive(name, count);
        let name = dead_letters;
        let reply = self.admin(AdminRequest::Redrive {
            vhost: VhostId::DEFAULT,
            name,
            count,
            reclassify: tanda_engine::Reclassify::All,
        });
        assert_eq!(
            reply,
            AdminReply::Redriven(Ok(Redriven {
                redriven,
                ..Redriven::default()
            }))
        );
    }

    pub(crate) fn delete(&mut self, name: String) {
        let Some(ended) = self.model.delete(&name) else {
            return;
        };
        self.next_token += 1;
        let reply = ReplyTo {
            conn: ADMIN,
            token: self.next_token,
        };
        let request = AdminRequest::DeleteQueue {
            vhost: VhostId::DEFAULT,
            name,
        };
        let mut events = self.handle(Request::Admin { reply, request });
        let last = events.pop();
        let is_deleted = matches!(&last, Some(Event::Admin { reply, .. })
            if **reply == AdminReply::Deleted(Ok(())));
        assert!(is_deleted, "{last:?}");
        let tokens = events.iter().map(|event| {
            let Event::SubscriptionEnded { token, reason } = event else {
                panic!("the end of a subscription, not {event:?}");
            };
            assert_eq!(*reason, SubscriptionEnd::QueueDeleted);
            *token
        });
        let expected: Vec<_> = ended.iter().map(|sub| sub.token).collect();
        assert_eq!(tokens.collect::<Vec<_>>(), expected);
    }
}
