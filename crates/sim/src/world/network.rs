//! Bytes on their way, in arbitrary pieces, and connections that break.

use crate::clients::{Client, Cx};
use crate::failure::{Check, Violation};
use crate::host::{Conn, FarEnd};

use super::World;

impl World {
    /// Puts what a client has said on its way.
    pub(super) fn collect(&mut self, index: usize) -> usize {
        let client = self.clients.get_mut(index);
        let Some((number, out)) = client.and_then(Client::outgoing) else {
            return 0;
        };
        let count = out.len();
        if let Some(conn) = self.host.conns.get_mut(&number)
            && conn.far_end == FarEnd::Open
        {
            conn.to_broker.extend_from_slice(out);
        }
        out.clear();
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
        let now = self.now;
        let busy = |conn: &mut Conn| {
            let has_news = !conn.to_broker.is_empty() || conn.is_ended() || conn.is_given_up;
            has_news && conn.to_broker_from <= now
        };
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
        let is_empty = conn.to_broker.is_empty();
        let is_over = match conn.far_end {
            FarEnd::Cut => is_empty || !conn.session.wants_read(),
            FarEnd::HalfClosed => is_empty && conn.session.wants_read(),
            FarEnd::Open | FarEnd::Vanished => false,
        };
        let is_said = conn.is_finished() && (conn.to_client.is_empty() || !conn.is_read());
        if !is_over && !is_said && !conn.is_given_up {
            return Ok(());
        }
        let is_read = conn.is_read();
        if is_read && self.network.one_in(2) {
            // What the network has may still come.
            self.arrive(number, usize::MAX)?;
        }
        let conn = self.host.conns.get(&number);
        let client = conn.filter(|_| is_read).map(|conn| conn.client);
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
        let now = self.now;
        let busy = |conn: &mut Conn| {
            let has_news = !conn.to_client.is_empty() && conn.is_read() || conn.is_finished();
            has_news && conn.to_client_from <= now
        };
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
        if !conn.is_read() {
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
        self.tell_of_keys();
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
        let number = self.draw_conn(|conn| conn.is_read());
        number.map_or(Ok(()), |number| self.cut(number))
    }

    /// A client ends its sending side. What it sent before arrives.
    pub(super) fn half_close_one(&mut self) {
        let number = self.draw_conn(|conn| conn.far_end == FarEnd::Open);
        let conn = number.and_then(|number| self.host.conns.get_mut(&number));
        let Some(conn) = conn else { return };
        conn.far_end = FarEnd::HalfClosed;
        if let Some(client) = self.clients.get_mut(conn.client) {
            client.end();
        }
    }

    /// One direction of a connection stops for a while.
    pub(super) fn stall_one(&mut self) {
        let ms = if self.network.one_in(3) {
            self.network.below(30_000)
        } else {
            self.network.below(300)
        };
        let until = self.now.after_ms(ms);
        let is_to_broker = self.network.one_in(2);
        let number = self.draw_conn(|conn| conn.is_read());
        if let Some(conn) = number.and_then(|number| self.host.conns.get_mut(&number)) {
            if is_to_broker {
                conn.to_broker_from = until;
            } else {
                conn.to_client_from = until;
            }
        }
    }

    /// A client is gone, and nothing tells the broker. Some of what it said may still arrive.
    pub(super) fn lose_one_silently(&mut self) -> Check {
        // Who has no pings leaves that to the network, which here tells it at once.
        let Some(number) = self.draw_conn(|conn| conn.is_read() && conn.has_pings) else {
            return Ok(());
        };
        self.cut(number)?;
        if let Some(conn) = self.host.conns.get_mut(&number) {
            conn.far_end = FarEnd::Vanished;
        }
        Ok(())
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
        if !conn.is_read() {
            return Ok(());
        }
        conn.far_end = FarEnd::Cut;
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
