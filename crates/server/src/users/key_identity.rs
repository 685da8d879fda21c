//! What an API key may do at doors that know users: its grants, as permissions.
//!
//! | grant | permission |
//! |---|---|
//! | admin | configure |
//! | produce | write |
//! | consume | read |
//!
//! for queues and exchanges whose names fit, in the virtual host `/`. Through the default exchange
//! the routing key must be a queue's name that a produce grant covers. A superadmin may do
//! everything, everywhere.

use std::sync::Arc;

use tanda_engine::{ApiKey, Permission as Granted};
use tanda_session::login::{Identity, Permission, TopicAccess};

/// The virtual host that keys are for.
const VHOST: &str = "/";
const DEFAULT_EXCHANGE: &str = "amq.default";
/// Answers go to whoever asked, whatever the key is for.
const REPLY_TO: &str = "amq.rabbitmq.reply-to.";

/// An API key as a user.
#[derive(Debug)]
pub(super) struct KeyIdentity {
    key: Arc<ApiKey>,
    name: String,
}

impl KeyIdentity {
    pub(super) fn new(key: &Arc<ApiKey>) -> Self {
        Self {
            name: key.id.to_string(),
            key: Arc::clone(key),
        }
    }

    fn has_any(&self, granted: Granted) -> bool {
        self.key.grants.iter().any(|it| it.permission == granted)
    }
}

const fn granted(permission: Permission) -> Granted {
    match permission {
        Permission::Configure => Granted::Admin,
        Permission::Write => Granted::Produce,
        Permission::Read => Granted::Consume,
    }
}

impl Identity for KeyIdentity {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_unrestricted(&self) -> bool {
        self.key.is_superadmin
    }

    fn may_open(&self, vhost: &str) -> bool {
        self.key.is_superadmin || vhost == VHOST && !self.key.grants.is_empty()
    }

    fn may(&self, permission: Permission, vhost: &str, name: &str) -> bool {
        if self.key.is_superadmin {
            return true;
        }
        if vhost != VHOST {
            return false;
        }
        if name == DEFAULT_EXCHANGE {
            return permission == Permission::Write && self.has_any(Granted::Produce);
        }
        self.key.may(granted(permission), name)
    }

    fn restricts_keys(&self, _vhost: &str, exchange: &str) -> bool {
        !self.key.is_superadmin && (exchange.is_empty() || exchange == DEFAULT_EXCHANGE)
    }

    fn may_use_key(&self, access: TopicAccess<'_>) -> bool {
        if !self.restricts_keys(access.vhost, access.exchange) {
            return true;
        }
        access.key.starts_with(REPLY_TO) || self.key.may(granted(access.permission), access.key)
    }
}
