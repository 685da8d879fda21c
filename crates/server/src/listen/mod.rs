//! What all doors have in common: accepting, counting, TLS, turning out who only occupies a place,
//! and the end.
//!
//! Owns sockets until a [`Service`] takes them and refuses to know any protocol.
//!
//! ```text
//!  TcpListener ─► place (Tally) ─► task: TLS handshake (bounded in time) ─► Service::serve
//! ```

mod guest;
mod socket;
mod stream;
mod web_socket;

pub(crate) use guest::{Busy, Guest};
pub(crate) use socket::Socket;
pub(crate) use stream::Stream;
pub(crate) use web_socket::{MessageLimits, WebSocket};

use std::{collections::HashMap, fmt, io, net::SocketAddr, sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{AbortHandle, Id, JoinError, JoinSet},
    time::{Instant, timeout, timeout_at},
};
use tokio_rustls::TlsAcceptor;

use crate::{
    server::is_set,
    tally::{Place, Refusals, Tally},
    tls::Certificates,
};

use guest::Turnstile;

/// After a failed accept, which mostly means too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a connection of a door gets.
pub(crate) trait Service: fmt::Debug + Send + Sync + 'static {
    /// Serves one connection until it ends; soon after `stop` is set. Says to `guest` while it
    /// would be wrong to end the connection for somebody else's sake.
    fn serve(
        self: Arc<Self>,
        socket: Socket,
        guest: Arc<Guest>,
        stop: watch::Receiver<bool>,
    ) -> impl Future<Output = ()> + Send;
}

/// An open door.
#[derive(Debug)]
pub(crate) struct Listening<S> {
    door: Door,
    service: Arc<S>,
    listener: TcpListener,
    turnstile: Turnstile,
    tasks: JoinSet<()>,
    seats: HashMap<Id, Seat>,
    refusals: Refusals,
}

/// What distinguishes a door from the others.
#[derive(Debug)]
pub(crate) struct Door {
    /// For the log.
    pub(crate) name: &'static str,
    /// Connections now and at most.
    pub(crate) places: Arc<Tally>,
    /// The option that says how many.
    pub(crate) places_option: &'static str,
    /// Whether connections begin with a handshake of TLS, and with which certificate.
    pub(crate) tls: Option<Arc<Certificates>>,
    /// Time for that handshake.
    pub(crate) handshake_timeout: Duration,
}

/// A connection as the door sees it.
#[derive(Debug)]
struct Seat {
    task: AbortHandle,
    guest: Arc<Guest>,
}

impl<S: Service> Listening<S> {
    pub(crate) fn new(door: Door, service: Arc<S>, listener: TcpListener) -> Self {
        Self {
            door,
            service,
            listener,
            turnstile: Turnstile::default(),
            tasks: JoinSet::new(),
            seats: HashMap::new(),
            refusals: Refusals::default(),
        }
    }

    /// Accepts until `stop`, then gives the connections until `grace` has passed to finish.
    pub(crate) async fn run(mut self, mut stop: watch::Receiver<bool>, grace: Duration) {
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, peer)) => self.on_accepted(stream, peer, &stop),
                    Err(error) => {
                        let door = self.door.name;
                        tracing::warn!(%error, door, "cannot accept a connection");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(ended) = self.tasks.join_next_with_id() => self.on_ended(ended),
                () = is_set(&mut stop) => break,
            }
        }
        let Self {
            listener,
            mut tasks,
            ..
        } = self;
        drop(listener);
        let until = Instant::now() + grace;
        while let Ok(Some(ended)) = timeout_at(until, tasks.join_next()).await {
            tell_panic(ended.err());
        }
        tasks.shutdown().await;
    }

    fn on_accepted(&mut self, stream: TcpStream, peer: SocketAddr, stop: &watch::Receiver<bool>) {
        // First those that have ended: their places are free.
        while let Some(ended) = self.tasks.try_join_next_with_id() {
            self.on_ended(ended);
        }
        let Some(place) = self.door.places.enter().or_else(|| self.turn_out()) else {
            self.refuse(peer);
            return;
        };
        // Answers are written when they are complete, so waiting for more would only delay them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%peer, %error, "the connection was gone before it began");
            return;
        }
        let guest = self.turnstile.guest(place);
        let service = Arc::clone(&self.service);
        let stop = stop.clone();
        let seated = Arc::clone(&guest);
        let greeting = self.door.greeting(peer);
        let task = self.tasks.spawn(async move {
            if let Some(socket) = greeting.receive(stream).await {
                service.serve(socket, guest, stop).await;
            }
        });
        let seat = Seat {
            task: task.clone(),
            guest: seated,
        };
        self.seats.insert(task.id(), seat);
    }

    /// Ends the connection that has waited longest for its peer to say what it wants, and gives its
    /// place away: half-open connections must not keep everyone else out.
    fn turn_out(&mut self) -> Option<Place> {
        let waiting = self
            .seats
            .values()
            .filter_map(|seat| Some((seat.guest.waiting_since()?, seat)));
        let (since, seat) = waiting.min_by_key(|(since, _)| *since)?;
        if !seat.guest.turn_out(since) {
            return None;
        }
        seat.task.abort();
        seat.guest.leave_place()
    }

    fn refuse(&mut self, peer: SocketAddr) {
        let Some(refused) = self.refusals.note(Instant::now()) else {
            return;
        };
        let Door {
            name,
            places,
            places_option,
            ..
        } = &self.door;
        tracing::warn!(
            %peer,
            refused,
            max = places.max(),
            door = name,
            "refused connections: {places_option} is reached"
        );
    }

    fn on_ended(&mut self, ended: Result<(Id, ()), JoinError>) {
        let id = match &ended {
            Ok((id, ())) => *id,
            Err(error) => error.id(),
        };
        self.seats.remove(&id);
        tell_panic(ended.err());
    }
}

fn tell_panic(error: Option<JoinError>) {
    if let Some(error) = error.filter(JoinError::is_panic) {
        tracing::error!(%error, "a bug: the task of a connection panicked; the others go on");
    }
}

impl Door {
    fn greeting(&self, peer: SocketAddr) -> Greeting {
        Greeting {
            door: self.name,
            peer,
            tls: self
                .tls
                .as_ref()
                .map(|tls| TlsAcceptor::from(tls.current())),
            timeout: self.handshake_timeout,
        }
    }
}

/// What comes before the protocol.
struct Greeting {
    door: &'static str,
    peer: SocketAddr,
    tls: Option<TlsAcceptor>,
    timeout: Duration,
}

impl Greeting {
    /// The socket once bytes of the protocol may flow; `None` when the handshake failed.
    async fn receive(self, stream: TcpStream) -> Option<Socket> {
        let Some(acceptor) = self.tls else {
            return Some(Socket::plain(stream));
        };
        let shaken = timeout(self.timeout, acceptor.accept(stream)).await;
        let late = |_elapsed| Err(io::ErrorKind::TimedOut.into());
        match shaken.unwrap_or_else(late) {
            Ok(stream) => Some(Socket::tls(stream)),
            Err(error) => {
                let Self { door, peer, .. } = self;
                tracing::debug!(%peer, %error, door, "a handshake of TLS failed");
                None
            }
        }
    }
}
