//! Load for protocols in which publishers and consumers do not wait for each message.
//!
//! One blocking thread per connection. A publisher writes slices of one prebuilt buffer of equal
//! frames, as large as its window allows; a consumer reads into a large buffer and looks at no more
//! than frame headers. What one protocol needs of it is a [`Dialect`].
//!
//! Threads rather than the pump's one: a blocking write of many frames wakes nobody but the server,
//! and there are few connections.

pub(crate) mod amqp;
pub(crate) mod check;
pub(crate) mod consumer;
pub(crate) mod firemq;
pub(crate) mod publisher;
pub(crate) mod sink;

use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::error::BenchError;

/// A queue that a measurement makes.
#[derive(Clone, Debug)]
pub(crate) struct QueueShape {
    /// Its name.
    pub(crate) name: String,
    /// It and its messages outlive a restart.
    pub(crate) durable: bool,
}

/// How a consumer settles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settling {
    /// Messages are gone once they are sent.
    None,
    /// So many may be held; half of them are acknowledged at once.
    Window(u16),
}

/// What was found in bytes of the server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// Bytes that were understood; the rest is the beginning of a frame.
    pub(crate) taken: usize,
    /// Deliveries.
    pub(crate) delivered: u64,
    /// What the last of them is settled by.
    pub(crate) last_tag: u64,
    /// Publishes confirmed up to here; 0: nothing said.
    pub(crate) confirmed_to: u64,
}

/// One connection in the terms of one protocol.
pub(crate) trait Dialect: Sized + Send + 'static {
    /// Connects, and comes as far as requests can be made.
    fn connect(addr: SocketAddr) -> Result<Self, BenchError>;

    /// Makes a queue.
    fn declare(&mut self, queue: &QueueShape) -> Result<(), BenchError>;

    /// Asks how many messages a queue holds, behind all that was sent before on this connection.
    fn count(&mut self, queue: &str) -> Result<u64, BenchError>;

    /// Asks for confirms of all publishes that follow.
    fn confirm(&mut self) -> Result<(), BenchError>;

    /// Becomes a consumer. Deliveries follow, some of which may have come already.
    fn consume(&mut self, queue: &str, settling: Settling) -> Result<(), BenchError>;

    /// Frames of `count` equal messages to a queue; confirmed ones where that is said of each.
    fn publishes(queue: &QueueShape, load: (&[u8], bool), count: usize) -> Vec<u8>;

    /// Numbers frames that [`Self::publishes`] made, where publishes carry numbers.
    fn number(frames: &mut [u8], frame_bytes: usize, first: u64) {
        let _ = (frames, frame_bytes, first);
    }

    /// Looks through bytes of the server.
    fn scan(bytes: &[u8]) -> Result<Seen, BenchError>;

    /// Appends what settles all deliveries up to `tag`, `count` of them.
    fn settle(out: &mut Vec<u8>, tag: u64, count: u64);

    /// The socket.
    fn stream(&self) -> &TcpStream;

    /// Takes what was read and not yet understood.
    fn take_rest(&mut self) -> Vec<u8>;
}

/// What all connections of a measurement have done, and how far they may go.
#[derive(Debug)]
pub(crate) struct Flood {
    /// Messages handed to a socket.
    pub(crate) published: AtomicU64,
    /// Messages confirmed.
    pub(crate) confirmed: AtomicU64,
    /// Messages delivered.
    pub(crate) delivered: AtomicU64,
    /// Messages that may be published and not yet delivered.
    pub(crate) lag_max: u64,
    /// Messages that may be published in all.
    pub(crate) total: u64,
    stopping: AtomicBool,
    failure: Mutex<Option<BenchError>>,
}

impl Flood {
    pub(crate) fn new(lag_max: u64, total: u64) -> Arc<Self> {
        Arc::new(Self {
            published: AtomicU64::new(0),
            confirmed: AtomicU64::new(0),
            delivered: AtomicU64::new(0),
            lag_max,
            total,
            stopping: AtomicBool::new(false),
            failure: Mutex::new(None),
        })
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Takes up to `want` messages out of what may still be published.
    pub(crate) fn reserve(&self, want: u64) -> u64 {
        let published = self.published.load(Ordering::Relaxed);
        let delivered = self.delivered.load(Ordering::Relaxed);
        let lag = published.saturating_sub(delivered);
        let room = self.lag_max.saturating_sub(lag);
        let left = self.total.saturating_sub(published);
        let count = want.min(room).min(left);
        self.published.fetch_add(count, Ordering::Relaxed);
        count
    }

    /// Whether nothing more is to be published.
    pub(crate) fn is_spent(&self) -> bool {
        self.published.load(Ordering::Relaxed) >= self.total
    }

    fn fail(&self, error: BenchError) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        // What follows the end is what ended it.
        if !self.is_stopping() && failure.is_none() {
            *failure = Some(error);
        }
    }

    /// Fails when a connection did.
    pub(crate) fn check(&self) -> Result<(), BenchError> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.take().map_or(Ok(()), Err)
    }
}

/// Threads and sockets of a measurement. Dropping it ends them.
#[derive(Debug)]
pub(crate) struct Crew {
    flood: Arc<Flood>,
    streams: Vec<TcpStream>,
    threads: Vec<JoinHandle<()>>,
}

impl Crew {
    pub(crate) const fn new(flood: Arc<Flood>) -> Self {
        Self {
            flood,
            streams: Vec::new(),
            threads: Vec::new(),
        }
    }

    /// Runs `work` beside the others until it ends or the socket does.
    pub(crate) fn spawn(
        &mut self,
        stream: &TcpStream,
        work: impl FnOnce(&Flood) -> Result<(), BenchError> + Send + 'static,
    ) -> Result<(), BenchError> {
        let stream = stream.try_clone().map_err(BenchError::io("a socket"))?;
        self.streams.push(stream);
        let flood = Arc::clone(&self.flood);
        self.threads.push(thread::spawn(move || {
            if let Err(error) = work(&flood) {
                flood.fail(error);
            }
        }));
        Ok(())
    }

    /// Waits for a time, or for the first connection that fails.
    pub(crate) fn sleep(&self, time: Duration) -> Result<(), BenchError> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            let rest = end.saturating_duration_since(Instant::now());
            thread::sleep(rest.min(Duration::from_millis(50)));
            self.flood.check()?;
        }
        Ok(())
    }

    /// Waits until `count` has reached `goal`.
    pub(crate) fn wait(
        &self,
        count: impl Fn(&Flood) -> u64,
        goal: u64,
        time_max: Duration,
    ) -> Result<(), BenchError> {
        let end = Instant::now() + time_max;
        loop {
            self.flood.check()?;
            let reached = count(&self.flood);
            if reached >= goal {
                return Ok(());
            }
            if Instant::now() >= end {
                let text = format!("{reached} of {goal} messages in {time_max:?}");
                return Err(BenchError::Stuck(text));
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits for threads that end by themselves.
    pub(crate) fn join(mut self) -> Result<(), BenchError> {
        for thread in self.threads.drain(..) {
            // One that panicked has said so.
            drop(thread.join());
        }
        self.flood.check()
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.flood.stopping.store(true, Ordering::Relaxed);
        for stream in &self.streams {
            // It may be closed already.
            drop(stream.shutdown(Shutdown::Both));
        }
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
    }
}
