//! What the peer may do.

use tanda_wire::amqp::{ReplyCode, basic};

use super::channel::{Channel, Written};
use super::fault::Fault;
use super::link::Link;
use crate::login::{Permission, TopicAccess};

impl Link {
    /// Whether the peer may do something to an exchange or queue.
    ///
    /// # Errors
    /// It may not.
    pub(super) fn demand(
        &self,
        permission: Permission,
        kind: &str,
        name: &str,
    ) -> Result<(), Fault> {
        let identity = &self.identity;
        let asked = if kind == "exchange" && name.is_empty() {
            "amq.default"
        } else {
            name
        };
        if identity.is_unrestricted() || identity.may(permission, &self.vhost_name, asked) {
            return Ok(());
        }
        Err(Fault::new(
            ReplyCode::AccessRefused,
            format!(
                "{} access to {kind} '{asked}' in vhost '{}' refused for user '{}'",
                permission.name(),
                self.vhost_name,
                identity.name()
            ),
        ))
    }
}

/// Whether the peer may publish there. Asked once for many messages to one exchange.
#[inline]
pub(super) fn demand_write(
    link: &Link,
    channel: &mut Channel,
    publish: &basic::Publish<'_>,
) -> Result<(), Fault> {
    if link.identity.is_unrestricted() {
        return Ok(());
    }
    let exchange = publish.exchange.as_bytes();
    let known = channel.written.as_ref();
    if known.is_none_or(|written| written.exchange != exchange) {
        let name = String::from_utf8_lossy(exchange);
        link.demand(Permission::Write, "exchange", &name)?;
        channel.written = Some(Written {
            exchange: exchange.to_vec(),
            restricts_keys: link.identity.restricts_keys(&link.vhost_name, &name),
        });
    }
    let known = channel.written.as_ref();
    if known.is_some_and(|written| written.restricts_keys) {
        let exchange = String::from_utf8_lossy(exchange);
        let key = String::from_utf8_lossy(publish.routing_key.as_bytes());
        demand_key(link, (Permission::Write, &exchange), &key)?;
    }
    Ok(())
}

/// Whether the peer may use a routing key.
///
/// # Errors
/// It may not.
pub(super) fn demand_key(
    link: &Link,
    (permission, exchange): (Permission, &str),
    key: &str,
) -> Result<(), Fault> {
    let access = TopicAccess {
        vhost: &link.vhost_name,
        exchange,
        key,
        permission,
    };
    if link.identity.is_unrestricted() || link.identity.may_use_key(access) {
        return Ok(());
    }
    Err(Fault::new(
        ReplyCode::AccessRefused,
        format!(
            "{} access to topic '{key}' in exchange '{exchange}' in vhost '{}' refused for user \
             '{}'",
            permission.name(),
            link.vhost_name,
            link.identity.name()
        ),
    ))
}
