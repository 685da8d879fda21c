//! The Fila connection as the task sees it.

use bytes::BytesMut;

use super::endpoint::{Endpoint, OpenError};
use super::job::Group;
use crate::core::{Connection, ConnectionConfig, Event, ProtocolError};
use crate::error::ConnectError;

impl Endpoint for Connection<Group> {
    type Config = ConnectionConfig;
    type OpenError = ConnectError;
    type Fault = ProtocolError;

    fn begin(config: &ConnectionConfig, now_ms: u64) -> Result<Self, ConnectError> {
        Self::new(config, now_ms).map_err(ConnectError::Unencodable)
    }

    fn is_accepted(&mut self) -> Result<bool, ConnectError> {
        match self.next_event() {
            Some(Event::Ready(_)) => Ok(true),
            Some(Event::Refused(rejection)) => Err(ConnectError::Rejected(rejection)),
            Some(_) | None => Ok(false),
        }
    }

    fn output(&self) -> &[u8] {
        self.output()
    }

    fn on_sent(&mut self, bytes: usize, _now_ms: u64) {
        self.on_sent(bytes);
    }

    fn missing_bytes(&self, input: &[u8]) -> usize {
        self.missing_bytes(input)
    }

    fn receive(&mut self, now_ms: u64, input: &mut BytesMut) -> Result<(), ProtocolError> {
        self.receive(now_ms, input)
    }

    fn on_timer(&mut self, now_ms: u64) -> Result<(), ProtocolError> {
        self.on_timer(now_ms)
    }
}

impl OpenError for ConnectError {
    fn timed_out(timeout_ms: u64) -> Self {
        Self::TimedOut { timeout_ms }
    }

    fn foreign(reason: String) -> Self {
        Self::NotFila { reason }
    }

    fn is_retryable(&self) -> bool {
        self.retryable()
    }
}
