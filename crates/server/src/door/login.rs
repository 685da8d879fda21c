//! Who a peer is: checked away from the task of its connection, since that takes long on purpose.

use std::{future::pending, net::SocketAddr, sync::Arc};

use tanda_session::login::{Identity, Login, LoginError, Proof, Unrestricted};
use tokio::sync::oneshot;

/// The user that exists from the start, for peers on this machine only.
const GUEST: &str = "guest";

/// Finds out who peers are.
#[derive(Debug, Default)]
pub(crate) struct Authenticator {}

type Answer = Result<Arc<dyn Identity>, LoginError>;

impl Authenticator {
    fn check(login: &Login, peer: Option<SocketAddr>) -> Answer {
        let Proof::Password { user, password } = &login.proof else {
            return Err(LoginError::Refused);
        };
        if user != GUEST || password.reveal() != GUEST.as_bytes() {
            return Err(LoginError::Refused);
        }
        if !peer.is_some_and(|peer| peer.ip().to_canonical().is_loopback()) {
            return Err(LoginError::LoopbackOnly);
        }
        Ok(Arc::new(Unrestricted::new(GUEST)))
    }
}

/// The check of one connection's peer, while it lasts.
#[derive(Debug, Default)]
pub(super) struct LoginCheck {
    answer: Option<oneshot::Receiver<Answer>>,
}

impl LoginCheck {
    /// Begins to find out who a peer is.
    pub(super) fn begin(
        &mut self,
        _authenticator: &Arc<Authenticator>,
        login: Login,
        peer: Option<SocketAddr>,
    ) {
        let (tell, answer) = oneshot::channel();
        tokio::task::spawn_blocking(move || drop(tell.send(Authenticator::check(&login, peer))));
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
