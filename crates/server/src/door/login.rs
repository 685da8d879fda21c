//! Who a peer is: checked away from the task of its connection, since that takes long on purpose.

use std::{future::pending, net::SocketAddr, sync::Arc};

use tanda_session::fila::Authentication;
use tanda_session::login::{Identity, Login, LoginError, Proof, Unrestricted};
use tokio::sync::oneshot;

/// The user that exists from the start, for peers on this machine only.
const GUEST: &str = "guest";

/// Finds out who peers are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Authenticator {
    /// Whether a password that everybody knows lets anybody in.
    guest: bool,
}

type Answer = Result<Arc<dyn Identity>, LoginError>;

impl Authenticator {
    /// Nobody comes in as guest where clients of other doors must prove who they are.
    pub(crate) fn new(authentication: Authentication) -> Self {
        Self {
            guest: authentication == Authentication::Off,
        }
    }

    fn check(self, login: &Login, peer: Option<SocketAddr>) -> Answer {
        let Proof::Password { user, password } = &login.proof else {
            return Err(LoginError::Refused);
        };
        if !self.guest || user != GUEST || password.reveal() != GUEST.as_bytes() {
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
        authenticator: Authenticator,
        login: Login,
        peer: Option<SocketAddr>,
    ) {
        let (tell, answer) = oneshot::channel();
        tokio::task::spawn_blocking(move || drop(tell.send(authenticator.check(&login, peer))));
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

#[cfg(test)]
mod tests {
    use tanda_session::login::Password;

    use super::*;

    fn login(user: &str, password: &str) -> Login {
        Login {
            mechanism: "PLAIN",
            proof: Proof::Password {
                user: user.to_owned(),
                password: Password::new(password.into()),
            },
        }
    }

    #[test]
    fn guest_comes_from_this_machine_only_and_only_where_nobody_has_to_prove_anything() {
        let open = Authenticator::new(Authentication::Off);
        let here = "127.0.0.1:9".parse().ok();
        let mapped = "[::ffff:127.0.0.1]:9".parse().ok();
        let there = "10.0.0.1:9".parse().ok();
        let guest = login("guest", "guest");
        for peer in [here, mapped] {
            assert_eq!(open.check(&guest, peer).unwrap().name(), "guest");
        }
        let refusals = [
            (open, guest.clone(), there, LoginError::LoopbackOnly),
            (open, guest.clone(), None, LoginError::LoopbackOnly),
            (open, login("guest", "Guest"), here, LoginError::Refused),
            (open, login("root", "guest"), here, LoginError::Refused),
            (
                Authenticator::new(Authentication::On),
                guest,
                here,
                LoginError::Refused,
            ),
        ];
        for (authenticator, login, peer, error) in refusals {
            assert_eq!(authenticator.check(&login, peer).unwrap_err(), error);
        }
    }
}
