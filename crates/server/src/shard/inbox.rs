//! The shard thread's inbox: everything that can wake it.
//!
//! ```text
//!  connections ── requests (bounded) ──┐
//!  other threads ─ what is finished ───┼──► Inbox ──► shard thread
//!  HTTP door  ─── questions ───────────┤
//!  shutdown ───── stop ────────────────┘
//! ```
//!
//! One mutex, taken once per batch on both sides, and one condition variable that is signalled only
//! when the thread sleeps.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use tanda_engine::{ConnId, Request};

use super::{
    mailbox::{Mailbox, lock},
    pieces::Pieces,
};

/// Bounds of what may wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InboxLimits {
    /// Requests, those included that the thread has taken and not finished.
    pub(crate) requests_max: usize,
    /// Their bytes ([`Request::weight_bytes`]).
    pub(crate) bytes_max: usize,
}

/// See the module. `O` is the outcome of a flush or a background job, `Q` a question.
pub(crate) struct Inbox<O, Q> {
    limits: InboxLimits,
    state: Mutex<State<O, Q>>,
    wake: Condvar,
}

impl<O, Q> fmt::Debug for Inbox<O, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// What the thread takes at once.
pub(crate) struct Taken<O, Q> {
    /// Requests in the order they came.
    pub(crate) requests: VecDeque<Request>,
    /// New connections; each before its first request.
    pub(crate) opened: Vec<(ConnId, Arc<Mailbox>)>,
    /// Questions to answer.
    pub(crate) questions: Vec<Q>,
    /// Work on other threads that is done.
    pub(crate) finished: Vec<O>,
    /// The process is about to end.
    pub(crate) stop: bool,
}

impl<O, Q> Default for Taken<O, Q> {
    fn default() -> Self {
        Self {
            requests: VecDeque::new(),
            opened: Vec::new(),
            questions: Vec::new(),
            finished: Vec::new(),
            stop: false,
        }
    }
}

/// How long to wait for something to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Not at all.
    No,
    /// Until then; `None` = as long as it takes.
    Until(Option<Instant>),
}

/// Which of the waiting things are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// Everything.
    All,
    /// Everything but requests: those stay, and their senders feel it.
    NoRequests,
}

struct State<O, Q> {
    waiting: Taken<O, Q>,
    /// The requests in `waiting`.
    waiting_load: Load,
    /// The requests that the thread has taken and not finished.
    taken_load: Load,
    sleep: Sleep,
}

/// What requests weigh. Kinds that must not crowd each other out are counted apart.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    /// Requests whose sender is told when they find no room.
    ordinary: usize,
    /// All others.
    bookkeeping: usize,
    small_bytes: usize,
    /// Bytes of requests larger than [`LARGE_SHARE`] of all that may wait.
    large_bytes: usize,
}

/// A request is large when it takes more than one part in this many of the bytes that may wait.
const LARGE_SHARE: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sleep {
    Awake,
    /// Anything wakes it.
    Sound,
    /// Requests do not wake it.
    DeafToRequests,
}

impl<O, Q> Inbox<O, Q> {
    pub(crate) fn new(limits: InboxLimits) -> Self {
        Self {
            limits,
            state: Mutex::new(State {
                waiting: Taken::default(),
                waiting_load: Load::default(),
                taken_load: Load::default(),
                sleep: Sleep::Awake,
            }),
            wake: Condvar::new(),
        }
    }

    /// Announces a connection; its requests follow.
    pub(crate) fn open(&self, conn: ConnId, mailbox: Arc<Mailbox>) {
        lock(&self.state).waiting.opened.push((conn, mailbox));
    }

    /// Sends requests in order, and empties `requests` but for those that found no room, in order.
    /// After the first refused one only bookkeeping passes, so that no publish overtakes another.
    pub(crate) fn try_send(&self, requests: &mut Vec<Request>) {
        if requests.is_empty() {
            return;
        }
        let mut refused = Vec::new();
        let mut full = false;
        let mut state = lock(&self.state);
        for request in requests.drain(..) {
            let bytes = request.weight_bytes();
            let standing = standing(&request);
            let fits = match standing {
                Standing::Always => true,
                Standing::Bookkeeping => state.load().bookkeeping < self.limits.requests_max,
                Standing::Ordinary => !full && state.load().has_room(bytes, &self.limits),
            };
            if fits {
                state.waiting_load.add(standing, bytes, &self.limits);
                state.waiting.requests.push_back(request);
            } else {
                full |= standing == Standing::Ordinary;
                refused.push(request);
            }
        }
        let rouse = state.sleep == Sleep::Sound;
        self.rouse(state, rouse);
        *requests = refused;
    }

    /// Whether nothing waits at this moment.
    pub(crate) fn is_empty(&self) -> bool {
        !lock(&self.state).has(Want::All)
    }

    /// Puts a question.
    pub(crate) fn ask(&self, question: Q) {
        let mut state = lock(&self.state);
        state.waiting.questions.push(question);
        let rouse = state.sleep != Sleep::Awake;
        self.rouse(state, rouse);
    }

    /// Reports the outcome of work on another thread.
    pub(crate) fn finished(&self, outcome: O) {
        let mut state = lock(&self.state);
        state.waiting.finished.push(outcome);
        let rouse = state.sleep != Sleep::Awake;
        self.rouse(state, rouse);
    }

    /// Asks the thread to finish what waits and end.
    pub(crate) fn stop(&self) {
        let mut state = lock(&self.state);
        state.waiting.stop = true;
        let rouse = state.sleep != Sleep::Awake;
        self.rouse(state, rouse);
    }

    /// Signals after the lock is gone, so that the thread does not wake only to wait for it.
    fn rouse(&self, mut state: MutexGuard<'_, State<O, Q>>, rouse: bool) {
        if rouse {
            state.sleep = Sleep::Awake;
        }
        drop(state);
        if rouse {
            self.wake.notify_one();
        }
    }

    /// Takes what is wanted, waiting for it if told to. `taken` must hold no requests when
    /// requests are wanted: taking says that the earlier ones are finished, but for what
    /// `unfinished` holds.
    pub(crate) fn take_beside(
        &self,
        taken: &mut Taken<O, Q>,
        unfinished: &Pieces,
        want: Want,
        wait: Wait,
    ) {
        let unfinished = self.load_of(unfinished);
        let mut state = lock(&self.state);
        if want == Want::All {
            debug_assert!(
                taken.requests.is_empty(),
                "earlier requests are not finished"
            );
            // Before it sleeps: nothing may be refused for the sake of what is done.
            state.taken_load = unfinished;
        }
        if let Wait::Until(until) = wait {
            state = self.sleep(state, want, until);
        }
        if want == Want::All {
            std::mem::swap(&mut state.waiting.requests, &mut taken.requests);
            state.taken_load = std::mem::take(&mut state.waiting_load).plus(unfinished);
        }
        let waiting = &mut state.waiting;
        taken.opened.append(&mut waiting.opened);
        taken.questions.append(&mut waiting.questions);
        taken.finished.append(&mut waiting.finished);
        taken.stop |= std::mem::take(&mut waiting.stop);
    }

    fn load_of(&self, unfinished: &Pieces) -> Load {
        let mut load = Load::default();
        for request in unfinished.requests() {
            load.add(standing(request), request.weight_bytes(), &self.limits);
        }
        for bytes in unfinished.batch_bytes() {
            load.add(Standing::Ordinary, bytes, &self.limits);
        }
        load
    }

    fn sleep<'a>(
        &self,
        mut state: MutexGuard<'a, State<O, Q>>,
        want: Want,
        until: Option<Instant>,
    ) -> MutexGuard<'a, State<O, Q>> {
        while !state.has(want) {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break;
            }
            state.sleep = match want {
                Want::All => Sleep::Sound,
                Want::NoRequests => Sleep::DeafToRequests,
            };
            state = match left {
                None => self
                    .wake
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    let woken = self.wake.wait_timeout(state, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
            state.sleep = Sleep::Awake;
        }
        state
    }
}

impl<O, Q> State<O, Q> {
    const fn load(&self) -> Load {
        self.waiting_load.plus(self.taken_load)
    }

    fn has(&self, want: Want) -> bool {
        let waiting = &self.waiting;
        let requests = !waiting.requests.is_empty() && matches!(want, Want::All);
        requests || !waiting.finished.is_empty() || !waiting.questions.is_empty() || waiting.stop
    }
}

impl Load {
    const fn plus(self, other: Self) -> Self {
        Self {
            ordinary: self.ordinary + other.ordinary,
            bookkeeping: self.bookkeeping + other.bookkeeping,
            small_bytes: self.small_bytes + other.small_bytes,
            large_bytes: self.large_bytes + other.large_bytes,
        }
    }

    fn add(&mut self, standing: Standing, bytes: usize, limits: &InboxLimits) {
        match standing {
            Standing::Ordinary => self.ordinary += 1,
            Standing::Always | Standing::Bookkeeping => self.bookkeeping += 1,
        }
        if is_large(bytes, limits) {
            self.large_bytes += bytes;
        } else {
            self.small_bytes += bytes;
        }
    }

    /// A large request fits when no other waits, whatever its size and whatever else waits: small
    /// ones would always leave too little room for it. Half of the bytes is kept for small ones:
    /// large ones would leave none.
    fn has_room(&self, bytes: usize, limits: &InboxLimits) -> bool {
        let all = self.small_bytes.saturating_add(self.large_bytes);
        let in_all = all.saturating_add(bytes) <= limits.bytes_max;
        let in_its_part = if is_large(bytes, limits) {
            self.large_bytes == 0
        } else {
            self.small_bytes.saturating_add(bytes) <= limits.bytes_max / 2
        };
        self.ordinary < limits.requests_max && (in_all || in_its_part)
    }
}

const fn is_large(bytes: usize, limits: &InboxLimits) -> bool {
    bytes > limits.bytes_max / LARGE_SHARE
}

/// Who is refused when the inbox is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Never: at most two for each connection, and a few for each queue.
    Always,
    /// Hardly: a connection merges those that were refused and offers them again.
    Bookkeeping,
    /// First: its sender is told to try again.
    Ordinary,
}

const fn standing(request: &Request) -> Standing {
    match request {
        Request::Connect { .. }
        | Request::Disconnect { .. }
        | Request::KeysUndelivered { .. }
        | Request::GotUndelivered { .. }
        | Request::ScriptDone { .. } => Standing::Always,
        Request::Drained { .. }
        | Request::Grant { .. }
        | Request::Pool { .. }
        | Request::CancelWait { .. }
        | Request::Unwatch { .. }
        | Request::WatchDrained { .. }
        | Request::Unsubscribe { .. } => Standing::Bookkeeping,
        Request::Publish { .. }
        | Request::Settle { .. }
        | Request::Subscribe { .. }
        | Request::Get { .. }
        | Request::Transaction { .. }
        | Request::Keys { .. }
        | Request::Watch { .. }
        | Request::Admin { .. } => Standing::Ordinary,
    }
}

#[cfg(test)]
mod tests {
    use tanda_engine::{ConnLimits, PublishBatch, ReplyTo, SubId};

    use super::*;

    type TestInbox = Inbox<u32, u32>;

    impl TestInbox {
        fn take(&self, taken: &mut Taken<u32, u32>, want: Want, wait: Wait) {
            self.take_beside(taken, &Pieces::default(), want, wait);
        }
    }

    fn inbox(requests_max: usize, bytes_max: usize) -> TestInbox {
        Inbox::new(InboxLimits {
            requests_max,
            bytes_max,
        })
    }

    fn publish(token: u32, bytes: usize) -> Request {
        Request::Publish {
            reply: ReplyTo {
                conn: ConnId(1),
                token,
            },
            batch: PublishBatch {
                data: vec![0; bytes].into(),
                ..PublishBatch::default()
            },
        }
    }

    fn grant() -> Request {
        Request::Grant {
            sub: SubId {
                conn: ConnId(1),
                token: 9,
            },
            credit: 1,
        }
    }

    fn tokens(requests: impl IntoIterator<Item = Request>) -> Vec<u32> {
        let token = |request| {
            if let Request::Publish { reply, .. } = request {
                return reply.token;
            }
            let Request::Grant { sub, .. } = request else {
                panic!("{request:?}")
            };
            sub.token
        };
        requests.into_iter().map(token).collect()
    }

    #[test]
    fn refuses_what_is_over_the_count_and_lets_no_later_publish_pass() {
        let inbox = inbox(2, 1 << 20);
        let mut requests = vec![publish(1, 0), publish(2, 0), publish(3, 0), grant()];
        inbox.try_send(&mut requests);
        assert_eq!(tokens(requests), [3]);
        let mut taken = Taken::default();
        inbox.take(&mut taken, Want::All, Wait::No);
        assert_eq!(tokens(taken.requests), [1, 2, 9]);
    }

    #[test]
    fn a_small_publish_does_not_overtake_a_large_refused_one() {
        let inbox = inbox(100, 1000);
        let mut requests = vec![publish(1, 500), publish(2, 5000), publish(3, 1)];
        inbox.try_send(&mut requests);
        assert_eq!(tokens(requests), [2, 3]);
    }

    #[test]
    fn one_request_over_the_byte_limit_passes_alone() {
        let inbox = inbox(100, 1000);
        let mut requests = vec![publish(1, 5000)];
        inbox.try_send(&mut requests);
        assert!(requests.is_empty());
    }

    #[test]
    fn what_is_finished_takes_no_room_while_the_thread_sleeps() {
        let inbox = Arc::new(inbox(100, 1000));
        let thread = std::thread::spawn({
            let inbox = Arc::clone(&inbox);
            move || {
                let mut taken = Taken::default();
                inbox.take(&mut taken, Want::All, Wait::Until(None));
                taken.requests.clear();
                inbox.take(&mut taken, Want::All, Wait::Until(None));
                tokens(taken.requests)
            }
        });
        inbox.try_send(&mut vec![publish(1, 0)]);
        while {
            let state = lock(&inbox.state);
            !state.waiting.requests.is_empty() || state.sleep != Sleep::Sound
        } {
            std::thread::yield_now();
        }
        let mut large = vec![publish(2, 5000)];
        inbox.try_send(&mut large);
        let refused = tokens(large);
        inbox.try_send(&mut vec![publish(3, 0)]);
        assert_eq!(refused, [0_u32; 0]);
        assert_eq!(thread.join().unwrap().first(), Some(&2));
    }

    #[test]
    fn small_and_large_requests_do_not_crowd_each_other_out() {
        let inbox = inbox(1000, 10_000);
        let mut small: Vec<_> = (0..100).map(|token| publish(token, 100)).collect();
        inbox.try_send(&mut small);
        assert!(!small.is_empty(), "the small ones fill it");
        let mut large = vec![publish(200, 50_000)];
        inbox.try_send(&mut large);
        assert_eq!(tokens(large), [0_u32; 0]);
        let mut second = vec![publish(201, 5000)];
        inbox.try_send(&mut second);
        assert_eq!(tokens(second), [201], "one at a time over the limit");

        let mut taken = Taken::default();
        inbox.take(&mut taken, Want::All, Wait::No);
        taken.requests.clear();
        inbox.take(&mut taken, Want::All, Wait::No);
        inbox.try_send(&mut vec![publish(300, 50_000)]);
        let mut small = vec![publish(301, 100)];
        inbox.try_send(&mut small);
        assert_eq!(tokens(small), [0_u32; 0]);
    }

    #[test]
    fn grants_do_not_crowd_publishes_out() {
        let inbox = inbox(10, 1 << 20);
        inbox.try_send(&mut (0..100).map(|_| grant()).collect());
        let mut requests = vec![publish(1, 0)];
        inbox.try_send(&mut requests);
        assert_eq!(tokens(requests), [0_u32; 0]);
    }

    #[test]
    fn requests_count_until_the_thread_comes_back_for_more() {
        let inbox = inbox(1, 1 << 20);
        inbox.try_send(&mut vec![publish(1, 0)]);
        let mut taken = Taken::default();
        inbox.take(&mut taken, Want::All, Wait::No);
        let mut second = vec![publish(2, 0)];
        inbox.try_send(&mut second);
        assert_eq!(tokens(second), [2]);
        taken.requests.clear();
        inbox.take(&mut taken, Want::All, Wait::No);
        let mut third = vec![publish(3, 0)];
        inbox.try_send(&mut third);
        assert!(third.is_empty());
    }

    #[test]
    fn connect_and_disconnect_always_pass_and_bookkeeping_has_a_bound() {
        let inbox = inbox(1, 1 << 20);
        let conn = ConnId(1);
        let limits = ConnLimits {
            outbound_bytes_max: 1,
            subscriptions_max: 1,
        };
        let mut requests = vec![
            publish(1, 0),
            grant(),
            grant(),
            Request::Connect { conn, limits },
            Request::Disconnect { conn },
        ];
        inbox.try_send(&mut requests);
        assert_eq!(tokens(requests), [9]);
    }

    #[test]
    fn a_sleeping_thread_is_woken_by_a_request() {
        let inbox = Arc::new(inbox(10, 1 << 20));
        let thread = std::thread::spawn({
            let inbox = Arc::clone(&inbox);
            move || {
                let mut taken = Taken::default();
                inbox.take(&mut taken, Want::All, Wait::Until(None));
                tokens(taken.requests)
            }
        });
        inbox.try_send(&mut vec![publish(7, 0)]);
        assert_eq!(thread.join().unwrap(), [7]);
    }

    #[test]
    fn requests_do_not_wake_a_thread_that_waits_for_the_disk() {
        let inbox = Arc::new(inbox(10, 1 << 20));
        let thread = std::thread::spawn({
            let inbox = Arc::clone(&inbox);
            move || {
                let mut taken = Taken::default();
                inbox.take(&mut taken, Want::NoRequests, Wait::Until(None));
                (taken.requests.len(), taken.finished)
            }
        });
        inbox.try_send(&mut vec![publish(7, 0)]);
        inbox.finished(5);
        assert_eq!(thread.join().unwrap(), (0, vec![5]));
    }
}
