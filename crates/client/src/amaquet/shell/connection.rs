//! The Amaquet connection as the task sees it.

use std::io;

use bytes::BytesMut;
use ring::rand::{SecureRandom, SystemRandom};

use super::driver::Context;
use crate::amaquet::core::{Connection, ConnectionConfig, NewConnection, ProtocolError};
use crate::amaquet::error::ConnectError;
use crate::shell::endpoint::{Endpoint, OpenError};

impl Endpoint for Connection<Context> {
    type Config = ConnectionConfig;
    type OpenError = ConnectError;
    type Fault = ProtocolError;

    fn begin(config: &ConnectionConfig, _now_ms: u64) -> Result<Self, ConnectError> {
        let mut nonce = [0; 32];
        SystemRandom::new()
            .fill(&mut nonce)
            .map_err(|_unspecified| io::Error::other("the system gives no random numbers"))?;
        let config = config.clone();
        Ok(Self::new(NewConnection { config, nonce }))
    }

    fn is_accepted(&mut self) -> Result<bool, ConnectError> {
        self.is_accepted()
    }

    fn output(&self) -> &[u8] {
        self.output()
    }

    fn on_sent(&mut self, bytes: usize, _now_ms: u64) {
        self.on_sent(bytes);
    }

    fn missing_bytes(&self, input: &[u8]) -> usize {
        Self::missing_bytes(input)
    }

    fn receive(&mut self, _now_ms: u64, input: &mut BytesMut) -> Result<(), ProtocolError> {
        self.receive(input)
    }

    fn on_timer(&mut self, _now_ms: u64) -> Result<(), ProtocolError> {
        Ok(())
    }
}

impl OpenError for ConnectError {
    fn timed_out(timeout_ms: u64) -> Self {
        Self::TimedOut { timeout_ms }
    }

    fn foreign(reason: String) -> Self {
        Self::NotAmaquet { reason }
    }

    fn is_retryable(&self) -> bool {
        self.retryable()
    }
}
