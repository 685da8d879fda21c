//! Requests about virtual hosts, exchanges and bindings.

use crate::declare::not_implemented;
use crate::engine::{Cx, Engine};
use crate::{
    BindingInfo, BindingSpec, ConnId, ExchangeInfo, ExchangeSpec, TopologyCode, TopologyError,
    VhostId, VhostInfo,
};

/// The name of the virtual host that always exists.
const DEFAULT_NAME: &str = "/";

#[expect(clippy::unused_self, reason = "not implemented yet")]
impl Engine {
    pub(crate) fn open_vhost(&self, name: &str) -> Result<VhostId, TopologyError> {
        if name == DEFAULT_NAME {
            return Ok(VhostId::DEFAULT);
        }
        let text = format!("vhost {name} not found");
        Err(TopologyError::new(TopologyCode::NotAllowed, text))
    }

    pub(crate) fn create_vhost(
        &mut self,
        _cx: &mut Cx<'_>,
        _name: &str,
    ) -> Result<(), TopologyError> {
        Err(not_implemented("the creation of virtual hosts"))
    }

    pub(crate) fn delete_vhost(
        &mut self,
        _cx: &mut Cx<'_>,
        _name: &str,
    ) -> Result<(), TopologyError> {
        Err(not_implemented("the deletion of virtual hosts"))
    }

    pub(crate) fn list_vhosts(&self) -> Vec<VhostInfo> {
        vec![VhostInfo {
            id: VhostId::DEFAULT,
            name: DEFAULT_NAME.to_owned(),
        }]
    }

    pub(crate) fn declare_exchange(
        &mut self,
        _cx: &mut Cx<'_>,
        _spec: &ExchangeSpec,
    ) -> Result<(), TopologyError> {
        Err(not_implemented("exchange.declare"))
    }

    pub(crate) fn delete_exchange(
        &mut self,
        _cx: &mut Cx<'_>,
        _name: (VhostId, &str),
        _if_unused: bool,
    ) -> Result<(), TopologyError> {
        Err(not_implemented("exchange.delete"))
    }

    pub(crate) fn bind(
        &mut self,
        _cx: &mut Cx<'_>,
        _conn: ConnId,
        _spec: &BindingSpec,
    ) -> Result<(), TopologyError> {
        Err(not_implemented("queue.bind"))
    }

    pub(crate) fn unbind(
        &mut self,
        _cx: &mut Cx<'_>,
        _conn: ConnId,
        _spec: &BindingSpec,
    ) -> Result<(), TopologyError> {
        Err(not_implemented("queue.unbind"))
    }

    pub(crate) fn list_exchanges(
        &self,
        _vhost: VhostId,
    ) -> Result<Vec<ExchangeInfo>, TopologyError> {
        Err(not_implemented("a list of exchanges"))
    }

    pub(crate) fn list_bindings(&self, _vhost: VhostId) -> Result<Vec<BindingInfo>, TopologyError> {
        Err(not_implemented("a list of bindings"))
    }
}
