//! Who a peer is: checked away from the task of its connection, since that takes long on purpose.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tanda_session::login::{Login, LoginError};
use tokio::sync::oneshot;

use crate::users::{Admitted, Authenticator};

/// Who the peer is, or why that is not known.
pub(super) type Answer = Result<Admitted, LoginError>;

/// The check of one connection's peer, while it lasts.
#[derive(Debug, Default)]
pub(super) struct LoginCheck {
    answer: Option<oneshot::Receiver<Answer>>,
}

impl LoginCheck {
    /// Begins to find out who a peer is.
    pub(super) fn begin(
        &mut self,
        authenticator: Arc<Authenticator>,
        login: Login,
        peer: Option<SocketAddr>,
    ) {
        let (mut tell, answer) = oneshot::channel();
        tokio::spawn(async move {
            let admitted = tokio::select! {
                admitted = authenticator.admit(&login, peer) => admitted,
                // The connection is gone: whoever still waits goes on.
                () = tell.closed() => return,
            };
            drop(tell.send(admitted));
        });
        self.answer = Some(answer);
    }

    /// The answer, once it is there.
    pub(super) fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        let Some(answer) = &mut self.answer else {
            return Poll::Pending;
        };
        let answer = ready!(Pin::new(answer).poll(cx));
        self.answer = None;
        Poll::Ready(answer.unwrap_or(Err(LoginError::Overloaded)))
    }
}
