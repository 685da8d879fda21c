//! Bytes on their way, in arbitrary pieces, and connections that break.

use crate::clients::Cx;
use crate::failure::{Check, Violation};
use crate::host::Conn;

use super::World;

impl World {
    /// Puts what a client has said on its way.
    pub(super) fn collect(&mut self, index: usize) -> usize {
        let peer = self
            .clients
            .get_mut(index)
            .and_then(|client| client.peer.as_mut());
        let Some(peer) = peer else { return 0 };
        let count = peer.out.len();
        if let Some(conn) = self.host.conns.get_mut(&peer.conn) {
            conn.to_broker.extend_from_slice(&peer.out);
        }
        peer.out.clear();
        count
    }

    /// One of the connections that have something to do.
    fn draw_conn(&mut self, has_work: impl Fn(&mut Conn) -> bool) -> Option<u64> {
        let conns = self.host.conns.iter_mut();
        let busy = conns.filter_map(|(number, conn)| has_work(conn).then_some(*number));
        let busy: Vec<u64> = busy.collect();
        self.network.pick(&busy).copied()
    }

    /// A piece of any size, often all there is.
    fn draw_size(&mut self) -> usize {
        if self.network.one_in(2) {
            usize::MAX
        } else {
            self.network.length(5_000)
        }
    }

    pub(super) fn arrive_at_broker(&mut self) -> Result<usize, Violation> {
        let busy = |conn: &mut Conn| !conn.to_broker.is_empty() || conn.is_cut;
        let Some(number) = self.draw_conn(busy) else {
            return Ok(0);
        };
        let size = self.draw_size();
        let count = self.host.receive(number, size, self.now);
        self.trace
            .event(self.now, "received", number, &count.to_be_bytes());
        self.look_at(number)?;
        Ok(1)
    }

    /// Closes a connection that has ended on either side.
    pub(super) fn look_at(&mut self, number: u64) -> Check {
        let Some(conn) = self.host.conns.get_mut(&number) else {
            return Ok(());
        };
        let is_over = if conn.is_cut {
            conn.to_broker.is_empty() || !conn.session.wants_read()
        } else {
            conn.is_finished() && conn.to_client.is_empty()
        };
        if !is_over {
            return Ok(());
        }
        let client = (!conn.is_cut).then_some(conn.client);
        self.trace.event(self.now, "close", number, &[]);
        self.host.close(number);
        client.map_or(Ok(()), |client| self.lose(client))
    }

    pub(super) fn transmit(&mut self) -> usize {
        let Some(number) = self.draw_conn(|conn| !conn.session.output().is_empty()) else {
            return 0;
        };
        let size = self.draw_size();
        let count = self.host.transmit(number, size, self.now);
        self.trace
            .event(self.now, "sent", number, &count.to_be_bytes());
        count
    }

    pub(super) fn mail(&mut self) -> usize {
        let Some(number) = self.draw_conn(|conn| !conn.mail.is_empty()) else {
            return 0;
        };
        let most = self.network.length(20);
        let count = self.host.deliver_mail(number, most, self.now);
        self.trace
            .event(self.now, "mailed", number, &count.to_be_bytes());
        count
    }

    pub(super) fn arrive_at_client(&mut self) -> Result<usize, Violation> {
        let busy = |conn: &mut Conn| !conn.to_client.is_empty() || conn.is_finished();
        let Some(number) = self.draw_conn(busy) else {
            return Ok(0);
        };
        let size = self.draw_size();
        self.arrive(number, size)?;
        self.look_at(number)?;
        Ok(1)
    }

    /// Bytes reach a client.
    pub(super) fn arrive(&mut self, number: u64, most: usize) -> Check {
        let Some(conn) = self.host.conns.get_mut(&number) else {
            return Ok(());
        };
        if conn.is_cut {
            return Ok(());
        }
        let index = conn.client;
        let bytes = conn.take_for_client(most);
        self.trace.event(self.now, "to client", number, &bytes);
        if let Some(client) = self.clients.get_mut(index) {
            client.on_bytes(
                &bytes,
                &mut Cx {
                    now: self.now,
                    history: &mut self.history,
                    trace: &mut self.trace,
                },
            )?;
        }
        self.collect(index);
        Ok(())
    }

    /// A client's connection is gone.
    pub(super) fn lose(&mut self, index: usize) -> Check {
        let Some(client) = self.clients.get_mut(index) else {
            return Ok(());
        };
        self.trace.event(self.now, "lost", index as u64, &[]);
        client.on_lost(&mut Cx {
            now: self.now,
            history: &mut self.history,
            trace: &mut self.trace,
        })
    }

    pub(super) fn cut_one(&mut self) -> Check {
        let number = self.draw_conn(|conn| !conn.is_cut);
        number.map_or(Ok(()), |number| self.cut(number))
    }

    /// Breaks a connection. What is on its way may still arrive, or a part of it.
    pub(super) fn cut(&mut self, number: u64) -> Check {
        self.trace.event(self.now, "cut", number, &[]);
        if self.network.one_in(2) {
            let size = self.draw_size();
            self.arrive(number, size)?;
        }
        let Some(conn) = self.host.conns.get_mut(&number) else {
            return Ok(());
        };
        if conn.is_cut {
            return Ok(());
        }
        conn.is_cut = true;
        conn.to_client.clear();
        let client = conn.client;
        if self.network.one_in(2) {
            let keep = self.network.index(conn.to_broker.len());
            conn.to_broker.truncate(keep);
        }
        self.lose(client)
    }

    /// The process is about to die: what its machine has sent may still arrive.
    pub(super) fn lose_wires(&mut self) -> Check {
        let numbers: Vec<u64> = self.host.conns.keys().copied().collect();
        for number in numbers {
            if self.network.one_in(2) {
                let size = self.draw_size();
                self.arrive(number, size)?;
            }
        }
        Ok(())
    }
}
