//! API keys: who shows which, and what a start knows of them.

use tanda_engine::Millis;

use crate::clients::{Client, Cx, Hello};
use crate::failure::Check;
use crate::history::{Holder, Keys, Need};
use crate::host::ROOT_SECRET;
use crate::invariants::authority;

use super::World;

/// What a client says of itself when it connects; `None` while it has no key.
pub(super) fn hello(keys: &Keys, client: &mut Client, now: Millis) -> Option<Hello> {
    let (holder, secret) = if !keys.are_asked_for {
        (Holder::Anyone, None)
    } else if client.role.is_root() {
        (Holder::Anyone, Some(ROOT_SECRET.to_owned()))
    } else {
        show(keys, client, now)?
    };
    Some(Hello {
        holder,
        secret,
        right: keys.right(holder, now, Need::Connect),
    })
}

/// Mostly a key that is good, sometimes one that was, rarely none.
fn show(keys: &Keys, client: &mut Client, now: Millis) -> Option<(Holder, Option<String>)> {
    let random = &mut client.random;
    match random.below(50) {
        0 => return Some((Holder::Nobody, None)),
        1 => return Some((Holder::Nobody, Some("a key of somewhere else".to_owned()))),
        _ => {}
    }
    let takes_any = random.one_in(15);
    let shown = keys.known.iter().enumerate().filter(|(_, key)| {
        let is_good = key.is_unrevoked() && !key.is_fresh() && !key.is_expired(now);
        takes_any || is_good
    });
    let numbers: Vec<usize> = shown.map(|(number, _)| number).collect();
    let number = *random.pick(&numbers)?;
    let secret = keys.known.get(number)?.secret.clone();
    Some((Holder::Key(number), Some(secret)))
}

impl World {
    /// Connections that show a key whose change was answered are told apart from now on.
    pub(super) fn tell_of_keys(&mut self) {
        for number in core::mem::take(&mut self.history.keys.changed) {
            let holder = Holder::Key(number);
            for client in &mut self.clients {
                let peer = client.peer.as_ref().filter(|peer| peer.holder == holder);
                let conn = peer.and_then(|peer| self.host.conns.get(&peer.conn));
                let Some(sent_bytes) = conn.map(|conn| conn.sent_bytes) else {
                    continue;
                };
                let mut cx = Cx {
                    now: self.now,
                    history: &mut self.history,
                    trace: &mut self.trace,
                };
                client.on_key_changed(sent_bytes, &mut cx);
            }
        }
    }

    /// What the broker has just read from its disk is what was confirmed.
    pub(super) fn compare_keys(&self) -> Check {
        match &self.host.node {
            Some(node) => authority::when_started(&self.history.keys, node.keys()),
            None => Ok(()),
        }
    }
}
