//! What a peer may do to exchanges and queues, and the texts that say it may not.

use crate::login::{Identity, Permission, TopicAccess};

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
        if known.as_ref().is_some_and(|written| written.restricts_keys) {
            let exchange = String::from_utf8_lossy(exchange);
            let key = String::from_utf8_lossy(key);
            self.demand_key((Permission::Write, &exchange), &key)?;
        }
        Ok(())
    }
}
