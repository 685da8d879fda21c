//! One connection of any door: a socket, a session, and the task that moves bytes between them.
//!
//! ```text
//!  socket ──► Input ──► Session ──► requests ──► shard
//!  socket ◄── output ◄─ Session ◄── events ◄─── mailbox
//! ```
//!
//! The task wakes for a readable or (while output waits) writable socket, for mail and for a timer;
//! whatever concerns all connections calls it through its mailbox. Each time it does all it can in
//! one go: all requests of a read go to the shard in one piece, all answers of a batch to the
//! socket in one write.

mod standing;
mod waiting;

use std::{io, pin::Pin, sync::Arc, time::Duration};

use bytes::Buf;
use tanda_engine::{Event, Millis, Request};
use tanda_session::Session;
use tokio::{
    io::AsyncReadExt,
    sync::watch,
    task::block_in_place,
    time::{Instant, Sleep, sleep_until, timeout},
};

use self::waiting::Woken;
use super::{
    input::Input,
    login::{self, LoginCheck},
    long::{LONG_INPUT_BYTES, is_long},
    memory::Share,
    protocol::{Door, Protocol},
    registration::Registration,
};
use crate::{
    alarms::Alarms,
    listen::{Busy, Guest, Stream},
    shard::{Listener, Mailbox, VhostsGone},
    users::{Admitted, Principals},
};

/// How long the peer's last bytes are read and dropped after the last answer, so that the system
/// does not throw that answer away.
const LINGER: Duration = Duration::from_secs(1);

/// See the module.
pub(super) struct Connection<P: Protocol> {
    door: Arc<Door<P>>,
    registration: Registration,
    stream: Stream,
    guest: Arc<Guest>,
    /// The peer has introduced itself, so the connection is not ended for another one's sake.
    introduced: Option<Busy>,
    session: P::Session,
    mailbox: Arc<Mailbox>,
    /// Calls it when one of the following four changes.
    _listener: Listener,
    /// The newest API keys and users.
    principals: watch::Receiver<Principals>,
    /// Virtual hosts that were deleted.
    vhosts_gone: watch::Receiver<VhostsGone>,
    /// Those that the task has seen.
    gone: VhostsGone,
    /// What runs short.
    alarms: watch::Receiver<Alarms>,
    /// Whether the process is about to end.
    stop: watch::Receiver<bool>,
    input: Input,
    /// Who the peer says it is, while that is checked.
    login: LoginCheck,
    /// Who the peer is, once it logged in.
    admitted: Option<Admitted>,
    share: Share,
    /// When it last woke.
    woke_at: Instant,
    /// When bytes last came.
    read_at: Instant,
    /// Since when the socket has taken nothing of what waits for it.
    blocked_at: Option<Instant>,
    /// Reused between rounds; empty between them.
    events: Vec<Event>,
    requests: Vec<Request>,
    /// Whole frames may be in `input` for which the session had no room.
    undecoded: bool,
    /// The session knows that the process is about to end.
    stopping: bool,
    /// The peer sends no more. It may still read: answers of what it sent before are due.
    ended: bool,
}

/// Why the task ends.
enum End {
    /// The session is done and all it said is written.
    Finished,
    /// The socket is gone.
    Gone,
}

impl<P: Protocol> Connection<P> {
    pub(super) fn new(
        door: Arc<Door<P>>,
        (stream, guest): (Stream, Arc<Guest>),
        mut stop: watch::Receiver<bool>,
    ) -> Self {
        let conn = door.shard.new_conn();
        let mailbox = Arc::<Mailbox>::default();
        // Before anything is looked at that may change.
        let listener = door.shard.crier().listen(conn, Arc::clone(&mailbox));
        stop.mark_changed();
        let now = door.clock.now();
        let mut session = door.protocol.session(conn, now, &stream);
        let mut principals = door.shard.principals();
        session.on_keys(now, &principals.borrow_and_update().keys);
        let mut vhosts_gone = door.shard.vhosts_gone();
        let gone = Arc::clone(&vhosts_gone.borrow_and_update());
        let mut alarms = door.shard.alarms().subscribe();
        if let Some(reason) = alarms.borrow_and_update().reason() {
            session.on_alarm(now, Some(reason));
        }
        let registration = Registration::new(&door.shard, conn);
        let share = Share::new(Arc::clone(&door.memory));
        Self {
            door,
            registration,
            stream,
            guest,
            introduced: None,
            session,
            mailbox,
            _listener: listener,
            principals,
            vhosts_gone,
            gone,
            alarms,
            stop,
            input: Input::default(),
            login: LoginCheck::default(),
            admitted: None,
            share,
            woke_at: Instant::now(),
            read_at: Instant::now(),
            blocked_at: None,
            events: Vec::new(),
            requests: Vec::new(),
            undecoded: false,
            stopping: false,
            ended: false,
        }
    }

    /// Serves the connection until it ends.
    pub(super) async fn run(mut self) {
        let mut timer = Box::pin(sleep_until(Instant::now()));
        self.heed_news(self.door.clock.now());
        let end = self.serve(timer.as_mut()).await;
        self.session.close();
        self.send_requests();
        if matches!(end, End::Finished) {
            self.linger().await;
        }
    }

    async fn serve(&mut self, mut timer: Pin<&mut Sleep>) -> End {
        loop {
            if self.settle().and_then(|()| self.keep_to_memory()).is_err() {
                return End::Gone;
            }
            if self.session.is_closing() && self.is_written() {
                return End::Finished;
            }
            self.arm(timer.as_mut());
            let woken = match self.wait(timer.as_mut()).await {
                Ok(woken) => self.on_woken(woken).await,
                Err(error) => Err(error),
            };
            if woken.is_err() {
                return End::Gone;
            }
        }
    }

    async fn on_woken(&mut self, woken: Woken) -> io::Result<()> {
        self.woke_at = Instant::now();
        let now = self.door.clock.at(self.woke_at.into_std());
        if woken.mail {
            self.on_mail(now);
        }
        if let Some(answer) = woken.login {
            self.on_login(now, answer);
        }
        if woken.socket {
            self.on_socket(now).await?;
        }
        if woken.timer {
            self.on_timer(now)?;
        }
        Ok(())
    }

    /// Reads, when reading is wanted. Writing is tried in every round anyway.
    async fn on_socket(&mut self, now: Millis) -> io::Result<()> {
        if !self.session.wants_read() || self.ended {
            return Ok(());
        }
        let announced = self.session.announced_bytes(self.input.bytes());
        let unfinished = self.stream.unfinished_bytes();
        match self.input.read(&mut self.stream, announced).await? {
            None if self.stream.unfinished_bytes() > unfinished => self.read_at = self.woke_at,
            None => {}
            Some(0) => {
                self.ended = true;
                self.decode(now);
            }
            Some(_) => {
                self.read_at = self.woke_at;
                self.decode(now);
            }
        }
        Ok(())
    }

    fn on_login(&mut self, now: Millis, answer: login::Answer) {
        let identity = answer.map(|admitted| {
            let identity = Arc::clone(&admitted.identity);
            self.admitted = Some(admitted);
            identity
        });
        self.session.on_login(now, identity);
        // What has changed while it was checked.
        self.principals.mark_changed();
    }

    fn on_mail(&mut self, now: Millis) {
        self.heed_news(now);
        self.mailbox.take(&mut self.events);
        for event in self.events.drain(..) {
            let session = &mut self.session;
            if is_long(&event) {
                // Others are served by another thread meanwhile.
                block_in_place(|| session.on_event(now, event));
            } else {
                session.on_event(now, event);
            }
        }
        // The event may have been that the virtual host is open.
        self.heed_vhosts(now);
    }

    fn on_timer(&mut self, now: Millis) -> io::Result<()> {
        self.session.on_timer(now);
        if self.admitted_until().is_some_and(|until| until <= now)
            && let Some(admitted) = &self.admitted
        {
            let why = admitted.expiry();
            self.dismiss(now, &why);
        }
        if self.frame_deadline().is_some_and(|at| at <= Instant::now()) {
            tracing::debug!("closed a connection that stopped in the middle of a frame");
            return Err(io::ErrorKind::TimedOut.into());
        }
        if self.write_deadline().is_some_and(|at| at <= Instant::now()) {
            tracing::debug!("closed a connection whose peer reads nothing");
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }

    /// Lets the session take whole frames from what was read.
    fn decode(&mut self, now: Millis) {
        self.heed_principals(now);
        if self.input.len() > LONG_INPUT_BYTES {
            block_in_place(|| self.session.on_bytes(now, self.input.bytes()));
        } else {
            self.session.on_bytes(now, self.input.bytes());
        }
        self.undecoded = !self.session.wants_input();
        if self.ended && !self.undecoded {
            self.session.on_end(now);
        }
        self.input.release_if_empty();
    }

    /// Does all that needs no waiting: requests to the shard, output to the socket, and frames that
    /// were read before there was room for them. Each may make work for the others (what was
    /// written is reported to the shard, what was refused is answered), so it ends when none does.
    fn settle(&mut self) -> io::Result<()> {
        loop {
            // What waits to be written may be forbidden by now.
            if self.principals.has_changed().unwrap_or(false) {
                self.on_principals(self.door.clock.now());
            }
            for event in self.session.take_audit() {
                self.door.audit.note(self.stream.peer_addr(), &event);
            }
            if let Some(login) = self.session.take_login() {
                let peer = self.stream.trusted_addr();
                let authenticator = Arc::clone(&self.door.authenticator);
                self.login.begin(authenticator, login, peer);
            }
            let sent = self.send_requests();
            let wrote = self.write()?;
            let decodes = self.undecoded && self.session.wants_input();
            if decodes {
                self.decode(self.door.clock.now());
            }
            if !sent && !wrote && !decodes {
                return Ok(());
            }
        }
    }

    /// Sends what the session wants sent, in one piece; refusals become answers. True when there
    /// was anything.
    fn send_requests(&mut self) -> bool {
        while let Some(request) = self.session.next_request() {
            self.note(&request);
            self.requests.push(request);
        }
        if self.requests.is_empty() {
            return false;
        }
        self.door.shard.try_send(&mut self.requests);
        for request in self.requests.drain(..) {
            self.session.on_refused(request);
        }
        true
    }

    /// Keeps account of whether the shard knows the connection; it must hear of the mailbox before
    /// it sees the first request.
    fn note(&mut self, request: &Request) {
        if self.registration.note(request, &self.mailbox) {
            self.introduced = self.guest.begin();
            self.stream.on_introduced();
        }
    }

    /// Whether the socket has all that the session said so far.
    fn is_written(&mut self) -> bool {
        self.session.output().is_empty() && self.stream.is_flushed()
    }

    /// Writes until all is written or the socket takes no more. True when anything was written.
    fn write(&mut self) -> io::Result<bool> {
        let mut wrote = false;
        loop {
            let output = self.session.output();
            let outcome = if output.is_empty() {
                self.stream.try_flush().map(|()| None)
            } else {
                self.stream.try_write(output).map(Some)
            };
            match outcome {
                Ok(None) => {
                    self.blocked_at = None;
                    return Ok(wrote);
                }
                Ok(Some(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(Some(count)) => {
                    self.session.output().advance(count);
                    self.session.on_written(count);
                    wrote = true;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if wrote || self.blocked_at.is_none() {
                        self.blocked_at = Some(Instant::now());
                    }
                    return Ok(wrote);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Notes what the connection holds; ends it when it must give that up.
    fn keep_to_memory(&mut self) -> io::Result<()> {
        let read = self.input.len() + self.stream.unfinished_bytes();
        let held = read + self.session.held_bytes();
        if self.share.note(held) {
            return Ok(());
        }
        self.share.tell();
        if !self.is_written() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.session.on_overload(self.door.clock.now());
        self.input.bytes().clear();
        self.input.release_if_empty();
        self.settle()
    }

    fn frame_deadline(&self) -> Option<Instant> {
        let begun = !self.input.is_empty() || self.stream.unfinished_bytes() > 0;
        let in_a_frame = begun && self.session.wants_read() && !self.ended;
        in_a_frame.then(|| self.read_at + self.door.frame_timeout)
    }

    /// A peer that does not read is not read either once its answers fill their bound, and then no
    /// missing pong tells that it is gone.
    fn write_deadline(&self) -> Option<Instant> {
        Some(self.blocked_at? + self.door.frame_timeout)
    }

    /// Sets the timer, but only when it must ring earlier than it would: deadlines mostly move
    /// away, and then one idle ring is cheaper than a change at every read.
    fn arm(&mut self, timer: Pin<&mut Sleep>) {
        let both = [self.session.next_deadline(), self.admitted_until()];
        let session = both.into_iter().flatten().min();
        let session = session.map(|at| Instant::from_std(self.door.clock.instant_of(at)));
        let next = [session, self.frame_deadline(), self.write_deadline()];
        let next = next.into_iter().flatten().min();
        let next = next.unwrap_or_else(|| self.woke_at + Duration::from_hours(1));
        if timer.is_elapsed() || next < timer.deadline() {
            timer.reset(next);
        }
    }

    /// Says that no more comes, and drops what the peer still sends: closing a socket with unread
    /// bytes resets it, and the peer might never see the last answer.
    async fn linger(mut self) {
        let mut dropped = [0; 4096];
        let drain = async {
            self.stream.shutdown().await?;
            while self.stream.read(&mut dropped).await? > 0 {}
            Ok::<(), io::Error>(())
        };
        // Over or not, the socket closes now.
        drop(timeout(LINGER, drain).await);
    }
}
