//! `connection.update-secret`: somebody who is logged in shows another secret.

use std::sync::Arc;

use tanda_wire::amqp::{Arguments, ReplyCode, connection};

use super::AmqpSession;
use super::fault::Fault;
use crate::login::{Identity, LoginError};

impl AmqpSession {
    /// The peer asked to be somebody with a new secret.
    pub(super) fn on_new_secret(&mut self, answer: Result<Arc<dyn Identity>, LoginError>) {
        if !core::mem::take(&mut self.link.is_renewing) {
            return;
        }
        match answer {
            Ok(identity) => {
                self.set_identity(self.link.now, identity);
                self.link.outbound.method(0, connection::UpdateSecretOk {});
            }
            Err(_) => {
                let text = "New secret was refused by one of the backends";
                let fault = Fault::new(ReplyCode::NotAllowed, text);
                self.fail(&fault.by(connection::UpdateSecret::ID), true);
            }
        }
    }
}
