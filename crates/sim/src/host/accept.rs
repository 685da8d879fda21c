//! Connections that are made, and who their peers are.

use std::sync::Arc;

use tanda_engine::{ConnId, Millis};
use tanda_session::Session;
use tanda_session::amaquet::AmaquetSession;
use tanda_session::amqp::AmqpSession;
use tanda_session::fila::FilaSession;
use tanda_session::firemq::FireSession;
use tanda_session::login::Unrestricted;

use super::{Conn, Host};
use crate::invariants::bounded_memory::Bounds;

/// What is published beyond the bound in one go, at most: the messages of one read.
const RETURNED_BYTES: u64 = 300_000;

impl Host {
    /// Accepts a connection at Fila's door; `None` while the process is down.
    pub(crate) fn accept(&mut self, client: usize, now: Millis) -> Option<u64> {
        let config = Arc::clone(&self.session_config);
        let bounds = Bounds {
            outbound_bytes: config.outbound_bytes_max,
            reply_bytes: config.reply_bytes_max,
            requests: config.requests_in_flight_max as u64,
        };
        self.accept_with(client, now, |conn| {
            (Box::new(FilaSession::new(conn, config, now)), bounds)
        })
    }

    /// Accepts a connection at AMQP's door; `None` while the process is down.
    pub(crate) fn accept_amqp(&mut self, client: usize, now: Millis) -> Option<u64> {
        let config = Arc::clone(&self.amqp_config);
        let bounds = Bounds {
            outbound_bytes: config.outbound_bytes_max,
            // Whole messages come back to who published them.
            reply_bytes: config.reply_bytes_max
                + config.publish_bytes_in_flight_max as u64
                + RETURNED_BYTES,
            requests: config.requests_in_flight_max as u64,
        };
        self.accept_with(client, now, |conn| {
            (Box::new(AmqpSession::new(conn, config, None, now)), bounds)
        })
    }

    /// Accepts a connection at FireMQ's door; `None` while the process is down.
    pub(crate) fn accept_fire(&mut self, client: usize, now: Millis) -> Option<u64> {
        let config = Arc::clone(&self.fire_config);
        let bounds = Bounds {
            outbound_bytes: config.outbound_bytes_max,
            // Whole messages come back to who published them.
            reply_bytes: config.reply_bytes_max
                + config.publish_bytes_in_flight_max as u64
                + RETURNED_BYTES,
            requests: config.requests_in_flight_max as u64,
        };
        let number = self.accept_with(client, now, |conn| {
            let session = FireSession::new(conn, config, true, None, now);
            (Box::new(session), bounds)
        })?;
        if let Some(conn) = self.conns.get_mut(&number) {
            conn.hears_alarms = true;
        }
        self.heed_alarm(number, now);
        Some(number)
    }

    /// Accepts a connection at Amaquet's door; `None` while the process is down.
    pub(crate) fn accept_amaquet(&mut self, client: usize, now: Millis) -> Option<u64> {
        let config = Arc::clone(&self.amaquet_config);
        let bounds = Bounds {
            outbound_bytes: config.limits.outbound_bytes_max,
            reply_bytes: config.limits.reply_bytes_max,
            requests: config.limits.active_per_connection as u64,
        };
        let number = self.accept_with(client, now, |conn| {
            (Box::new(AmaquetSession::new(conn, config, now)), bounds)
        })?;
        if let Some(conn) = self.conns.get_mut(&number) {
            conn.has_pings = false;
        }
        Some(number)
    }

    fn accept_with(
        &mut self,
        client: usize,
        now: Millis,
        session: impl FnOnce(ConnId) -> (Box<dyn Session>, Bounds),
    ) -> Option<u64> {
        self.node.as_ref()?;
        self.next_conn += 1;
        let session = session(ConnId(self.next_conn));
        let conn = Conn::new((client, self.window_bytes), session, now);
        self.conns.insert(self.next_conn, conn);
        self.heed_keys(self.next_conn, now);
        Some(self.next_conn)
    }

    /// Whoever asks to be let in is.
    pub(super) fn let_in(&mut self, number: u64) {
        let Some(conn) = self.conns.get_mut(&number) else {
            return;
        };
        if conn.session.take_login().is_some() {
            let who = Arc::new(Unrestricted::new("guest"));
            conn.session.on_login(conn.read_at, Ok(who));
        }
    }
}
