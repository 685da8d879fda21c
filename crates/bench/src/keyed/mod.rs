//! Load on keys: small requests of one kind in a closed loop, over Amaquet or over Redis.
//!
//! One thread drives all connections. Each has a ring of prebuilt requests with keys of its own and
//! a window of requests that may be without an answer; whatever is answered is sent again. What one
//! protocol needs of it is a [`Dialect`].

pub(crate) mod amaquet;
pub(crate) mod redis;

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::time::Timespec;

use crate::error::BenchError;
use crate::tally::Latencies;

/// What is done to keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// A value is set.
    Set,
    /// A value is read.
    Get,
    /// A counter is counted up.
    Count,
    /// An item is pushed to a list.
    Push,
    /// A message is published to a channel that one connection subscribes to.
    Publish,
}

impl Op {
    pub(crate) const ALL: [Self; 5] =
        [Self::Set, Self::Get, Self::Count, Self::Push, Self::Publish];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Get => "get",
            Self::Count => "count",
            Self::Push => "push",
            Self::Publish => "publish",
        }
    }
}

/// Bytes of values, items and messages.
pub(crate) const VALUE_BYTES: usize = 100;
/// Requests of a connection's ring, and its keys.
const RING: usize = 1024;
const READ_BYTES: usize = 64 << 10;
const WAIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

/// A protocol.
pub(crate) trait Dialect {
    /// Appends one request. `id` tells requests apart that are without an answer.
    fn request(op: Op, key: &str, id: u64, out: &mut Vec<u8>);

    /// Counts the whole answers at the front; bytes that they take, and how many.
    fn scan(bytes: &[u8]) -> Result<(usize, usize), BenchError>;

    /// What subscribes to the channel that [`Op::Publish`] publishes to.
    fn subscribe() -> Vec<u8>;
}

/// One connection.
struct Member {
    stream: TcpStream,
    ring: Vec<Vec<u8>>,
    /// Place in the ring of the next request.
    next: usize,
    /// When requests without an answer were sent, with how many of them.
    open: VecDeque<(Instant, usize)>,
    /// Read and not yet understood.
    rest: Vec<u8>,
}

/// All connections of a measurement.
pub(crate) struct Herd {
    epoll: OwnedFd,
    members: Vec<Member>,
    window: usize,
    /// Answers.
    pub(crate) answered: u64,
    /// From a request's write to its answer's read.
    pub(crate) latencies: Latencies,
}

impl Herd {
    /// Connects.
    pub(crate) fn connect<D: Dialect>(
        addr: SocketAddr,
        connections: usize,
        (op, window): (Op, usize),
    ) -> Result<Self, BenchError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(BenchError::os("epoll"))?;
        let mut members = Vec::new();
        for index in 0..connections {
            let stream = connect(addr)?;
            let token = EventData::new_u64(index as u64);
            epoll::add(&epoll, &stream, token, EventFlags::IN).map_err(BenchError::os("epoll"))?;
            members.push(Member {
                stream,
                ring: ring::<D>(op, index),
                next: 0,
                open: VecDeque::new(),
                rest: Vec::new(),
            });
        }
        Ok(Self {
            epoll,
            members,
            window,
            answered: 0,
            latencies: Latencies::new()?,
        })
    }

    /// Sends the first requests.
    pub(crate) fn start(&mut self) -> Result<(), BenchError> {
        let window = self.window;
        self.members.iter_mut().try_for_each(|it| it.send(window))
    }

    /// Goes on until this time.
    pub(crate) fn run<D: Dialect>(&mut self, until: Instant) -> Result<(), BenchError> {
        let mut events = Vec::with_capacity(self.members.len());
        let mut buffer = vec![0; READ_BYTES];
        while Instant::now() < until {
            events.clear();
            let spare = rustix::buffer::spare_capacity(&mut events);
            epoll::wait(&self.epoll, spare, Some(&WAIT)).map_err(BenchError::os("epoll"))?;
            for event in &events {
                let index = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
                let Some(member) = self.members.get_mut(index) else {
                    continue;
                };
                let answers = member.receive::<D>(&mut buffer)?;
                member.account(answers, &mut self.latencies);
                self.answered += answers as u64;
                member.send(answers)?;
            }
        }
        Ok(())
    }
}

impl Member {
    fn send(&mut self, count: usize) -> Result<(), BenchError> {
        if count == 0 {
            return Ok(());
        }
        let mut out = Vec::new();
        for _ in 0..count {
            out.extend_from_slice(self.ring.get(self.next).map_or(&[], Vec::as_slice));
            self.next = (self.next + 1) % self.ring.len().max(1);
        }
        self.open.push_back((Instant::now(), count));
        // Blocks for no longer than the server takes to read: the windows fit its buffers.
        self.stream
            .write_all(&out)
            .map_err(BenchError::io("sending requests"))
    }

    /// Reads once; how many answers are whole now.
    fn receive<D: Dialect>(&mut self, buffer: &mut [u8]) -> Result<usize, BenchError> {
        let count = self
            .stream
            .read(buffer)
            .map_err(BenchError::io("reading answers"))?;
        if count == 0 {
            return Err(BenchError::Protocol("the server closed".to_owned()));
        }
        self.rest
            .extend_from_slice(buffer.get(..count).unwrap_or_default());
        let (taken, answers) = D::scan(&self.rest)?;
        self.rest.drain(..taken);
        Ok(answers)
    }

    fn account(&mut self, mut answers: usize, latencies: &mut Latencies) {
        let now = Instant::now();
        while answers > 0 {
            let Some((at, count)) = self.open.front_mut() else {
                return;
            };
            let done = answers.min(*count);
            let latency = now.saturating_duration_since(*at);
            (0..done).for_each(|_| latencies.record(latency));
            answers -= done;
            *count -= done;
            if *count == 0 {
                self.open.pop_front();
            }
        }
    }
}

fn ring<D: Dialect>(op: Op, connection: usize) -> Vec<Vec<u8>> {
    let request = |place: usize| {
        let key = format!("{}:{connection:03}:{place:04}", op.family());
        let mut bytes = Vec::new();
        D::request(op, &key, place as u64, &mut bytes);
        bytes
    };
    (0..RING).map(request).collect()
}

impl Op {
    /// What comes first in the names of its keys.
    const fn family(self) -> &'static str {
        match self {
            Self::Set | Self::Get => "value",
            Self::Count => "counter",
            Self::Push => "list",
            Self::Publish => "channel",
        }
    }
}

fn connect(addr: SocketAddr) -> Result<TcpStream, BenchError> {
    let stream = TcpStream::connect(addr).map_err(BenchError::io("connecting"))?;
    stream
        .set_nodelay(true)
        .map_err(BenchError::io("setting TCP_NODELAY"))?;
    Ok(stream)
}

/// A connection that subscribes and throws away what comes. Ends when dropped.
pub(crate) struct Listener {
    stream: TcpStream,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Returns once the server has said that it listens.
    pub(crate) fn start<D: Dialect>(addr: SocketAddr) -> Result<Self, BenchError> {
        let mut stream = connect(addr)?;
        let mut buffer = vec![0; READ_BYTES];
        stream
            .write_all(&D::subscribe())
            .and_then(|()| stream.read(&mut buffer))
            .map_err(BenchError::io("subscribing"))?;
        let mut reading = stream.try_clone().map_err(BenchError::io("a socket"))?;
        let thread = thread::spawn(
            move || {
                while reading.read(&mut buffer).is_ok_and(|count| count > 0) {}
            },
        );
        Ok(Self {
            stream,
            thread: Some(thread),
        })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // It may be closed already.
        drop(self.stream.shutdown(Shutdown::Both));
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Sets the values that [`Op::Get`] reads.
pub(crate) fn fill<D: Dialect>(addr: SocketAddr, connections: usize) -> Result<(), BenchError> {
    const FILL_MAX: Duration = Duration::from_secs(60);
    let mut herd = Herd::connect::<D>(addr, connections, (Op::Set, 16))?;
    herd.start()?;
    let end = Instant::now() + FILL_MAX;
    let all = (connections * RING) as u64;
    // A connection that is ahead sets its own again.
    while herd.answered < all * 2 {
        if Instant::now() > end {
            let done = herd.answered;
            return Err(BenchError::Stuck(format!("{done} values set in a minute")));
        }
        herd.run::<D>(Instant::now() + Duration::from_millis(20))?;
    }
    Ok(())
}
