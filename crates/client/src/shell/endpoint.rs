//! What the shells of the two protocols share: a connection that bytes are moved for, and a driver
//! that is moved along.
//!
//! Owns: the two traits between the task and a protocol. Refuses to know: either protocol.

use std::fmt;
use std::io;

use bytes::BytesMut;

use super::job::Loss;

/// A connection as a state machine: bytes in, bytes out.
pub(crate) trait Endpoint: Sized + Send + 'static {
    /// What it is opened with.
    type Config: Send + Sync + 'static;
    /// Why it was not opened.
    type OpenError: OpenError;
    /// Why it cannot go on.
    type Fault: fmt::Display;

    /// A connection whose first bytes are ready to be sent.
    fn begin(config: &Self::Config, now_ms: u64) -> Result<Self, Self::OpenError>;

    /// Whether the peer has accepted the handshake.
    fn is_accepted(&mut self) -> Result<bool, Self::OpenError>;

    /// The bytes to send.
    fn output(&self) -> &[u8];

    /// So many of them were sent.
    fn on_sent(&mut self, bytes: usize, now_ms: u64);

    /// Bytes to make room for, so that the frame at the front of `input` is read in one piece.
    fn missing_bytes(&self, input: &[u8]) -> usize;

    /// Takes all whole frames out of `input`.
    fn receive(&mut self, now_ms: u64, input: &mut BytesMut) -> Result<(), Self::Fault>;

    /// Time has passed.
    fn on_timer(&mut self, now_ms: u64) -> Result<(), Self::Fault>;
}

/// Why a connection could not be opened.
pub(crate) trait OpenError: fmt::Display + From<io::Error> + Send {
    /// It took longer than this.
    fn timed_out(timeout_ms: u64) -> Self;

    /// The peer speaks something else.
    fn foreign(reason: String) -> Self;

    /// Whether the same settings may succeed later.
    fn is_retryable(&self) -> bool;
}

/// What commands and events mean.
pub(crate) trait Drive: Send + 'static {
    /// The connections it drives.
    type Endpoint: Endpoint;
    /// What handles ask of it.
    type Command: Send + 'static;

    /// Takes a connection whose handshake is done.
    fn attach(&mut self, connection: Self::Endpoint);

    /// The connection, while there is one.
    fn connection(&mut self) -> Option<&mut Self::Endpoint>;

    /// Whether the client is to end.
    fn is_closing(&self) -> bool;

    /// Whether closing has come so far that the socket may be closed.
    fn is_finished(&self) -> bool;

    /// When there is something to do although nothing comes.
    fn next_deadline_ms(&self) -> Option<u64>;

    /// Whether so much waits to be sent that commands had better wait too.
    fn is_congested(&self) -> bool;

    /// A handle asks for something.
    fn on_command(&mut self, command: Self::Command);

    /// Ends the client once what was asked before is answered.
    fn close(&mut self);

    /// Encodes what waits, as far as the connection takes it.
    fn flush(&mut self, now_ms: u64);

    /// Handles all that the connection has to say.
    fn on_events(&mut self, now_ms: u64);

    /// The connection is gone; returns why, in the words that callers see.
    fn on_lost(&mut self, loss: &Loss) -> Loss;

    /// There was no connection for too long.
    fn refuse(&mut self, loss: &Loss);

    /// There will be no connection any more.
    fn give_up(&mut self, loss: &Loss);
}
