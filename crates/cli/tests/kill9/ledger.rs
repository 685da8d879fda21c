//! What clients were told, and what must follow from it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use tanda_client::MessageId;

const GROUPS: u64 = 5;

/// Everything clients know.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    sent: BTreeSet<String>,
    confirmed: BTreeMap<MessageId, String>,
    delivered: BTreeMap<MessageId, String>,
    acked: BTreeSet<MessageId>,
    deliveries: u64,
    /// Number of the next message of the ordered queue.
    ordered: u64,
    /// Per group, the highest number delivered.
    newest: BTreeMap<u64, u64>,
    /// Keys sent, with the id they were confirmed under.
    keys: Vec<Option<MessageId>>,
    key_turn: usize,
}

/// What a consumer is to do with a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdict {
    pub(crate) is_to_be_acked: bool,
}

impl Ledger {
    pub(crate) fn on_sent(&mut self, payloads: &[String]) {
        self.sent.extend(payloads.iter().cloned());
    }

    pub(crate) fn on_confirmed(&mut self, payload: &str, id: MessageId) {
        let before = self.confirmed.insert(id, payload.to_owned());
        assert!(
            before.is_none(),
            "{id} was confirmed for {before:?} and for {payload}"
        );
    }

    /// The next message of the ordered queue: its group and its payload.
    pub(crate) fn next_ordered(&mut self) -> (String, String) {
        let number = self.ordered;
        self.ordered += 1;
        let payload = format!("ordered {number}");
        self.sent.insert(payload.clone());
        ((number % GROUPS).to_string(), payload)
    }

    /// A key: mostly a new one, each third time one that was sent before.
    pub(crate) fn next_key(&mut self) -> String {
        self.key_turn += 1;
        let unconfirmed = self.keys.iter().position(Option::is_none);
        let index = match unconfirmed {
            Some(index) => index,
            None if self.key_turn.is_multiple_of(3) && !self.keys.is_empty() => {
                self.key_turn * 7919 % self.keys.len()
            }
            None => {
                self.keys.push(None);
                self.keys.len() - 1
            }
        };
        let key = format!("key {index}");
        self.sent.insert(key.clone());
        key
    }

    pub(crate) fn on_key_confirmed(&mut self, key: &str, id: MessageId, duplicate: bool) {
        let index: usize = key.trim_start_matches("key ").parse().unwrap();
        let known = self.keys.get_mut(index).unwrap();
        match known {
            Some(first) => assert!(duplicate && *first == id, "{key} was stored twice"),
            None => {
                *known = Some(id);
                self.confirmed.insert(id, key.to_owned());
            }
        }
    }

    /// A message came. One in ten is not to be acked: its lease outlives the server.
    pub(crate) fn on_delivered(&mut self, queue: &str, id: MessageId, payload: &[u8]) -> Verdict {
        let payload = String::from_utf8(payload.to_vec()).unwrap();
        assert!(
            self.sent.contains(&payload),
            "{queue} delivered {payload}, which nobody sent"
        );
        assert!(
            !self.acked.contains(&id),
            "{id} ({payload}) was acked and came again"
        );
        if let Some(before) = self.delivered.insert(id, payload.clone()) {
            assert_eq!(before, payload, "{id} changed");
        } else if queue == "ordered" {
            let number: u64 = payload.trim_start_matches("ordered ").parse().unwrap();
            let newest = self.newest.insert(number % GROUPS, number);
            assert!(
                newest.is_none_or(|newest| newest < number),
                "{number} after {newest:?}"
            );
        }
        self.deliveries += 1;
        Verdict {
            is_to_be_acked: !self.deliveries.is_multiple_of(10),
        }
    }

    pub(crate) fn on_acked(&mut self, id: MessageId) {
        self.acked.insert(id);
    }

    pub(crate) fn assert_all_confirmed_came(&self) {
        assert!(
            !self.confirmed.is_empty(),
            "nothing was confirmed: the test tests nothing"
        );
        for (id, payload) in &self.confirmed {
            assert_eq!(
                self.delivered.get(id),
                Some(payload),
                "{id} was confirmed and is lost"
            );
        }
        let mut by_payload = BTreeMap::new();
        for (id, payload) in &self.delivered {
            let before = by_payload.insert(payload, id);
            assert!(
                before.is_none(),
                "{payload} came under two ids: {before:?} and {id}"
            );
        }
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} sent, {} confirmed, {} delivered in {} deliveries, {} acked, {} keys",
            self.sent.len(),
            self.confirmed.len(),
            self.delivered.len(),
            self.deliveries,
            self.acked.len(),
            self.keys.len()
        )
    }
}
