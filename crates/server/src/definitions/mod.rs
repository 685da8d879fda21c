//! Definitions: virtual hosts, users, permissions, exchanges, queues and bindings in one JSON
//! document, as RabbitMQ exports and imports them.
//!
//! Owns the reading of such a document, what of it is not supported, and the order in which its
//! objects are made. What is there already stays, so the same document can be loaded again and
//! again. A document with a mistake changes nothing; what the broker refuses is named, and the rest
//! is made.

mod arguments;
mod configured;
mod export;
mod file;
mod load;
mod read;

pub(crate) use arguments::decode as arguments_json;
pub(crate) use configured::make_users;
pub(crate) use export::export;
pub(crate) use file::load_file;
pub(crate) use load::load;
pub(crate) use read::read;

use std::fmt;

use tanda_engine::{
    BindingSpec, DeclareQueue, ExchangeSpec, NewTopicPermissions, NewUser, NewVhostPermissions,
};

/// What a document says, in the order in which it is made.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    vhosts: Vec<String>,
    users: Vec<ReadUser>,
    permissions: Vec<NewVhostPermissions>,
    topic_permissions: Vec<NewTopicPermissions>,
    /// Each with the name of its virtual host, whose number is not known yet.
    exchanges: Vec<(String, ExchangeSpec)>,
    queues: Vec<(String, DeclareQueue)>,
    bindings: Vec<(String, BindingSpec)>,
    /// What is not supported, and so not made.
    pub(crate) skipped: Vec<String>,
}

/// A user of a document.
#[derive(Debug)]
struct ReadUser {
    new: NewUser,
    /// A password that is still to be hashed.
    password: Option<String>,
}

/// All that is wrong with a document.
#[derive(Debug)]
pub(crate) struct Mistakes(pub(crate) Vec<String>);

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}
