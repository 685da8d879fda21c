//! Keys that one client changes step by step, and what each must be after any crash: as the last
//! answer left it, or as the one change without an answer would have left it.

use serde_json::{Value, json};

use super::peer::{Outcome, Peer};

/// Kinds of keys that are read whole, with the command that does it.
const KINDS: [(&str, &str); 6] = [
    ("value", "value.get"),
    ("counter", "counter.get"),
    ("map", "map.all"),
    ("list", "list.range"),
    ("set", "set.members"),
    ("ranking", "ranking.range"),
];

/// One key.
#[derive(Debug)]
pub(crate) struct Thing {
    kind: &'static str,
    read: &'static str,
    key: String,
    /// What reading it returns; `None` = there is no such key.
    state: Option<Value>,
    /// What it returns if a change that was not answered was made.
    maybe: Option<Option<Value>>,
    steps: u64,
    pub(crate) confirmed: u64,
}

/// A change: command, arguments, and what reading returns after it.
type Change = (&'static str, Value, Option<Value>);

impl Thing {
    /// One of each kind.
    pub(crate) fn one_of_each(owner: u64) -> Vec<Self> {
        let thing = |(kind, read)| Self {
            kind,
            read,
            key: format!("{kind} of {owner}"),
            state: None,
            maybe: None,
            steps: 0,
            confirmed: 0,
        };
        KINDS.map(thing).into()
    }

    /// Reads it after a crash.
    pub(crate) async fn check(&mut self, peer: &mut Peer) {
        let read = json!({"key": self.key, "start": 0, "stop": -1});
        let found = match peer.run(self.read, read).await {
            Outcome::Done(mut result) => {
                result.as_object_mut().unwrap().remove("version");
                Some(result)
            }
            Outcome::Refused(code) => {
                assert_eq!(code, "NOT_FOUND", "{self:?}");
                None
            }
            Outcome::Unknown => panic!("the server ended by itself"),
        };
        let is_known = found == self.state || Some(&found) == self.maybe.as_ref();
        assert!(is_known, "{self:?} is {found:?}");
        self.state = found;
        self.maybe = None;
    }

    /// Changes it once; false when the connection is gone.
    pub(crate) async fn step(&mut self, peer: &mut Peer) -> bool {
        self.steps += 1;
        let (command, mut arguments, after) = self.change();
        arguments["key"] = json!(self.key);
        self.maybe = Some(after.clone());
        match peer.run(command, arguments).await {
            Outcome::Done(_) => {
                self.state = after;
                self.maybe = None;
                self.confirmed += 1;
                true
            }
            Outcome::Refused(code) => panic!("{command} of {self:?}: {code}"),
            Outcome::Unknown => false,
        }
    }

    fn change(&self) -> Change {
        let n = self.steps;
        // Members come, are changed, and one in three goes again.
        let name = format!("m{}", n * 7 % 20);
        let goes = n.is_multiple_of(3);
        match self.kind {
            "value" if n.is_multiple_of(10) && self.state.is_some() => {
                ("value.delete", json!({}), None)
            }
            "value" => {
                let payload = json!({"type": "json", "data": {"n": n}});
                let after = json!({"value": payload});
                ("value.set", json!({"value": payload}), Some(after))
            }
            "counter" => {
                let before = self
                    .state
                    .as_ref()
                    .map_or(0, |it| it["value"].as_i64().unwrap());
                (
                    "counter.add",
                    json!({"by": 1}),
                    Some(json!({"value": before + 1})),
                )
            }
            "map" => self.change_map(&name, goes),
            "list" => self.change_list(goes),
            "set" => self.change_members(&name, goes, ["set.add", "set.remove"]),
            _ => self.change_members(&name, goes, ["ranking.add", "ranking.remove"]),
        }
    }

    fn change_map(&self, field: &str, goes: bool) -> Change {
        let mut state = self.state.clone().unwrap_or_else(|| json!({"fields": {}}));
        let fields = state["fields"].as_object_mut().unwrap();
        let had = fields.remove(field).is_some();
        if goes && had {
            let after = (!fields.is_empty()).then_some(state);
            return ("map.remove", json!({"field": field}), after);
        }
        let value = json!({"type": "text", "data": self.steps.to_string()});
        fields.insert(field.to_owned(), value.clone());
        (
            "map.set",
            json!({"field": field, "value": value}),
            Some(state),
        )
    }

    /// Pushes at both ends, pops at the front.
    fn change_list(&self, goes: bool) -> Change {
        let mut state = self.state.clone().unwrap_or_else(|| json!({"values": []}));
        let values = state["values"].as_array_mut().unwrap();
        if goes && !values.is_empty() {
            values.remove(0);
            let after = (!values.is_empty()).then_some(state);
            return ("list.pop", json!({}), after);
        }
        let value = json!({"type": "json", "data": self.steps});
        if self.steps.is_multiple_of(2) {
            values.insert(0, value.clone());
            return (
                "list.push",
                json!({"values": [value], "side": "front"}),
                Some(state),
            );
        }
        values.push(value.clone());
        ("list.push", json!({"values": [value]}), Some(state))
    }

    fn change_members(&self, member: &str, goes: bool, [add, remove]: [&'static str; 2]) -> Change {
        let is_set = self.kind == "set";
        let mut state = self.state.clone().unwrap_or_else(|| json!({"members": []}));
        let members = state["members"].as_array_mut().unwrap();
        let name = |it: &Value| {
            if is_set {
                it.clone()
            } else {
                it["member"].clone()
            }
        };
        let at = members.iter().position(|it| name(it) == member);
        if let Some(at) = at {
            members.remove(at);
        }
        let mut arguments = json!({"member": member, "members": [member]});
        if goes && at.is_some() {
            let after = (!members.is_empty()).then_some(state);
            return (remove, arguments, after);
        }
        if is_set {
            members.push(json!(member));
            members.sort_by_key(|it| it.as_str().unwrap().to_owned());
        } else {
            // Whole numbers of one length, so that their texts are in their order.
            let score = u32::try_from(100_000 + self.steps * 7919 % 100_000).unwrap();
            let score = f64::from(score);
            arguments["score"] = json!(score);
            members.push(json!({"member": member, "score": score}));
            let order = |it: &Value| format!("{} {}", it["score"], it["member"]);
            members.sort_by_key(order);
        }
        (add, arguments, Some(state))
    }
}
