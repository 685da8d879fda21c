//! What a connection waits for.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tanda_session::Session;
use tokio::time::Sleep;

use super::Connection;
use crate::door::{login, protocol::Protocol};

/// What woke the task; mostly one of these, together more.
#[derive(Debug, Default)]
pub(super) struct Woken {
    /// The socket can be read or, if that is waited for, written.
    pub(super) socket: bool,
    /// Events came, or something has changed that concerns all.
    pub(super) mail: bool,
    /// It is known who the peer is.
    pub(super) login: Option<login::Answer>,
    /// It is time for something.
    pub(super) timer: bool,
}

impl<P: Protocol> Connection<P> {
    /// Waits for anything to do.
    pub(super) async fn wait(&mut self, mut timer: Pin<&mut Sleep>) -> io::Result<Woken> {
        let reads = self.session.wants_read() && !self.ended;
        let writes = !self.is_written();
        poll_fn(|cx| self.poll_woken(cx, (reads, writes), timer.as_mut())).await
    }

    /// Looks at everything: what is not ready wakes the task later.
    fn poll_woken(
        &mut self,
        cx: &mut Context<'_>,
        (reads, writes): (bool, bool),
        timer: Pin<&mut Sleep>,
    ) -> Poll<io::Result<Woken>> {
        let mut woken = Woken {
            mail: self.mailbox.poll_arrived(cx).is_ready(),
            ..Woken::default()
        };
        if reads && let Poll::Ready(ready) = self.stream.poll_readable(cx) {
            ready?;
            woken.socket = true;
        }
        if writes && let Poll::Ready(ready) = self.stream.poll_writable(cx) {
            ready?;
            woken.socket = true;
        }
        if let Poll::Ready(answer) = self.login.poll_answer(cx) {
            woken.login = Some(answer);
        }
        woken.timer = timer.poll(cx).is_ready();
        let any = woken.mail || woken.socket || woken.login.is_some() || woken.timer;
        if any {
            Poll::Ready(Ok(woken))
        } else {
            Poll::Pending
        }
    }
}
