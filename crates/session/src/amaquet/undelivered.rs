//! Answers that took something and never reached their client: it goes back.

use tanda_engine::{KeyAnswer, ReplyTo, Request, VhostId};

use super::link::Link;

/// What an answer took.
#[derive(Debug)]
pub(super) enum Lot {
    /// An item of a list, or a lock that was waited for.
    Keys {
        token: u32,
        vhost: VhostId,
        answer: Box<KeyAnswer>,
    },
}

impl Link {
    /// Gives something back.
    pub(super) fn give_back(&mut self, lot: Lot) {
        match lot {
            Lot::Keys {
                token,
                vhost,
                answer,
            } => {
                let reply = ReplyTo {
                    conn: self.conn,
                    token,
                };
                self.requests.push(Request::KeysUndelivered {
                    reply,
                    vhost,
                    answer,
                });
            }
        }
    }
}
