//! Asking a new connection for what the last one had.

use tanda_wire::firemq::ReplyCode;
use tanda_wire::firemq::consume::Subscribe;

use super::{Driver, OUTPUT_BYTES_HIGH};
use crate::fire::core::{Answer, Request};
use crate::fire::error::{Refusal, SubscriptionError};
use crate::fire::shell::job::Context;
use crate::fire::shell::restore::{Next, Step};
use crate::fire::topology::Destination;

impl Driver {
    /// Asks for as much as goes out now.
    pub(super) fn flush_restore(&mut self, now_ms: u64) {
        while let Some(restore) = &mut self.restore {
            let connection = self.connection.as_ref();
            if connection.is_none_or(|it| it.output().len() >= OUTPUT_BYTES_HIGH) {
                return;
            }
            match restore.next(now_ms, &self.declared, &self.subscriptions) {
                Next::Ask(step, tries) => self.ask_again(step, tries),
                Next::Wait => return,
                Next::Done => self.restore = None,
            }
        }
    }

    /// Asks for one thing. What has ended in between is passed over.
    fn ask_again(&mut self, step: Step, tries: u32) {
        if let Step::Subscription(slot) = step
            && let Some(error) = self.why_broken(slot)
        {
            self.subscriptions.end(slot, error);
            return;
        }
        let (Some(connection), Some(restore)) = (&mut self.connection, &mut self.restore) else {
            return;
        };
        let asked = {
            let mut ask = |step, request: &Request<'_>| {
                let context = |step| Context::Restore(step, tries);
                connection.request(step, context, |_, writer| writer.write(request))
            };
            match &step {
                Step::Exchange(name) => self.declared.exchange(name).map(|exchange| {
                    let arguments = exchange.encode_arguments();
                    let declare = exchange.to_wire(&arguments);
                    ask(step.clone(), &Request::DeclareExchange(declare))
                }),
                Step::Queue(name) => self.declared.queue(name).map(|queue| {
                    let arguments = queue.encode_arguments();
                    ask(
                        step.clone(),
                        &Request::DeclareQueue(queue.to_wire(&arguments)),
                    )
                }),
                Step::Binding(binding) => {
                    let arguments = binding.encode_arguments();
                    let bind = binding.to_wire(&arguments, |name| self.declared.current(name));
                    Some(ask(step.clone(), &Request::Bind(bind)))
                }
                Step::Subscription(slot) => {
                    self.subscriptions.reopen(*slot).map(|(new, credit)| {
                        let subscribe = Subscribe {
                            queue: self.declared.current(new.queue()),
                            ..new.to_wire(credit)
                        };
                        ask(step.clone(), &Request::Subscribe(subscribe))
                    })
                }
            }
        };
        match asked {
            None => {}
            Some(Ok(())) => restore.on_asked(),
            // It fitted the last connection, so this server takes less than that one did.
            Some(Err((step, error))) => {
                let refusal = Refusal::new(ReplyCode::FrameError, error.to_string());
                self.on_not_restored(&step, refusal);
            }
        }
    }

    pub(super) fn on_restored(&mut self, step: Step, answer: Answer) {
        if let Some(restore) = &mut self.restore {
            restore.on_answered();
        }
        match step {
            Step::Queue(name) => {
                if let Answer::Done { name: current, .. } = answer
                    && self.declared.current(&name) != current
                {
                    self.shared.rename(&name, &current);
                    self.declared.rename(&name, current);
                }
            }
            Step::Subscription(slot) => {
                if self.subscriptions.attach(slot) {
                    // What was released since it was asked for.
                    self.grant(slot);
                } else {
                    self.ask_to_end(slot);
                }
            }
            Step::Exchange(_) | Step::Binding(_) => {}
        }
    }

    pub(super) fn on_restore_refused(
        &mut self,
        now_ms: u64,
        (step, tries): (Step, u32),
        refusal: Refusal,
    ) {
        let Some(restore) = &mut self.restore else {
            return;
        };
        restore.on_answered();
        if let Some(step) = restore.delay(now_ms, (step, tries), &refusal) {
            self.on_not_restored(&step, refusal);
        }
    }

    /// Something cannot be declared again: it is forgotten, and those who would miss messages are
    /// told.
    fn on_not_restored(&mut self, step: &Step, refusal: Refusal) {
        self.shared.complain(refusal.clone());
        let Some(restore) = &mut self.restore else {
            return;
        };
        match step {
            // Its bindings are refused too, which is what matters to their queues.
            Step::Exchange(name) => self.declared.forget_exchange(name),
            Step::Queue(name) => {
                restore.on_broken(name, format!("queue {name:?}"), refusal);
                self.declared.remove_queue(name);
            }
            Step::Binding(binding) => {
                if let Destination::Queue(queue) = binding.destination() {
                    restore.on_broken(queue, binding.to_string(), refusal);
                }
                self.declared.remove_binding(binding);
            }
            Step::Subscription(slot) => {
                let error = SubscriptionError::Cancelled(refusal);
                self.subscriptions.end(*slot, error);
            }
        }
    }

    /// Why a subscription is not opened again although it could be.
    fn why_broken(&self, slot: u64) -> Option<SubscriptionError> {
        let restore = self.restore.as_ref()?;
        let queue = self.subscriptions.queue(slot)?;
        restore.broken(queue).cloned()
    }
}
