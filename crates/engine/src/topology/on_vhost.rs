//! Virtual hosts are made and deleted.

use super::record::{encode_vhost, encode_vhost_gone};
use crate::engine::{Cx, Engine};
use crate::{Lsn, TopologyCode, TopologyError, VhostId, VhostInfo};

use super::exchange::NAME_BYTES_MAX;

impl Engine {
    pub(crate) fn open_vhost(&self, name: &str) -> Result<VhostId, TopologyError> {
        let found = self.topology.find_vhost(name);
        found.ok_or_else(|| not_found(name))
    }

    pub(crate) fn list_vhosts(&self) -> Vec<VhostInfo> {
        let all = self.topology.vhosts.iter();
        let mut all: Vec<_> = all
            .map(|(id, name)| VhostInfo {
                id: *id,
                name: name.to_string(),
            })
            .collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    pub(crate) fn create_vhost(
        &mut self,
        cx: &mut Cx<'_>,
        name: &str,
    ) -> Result<(), TopologyError> {
        if self.topology.find_vhost(name).is_some() {
            return Ok(());
        }
        let refused = |code, text| Err(TopologyError::new(code, text));
        let len = name.len();
        if len == 0 || len > NAME_BYTES_MAX {
            let text = format!("a vhost name has 1 to {NAME_BYTES_MAX} bytes, not {len}");
            return refused(TopologyCode::PreconditionFailed, text);
        }
        if self.storage_full {
            return refused(TopologyCode::Storage, "the disk is full".to_owned());
        }
        let max = self.config.limits.vhosts_max;
        if self.topology.vhosts.len() >= max as usize {
            let text = format!(
                "cannot create vhost '{name}': vhost limit of {max} \
                 (limits.vhosts_max) is reached"
            );
            return refused(TopologyCode::ResourceError, text);
        }
        let id = VhostId(self.topology.next_vhost);
        encode_vhost(&mut self.record, cx.now, id, name);
        self.append_topology(cx);
        self.topology.add_vhost(id, name.into());
        Ok(())
    }

    pub(crate) fn delete_vhost(
        &mut self,
        cx: &mut Cx<'_>,
        name: &str,
    ) -> Result<VhostId, TopologyError> {
        let id = self.open_vhost(name)?;
        if id == VhostId::DEFAULT {
            let text = format!("the vhost {name} is always there");
            return Err(TopologyError::new(TopologyCode::NotAllowed, text));
        }
        let queues = self.queues.iter();
        let queues =
            queues.filter(|(_, queue)| queue.identity.vhost == id && !queue.is_dead_letter());
        let queues: Vec<_> = queues.map(|(index, _)| index).collect();
        for index in queues {
            self.delete_queue(cx, index);
        }
        encode_vhost_gone(&mut self.record, cx.now, id);
        self.append_topology(cx);
        self.topology.remove_vhost(id);
        self.users.forget_vhost(name);
        self.drop_keys_of(cx, id);
        Ok(id)
    }

    /// Appends the record under construction; everything that speaks of the catalog waits for it.
    pub(super) fn append_topology(&mut self, cx: &mut Cx<'_>) -> Lsn {
        let end = self.append(cx);
        self.queues.last_lsn = end;
        end
    }
}

fn not_found(name: &str) -> TopologyError {
    let text = format!("vhost {name} not found");
    TopologyError::new(TopologyCode::NotAllowed, text)
}
