//! What a peer may do to exchanges and queues, and the texts that say it may not.

use tanda_engine::{BindingSpec, Destination};
use tanda_wire::amqp::Table;

use crate::login::{Identity, Permission, TopicAccess};

/// What a restricted user must be allowed to name for the server to name its queue.
const GENERATED_NAME: &str = "amq.gen-AAAAAAAAAAAAAAAAAAAAAA";

/// Whose permissions, and in which virtual host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permits<'a> {
    /// The peer.
    pub(crate) identity: &'a dyn Identity,
    /// The virtual host's name.
    pub(crate) vhost: &'a str,
}

/// An exchange the peer may publish to.
#[derive(Debug)]
pub(crate) struct Written {
    exchange: Vec<u8>,
    /// Routing keys must be asked for one by one.
    restricts_keys: bool,
}

impl Permits<'_> {
    /// Whether the peer may do something to an exchange or queue, which `kind` says.
    ///
    /// # Errors
    /// It may not.
    pub(crate) fn demand(
        &self,
        permission: Permission,
        kind: &str,
        name: &str,
    ) -> Result<(), String> {
        let Self { identity, vhost } = self;
        let asked = if kind == "exchange" && name.is_empty() {
            "amq.default"
        } else {
            name
        };
        if identity.is_unrestricted() || identity.may(permission, vhost, asked) {
            return Ok(());
        }
        Err(format!(
            "{} access to {kind} '{asked}' in vhost '{vhost}' refused for user '{}'",
            permission.name(),
            identity.name()
        ))
    }

    /// Whether the peer may use a routing key, if keys of that exchange are restricted at all.
    ///
    /// # Errors
    /// It may not.
    pub(crate) fn demand_key(
        &self,
        (permission, exchange): (Permission, &str),
        key: &str,
    ) -> Result<(), String> {
        let Self { identity, vhost } = self;
        let access = TopicAccess {
            vhost,
            exchange,
            key,
            permission,
        };
        if identity.is_unrestricted()
            || !identity.restricts_keys(vhost, exchange)
            || identity.may_use_key(access)
        {
            return Ok(());
        }
        Err(format!(
            "{} access to topic '{key}' in exchange '{exchange}' in vhost '{vhost}' refused for \
             user '{}'",
            permission.name(),
            identity.name()
        ))
    }

    /// Whether the peer may declare an exchange: with an alternate one, messages move from it
    /// there.
    ///
    /// # Errors
    /// It may not.
    pub(crate) fn demand_exchange(&self, name: &str, arguments: Table<'_>) -> Result<(), String> {
        self.demand(Permission::Configure, "exchange", name)?;
        if let Some(alternate) = text_argument(arguments, b"alternate-exchange") {
            self.demand(Permission::Read, "exchange", name)?;
            self.demand(Permission::Write, "exchange", &alternate)?;
        }
        Ok(())
    }

    /// Whether the peer may declare a queue; an empty name is one that the server gives. With a
    /// dead-letter exchange, messages move from it there.
    ///
    /// # Errors
    /// It may not.
    pub(crate) fn demand_queue(&self, name: &str, arguments: Table<'_>) -> Result<(), String> {
        let name = if name.is_empty() {
            GENERATED_NAME
        } else {
            name
        };
        self.demand(Permission::Configure, "queue", name)?;
        if let Some(exchange) = text_argument(arguments, b"x-dead-letter-exchange") {
            self.demand(Permission::Read, "queue", name)?;
            self.demand(Permission::Write, "exchange", &exchange)?;
        }
        Ok(())
    }

    /// Whether the peer may make or remove a binding, which takes from its source and gives to its
    /// destination.
    ///
    /// # Errors
    /// It may not.
    pub(crate) fn demand_binding(&self, spec: &BindingSpec) -> Result<(), String> {
        match &spec.destination {
            Destination::Queue(name) => self.demand(Permission::Write, "queue", name)?,
            Destination::Exchange(name) => self.demand(Permission::Write, "exchange", name)?,
        }
        self.demand(Permission::Read, "exchange", &spec.source)?;
        self.demand_key((Permission::Read, &spec.source), &spec.key)
    }

    /// Whether the peer may publish there. `known` is what was found out before, which saves
    /// asking for each of many messages to one exchange.
    ///
    /// # Errors
    /// It may not.
    #[inline]
    pub(crate) fn demand_publish(
        &self,
        known: &mut Option<Written>,
        exchange: &[u8],
        key: &[u8],
    ) -> Result<(), String> {
        if self.identity.is_unrestricted() {
            return Ok(());
        }
        if known
            .as_ref()
            .is_none_or(|written| written.exchange != exchange)
        {
            let name = String::from_utf8_lossy(exchange);
            self.demand(Permission::Write, "exchange", &name)?;
            *known = Some(Written {
                exchange: exchange.to_vec(),
                restricts_keys: self.identity.restricts_keys(self.vhost, &name),
            });
        }
        self.demand_key_of(known.as_ref(), key)
    }

    /// Whether the peer may use another routing key with the exchange it publishes to, which the
    /// message names in its headers.
    ///
    /// # Errors
    /// It may not.
    #[inline]
    pub(crate) fn demand_key_of(&self, known: Option<&Written>, key: &[u8]) -> Result<(), String> {
        let Some(written) = known.filter(|written| written.restricts_keys) else {
            return Ok(());
        };
        let exchange = String::from_utf8_lossy(&written.exchange);
        let key = String::from_utf8_lossy(key);
        self.demand_key((Permission::Write, &exchange), &key)
    }
}

/// An argument that is text; others the engine refuses.
fn text_argument(arguments: Table<'_>, key: &[u8]) -> Option<String> {
    let value = arguments.find(key).ok()??;
    let bytes = value.as_long_string()?;
    core::str::from_utf8(bytes).ok().map(str::to_owned)
}
