//! What a user may do: its permissions, compiled.

use std::{collections::BTreeMap, sync::Arc};

use tanda_engine::User;
use tanda_session::login::{Identity, Permission, TopicAccess};

use super::pattern::{Pattern, escape};

/// A user with its permissions; all its connections share it.
///
/// Decisions are not remembered: sessions ask once per channel and exchange, and an expression
/// takes some tens of nanoseconds.
#[derive(Debug)]
pub(super) struct UserIdentity {
    user: Arc<User>,
    vhosts: BTreeMap<Arc<str>, Allowed>,
    may_impersonate: bool,
}

/// In one virtual host.
#[derive(Debug)]
struct Allowed {
    configure: Pattern,
    write: Pattern,
    read: Pattern,
    /// By exchange: to publish and to bind with.
    topics: BTreeMap<Arc<str>, (Pattern, Pattern)>,
}

impl UserIdentity {
    pub(super) fn new(user: &Arc<User>) -> Self {
        let vhosts = user.permissions.iter().map(|(vhost, it)| {
            let topics = user.topics.iter().filter(|((of, _), _)| of == vhost);
            let topics = topics.map(|((_, exchange), it)| {
                let compile = |text| Pattern::checked(&filled_in(text, &user.name, vhost));
                (
                    Arc::clone(exchange),
                    (compile(&it.write), compile(&it.read)),
                )
            });
            let allowed = Allowed {
                configure: Pattern::checked(&it.configure),
                write: Pattern::checked(&it.write),
                read: Pattern::checked(&it.read),
                topics: topics.collect(),
            };
            (Arc::clone(vhost), allowed)
        });
        Self {
            vhosts: vhosts.collect(),
            may_impersonate: user.has_tag("impersonator"),
            user: Arc::clone(user),
        }
    }

    /// As of which version.
    pub(super) const fn user(&self) -> &Arc<User> {
        &self.user
    }

    fn topic(&self, vhost: &str, exchange: &str) -> Option<&(Pattern, Pattern)> {
        self.vhosts.get(vhost)?.topics.get(exchange)
    }
}

/// Routing keys may be restricted by the user's own name and the virtual host's.
fn filled_in(pattern: &str, user: &str, vhost: &str) -> String {
    pattern
        .replace("{username}", &escape(user))
        .replace("{vhost}", &escape(vhost))
}

impl Identity for UserIdentity {
    fn name(&self) -> &str {
        &self.user.name
    }

    fn may_impersonate(&self) -> bool {
        self.may_impersonate
    }

    fn may_open(&self, vhost: &str) -> bool {
        self.vhosts.contains_key(vhost)
    }

    fn may(&self, permission: Permission, vhost: &str, name: &str) -> bool {
        let Some(allowed) = self.vhosts.get(vhost) else {
            return false;
        };
        let pattern = match permission {
            Permission::Configure => &allowed.configure,
            Permission::Write => &allowed.write,
            Permission::Read => &allowed.read,
        };
        pattern.matches(name)
    }

    fn restricts_keys(&self, vhost: &str, exchange: &str) -> bool {
        self.topic(vhost, exchange).is_some()
    }

    fn may_use_key(&self, access: TopicAccess<'_>) -> bool {
        let Some((write, read)) = self.topic(access.vhost, access.exchange) else {
            return true;
        };
        match access.permission {
            Permission::Write => write.matches(access.key),
            Permission::Read => read.matches(access.key),
            Permission::Configure => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use tanda_engine::{TopicPermissions, UserId, VhostPermissions};

    use super::*;

    fn anna() -> UserIdentity {
        let shop = VhostPermissions {
            configure: "".into(),
            write: "^(amq\\.default|orders)$".into(),
            read: ".*".into(),
        };
        let topic = TopicPermissions {
            write: "^{username}\\.{vhost}\\.".into(),
            read: "".into(),
        };
        UserIdentity::new(&Arc::new(User {
            id: UserId(1),
            name: "a.a".into(),
            password: None,
            password_version: 1,
            tags: ["impersonator".into()].into(),
            permissions: [("shop".into(), shop)].into(),
            topics: [(("shop".into(), "t".into()), topic)].into(),
        }))
    }

    #[test]
    fn permissions_are_of_one_virtual_host() {
        use Permission::{Configure, Read, Write};
        let anna = anna();
        assert!(anna.may_open("shop") && !anna.may_open("/"));
        assert!(!anna.may(Read, "/", "orders"));
        assert!(anna.may(Read, "shop", "anything"));
        assert!(anna.may(Write, "shop", "orders") && !anna.may(Write, "shop", "orders2"));
        assert!(anna.may(Write, "shop", "amq.default"));
        assert!(!anna.may(Configure, "shop", "orders"));
        assert!(anna.may_impersonate() && !anna.is_unrestricted());
    }

    #[test]
    fn routing_keys_are_restricted_where_it_says_so() {
        let anna = anna();
        let access = |permission, exchange, key| {
            anna.may_use_key(TopicAccess {
                vhost: "shop",
                exchange,
                key,
                permission,
            })
        };
        assert!(anna.restricts_keys("shop", "t"));
        assert!(!anna.restricts_keys("shop", "u") && !anna.restricts_keys("/", "t"));
        assert!(access(Permission::Write, "t", "a.a.shop.x"));
        // The name stands for itself, whatever is in it.
        assert!(!access(Permission::Write, "t", "aXa.shop.x"));
        assert!(!access(Permission::Read, "t", "a.a.shop.x"));
        assert!(access(Permission::Write, "u", "x"));
    }
}
