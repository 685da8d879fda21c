//! The task behind a client: it serves one connection after the other.
//!
//! Owns: the loop over connections, time, and the bounds on waiting for a connection.
//! Refuses to know: what commands and events mean; that is the driver's.

use std::future::{Future, poll_fn};
use std::hash::{BuildHasher, RandomState};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use super::dial::Dial;
use super::endpoint::{Drive, Endpoint, OpenError};
use super::job::Loss;
use super::link::Link;
use crate::policy::ReconnectPolicy;

/// Commands taken at a time; more wait for the next turn.
const COMMANDS_PER_TURN: usize = 1_024;
/// How long closing waits for answers.
const CLOSE_WAIT_MS: u64 = 5_000;

/// How a client connects and what it does when that fails.
#[derive(Debug, Clone)]
pub(crate) struct TaskConfig<C> {
    pub(crate) connection: C,
    pub(crate) connect_timeout_ms: u64,
    pub(crate) reconnect: ReconnectPolicy,
}

/// What a driver's connections are opened with.
type Config<V> = TaskConfig<<<V as Drive>::Endpoint as Endpoint>::Config>;
/// Why they could not be opened.
type Error<V> = <<V as Drive>::Endpoint as Endpoint>::OpenError;

/// Opens the first connection, then starts the task on the current runtime. The task takes
/// commands from this channel and ends when all its senders are dropped.
pub(crate) async fn start<D: Dial, V: Drive>(
    mut dial: D,
    config: Config<V>,
    mut driver: V,
    commands: mpsc::UnboundedReceiver<V::Command>,
) -> Result<(), Error<V>> {
    let clock = Clock {
        epoch: Instant::now(),
    };
    // The question mark would take the error for one of I/O.
    let (link, connection) = match open::<D, V::Endpoint>(&mut dial, &config, clock).await {
        Ok(opened) => opened,
        Err(error) => return Err(error),
    };
    driver.attach(connection);
    let inbox = Inbox {
        commands,
        taken: Vec::new(),
        is_ended: false,
    };
    let task = Task {
        dial,
        config,
        clock,
        driver,
        inbox,
    };
    drop(tokio::spawn(task.run(link)));
    Ok(())
}

async fn open<D: Dial, E: Endpoint>(
    dial: &mut D,
    config: &TaskConfig<E::Config>,
    clock: Clock,
) -> Result<(Link<D::Stream>, E), E::OpenError> {
    let timeout_ms = config.connect_timeout_ms;
    let opening = async {
        let stream = dial.dial().await?;
        Link::open(stream, &config.connection, clock.now_ms()).await
    };
    let opened = timeout(Duration::from_millis(timeout_ms), opening).await;
    opened.unwrap_or_else(|_elapsed| Err(E::OpenError::timed_out(timeout_ms)))
}

/// Milliseconds since the client was made.
#[derive(Debug, Clone, Copy)]
struct Clock {
    epoch: Instant,
}

impl Clock {
    fn now_ms(self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn instant(self, at_ms: u64) -> Instant {
        // Times that far off are never reached.
        let far = self.epoch + Duration::from_hours(24 * 365);
        self.epoch
            .checked_add(Duration::from_millis(at_ms))
            .unwrap_or(far)
    }
}

/// The receiving end of the command channel.
#[derive(Debug)]
struct Inbox<C> {
    commands: mpsc::UnboundedReceiver<C>,
    taken: Vec<C>,
    is_ended: bool,
}

impl<C> Inbox<C> {
    /// Passes waiting commands to the driver. `true`: there were some.
    fn poll<V: Drive<Command = C>>(&mut self, cx: &mut Context<'_>, driver: &mut V) -> bool {
        if self.is_ended {
            return false;
        }
        match self
            .commands
            .poll_recv_many(cx, &mut self.taken, COMMANDS_PER_TURN)
        {
            Poll::Pending => false,
            Poll::Ready(0) => {
                self.is_ended = true;
                driver.close();
                true
            }
            Poll::Ready(_) => {
                self.taken
                    .drain(..)
                    .for_each(|command| driver.on_command(command));
                true
            }
        }
    }
}

/// A timer that is set anew when its time changes.
#[derive(Debug)]
struct Timer {
    sleep: Pin<Box<Sleep>>,
    at_ms: u64,
    clock: Clock,
}

impl Timer {
    fn new(clock: Clock) -> Self {
        let at_ms = clock.now_ms();
        Self {
            sleep: Box::pin(sleep_until(clock.instant(at_ms))),
            at_ms,
            clock,
        }
    }

    fn poll_at(&mut self, cx: &mut Context<'_>, at_ms: u64) -> Poll<()> {
        if at_ms != self.at_ms {
            self.at_ms = at_ms;
            self.sleep.as_mut().reset(self.clock.instant(at_ms));
        }
        self.sleep.as_mut().poll(cx)
    }
}

struct Task<D, V: Drive> {
    dial: D,
    config: Config<V>,
    clock: Clock,
    driver: V,
    inbox: Inbox<V::Command>,
}

impl<D: Dial, V: Drive> Task<D, V> {
    async fn run(mut self, mut link: Link<D::Stream>) {
        loop {
            let lost = self.serve(&mut link).await;
            let Some(loss) = lost else {
                link.shutdown().await;
                break;
            };
            // The peer sees the end now, not when the next connection stands.
            drop(link);
            let loss = self.driver.on_lost(&loss);
            let next = self.reconnect(loss).await;
            let Some(next) = next else {
                break;
            };
            link = next;
        }
        // Those who ask later find the channel closed; those who asked are told here.
        self.inbox.commands.close();
        let loss = Loss::new("the client is closed");
        self.driver.give_up(&loss);
        while let Ok(command) = self.inbox.commands.try_recv() {
            self.driver.on_command(command);
        }
    }

    /// Serves one connection until it is lost; `None`: it was closed in order.
    async fn serve(&mut self, link: &mut Link<D::Stream>) -> Option<Loss> {
        let mut timer = Timer::new(self.clock);
        let mut close_by_ms = None;
        poll_fn(|cx| {
            loop {
                match self.turn(cx, link, &mut timer, &mut close_by_ms) {
                    Ok(true) => {}
                    Ok(false) if self.driver.is_finished() => return Poll::Ready(None),
                    Ok(false) => return Poll::Pending,
                    // The server may close first.
                    Err(_) if self.driver.is_finished() => return Poll::Ready(None),
                    Err(loss) => return Poll::Ready(Some(loss)),
                }
            }
        })
        .await
    }

    /// One round: commands in, bytes out, bytes in, time. `true`: something happened, go on.
    fn turn(
        &mut self,
        cx: &mut Context<'_>,
        link: &mut Link<D::Stream>,
        timer: &mut Timer,
        close_by_ms: &mut Option<u64>,
    ) -> Result<bool, Loss> {
        let now_ms = self.clock.now_ms();
        let mut is_busy = !self.driver.is_congested() && self.inbox.poll(cx, &mut self.driver);
        self.driver.flush(now_ms);
        let Some(connection) = self.driver.connection() else {
            return Ok(false);
        };
        is_busy |= link.poll_send(cx, connection, now_ms)?;
        let received = link.poll_receive(cx, connection, now_ms);
        // What came before an error still counts.
        self.driver.on_events(now_ms);
        is_busy |= received?;
        if self.driver.is_closing() {
            close_by_ms.get_or_insert(now_ms + CLOSE_WAIT_MS);
        }
        let deadline_ms = self
            .driver
            .next_deadline_ms()
            .into_iter()
            .chain(*close_by_ms)
            .min();
        if let Some(deadline_ms) = deadline_ms
            && timer.poll_at(cx, deadline_ms).is_ready()
        {
            self.on_time(close_by_ms.as_ref())?;
            is_busy = true;
        }
        Ok(is_busy)
    }

    fn on_time(&mut self, close_by_ms: Option<&u64>) -> Result<(), Loss> {
        let now_ms = self.clock.now_ms();
        if close_by_ms.is_some_and(|close_by_ms| now_ms >= *close_by_ms) {
            return Err(Loss::new(
                "the server did not answer before the client closed",
            ));
        }
        let connection = self.driver.connection();
        let alive = connection.map_or(Ok(()), |connection| connection.on_timer(now_ms));
        alive.map_err(|error| Loss::new(error.to_string()))
    }

    /// Opens the next connection, as the policy says; `None`: the client ends.
    async fn reconnect(&mut self, mut loss: Loss) -> Option<Link<D::Stream>> {
        let policy = self.config.reconnect;
        let refuse_at_ms = self.clock.now_ms().saturating_add(policy.request_wait_ms);
        let mut attempt = 0;
        loop {
            let is_over = policy
                .attempts_max
                .is_some_and(|attempts_max| attempt >= attempts_max);
            if !policy.enabled || is_over || self.driver.is_closing() {
                self.driver.give_up(&loss);
                return None;
            }
            let delay_ms = policy.delay_ms(attempt, random());
            let wake_at_ms = self.clock.now_ms().saturating_add(delay_ms);
            let mut waiting = Waiting {
                driver: &mut self.driver,
                inbox: &mut self.inbox,
                clock: self.clock,
                refuse_at_ms,
                loss: loss.clone(),
            };
            waiting
                .until(sleep_until(self.clock.instant(wake_at_ms)))
                .await?;
            let opened = waiting
                .until(open(&mut self.dial, &self.config, self.clock))
                .await?;
            match opened {
                Ok((link, connection)) => {
                    self.driver.attach(connection);
                    return Some(link);
                }
                Err(error) => {
                    loss = Loss::new(error.to_string());
                    if !error.is_retryable() {
                        self.driver.give_up(&loss);
                        return None;
                    }
                }
            }
            attempt = attempt.saturating_add(1);
        }
    }
}

/// What goes on while there is no connection.
struct Waiting<'a, V: Drive> {
    driver: &'a mut V,
    inbox: &'a mut Inbox<V::Command>,
    clock: Clock,
    /// When waiting requests fail.
    refuse_at_ms: u64,
    loss: Loss,
}

impl<V: Drive> Waiting<'_, V> {
    /// Takes commands until `event`; `None`: the client is to end.
    async fn until<F: Future>(&mut self, event: F) -> Option<F::Output> {
        let mut event = pin!(event);
        let mut refusal = Timer::new(self.clock);
        let mut is_refusing = false;
        poll_fn(|cx| {
            if let Poll::Ready(output) = event.as_mut().poll(cx) {
                return Poll::Ready(Some(output));
            }
            while self.inbox.poll(cx, self.driver) {}
            if self.driver.is_closing() {
                self.driver.give_up(&self.loss);
                return Poll::Ready(None);
            }
            if !is_refusing && refusal.poll_at(cx, self.refuse_at_ms).is_ready() {
                is_refusing = true;
                self.driver.refuse(&self.loss);
            }
            Poll::Pending
        })
        .await
    }
}

/// A number to spread reconnects with. It protects nothing, so the seed that the standard library
/// draws for its hash maps will do.
fn random() -> u64 {
    RandomState::new().hash_one(0_u8)
}
