//! Whether a peer may stay: users, keys and virtual hosts change while it is connected.

use std::sync::Arc;

use tanda_engine::Millis;
use tanda_session::Session;

use super::Connection;
use crate::{
    door::protocol::Protocol,
    users::{Admitted, Renewal},
};

impl<P: Protocol> Connection<P> {
    /// Looks at everything that concerns all connections.
    pub(super) fn heed_news(&mut self, now: Millis) {
        self.heed_principals(now);
        if self.vhosts_gone.has_changed().unwrap_or(false) {
            self.gone = Arc::clone(&self.vhosts_gone.borrow_and_update());
            self.heed_vhosts(now);
        }
        if self.alarms.has_changed().unwrap_or(false) {
            let reason = self.alarms.borrow_and_update().reason();
            self.session.on_alarm(now, reason);
        }
        // An error means that the server is gone.
        if !self.stopping && self.stop.has_changed().unwrap_or(true) {
            self.stopping = *self.stop.borrow_and_update();
            if self.stopping {
                self.session.begin_shutdown(now);
            }
        }
    }

    /// Before anything that a change of keys may forbid: what was waited for may not be the first
    /// to have happened.
    pub(super) fn heed_principals(&mut self, now: Millis) {
        if self.principals.has_changed().unwrap_or(false) {
            self.on_principals(now);
        }
    }

    pub(super) fn on_principals(&mut self, now: Millis) {
        let newest = self.principals.borrow_and_update().clone();
        self.session.on_keys(now, &newest.keys);
        let Some(admitted) = &self.admitted else {
            return;
        };
        match admitted.renew(&self.door.authenticator, &newest) {
            Renewal::Same => {}
            Renewal::Changed(admitted) => {
                let identity = Arc::clone(&admitted.identity);
                self.admitted = Some(admitted);
                self.session.on_identity(now, identity);
            }
            Renewal::Gone(why) => self.dismiss(now, &why),
        }
    }

    /// Who logged in is gone.
    pub(super) fn dismiss(&mut self, now: Millis, why: &str) {
        self.admitted = None;
        self.session.on_dismissed(now, why);
    }

    /// When who logged in is no good any more.
    pub(super) fn admitted_until(&self) -> Option<Millis> {
        self.admitted.as_ref().and_then(Admitted::expires_at)
    }

    /// Ends a connection whose virtual host was deleted.
    pub(super) fn heed_vhosts(&mut self, now: Millis) {
        if self.gone.is_empty() {
            return;
        }
        if let Some((id, name)) = self.session.vhost()
            && self.gone.contains(&id)
        {
            let why = format!("vhost '{name}' is deleted");
            self.dismiss(now, &why);
        }
    }
}
