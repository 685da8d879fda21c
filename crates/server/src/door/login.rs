//! Who a peer is: checked away from the task of its connection, since that takes long on purpose.

use std::{future::pending, net::SocketAddr, sync::Arc};

use tanda_session::login::{Login, LoginError};
use tokio::sync::oneshot;

use crate::users::{Admitted, Authenticator};

type Answer = Result<Admitted, LoginError>;

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

    /// Whether an answer is still to come.
    pub(super) const fn is_open(&self) -> bool {
        self.answer.is_some()
    }

    /// Waits for the answer. May be dropped and called again.
    pub(super) async fn answer(&mut self) -> Answer {
        let Some(answer) = &mut self.answer else {
            return pending().await;
        };
        let answer = answer.await.unwrap_or(Err(LoginError::Overloaded));
        self.answer = None;
        answer
    }
}
