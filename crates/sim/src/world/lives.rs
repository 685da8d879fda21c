//! Queues that go by themselves, when nobody is connected any more.

use tanda_engine::{AdminReply, AdminRequest};

use super::World;
use crate::failure::{Check, Violation};
use crate::history::main_of;
use crate::invariants::amqp::{lives, unexpected};

impl World {
    /// Nobody is connected but the administrator: looks which of them are left.
    pub(super) fn look_at_lives(&mut self) -> Check {
        if !self.history.amqp.has_lives {
            return Ok(());
        }
        if self.looks.one_in(3) {
            self.wait_for_expiry()?;
        }
        let found = self.queues_of_amqp()?;
        self.history.amqp.on_found_at_rest(&found)
    }

    /// Whoever drained them is gone, too: nothing is left that is not for ever.
    pub(super) fn end_lives(&mut self) -> Check {
        if !self.history.amqp.has_lives {
            return Ok(());
        }
        let last = self.clients.len().saturating_sub(1);
        let mut conns = self.host.conns.iter();
        let drainer = conns.find(|(_, conn)| conn.client == last);
        if let Some(number) = drainer.map(|(number, _)| *number) {
            self.cut(number)?;
        }
        self.wait_for_expiry()?;
        let found = self.queues_of_amqp()?;
        lives::at_the_end(&self.history.amqp, &found)
    }

    fn wait_for_expiry(&mut self) -> Check {
        let queues = self.history.amqp.queues.values();
        let longest = queues.filter_map(|it| it.draw.expires_ms).max();
        self.calm()?;
        let until = self.now.after_ms(longest.unwrap_or(0) + 1);
        while self.now < until {
            self.wait()?;
            self.calm()?;
        }
        Ok(())
    }

    /// Names of queues that are not Fila's.
    fn queues_of_amqp(&mut self) -> Result<Vec<String>, Violation> {
        let answer = self.ask_at_rest(AdminRequest::ListQueues)?;
        let AdminReply::Queues(all) = answer else {
            return Err(unexpected::of(format!("a list of queues is {answer:?}")));
        };
        let names = all.into_iter().map(|queue| queue.name);
        let of_fila = |name: &String| self.history.queues.contains_key(main_of(name).0);
        Ok(names.filter(|name| !of_fila(name)).collect())
    }
}
