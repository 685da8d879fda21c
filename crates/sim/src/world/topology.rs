//! What a copy of the disk knows of exchanges, queues and bindings.

use tanda_engine::{AdminReply, AdminRequest, ConnId, Event, Millis, ReplyTo, Request, VhostId};
use tanda_node::Node;
use tanda_wal::mem_disk::MemDisk;

use crate::disk::SimDisk;
use crate::failure::{Check, Violation};
use crate::invariants::amqp::topology::{self, Found};
use crate::invariants::recovers;

use super::World;

/// Passes of a node that only answers.
const PASSES_MAX: usize = 10_000;

impl World {
    /// Opens the disk and compares what it holds with what was declared.
    pub(super) fn compare_topology(&self, disk: &MemDisk) -> Check {
        if !self.history.amqp.is_there() {
            return Ok(());
        }
        let opened = self.host.open_copy(disk, self.now);
        let mut node = opened.map_err(|error| Violation {
            invariant: recovers::NAME,
            what: format!("a copy of the disk does not open: {error}"),
        })?;
        let now = node.clock_floor().max(self.now).after_ms(1);
        let found = find(&mut node, now)?;
        topology::when_started(&self.history.amqp, &found)
    }
}

/// Asks for all exchanges, queues and bindings.
pub(super) fn find(node: &mut Node<SimDisk>, now: Millis) -> Result<Found, Violation> {
    let vhost = VhostId::DEFAULT;
    let mut found = Found::default();
    if let AdminReply::Exchanges(Ok(all)) = ask(node, now, AdminRequest::ListExchanges { vhost })? {
        found.exchanges = all;
    }
    if let AdminReply::Bindings(Ok(all)) = ask(node, now, AdminRequest::ListBindings { vhost })? {
        found.bindings = all;
    }
    let AdminReply::Queues(all) = ask(node, now, AdminRequest::ListQueues)? else {
        return Ok(found);
    };
    for queue in all {
        let name = queue.name;
        let inspected = ask(
            node,
            now,
            AdminRequest::InspectQueue {
                vhost: VhostId::DEFAULT,
                name,
            },
        )?;
        // Queues of other doors are judged elsewhere.
        if let AdminReply::Inspected(Ok(it)) = inspected
            && let Some(policy) = it.config.amqp
        {
            found
                .queues
                .push((it.name, policy.durable, policy.args.to_vec()));
        }
    }
    Ok(found)
}

fn ask(
    node: &mut Node<SimDisk>,
    now: Millis,
    request: AdminRequest,
) -> Result<AdminReply, Violation> {
    let reply = ReplyTo {
        conn: ConnId(0),
        token: 0,
    };
    node.handle(now, Request::Admin { reply, request });
    let mut events = Vec::new();
    for _ in 0..PASSES_MAX {
        let _more = node.run(now);
        if let Some(job) = node.take_flush() {
            node.on_flushed(now, job.run());
        }
        node.drain_released(&mut events);
        for (_, event) in events.drain(..) {
            if let Event::Admin { reply, .. } = event {
                return Ok(*reply);
            }
        }
    }
    Err(recovers::stuck("a copy of the disk does not answer"))
}
