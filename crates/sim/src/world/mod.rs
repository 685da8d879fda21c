//! The world: draws what happens next, and ends the run when a promise is broken.

mod amaquet;
mod amqp;
mod backup;
mod cast;
mod emptied;
mod examine;
mod heal;
mod keys;
mod lives;
mod network;
mod purge;
mod restored;
mod scripts;
mod step;
mod topology;

use std::panic::{AssertUnwindSafe, catch_unwind};

use tanda_engine::Millis;

use crate::Options;
use crate::clients::{Client, Cx, Role};
use crate::failure::{Check, Failure, Violation, ensure};
use crate::faults::{Plan, Strike};
use crate::history::amaquet::{Amaquet, AmaquetCounts};
use crate::history::amqp::{Amqp, AmqpCounts};
use crate::history::{Counts, History, Keys};
use crate::host::{Death, Host};
use crate::invariants::one_moment::Span;
use crate::invariants::recovers;
use crate::random::Random;
use crate::trace::Trace;

use cast::{clients, queues};
pub(crate) use emptied::Emptied;
pub(crate) use examine::Places;
use step::{DRAWS_MAX, STEPS, Step};

/// A run that found nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What was given.
    pub seed: u64,
    /// SHA-256 of every event in order, in hexadecimal: the same for the same seed.
    pub digest: String,
    /// Events in it.
    pub events: u64,
    /// Times the broker was started.
    pub starts: u64,
    /// Backups that were made, restored and emptied.
    pub backups: u64,
    /// What clients did and saw.
    pub counts: Counts,
    /// What AMQP clients did and saw.
    pub amqp: AmqpCounts,
    /// What Amaquet clients did and saw.
    pub amaquet: AmaquetCounts,
}

/// Runs one seed to its end.
///
/// # Errors
/// A broken promise, or a panic anywhere below; the failure names the seed.
pub fn run(seed: u64, options: &Options) -> Result<Report, Box<Failure>> {
    let mut world = World::new(seed, options);
    let outcome = catch_unwind(AssertUnwindSafe(|| world.live(options.steps)));
    let (invariant, what) = match outcome {
        Ok(Ok(())) => return Ok(world.report(seed)),
        Ok(Err(violation)) => (violation.invariant, violation.what),
        Err(panic) => ("panic", text_of(panic.as_ref())),
    };
    Err(Box::new(Failure {
        seed,
        step: world.step,
        invariant,
        what,
        log: world.trace.into_lines(),
    }))
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("no text").to_owned()
}

/// Unix milliseconds at which every run begins.
const EPOCH: Millis = Millis(1_700_000_000_000);

struct World {
    now: Millis,
    step: u64,
    starts: u64,
    host: Host,
    clients: Vec<Client>,
    history: History,
    trace: Trace,
    plan: Plan,
    /// Earliest next start while the process is down.
    down_until: Millis,
    schedule: Random,
    network: Random,
    clock: Random,
    process: Random,
    /// Of what looks at a run and changes nothing in it.
    looks: Random,
    /// Of what happens to AMQP's queues at rest.
    amqp_rest: Random,
    /// Somebody purges queues.
    purges: bool,
    /// Somebody makes backups.
    backups: bool,
    backups_done: u64,
    /// When the newest backup was asked for, and ready.
    backup_span: Span,
    /// What AMQP clients knew when it was asked for.
    backup_asked: Amqp,
    /// How often each kind of step is drawn.
    weights: Vec<(Step, u64)>,
    weight_sum: u64,
}

impl World {
    fn new(seed: u64, options: &Options) -> Self {
        let mut schedule = Random::stream(seed, "schedule");
        // Some seeds starve a part of the broker.
        let weights: Vec<(Step, u64)> = STEPS
            .iter()
            .map(|(step, weight)| (*step, weight * schedule.between(1, 6)))
            .collect();
        let host = Host::new(seed, options.canary);
        let is_small = host.config.memory_limit_bytes > 0;
        let keys = Keys::new(host.asks_for_keys());
        let mut amqp = Amqp::draw(seed);
        let amaquet = Amaquet::draw(seed, !amqp.is_there());
        // What is restored is looked through by clients that know of no keys.
        let has_keys = amaquet.is_there;
        let plan = Plan::draw(seed);
        amqp.may_be_full = is_small || plan.has_disk_faults();
        Self {
            now: EPOCH,
            step: 0,
            starts: 0,
            host,
            clients: clients(seed, &amqp, &amaquet),
            history: History {
                queues: queues(seed),
                is_small,
                keys,
                amqp,
                amaquet,
                ..History::default()
            },
            trace: Trace::new(options.keeps_log),
            plan,
            down_until: EPOCH,
            weight_sum: weights.iter().map(|(_, weight)| weight).sum(),
            weights,
            purges: schedule.one_in(4),
            backups: schedule.one_in(3) && !has_keys,
            backups_done: 0,
            backup_span: Span { asked: 0, ready: 0 },
            backup_asked: Amqp::default(),
            schedule,
            network: Random::stream(seed, "network"),
            clock: Random::stream(seed, "clock"),
            process: Random::stream(seed, "process"),
            looks: Random::stream(seed, "looks"),
            amqp_rest: Random::stream(seed, "amqp at rest"),
        }
    }

    fn report(self, seed: u64) -> Report {
        Report {
            seed,
            digest: self.trace.digest(),
            events: self.trace.events(),
            starts: self.starts,
            backups: self.backups_done,
            counts: self.history.counts,
            amqp: self.history.amqp.counts,
            amaquet: self.history.amaquet.counts,
        }
    }

    fn live(&mut self, steps: u64) -> Check {
        for (name, facts) in &self.history.queues {
            self.trace
                .note(self.now, || format!("  {name}: {:?}", facts.draw));
        }
        for (name, queue) in &self.history.amqp.queues {
            self.trace
                .note(self.now, || format!("  {name}: {:?}", queue.draw));
        }
        while self.step < steps {
            self.step += 1;
            if let Some(strike) = self.plan.next() {
                self.strike(strike)?;
            }
            self.keep_process()?;
            for _ in 0..DRAWS_MAX {
                let step = self.draw_step();
                if self.do_step(step)? {
                    break;
                }
            }
            self.after_step()?;
        }
        self.heal()
    }

    fn draw_step(&mut self) -> Step {
        let mut draw = self.schedule.below(self.weight_sum);
        for (step, weight) in &self.weights {
            if draw < *weight {
                return *step;
            }
            draw -= weight;
        }
        Step::Clock
    }

    /// False when there was nothing to do.
    fn do_step(&mut self, step: Step) -> Result<bool, Violation> {
        let now = self.now;
        let count = match step {
            Step::Act => self.act(),
            Step::ToBroker => self.arrive_at_broker()?,
            Step::Transmit => self.transmit(),
            Step::ToClient => self.arrive_at_client()?,
            Step::Mail => self.mail(),
            Step::Handle => {
                let most = self.schedule.length(20);
                self.host.handle(most, now)
            }
            Step::Run => {
                // A pass is worth its step also when nothing is left after it.
                self.trace.event(now, "run", 0, &[]);
                return Ok(self.host.run_node(now));
            }
            Step::TakeFlush => usize::from(self.host.take_flush(now)),
            Step::RunFlush => usize::from(self.host.run_flush(now)),
            Step::FinishFlush => usize::from(self.host.finish_flush(now)),
            Step::TakeBackground => usize::from(self.host.take_background(now)),
            Step::RunBackground => usize::from(self.host.run_background(now)),
            Step::FinishBackground => usize::from(self.host.finish_background(now)),
            Step::Release => self.host.release(now, &mut self.trace),
            Step::Timers => self.host.session_timers(now),
            Step::Clock => self.pass_time(),
            Step::Door => self.at_door()?,
            Step::Backup => self.back_up()?,
            Step::Script => self.finish_script(),
            Step::Keys => {
                let most = self.schedule.length(4);
                self.host.wake_for_keys(most, now)
            }
        };
        if count > 0 {
            self.trace.event(now, step.name(), count as u64, &[]);
        }
        Ok(count > 0)
    }

    /// Mostly a little; sometimes up to the next deadline or far beyond.
    fn pass_time(&mut self) -> usize {
        let next = self.host.next_deadline().map_or(0, |at| self.now.until(at));
        let ms = match self.clock.below(20) {
            0 => next,
            1 => self.clock.below(2_000),
            2..=9 => self.clock.below(20),
            _ => self.clock.below(3),
        };
        self.now = self.now.after_ms(ms);
        self.trace.event(self.now, "clock", ms, &[]);
        1
    }

    /// One client does something of its own accord.
    fn act(&mut self) -> usize {
        let index = self.schedule.index(self.clients.len());
        self.act_as(index)
    }

    /// Returns how many bytes it had to say.
    fn act_as(&mut self, index: usize) -> usize {
        let Some(client) = self.clients.get_mut(index) else {
            return 0;
        };
        if matches!(client.role, Role::Amqp(_)) && client.is_away() {
            self.connect_amqp(index);
        } else if matches!(client.role, Role::Amaquet(_)) && client.is_away() {
            self.connect_amaquet(index);
        } else if client.is_away() {
            let hello = keys::hello(&self.history.keys, client, self.now);
            if let Some(hello) = hello
                && let Some(conn) = self.host.accept(index, self.now)
            {
                client.connect(conn, &hello);
                self.trace.event(self.now, "connect", conn, &[]);
                self.trace
                    .note(self.now, || format!("  as {:?}", hello.holder));
            }
        } else {
            client.act(&mut Cx {
                now: self.now,
                history: &mut self.history,
                trace: &mut self.trace,
            });
        }
        self.collect(index)
    }

    fn strike(&mut self, strike: Strike) -> Check {
        self.trace.event(self.now, "strike", strike as u64, &[]);
        self.trace.note(self.now, || format!("  {strike:?}"));
        match strike {
            Strike::PowerLoss => self.die(Death::PowerLoss),
            Strike::Kill => self.die(Death::Kill),
            Strike::Cut => self.cut_one(),
            Strike::Vanish => self.lose_one_silently(),
            Strike::HalfClose => {
                self.half_close_one();
                Ok(())
            }
            Strike::Stall => {
                self.stall_one();
                Ok(())
            }
            Strike::PowerLossSoon
            | Strike::DiskError
            | Strike::ShortCall
            | Strike::Full
            | Strike::Room
            | Strike::Slow
            | Strike::Quick
            | Strike::Rot
            | Strike::Mend => {
                self.plan.prepare(strike, &mut self.host);
                Ok(())
            }
        }
    }

    /// Ends what the disk has ended, restarts what an operator would restart.
    fn keep_process(&mut self) -> Check {
        if self.host.disk.is_down() {
            return self.die(Death::PowerLoss);
        }
        let Some(node) = &self.host.node else {
            if self.now >= self.down_until && self.process.one_in(5) {
                return self.start(false);
            }
            return Ok(());
        };
        if node.failed().is_some() && self.process.one_in(60) {
            let death = self.draw_death();
            return self.die(death);
        }
        Ok(())
    }

    fn draw_death(&mut self) -> Death {
        if self.process.one_in(2) {
            Death::PowerLoss
        } else {
            Death::Kill
        }
    }

    fn die(&mut self, death: Death) -> Check {
        self.trace.event(self.now, "die", death as u64, &[]);
        self.history.amqp.on_time(self.now);
        self.lose_wires()?;
        let lost = self.host.die(death);
        self.history.on_crash(self.now, death);
        for index in lost {
            self.lose(index)?;
        }
        let pause_ms = match self.clock.below(4) {
            0 => 0,
            1 => self.clock.below(20_000),
            _ => self.clock.below(200),
        };
        self.down_until = self.now.after_ms(pause_ms);
        if self.process.one_in(2) {
            self.now = self.down_until;
        }
        Ok(())
    }

    /// Starts the process. It may fail while the disk fails calls, never on a sound disk.
    fn start(&mut self, disk_is_sound: bool) -> Check {
        // A start must not read what its operator would have to repair.
        self.host.disk.mend();
        self.examine()?;
        // The wall clock may have been set back while the process was down.
        let back_ms = if self.clock.one_in(4) {
            self.clock.below(10_000)
        } else {
            0
        };
        let wall = Millis(self.now.0 - back_ms);
        let opened = self.host.open(wall, &mut self.process);
        self.trace
            .event(self.now, "start", u64::from(opened.is_ok()), &[]);
        let Err(error) = opened else {
            self.starts += 1;
            let floor = self.host.node.as_ref().map(|node| node.clock_floor());
            let floor = floor.unwrap_or(self.now);
            ensure(floor <= self.now.after_ms(1), recovers::NAME, || {
                format!(
                    "the clock is to start at {floor:?}, and it is {:?}",
                    self.now
                )
            })?;
            self.now = self.now.max(floor);
            self.history.amqp.on_up(self.now);
            return self.compare_keys();
        };
        self.trace.note(self.now, || format!("  {error}"));
        recovers::on_start_failed(&error, disk_is_sound)?;
        let death = self.draw_death();
        self.die(death)
    }

    fn after_step(&mut self) -> Check {
        // What a dead machine did last never leaves it.
        if self.host.disk.is_down() {
            return self.die(Death::PowerLoss);
        }
        // Whoever read has waited for it.
        self.now = self.now.after_ms(self.host.reads_took_ms());
        self.history.amqp.on_time(self.now);
        self.host.assert_invariants();
        self.host.check_loads()
    }
}
