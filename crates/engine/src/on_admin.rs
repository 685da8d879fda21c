//! Queues are created, changed and deleted.

use crate::declare::OnlyIf;
use crate::engine::{Cx, Engine};
use crate::jobs::{Job, Work};
use crate::queue::{Identity, Queue};
use crate::queue_record::QueueRecord;
use crate::queues::QueueIndex;
use crate::script::Redrive;
use crate::steady::Line;
use crate::validate::{check_changes, check_declared_changes, check_spec};
use crate::{
    AdminReply, AdminRequest, CreateQueueError, DeleteQueueError, DeliveryDurability, Event,
    Millis, QueueChanges, QueueId, QueueSpec, Reclassify, RedriveError, Redriven, ReplyTo,
    UpdateQueueError, VhostCounts, VhostId,
};

/// Longest scripts that a queue can be given while the disk or memory is full.
const SCRIPT_BYTES_WHEN_FULL: usize = 16 * 1024;

/// What a name ends in when it belongs to a dead-letter queue.
pub(crate) const DEAD_LETTER_SUFFIX: &str = ".dlq";

impl Engine {
    #[expect(clippy::too_many_lines, reason = "one arm for each request")]
    pub(crate) fn on_admin(&mut self, cx: &mut Cx<'_>, to: ReplyTo, request: AdminRequest) {
        let reply = match request {
            AdminRequest::CreateQueue(spec) => return self.on_create_queue(cx, to, spec),
            AdminRequest::UpdateQueue {
                vhost,
                name,
                changes,
            } => return self.on_update_queue(cx, to, (vhost, name), changes),
            AdminRequest::CheckScripts {
                on_enqueue,
                on_failure,
            } => return self.on_check_scripts(cx, to, (on_enqueue, on_failure)),
            AdminRequest::DeleteQueue { vhost, name } => {
                AdminReply::Deleted(self.delete(cx, (vhost, &name)))
            }
            AdminRequest::PurgeQueue { vhost, name } => {
                return self.purge(cx, to, (vhost, &name));
            }
            AdminRequest::Redrive {
                vhost,
                name,
                count,
                reclassify,
            } => return self.redrive_queue(cx, to, (vhost, &name), (count, reclassify)),
            AdminRequest::Explain {
                vhost,
                name,
                message,
            } => return self.explain(cx, to, (vhost, &name), message),
            AdminRequest::ThrottleStats { name, top_buckets } => {
                return self.throttle_stats(cx, to, (name, top_buckets));
            }
            AdminRequest::ThrottleBucket {
                name,
                shared,
                values,
            } => {
                let of = (name.as_str(), shared, values.as_slice());
                AdminReply::ThrottleBucket(self.throttle_bucket(cx.now, of))
            }
            AdminRequest::QueueStats { vhost, name } => {
                return self.stats(cx, to, (vhost, &name));
            }
            AdminRequest::InspectQueue { vhost, name } => {
                AdminReply::Inspected(self.inspect((vhost, &name)))
            }
            AdminRequest::ListQueues => return self.list(cx, to),
            AdminRequest::SetConfig { key, value } => {
                AdminReply::ConfigSet(self.set_config(cx, key, value))
            }
            AdminRequest::GetConfig { key } => AdminReply::Config(self.runtime.get(&key).cloned()),
            AdminRequest::ListConfig { prefix } => AdminReply::ConfigList(self.list_config(prefix)),
            AdminRequest::SetRebalancing(rebalancing) => {
                self.set_rebalancing(cx, rebalancing);
                AdminReply::RebalancingSet
            }
            AdminRequest::ClusterStatus => AdminReply::ClusterStatus(self.cluster_status(cx.now)),
            AdminRequest::CreateApiKey(new) => AdminReply::ApiKeyCreated(self.create_key(cx, &new)),
            AdminRequest::Bootstrap { hash } => AdminReply::Bootstrapped(self.bootstrap(cx, hash)),
            AdminRequest::RevokeApiKey { id } => {
                AdminReply::ApiKeyRevoked(self.revoke_key(cx, &id))
            }
            AdminRequest::ListApiKeys => AdminReply::ApiKeys(self.list_keys()),
            AdminRequest::SetAcl { id, grants } => {
                AdminReply::AclSet(self.set_acl(cx, &id, grants))
            }
            AdminRequest::GetAcl { id } => AdminReply::Acl(self.acl(&id)),
            AdminRequest::User(request) => AdminReply::User(self.on_user(cx, request)),
            AdminRequest::OpenVhost { name } => AdminReply::Vhost(self.open_vhost(&name)),
            AdminRequest::CreateVhost { name } => {
                AdminReply::VhostChanged(self.create_vhost(cx, &name))
            }
            AdminRequest::DeleteVhost { name } => {
                AdminReply::VhostDeleted(self.delete_vhost(cx, &name))
            }
            AdminRequest::ListVhosts => AdminReply::Vhosts(self.list_vhosts()),
            AdminRequest::DeclareExchange(spec) => {
                AdminReply::ExchangeDeclared(self.declare_exchange(cx, &spec))
            }
            AdminRequest::DeleteExchange {
                vhost,
                name,
                if_unused,
            } => {
                let name = (vhost, name.as_str());
                AdminReply::ExchangeDeleted(self.delete_exchange(cx, name, if_unused))
            }
            AdminRequest::Bind(spec) => AdminReply::Bound(self.bind(cx, to.conn, &spec)),
            AdminRequest::Unbind(spec) => AdminReply::Unbound(self.unbind(cx, to.conn, &spec)),
            AdminRequest::ListExchanges { vhost } => {
                AdminReply::Exchanges(self.list_exchanges(vhost))
            }
            AdminRequest::ListBindings { vhost } => AdminReply::Bindings(self.list_bindings(vhost)),
            AdminRequest::CountVhost { vhost } => AdminReply::VhostCounts(VhostCounts {
                keys: self.keyspaces.count(vhost) as u64,
                queues: self.queues.count_in(vhost) as u64,
            }),
            AdminRequest::ListChannels {
                vhost,
                exchange,
                answer_bytes_max,
            } => {
                let found = self.list_channels((vhost, &exchange), answer_bytes_max);
                AdminReply::Channels(found)
            }
            AdminRequest::ListQueuesOf { vhost } => return self.list_queues_of(cx, to, vhost),
            AdminRequest::DeclareQueue(declare) => {
                return self.on_declare_queue(cx, to, &declare);
            }
            AdminRequest::RemoveQueue {
                vhost,
                name,
                if_unused,
                if_empty,
            } => {
                let name = (vhost, name.as_str());
                let only = OnlyIf {
                    unused: if_unused,
                    empty: if_empty,
                };
                return self.on_remove_queue(cx, to, name, only);
            }
            AdminRequest::RemoveOwnQueues => return self.on_remove_own_queues(cx, to),
            AdminRequest::Purge { vhost, name } => {
                return self.purge_named(cx, to, (vhost, &name));
            }
        };
        self.answer(cx, to, reply);
    }

    /// Rare answers wait for everything written so far: whatever they speak of is on disk.
    pub(crate) fn answer(&self, cx: &mut Cx<'_>, to: ReplyTo, reply: AdminReply) {
        let after = cx.journal.end();
        cx.emit(
            to.conn,
            after,
            Event::Admin {
                token: to.token,
                reply: Box::new(reply),
            },
        );
    }

    /// Whether a queue could be created now.
    pub(crate) fn check_create(&self, spec: &QueueSpec) -> Result<(), CreateQueueError> {
        check_spec(spec, &self.config)?;
        if self.topology.vhost_name(spec.vhost).is_none() {
            return Err(CreateQueueError::VhostNotFound);
        }
        if self.storage_full {
            return Err(CreateQueueError::Storage);
        }
        let dead_letters_name = format!("{}{DEAD_LETTER_SUFFIX}", spec.name);
        let both = [&spec.name, &dead_letters_name];
        if both
            .iter()
            .any(|name| self.queues.find_in(spec.vhost, name).is_some())
        {
            return Err(CreateQueueError::AlreadyExists);
        }
        let max = self.config.limits.queues_max;
        if self.queues.sources() >= max {
            return Err(CreateQueueError::TooManyQueues { max });
        }
        Ok(())
    }

    pub(crate) fn create(
        &mut self,
        cx: &mut Cx<'_>,
        spec: &QueueSpec,
    ) -> Result<String, CreateQueueError> {
        self.check_create(spec)?;
        let id = QueueId(self.queues.next_id);
        let record = QueueRecord {
            id,
            dead_letters: QueueId(id.0 + 1),
            vhost: spec.vhost,
            name: spec.name.clone(),
            next_position: 1,
            dead_letters_next_position: 1,
            config: spec.resolve(&self.config.defaults),
        };
        let index = self.add_queue(&record);
        self.set_scripts(index);
        self.write_queue(cx, index);
        Ok(id.to_string())
    }

    /// Replicated: a queue, and its dead-letter queue if it has one, exist from now on.
    pub(crate) fn add_queue(&mut self, record: &QueueRecord) -> QueueIndex {
        if let Some(identity) = record.partner() {
            let mut queue = self.new_queue(identity, record);
            queue.next_position = record.dead_letters_next_position;
            self.queues.insert(queue);
        }
        let mut queue = self.new_queue(record.identity(), record);
        queue.next_position = record.next_position;
        self.queues.insert(queue)
    }

    fn new_queue(&self, identity: Identity, record: &QueueRecord) -> Queue {
        let generation = self.generation.clone();
        let config = record.config.clone();
        Queue::new(identity, config, &self.hasher, &self.config, generation)
    }

    /// A queue's record; a dead-letter queue is in that of its source.
    pub(crate) fn queue_record(&self, index: QueueIndex, now: Millis) -> Option<Vec<u8>> {
        let queue = self.queues.at(index);
        if queue.is_dead_letter() {
            return None;
        }
        let dead_letters = self.dead_letters_of(index).map(|it| self.queues.at(it));
        let record = QueueRecord {
            id: queue.identity.id,
            dead_letters: dead_letters.map_or(QueueId(0), |it| it.identity.id),
            vhost: queue.identity.vhost,
            name: queue.identity.name.to_string(),
            next_position: queue.next_position,
            dead_letters_next_position: dead_letters.map_or(1, |it| it.next_position),
            config: queue.config.clone(),
        };
        let mut bytes = Vec::new();
        record.encode(&mut bytes, now);
        Some(bytes)
    }

    /// Writes a queue's record: at creation and after a change. Nobody waits for that of a queue
    /// that does not survive a restart.
    pub(crate) fn write_queue(&mut self, cx: &mut Cx<'_>, index: QueueIndex) {
        let Some(record) = self.queue_record(index, cx.now) else {
            return;
        };
        cx.journal.append(&record);
        if self.queues.at(index).is_transient() {
            return;
        }
        let end = cx.journal.end();
        self.queues.last_lsn = end;
        let both = [Some(index), self.dead_letters_of(index)];
        for index in both.into_iter().flatten() {
            self.queues.at_mut(index).last_lsn = end;
        }
    }

    /// Whether a queue could be changed so now.
    pub(crate) fn check_update(
        &self,
        (vhost, name): (VhostId, &str),
        changes: &QueueChanges,
    ) -> Result<QueueIndex, UpdateQueueError> {
        let found = self.queues.find_in(vhost, name);
        let index = found.ok_or(UpdateQueueError::NotFound)?;
        if self.queues.at(index).is_dead_letter() {
            return Err(UpdateQueueError::ReservedName);
        }
        check_changes(changes, &self.config)?;
        if self.queues.at(index).config.amqp.is_some() {
            check_declared_changes(changes)?;
        }
        // With another script parked messages can leave: what is short is taken also now.
        if self.storage_full && changes.script_bytes() > SCRIPT_BYTES_WHEN_FULL {
            return Err(UpdateQueueError::Storage);
        }
        Ok(index)
    }

    pub(crate) fn update(
        &mut self,
        cx: &mut Cx<'_>,
        name: (VhostId, &str),
        changes: &QueueChanges,
    ) -> Result<(), UpdateQueueError> {
        let index = self.check_update(name, changes)?;
        let config = changes.apply(&self.queues.at(index).config, &self.config.defaults);
        let both = [Some(index), self.dead_letters_of(index)];
        for index in both.into_iter().flatten() {
            let before = core::mem::replace(&mut self.queues.at_mut(index).config, config.clone());
            if before.durability == DeliveryDurability::Fast {
                self.write_leases_now_committed(cx, index);
            }
        }
        if changes.on_enqueue.is_some() || changes.on_failure.is_some() {
            self.set_scripts(index);
        }
        if changes.on_enqueue.is_some() {
            let queue = self.queues.at_mut(index);
            queue.parking.try_all_soon(queue.next_position);
        }
        for index in both.into_iter().flatten() {
            self.touch(index);
        }
        self.write_queue(cx, index);
        Ok(())
    }

    fn delete(
        &mut self,
        cx: &mut Cx<'_>,
        (vhost, name): (VhostId, &str),
    ) -> Result<(), DeleteQueueError> {
        let found = self.queues.find_in(vhost, name);
        let index = found.ok_or(DeleteQueueError::NotFound)?;
        if self.queues.at(index).is_dead_letter() {
            return Err(DeleteQueueError::ReservedName);
        }
        self.delete_queue(cx, index);
        Ok(())
    }

    /// Takes a queue out of everything; what it holds is given back in slices.
    pub(crate) fn bury(&mut self, index: QueueIndex) {
        let Some(queue) = self.queues.take(index) else {
            return;
        };
        if let Some(armed) = queue.armed {
            self.timers.remove(&(armed, index));
        }
        if queue.runnable {
            self.runnable.retain(|other| *other != index);
        }
        self.graveyard.add(index, queue);
    }

    fn redrive_queue(
        &mut self,
        cx: &mut Cx<'_>,
        reply: ReplyTo,
        (vhost, name): (VhostId, &str),
        (count, reclassify): (u64, Reclassify),
    ) {
        let error = match self.queues.find_in(vhost, name) {
            None => RedriveError::NotFound,
            Some(index) if !self.queues.at(index).is_dead_letter() => {
                RedriveError::NotDeadLetterQueue
            }
            Some(index) => {
                let queue = self.queues.at(index);
                let left = if count == 0 { u64::MAX } else { count };
                let limit = queue.next_position;
                let work = Work::Redrive(Redrive {
                    limit,
                    left,
                    reclassify,
                    done: Redriven::default(),
                    aside: Line::new(),
                    is_over: false,
                });
                self.jobs.push_back(Job {
                    reply,
                    queue: Some(queue.identity.id),
                    work,
                });
                return;
            }
        };
        self.answer(cx, reply, AdminReply::Redriven(Err(error)));
    }
}
