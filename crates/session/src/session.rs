//! What every door's session offers the task that drives a connection.
//!
//! The driver owns socket, buffers and clock and does this, in any order:
//! - bytes came, or an event was taken while `input` is not empty: [`Session::on_bytes`]; frames
//!   beyond the bounds stay in `input` until answers make room;
//! - after every call: pull [`Session::next_request`] until it is empty, answer
//!   [`Session::take_login`], write what [`Session::output`] holds, and report it with
//!   [`Session::on_written`];
//! - read the socket only while [`Session::wants_read`];
//! - call [`Session::on_timer`] at [`Session::next_deadline`];
//! - once [`Session::is_closing`] and the output is written: shut the sending side, read to the
//!   end for a moment (unread bytes would turn the close into a reset that swallows the last
//!   answer), close, [`Session::close`].

use std::sync::Arc;

use bytes::BytesMut;
use tanda_engine::{Event, KeyTable, Millis, Request, VhostId};

use crate::audit::AuditEvent;
use crate::login::{Identity, Login, LoginError};

/// One connection's state: without I/O, clock and threads. See the module for who calls what.
pub trait Session {
    /// Takes whole frames off the front of `input` while the bounds allow it, and leaves the rest.
    /// The driver only ever appends to `input` in between.
    fn on_bytes(&mut self, now: Millis, input: &mut BytesMut);

    /// The next request for the engine. Pull until `None` after every other call. The first is
    /// `Connect`, the last `Disconnect` (after [`Session::close`]); a connection that never got so
    /// far has neither.
    #[must_use]
    fn next_request(&mut self) -> Option<Request>;

    /// The engine's channel had no room for this request. Refusals of one pull are reported in the
    /// order of the pull.
    fn on_refused(&mut self, request: Request);

    /// Takes one event of the engine and encodes what it means for the peer.
    fn on_event(&mut self, now: Millis, event: Event);

    /// Bytes for the peer. The driver takes what it writes off the front, then calls
    /// [`Session::on_written`]; ask again after that, there may be more.
    fn output(&mut self) -> &mut BytesMut;

    /// The socket took this many bytes of the output.
    fn on_written(&mut self, bytes: usize);

    /// Does what is due at `now`.
    fn on_timer(&mut self, now: Millis);

    /// When [`Session::on_timer`] has something to do. May change with every call.
    #[must_use]
    fn next_deadline(&self) -> Option<Millis>;

    /// Whether the socket should be read. A closing session reads on, to throw away.
    #[must_use]
    fn wants_read(&self) -> bool;

    /// Whether bytes that were read may be offered to [`Session::on_bytes`] again although no more
    /// came. Differs from [`Session::wants_read`] only for a session that reads ahead of what it
    /// may take, to notice that the peer leaves.
    #[must_use]
    fn wants_input(&self) -> bool {
        self.wants_read()
    }

    /// Length of the frame that begins at the front of `input`, when that is known and allowed.
    #[must_use]
    fn announced_bytes(&self, input: &[u8]) -> Option<usize>;

    /// Whether all is said: write the output, then close the socket.
    #[must_use]
    fn is_closing(&self) -> bool;

    /// Bytes held for the peer: parts of unfinished messages, and what is not written yet.
    #[must_use]
    fn held_bytes(&self) -> usize;

    /// The server wants to stop: tells the peer, takes no more requests, finishes what is under
    /// way. [`Session::is_closing`] says when that is done.
    fn begin_shutdown(&mut self, now: Millis);

    /// The connection must give up what it holds: tells the peer, takes no more requests, finishes
    /// what is under way.
    fn on_overload(&mut self, now: Millis);

    /// The peer sends no more, but may still read.
    fn on_end(&mut self, now: Millis);

    /// The socket is gone. What was received before still goes to the engine.
    fn close(&mut self);

    /// Takes the newest table of API keys. Sessions that know no keys ignore it.
    fn on_keys(&mut self, _now: Millis, _keys: &Arc<KeyTable>) {}

    /// What is to be written down of keys and of who was turned away, oldest first.
    fn take_audit(&mut self) -> Vec<AuditEvent> {
        Vec::new()
    }

    /// Somebody asks to be let in: find out who it is, away from this task, and say so with
    /// [`Session::on_login`]. At most one question is open.
    #[must_use]
    fn take_login(&mut self) -> Option<Login> {
        None
    }

    /// The answer to [`Session::take_login`].
    fn on_login(&mut self, _now: Millis, _answer: Result<Arc<dyn Identity>, LoginError>) {}

    /// Permissions have changed: this is what the peer may do from now on. Not called before
    /// [`Session::on_login`].
    fn on_identity(&mut self, _now: Millis, _identity: Arc<dyn Identity>) {}

    /// Who logged in is gone, or has to log in again: tells the peer why, takes no more requests,
    /// finishes what is under way.
    fn on_dismissed(&mut self, now: Millis, _why: &str) {
        self.begin_shutdown(now);
    }

    /// The virtual host that the peer works in and its name, once it is open.
    fn vhost(&self) -> Option<(VhostId, &str)> {
        None
    }

    /// Something ran short (memory, disk) and publishers have to wait, or, with `None`, nothing is
    /// short any more. The reason is said to the peer: plain words, "memory", "disk".
    fn on_alarm(&mut self, _now: Millis, _reason: Option<&str>) {}

    /// Panics when the state contradicts itself. For tests and the simulator.
    fn assert_invariants(&self) {}
}

/// The methods of [`Session`] that every session has of its own, under the same names.
macro_rules! own_methods {
    () => {
        fn on_bytes(&mut self, now: ::tanda_engine::Millis, input: &mut ::bytes::BytesMut) {
            Self::on_bytes(self, now, input);
        }

        fn next_request(&mut self) -> Option<::tanda_engine::Request> {
            Self::next_request(self)
        }

        fn on_refused(&mut self, request: ::tanda_engine::Request) {
            Self::on_refused(self, request);
        }

        fn on_event(&mut self, now: ::tanda_engine::Millis, event: ::tanda_engine::Event) {
            Self::on_event(self, now, event);
        }

        fn output(&mut self) -> &mut ::bytes::BytesMut {
            Self::output(self)
        }

        fn on_written(&mut self, bytes: usize) {
            Self::on_written(self, bytes);
        }

        fn on_timer(&mut self, now: ::tanda_engine::Millis) {
            Self::on_timer(self, now);
        }

        fn next_deadline(&self) -> Option<::tanda_engine::Millis> {
            Self::next_deadline(self)
        }

        fn wants_read(&self) -> bool {
            Self::wants_read(self)
        }

        fn is_closing(&self) -> bool {
            Self::is_closing(self)
        }

        fn held_bytes(&self) -> usize {
            Self::held_bytes(self)
        }

        fn begin_shutdown(&mut self, now: ::tanda_engine::Millis) {
            Self::begin_shutdown(self, now);
        }

        fn on_end(&mut self, now: ::tanda_engine::Millis) {
            Self::on_end(self, now);
        }

        fn close(&mut self) {
            Self::close(self);
        }

        fn assert_invariants(&self) {
            Self::assert_invariants(self);
        }
    };
}
pub(crate) use own_methods;
