//! One thread that drives all connections of a measurement.
//!
//! Owns: waiting (epoll, and a timer for times closer than a millisecond), reading, cutting frames,
//! flushing. Refuses to know: what is sent; each connection has a [`Peer`] that decides.
//!
//! One thread is enough, and cheaper than several: `self-check` measures its ceiling.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tanda_wire::fila::Opcode;
use tanda_wire::fila::frame::{Frame, MAX_FRAME_DEFAULT, split_frame, write_frame};

use crate::error::BenchError;
use crate::link::{Link, Outbox};
use crate::tally::{Limits, Tally};

/// What a connection does.
pub(crate) trait Peer {
    /// Sends the first frames.
    fn start(&mut self, turn: &mut Turn<'_>) -> Result<(), BenchError>;

    /// Takes a frame of the server.
    fn on_frame(&mut self, frame: &Frame<'_>, turn: &mut Turn<'_>) -> Result<(), BenchError>;

    /// All frames of one read were taken, or others made progress: sends what is to be sent.
    fn on_turn_end(&mut self, turn: &mut Turn<'_>) -> Result<(), BenchError>;

    /// When [`Self::on_turn_end`] should be called though nothing came. Asked only of peers that
    /// say so when they are added.
    fn next_due(&self) -> Option<Instant> {
        None
    }
}

/// What a peer may use while it is called.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    /// Where frames go.
    pub(crate) outbox: &'a mut Outbox,
    /// Where results go.
    pub(crate) tally: &'a mut Tally,
    /// The time when the socket was read.
    pub(crate) now: Instant,
    /// Nothing new is to be sent.
    pub(crate) is_stopping: bool,
}

/// When a run ends, besides at its deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Only then.
    Time,
    /// So many messages confirmed.
    Confirmed(u64),
    /// So many messages delivered.
    Delivered(u64),
    /// So many acks confirmed.
    Acked(u64),
    /// Every request answered.
    Quiet,
}

impl Goal {
    const fn is_met(self, tally: &Tally) -> bool {
        match self {
            Self::Time => false,
            Self::Confirmed(count) => tally.confirmed + tally.failures >= count,
            Self::Delivered(count) => tally.delivered >= count,
            Self::Acked(count) => tally.acked + tally.failures >= count,
            Self::Quiet => tally.requests_open == 0,
        }
    }
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reached {
    /// It got where it should.
    Goal,
    /// Its time was over.
    Deadline,
}

/// Whether a peer keeps its own time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timing {
    /// It only answers what comes.
    Answering,
    /// It has due times.
    Timed,
}

struct Member {
    link: Link,
    peer: Box<dyn Peer>,
    is_started: bool,
    awaits_room: bool,
}

/// The connections of one measurement.
pub(crate) struct Pump {
    epoll: OwnedFd,
    timer: OwnedFd,
    members: Vec<Member>,
    timed: Vec<usize>,
    events: Vec<epoll::Event>,
    is_stopping: bool,
    /// What they have done.
    pub(crate) tally: Tally,
}

const TIMER_TOKEN: u64 = u64::MAX;
const EVENTS_MAX: usize = 256;
const WAIT_MAX: Duration = Duration::from_millis(20);

impl Pump {
    /// Without connections.
    pub(crate) fn new(limits: Limits) -> Result<Self, BenchError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(BenchError::os("epoll"))?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, flags).map_err(BenchError::os("timer"))?;
        let token = EventData::new_u64(TIMER_TOKEN);
        let events = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, &timer, token, events).map_err(BenchError::os("epoll"))?;
        Ok(Self {
            epoll,
            timer,
            members: Vec::new(),
            timed: Vec::new(),
            events: Vec::with_capacity(EVENTS_MAX),
            is_stopping: false,
            tally: Tally::new(limits)?,
        })
    }

    /// Adds a connection, whose socket must not block.
    pub(crate) fn add(
        &mut self,
        link: Link,
        peer: impl Peer + 'static,
        timing: Timing,
    ) -> Result<(), BenchError> {
        let index = self.members.len();
        let token = EventData::new_u64(index as u64);
        epoll::add(&self.epoll, link.outbox.stream(), token, EventFlags::IN)
            .map_err(BenchError::os("epoll"))?;
        if timing == Timing::Timed {
            self.timed.push(index);
        }
        self.members.push(Member {
            link,
            peer: Box::new(peer),
            is_started: false,
            awaits_room: false,
        });
        Ok(())
    }

    /// From now on peers send nothing new.
    pub(crate) const fn stop_sending(&mut self) {
        self.is_stopping = true;
    }

    /// Drives all connections until the goal is met or `time` is over.
    pub(crate) fn run(&mut self, time: Duration, goal: Goal) -> Result<Reached, BenchError> {
        let deadline = Instant::now() + time;
        for index in 0..self.members.len() {
            self.call(index, Call::Start)?;
        }
        loop {
            let now = Instant::now();
            if goal.is_met(&self.tally) {
                return Ok(Reached::Goal);
            }
            if now >= deadline {
                return Ok(Reached::Deadline);
            }
            let due = self.serve_due(now)?;
            self.wait(now, deadline, due)?;
            self.serve_events()?;
            self.serve_waiting()?;
        }
    }

    /// Lets timed peers send what is due; returns the next due time.
    fn serve_due(&mut self, now: Instant) -> Result<Option<Instant>, BenchError> {
        let mut next: Option<Instant> = None;
        for index in self.timed.clone() {
            let due = self.due_of(index);
            if due.is_some_and(|due| due <= now) {
                self.call(index, Call::TurnEnd)?;
            }
            if let Some(due) = self.due_of(index) {
                next = Some(next.map_or(due, |next| next.min(due)));
            }
        }
        Ok(next)
    }

    fn due_of(&self, index: usize) -> Option<Instant> {
        self.members
            .get(index)
            .and_then(|member| member.peer.next_due())
    }

    fn wait(
        &mut self,
        now: Instant,
        deadline: Instant,
        due: Option<Instant>,
    ) -> Result<(), BenchError> {
        let mut wait_max = deadline.saturating_duration_since(now).min(WAIT_MAX);
        if let Some(retry_at) = self.tally.retry_at {
            wait_max = wait_max.min(retry_at.saturating_duration_since(now));
        }
        if let Some(due) = due.filter(|_| !self.is_stopping) {
            let wait = due.saturating_duration_since(now);
            if wait.is_zero() {
                wait_max = Duration::ZERO;
            } else {
                self.arm(wait)?;
            }
        }
        // The system rounds up to milliseconds; the timer is what is exact.
        let timeout = Timespec::try_from(wait_max).unwrap_or_default();
        self.events.clear();
        let room = rustix::buffer::spare_capacity(&mut self.events);
        match epoll::wait(&self.epoll, room, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(BenchError::os("epoll")(e)),
        }
    }

    fn arm(&self, wait: Duration) -> Result<(), BenchError> {
        let value = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec::try_from(wait).unwrap_or_default(),
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &value)
            .map(drop)
            .map_err(BenchError::os("timer"))
    }

    fn serve_events(&mut self) -> Result<(), BenchError> {
        for place in 0..self.events.len() {
            let Some(event) = self.events.get(place) else {
                break;
            };
            let (flags, token) = (event.flags, event.data.u64());
            let Some(index) = usize::try_from(token).ok().filter(|_| token != TIMER_TOKEN) else {
                continue;
            };
            if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                self.call(index, Call::Read)?;
            } else {
                self.call(index, Call::Flush)?;
            }
        }
        Ok(())
    }

    /// Calls everyone when somebody waits for the others, or for the end of a refusal.
    fn serve_waiting(&mut self) -> Result<(), BenchError> {
        let retries = self.tally.retry_at.is_some_and(|at| at <= Instant::now());
        if retries {
            self.tally.retry_at = None;
        }
        if retries || std::mem::take(&mut self.tally.wake_all) {
            for index in 0..self.members.len() {
                self.call(index, Call::TurnEnd)?;
            }
            self.tally.wake_all = false;
        }
        Ok(())
    }

    fn call(&mut self, index: usize, call: Call) -> Result<(), BenchError> {
        let Some(member) = self.members.get_mut(index) else {
            return Ok(());
        };
        let mut turn = Turn {
            outbox: &mut member.link.outbox,
            tally: &mut self.tally,
            now: Instant::now(),
            is_stopping: self.is_stopping,
        };
        match call {
            Call::Start if member.is_started => return Ok(()),
            Call::Start => {
                member.is_started = true;
                member.peer.start(&mut turn)?;
            }
            Call::Read => {
                let count = member.link.inbox.read_from(turn.outbox.stream())?;
                if count > 0 {
                    turn.now = Instant::now();
                    let taken = frames(member.link.inbox.filled(), &mut *member.peer, &mut turn)?;
                    member.link.inbox.consume(taken);
                    member.peer.on_turn_end(&mut turn)?;
                }
            }
            Call::TurnEnd => member.peer.on_turn_end(&mut turn)?,
            Call::Flush => {}
        }
        self.flush(index)
    }

    fn flush(&mut self, index: usize) -> Result<(), BenchError> {
        let Some(member) = self.members.get_mut(index) else {
            return Ok(());
        };
        let awaits_room = !member.link.outbox.flush()?;
        if awaits_room != member.awaits_room {
            member.awaits_room = awaits_room;
            let mut flags = EventFlags::IN;
            flags.set(EventFlags::OUT, awaits_room);
            let token = EventData::new_u64(index as u64);
            epoll::modify(&self.epoll, member.link.outbox.stream(), token, flags)
                .map_err(BenchError::os("epoll"))?;
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy)]
enum Call {
    Start,
    Read,
    TurnEnd,
    Flush,
}

/// Gives every whole frame to the peer; returns the bytes they took.
fn frames(bytes: &[u8], peer: &mut dyn Peer, turn: &mut Turn<'_>) -> Result<usize, BenchError> {
    let mut taken = 0;
    while let Some(rest) = bytes.get(taken..) {
        let frame = split_frame(rest, MAX_FRAME_DEFAULT)
            .map_err(|e| BenchError::Protocol(format!("the server sent {e}")))?;
        let Some(frame) = frame else { break };
        taken += frame.consumed;
        if frame.header.opcode == Opcode::Ping {
            let id = frame.header.request_id;
            write_frame(turn.outbox.buffer(), Opcode::Pong, id, |_| Ok(()))?;
        } else {
            peer.on_frame(&frame, turn)?;
        }
    }
    Ok(taken)
}
