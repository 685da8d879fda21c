//! Queues are declared, removed and purged as AMQP and FireMQ do.
//!
//! Owns: who may see an exclusive queue, when a declaration finds a queue that is there, and when
//! queues go by themselves: with their connection, with their last consumer, or unused for a while.

mod purge;
mod remove;

use std::sync::Arc;

use crate::engine::{Cx, Engine};
use crate::policy::{AmqpPolicy, Declared, QueueText, check_same, queue_text};
use crate::queue_record::QueueRecord;
use crate::queues::{QueueIndex, UNNAMED};
use crate::{
    AdminReply, ConnId, DeclareQueue, DeclaredQueue, Event, Lsn, Millis, QueueId, ReplyTo,
    TopologyCode, TopologyError, VhostId,
};

pub(crate) use purge::Purge;
pub(crate) use remove::OnlyIf;

/// Longest name of a queue.
const NAME_BYTES_MAX: usize = 255;

impl Engine {
    pub(crate) fn on_declare_queue(
        &mut self,
        cx: &mut Cx<'_>,
        to: ReplyTo,
        declare: &DeclareQueue,
    ) {
        let declared = self.declare_queue(cx, to.conn, declare);
        let (after, result) = match declared {
            Ok(index) => {
                let queue = self.queues.at(index);
                let declared = DeclaredQueue {
                    name: queue.identity.name.to_string(),
                    messages: queue.depth(),
                    consumers: u32::try_from(queue.consumers.len()).unwrap_or(u32::MAX),
                };
                (queue.last_lsn, Ok(declared))
            }
            Err(error) => (self.queues.last_lsn, Err(error)),
        };
        say(cx, to, after, AdminReply::QueueDeclared(result));
    }

    fn declare_queue(
        &mut self,
        cx: &mut Cx<'_>,
        conn: ConnId,
        declare: &DeclareQueue,
    ) -> Result<QueueIndex, TopologyError> {
        let (vhost, name) = (declare.vhost, declare.name.as_str());
        if declare.passive {
            let index = self.named_queue(conn, (vhost, name))?;
            self.note_use(index, cx.now);
            return Ok(index);
        }
        if name.is_empty() {
            let name = self.new_name(cx.now, vhost);
            return self.make_declared(cx, conn, declare, name);
        }
        // Sessions make these for direct replies, and pass no such name on for their peers.
        if !(declare.exclusive && name.starts_with(REPLY_QUEUE)) {
            check_name(name)?;
        }
        let Some(index) = self.queues.find_in(vhost, name) else {
            return self.make_declared(cx, conn, declare, name.to_owned());
        };
        self.check_declared(index, conn, declare)?;
        self.note_use(index, cx.now);
        Ok(index)
    }

    /// The queue of a name, if it is there and this connection may use it.
    pub(crate) fn named_queue(
        &self,
        conn: ConnId,
        (vhost, name): (VhostId, &str),
    ) -> Result<QueueIndex, TopologyError> {
        let Some(index) = self.queues.find_in(vhost, name) else {
            let text = format!("no {}", queue_text(name, &self.vhost_text(vhost)));
            return Err(TopologyError::new(TopologyCode::NotFound, text));
        };
        self.check_owner(index, conn)?;
        Ok(index)
    }

    /// An exclusive queue is its declaring connection's.
    pub(crate) fn check_owner(&self, index: QueueIndex, conn: ConnId) -> Result<(), TopologyError> {
        let owner = self.queues.at(index).owner;
        if owner.is_none_or(|owner| owner == conn) {
            return Ok(());
        }
        Err(self.locked(index))
    }

    fn locked(&self, index: QueueIndex) -> TopologyError {
        let text = format!(
            "cannot obtain exclusive access to locked {}. It could be originally declared on \
             another connection or the exclusive property value does not match that of the \
             original declaration.",
            self.text_of(index)
        );
        TopologyError::new(TopologyCode::ResourceLocked, text)
    }

    /// "queue 'q' in vhost '/'", for texts.
    pub(crate) fn text_of(&self, index: QueueIndex) -> String {
        let identity = &self.queues.at(index).identity;
        let vhost = self.vhost_text(identity.vhost);
        queue_text(&identity.name, &vhost).to_string()
    }

    /// Whether a declaration means the queue that is there. One that Fila made is as durable and
    /// without arguments as one can be declared.
    fn check_declared(
        &self,
        index: QueueIndex,
        conn: ConnId,
        declare: &DeclareQueue,
    ) -> Result<(), TopologyError> {
        let queue = self.queues.at(index);
        let owner = declare.exclusive.then_some(conn);
        if queue.owner != owner {
            return Err(self.locked(index));
        }
        let made_by_fila = AmqpPolicy {
            durable: true,
            ..AmqpPolicy::default()
        };
        let policy = queue.config.amqp.as_deref().unwrap_or(&made_by_fila);
        let identity = &queue.identity;
        let vhost = self.vhost_text(identity.vhost);
        check_same(policy, declare, &queue_text(&identity.name, &vhost))
    }

    fn make_declared(
        &mut self,
        cx: &mut Cx<'_>,
        conn: ConnId,
        declare: &DeclareQueue,
        name: String,
    ) -> Result<QueueIndex, TopologyError> {
        let vhost = self.vhost_text(declare.vhost);
        let text = queue_text(&name, &vhost);
        let declared = Declared::check(declare, &text)?;
        if self.topology.vhost_name(declare.vhost).is_none() {
            let text = "the virtual host is gone".to_owned();
            return Err(TopologyError::new(TopologyCode::NotFound, text));
        }
        self.check_room_for_queue(&text)?;
        let record = QueueRecord {
            id: QueueId(self.queues.next_id),
            dead_letters: QueueId(0),
            vhost: declare.vhost,
            name,
            next_position: 1,
            dead_letters_next_position: 1,
            config: declared.resolve(&self.config.defaults),
        };
        let index = self.add_queue(&record);
        self.write_queue(cx, index);
        if declare.exclusive {
            self.queues.at_mut(index).owner = Some(conn);
            if let Some(conn) = self.consumers.conn_mut(conn) {
                conn.owned.push(record.id);
            }
        }
        self.note_use(index, cx.now);
        Ok(index)
    }

    fn check_room_for_queue(&self, text: &QueueText<'_>) -> Result<(), TopologyError> {
        if self.storage_full {
            let text = format!("cannot declare {text}: storage or memory is full");
            return Err(TopologyError::new(TopologyCode::Storage, text));
        }
        let max = self.config.limits.queues_max;
        if self.queues.sources() < max {
            return Ok(());
        }
        let QueueText { name, vhost } = text;
        let text = format!(
            "cannot declare queue '{name}' in vhost '{vhost}': queue limit of {max} \
             (limits.queues_max) is reached"
        );
        Err(TopologyError::new(TopologyCode::PreconditionFailed, text))
    }

    /// A name that nobody has: "amq.gen-" and 22 characters.
    fn new_name(&mut self, now: Millis, vhost: VhostId) -> String {
        loop {
            self.names_given += 1;
            let half = |which: u8| self.hasher.hash_one((self.names_given, now, which));
            let number = (u128::from(half(0)) << 64) | u128::from(half(1));
            let name = format!("amq.gen-{}", base64(number));
            if self.queues.find_in(vhost, &name).is_none() {
                return name;
            }
        }
    }

    /// A queue that goes when nobody uses it was used.
    pub(crate) fn note_use(&mut self, index: QueueIndex, now: Millis) {
        self.queues.at_mut(index).used_at = now;
        self.touch(index);
    }

    /// A virtual host's name, for texts.
    pub(crate) fn vhost_text(&self, vhost: VhostId) -> Arc<str> {
        let name = self.topology.vhost_name(vhost);
        name.map_or_else(|| format!("#{}", vhost.0).into(), Arc::clone)
    }
}

/// Answers about one queue wait for what was written of it, and for nothing else.
fn say(cx: &mut Cx<'_>, to: ReplyTo, after: Lsn, reply: AdminReply) {
    let event = Event::Admin {
        token: to.token,
        reply: Box::new(reply),
    };
    cx.emit(to.conn, after, event);
}

/// What names of queues for direct replies begin with.
const REPLY_QUEUE: &str = "amq.rabbitmq.reply-to.";

fn check_name(name: &str) -> Result<(), TopologyError> {
    let (code, problem) = if name.starts_with("amq.") {
        let problem = format!("queue name '{name}' contains reserved prefix 'amq.*'");
        (TopologyCode::AccessRefused, problem)
    } else if name.len() > NAME_BYTES_MAX {
        let (len, max) = (name.len(), NAME_BYTES_MAX);
        let problem = format!("a queue's name has {len} bytes, {max} are allowed");
        (TopologyCode::PreconditionFailed, problem)
    } else if name.starts_with(UNNAMED) {
        let problem = "a queue's name must not begin with a zero byte".to_owned();
        (TopologyCode::PreconditionFailed, problem)
    } else {
        return Ok(());
    };
    Err(TopologyError::new(code, problem))
}

/// 22 characters that stand for the number; letters, digits, `-` and `_`.
fn base64(number: u128) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let digit = |at: u32| {
        let index = usize::try_from((number >> (6 * at)) & 63).unwrap_or(0);
        char::from(ALPHABET.get(index).copied().unwrap_or(b'A'))
    };
    (0..22).map(digit).collect()
}
