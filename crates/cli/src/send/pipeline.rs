//! Sends batches with several under way, and prints what became of each message in order.

use std::{collections::VecDeque, io};

use serde_json::json;
use tanda_client::{BatchConfirm, Message, Producer, Receipt, RequestError};

use super::input::{Batch, Input};
use crate::{
    failure::{Failure, explain},
    note::note,
    output::Output,
    progress::Progress,
    table::counted,
};

/// Batches whose confirmation is awaited.
const UNDER_WAY_MAX: usize = 8;
/// Refused messages that are told one by one.
const REFUSALS_SHOWN: u64 = 5;

/// What is printed of a stored message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receipts {
    /// Its ID.
    Ids,
    /// A JSON object on a line.
    Json,
    /// Nothing.
    Silent,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Pipeline {
    producer: Producer,
    template: Message,
    under_way: VecDeque<BatchConfirm>,
    progress: Progress,
    out: Output,
    receipts: Receipts,
    stored: u64,
    refused: u64,
    /// The first refusal, which decides the exit code.
    first_refusal: Option<RequestError>,
}

impl Pipeline {
    pub(super) fn new(producer: Producer, template: Message, receipts: Receipts) -> Self {
        Self {
            producer,
            template,
            under_way: VecDeque::new(),
            progress: Progress::new("sent"),
            out: Output::new(),
            receipts,
            stored: 0,
            refused: 0,
            first_refusal: None,
        }
    }

    pub(super) async fn run(mut self, mut input: Input) -> Result<(), Failure> {
        let mut input_failure = None;
        while !self.is_hopeless() {
            tokio::select! {
                biased;
                // Confirmations first: they make room, and a typed line is confirmed at once.
                Some(results) = first(&mut self.under_way) => self.on_results(results)?,
                batch = input.next(), if self.under_way.len() < UNDER_WAY_MAX => match batch {
                    Some(Ok(batch)) => self.submit(batch).await?,
                    Some(Err(failure)) => {
                        input_failure = Some(failure);
                        break;
                    }
                    None => break,
                },
            }
        }
        while let Some(results) = first(&mut self.under_way).await {
            self.on_results(results)?;
        }
        self.flush()?;
        drop(self.progress);
        let outcome = match self.first_refusal {
            None => Ok(()),
            Some(error) => {
                let (queue, refused) = (self.template.queue(), counted(self.refused, "message"));
                let stored = counted(self.stored, "message");
                let action = format!("send {refused} to {queue:?} ({stored} stored)");
                Err(Failure::request(action, &error))
            }
        };
        input_failure.map_or(outcome, Err)
    }

    async fn submit(&mut self, batch: Batch) -> Result<(), Failure> {
        let message = |payload| self.template.clone().payload(payload);
        let messages = batch.into_iter().map(message).collect();
        let confirm = self.producer.submit_batch(messages).await;
        let queue = self.template.queue();
        let confirm =
            confirm.map_err(|error| Failure::request(format!("send to {queue:?}"), &error))?;
        self.under_way.push_back(confirm);
        Ok(())
    }

    fn on_results(&mut self, results: Vec<Result<Receipt, RequestError>>) -> Result<(), Failure> {
        for result in results {
            match result {
                Ok(receipt) => self.on_stored(receipt)?,
                Err(error) => self.on_refused(error),
            }
        }
        self.progress.at(self.stored, None);
        self.flush()
    }

    fn on_stored(&mut self, receipt: Receipt) -> Result<(), Failure> {
        self.stored += 1;
        let Receipt { id, duplicate } = receipt;
        let printed = match self.receipts {
            Receipts::Silent => return Ok(()),
            Receipts::Json => self
                .out
                .line(json!({"id": id.to_string(), "duplicate": duplicate})),
            Receipts::Ids if duplicate => self.out.line(format_args!("{id} duplicate")),
            Receipts::Ids => self.out.line(id),
        };
        self.quiet_when_closed(printed)
    }

    fn on_refused(&mut self, error: RequestError) {
        self.refused += 1;
        let number = self.stored + self.refused;
        if self.refused <= REFUSALS_SHOWN && self.first_refusal.is_some() {
            note(format_args!(
                "message {number} was not stored: {}",
                explain(&error)
            ));
        }
        self.first_refusal.get_or_insert(error);
    }

    /// Whether further messages would fail like the last ones.
    fn is_hopeless(&self) -> bool {
        self.stored == 0 && self.refused > 0
            || matches!(
                self.first_refusal,
                Some(RequestError::ConnectionLost { .. })
            )
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let flushed = self.out.flush();
        self.quiet_when_closed(flushed)
    }

    /// That nobody reads the IDs any more is no reason to send half of the messages.
    fn quiet_when_closed(&mut self, printed: Result<(), Failure>) -> Result<(), Failure> {
        match printed {
            Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.receipts = Receipts::Silent;
                self.out = Output::new();
                Ok(())
            }
            other => other,
        }
    }
}

/// The results of the oldest batch, which is then taken off; `None` when nothing is under way.
/// Nothing is lost when the future is dropped.
async fn first(
    under_way: &mut VecDeque<BatchConfirm>,
) -> Option<Vec<Result<Receipt, RequestError>>> {
    let results = under_way.front_mut()?.await;
    under_way.pop_front();
    Some(results)
}
