//! The user that exists from the start.

use tanda_engine::{
    AdminReply, AdminRequest, NewUser, PasswordChange, PasswordHash, UserReply, UserRequest,
};
use tanda_node::Node;
use tanda_wal::Disk;

use super::password;
use crate::keys::ask;

/// Its name, and the password that it has.
pub(crate) const GUEST: &str = "guest";

/// Makes it where it was never made. Writes the log: call it before the node's threads are
/// started. False when it could not be written.
pub(crate) fn seed<D: Disk>(node: &mut Node<D>) -> bool {
    if node.users().is_seeded() {
        return true;
    }
    let Some(hash) = password::hash(GUEST.as_bytes()) else {
        return false;
    };
    let guest = NewUser {
        name: GUEST.to_owned(),
        password: PasswordChange::Set(PasswordHash::new(&hash)),
        tags: Some(vec!["administrator".to_owned()]),
    };
    let reply = ask(node, AdminRequest::User(UserRequest::Seed(Box::new(guest))));
    matches!(reply, Some(AdminReply::User(UserReply::Seeded(Ok(_)))))
}
