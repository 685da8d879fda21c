//! Makes what a document says.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tanda_engine::{
    AdminReply, AdminRequest, DeclareQueue, NewTopicPermissions, NewVhostPermissions,
    PasswordChange, PermissionError, PutUserError, TopologyError, UserReply, UserRequest, VhostId,
};

use super::{Definitions, ReadUser};
use crate::{
    ask::{AskError, Asker},
    users::Authenticator,
};

/// Refusals that are told of one document.
const REFUSALS_MAX: usize = 20;

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    made: BTreeMap<&'static str, usize>,
    /// Objects that the broker refused, and why.
    pub(crate) refused: Vec<String>,
    /// What is not supported.
    pub(crate) skipped: Vec<String>,
}

impl Loaded {
    /// As it is answered.
    pub(crate) fn json(&self) -> Value {
        json!({
            "imported": self.made,
            "refused": self.refused,
            "skipped": self.skipped,
        })
    }

    fn note(&mut self, list: &'static str, name: &str, result: Result<(), String>) {
        match result {
            Ok(()) => *self.made.entry(list).or_default() += 1,
            Err(_) if self.refused.len() >= REFUSALS_MAX => {}
            Err(why) => self.refused.push(format!("{list} {name:?}: {why}")),
        }
    }
}

/// Makes what a document says; what is there stays. Asks one thing after the other.
///
/// # Errors
/// When the broker does not answer; what was made until then stays.
pub(crate) async fn load(
    definitions: Definitions,
    asker: &Asker,
    authenticator: &Authenticator,
) -> Result<Loaded, AskError> {
    let mut loaded = Loaded {
        skipped: definitions.skipped,
        ..Loaded::default()
    };
    for name in definitions.vhosts {
        let request = AdminRequest::CreateVhost { name: name.clone() };
        let result = topology(asker.ask(request).await?);
        loaded.note("vhosts", &name, result);
    }
    for user in definitions.users {
        let name = user.new.name.clone();
        let result = put_user(user, asker, authenticator).await?;
        loaded.note("users", &name, result);
    }
    let all = (definitions.permissions, definitions.topic_permissions);
    permit(all, asker, &mut loaded).await?;
    let vhosts = vhosts(asker).await?;
    let find = |name: &str| vhosts.get(name).copied();
    for (vhost, mut spec) in definitions.exchanges {
        let name = spec.name.clone();
        // Those that are always there are in no export, but may be in other documents.
        if name.is_empty() || name.starts_with("amq.") {
            continue;
        }
        let result = match find(&vhost) {
            None => Err(no_vhost(&vhost)),
            Some(id) => {
                spec.vhost = id;
                let request = AdminRequest::DeclareExchange(Box::new(spec));
                topology(asker.ask(request).await?)
            }
        };
        loaded.note("exchanges", &name, result);
    }
    for (vhost, declare) in definitions.queues {
        let name = declare.name.clone();
        let result = match find(&vhost) {
            None => Err(no_vhost(&vhost)),
            Some(vhost) => {
                let declare = Box::new(DeclareQueue { vhost, ..declare });
                topology(asker.ask(AdminRequest::DeclareQueue(declare)).await?)
            }
        };
        loaded.note("queues", &name, result);
    }
    for (vhost, mut spec) in definitions.bindings {
        let name = format!("{} to {:?} by {}", spec.source, spec.destination, spec.key);
        // The default exchange is bound to every queue.
        if spec.source.is_empty() {
            continue;
        }
        let result = match find(&vhost) {
            None => Err(no_vhost(&vhost)),
            Some(id) => {
                spec.vhost = id;
                topology(asker.ask(AdminRequest::Bind(Box::new(spec))).await?)
            }
        };
        loaded.note("bindings", &name, result);
    }
    Ok(loaded)
}

async fn permit(
    (permissions, topics): (Vec<NewVhostPermissions>, Vec<NewTopicPermissions>),
    asker: &Asker,
    loaded: &mut Loaded,
) -> Result<(), AskError> {
    for it in permissions {
        let place = format!("{} in {}", it.user, it.vhost);
        let request = UserRequest::SetPermissions(Box::new(it));
        let result = permission(asker.ask(AdminRequest::User(request)).await?);
        loaded.note("permissions", &place, result);
    }
    for it in topics {
        let place = format!("{} in {} for {}", it.user, it.vhost, it.exchange);
        let request = UserRequest::SetTopicPermissions(Box::new(it));
        let result = permission(asker.ask(AdminRequest::User(request)).await?);
        loaded.note("topic_permissions", &place, result);
    }
    Ok(())
}

fn no_vhost(name: &str) -> String {
    format!("there is no virtual host {name:?}")
}

async fn vhosts(asker: &Asker) -> Result<BTreeMap<String, VhostId>, AskError> {
    let reply = asker.ask(AdminRequest::ListVhosts).await?;
    let AdminReply::Vhosts(vhosts) = reply else {
        return Ok(BTreeMap::new());
    };
    Ok(vhosts.into_iter().map(|it| (it.name, it.id)).collect())
}

/// A password in clear that is the user's already stays, so that its connections do, too.
async fn put_user(
    user: ReadUser,
    asker: &Asker,
    authenticator: &Authenticator,
) -> Result<Result<(), String>, AskError> {
    let ReadUser { mut new, password } = user;
    let newest = authenticator.newest();
    let before = newest.users.find(&new.name);
    if let Some(password) = password {
        if !authenticator.is_right(&new.name, password.as_bytes()).await {
            let hash = authenticator.hash(password.into_bytes()).await;
            let Some(hash) = hash else {
                return Err(AskError::Busy);
            };
            new.password = PasswordChange::Set(hash);
        }
    } else if let (PasswordChange::Set(hash), Some(before)) = (&new.password, before)
        && Authenticator::was_made_of(before, hash)
    {
        new.password = PasswordChange::Keep;
    }
    let reply = asker
        .ask(AdminRequest::User(UserRequest::Put(Box::new(new))))
        .await?;
    let AdminReply::User(UserReply::Put(result)) = reply else {
        return Ok(Err("the broker answered another question".to_owned()));
    };
    Ok(result.map(drop).map_err(|error| match error {
        PutUserError::Invalid { problem } => problem,
        PutUserError::TooMany { max } => format!("there are {max} users, as many as may be"),
        PutUserError::Storage => "the disk is full".to_owned(),
    }))
}

fn permission(reply: AdminReply) -> Result<(), String> {
    let AdminReply::User(UserReply::PermissionsChanged(result)) = reply else {
        return Err("the broker answered another question".to_owned());
    };
    result.map_err(|error| match error {
        PermissionError::UserNotFound => "there is no such user".to_owned(),
        PermissionError::VhostNotFound => "there is no such virtual host".to_owned(),
        PermissionError::Invalid { problem } | PermissionError::TooMany { problem } => problem,
        PermissionError::Storage => "the disk is full".to_owned(),
    })
}

fn topology(reply: AdminReply) -> Result<(), String> {
    let text = |error: TopologyError| error.text;
    if let AdminReply::VhostChanged(result)
    | AdminReply::ExchangeDeclared(result)
    | AdminReply::Bound(result) = reply
    {
        return result.map_err(text);
    }
    let AdminReply::QueueDeclared(result) = reply else {
        return Err("the broker answered another question".to_owned());
    };
    result.map(drop).map_err(text)
}
