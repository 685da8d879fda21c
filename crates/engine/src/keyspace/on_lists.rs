//! Lists.

use super::body::{Body, Key};
use super::change::Change;
use super::datum::{Datum, KeyType};
use super::list::List;
use super::on_request::{Room, count};
use super::op::{KeyAnswer, KeyError, ListSide, Places, TakenFrom};
use super::space::{Keyspace, Outcome, Step};
use crate::Millis;

impl Keyspace {
    fn list_of(&self, id: u64) -> Option<(&Key, &List)> {
        let key = self.store.keys.get(id)?;
        let Body::List(list) = &key.body else {
            return None;
        };
        Some((key, list))
    }

    pub(super) fn list_range(
        &self,
        now: Millis,
        key: &str,
        places: Places,
        mut room: Room,
    ) -> Outcome {
        let list = self.list(now, key)?;
        let (first, end) = places.within(list.len());
        let mut items = Vec::new();
        for (_, item) in list.skip_to(first).take(end.saturating_sub(first)) {
            room.take(item.bytes.len())?;
            items.push(item.clone());
        }
        Ok(KeyAnswer::Items(items))
    }

    pub(super) fn list_push(
        &mut self,
        step: &mut Step<'_>,
        key: &str,
        (mut items, side): (Vec<Datum>, ListSide),
        ttl_ms: Option<u64>,
    ) -> Outcome {
        if items.is_empty() {
            let found = self.live_of(step.now, key, KeyType::List)?;
            return Ok(count(found.map_or(0, |key| key.body.len())));
        }
        let id = self.open(step, key, KeyType::List, ttl_ms)?;
        let (low, high) = self.list_of(id).map_or((-1, 0), |(_, list)| list.bounds());
        let added = i64::try_from(items.len()).unwrap_or(i64::MAX);
        let first = match side {
            ListSide::Back => high,
            ListSide::Front => {
                items.reverse();
                low.saturating_sub(added).saturating_add(1)
            }
        };
        self.put(step, id, Change::Items { first, items });
        let len = self.list_of(id).map_or(0, |(_, list)| list.len());
        self.serve_items(step, key);
        Ok(count(len))
    }

    /// Takes an item of a list that has one.
    pub(super) fn take_item(&mut self, step: &mut Step<'_>, id: u64, side: ListSide) -> Outcome {
        let (key, list) = self.list_of(id).ok_or(KeyError::NotFound)?;
        let item = match side {
            ListSide::Front => list.front(),
            ListSide::Back => list.back(),
        };
        let (position, item) = item.cloned().ok_or(KeyError::NotFound)?;
        let place = Box::new(TakenFrom {
            key: key.name.clone(),
            side,
            id,
            position,
            bounds: list.bounds(),
            expires_at: key.expires_at,
        });
        self.put(step, id, Change::ItemGone { position });
        self.remove_if_empty(step, id);
        Ok(KeyAnswer::Taken { item, place })
    }

    /// An item never reached its client: it goes back to its place.
    pub(super) fn put_back(&mut self, step: &mut Step<'_>, item: Datum, place: TakenFrom) {
        self.expire(step, &place.key);
        if place.expires_at <= step.now.0 {
            // It would be over with its list.
            return;
        }
        let Ok(found) = self.live_of(step.now, &place.key, KeyType::List) else {
            // The name is that of something else: the list was taken for gone.
            return;
        };
        let id = match found.map(|key| key.id) {
            Some(id) => id,
            None => {
                // The same list goes on, with the places that its items had.
                let change = Change::Created {
                    of: KeyType::List,
                    expires_at: place.expires_at,
                    name: place.key.clone(),
                };
                self.put(step, place.id, change);
                let (low, high) = place.bounds;
                self.put(step, place.id, Change::Bounds { low, high });
                place.id
            }
        };
        let Some((_, list)) = self.list_of(id) else {
            return;
        };
        let (low, high) = list.bounds();
        let is_free = id == place.id && !list.has(place.position);
        let first = match place.side {
            _ if is_free => place.position,
            ListSide::Front => low,
            ListSide::Back => high,
        };
        let items = vec![item];
        self.put(step, id, Change::Items { first, items });
        self.serve_items(step, &place.key);
    }

    pub(super) fn list_trim(&mut self, step: &mut Step<'_>, key: &str, places: Places) -> Outcome {
        let Some(id) = self
            .live_of(step.now, key, KeyType::List)?
            .map(|key| key.id)
        else {
            return Ok(count(0));
        };
        let Some((_, list)) = self.list_of(id) else {
            return Ok(count(0));
        };
        let (first, end) = places.within(list.len());
        if first == 0 && end == list.len() {
            return Ok(count(end));
        }
        let ends = list
            .at(first)
            .zip(end.checked_sub(1).and_then(|at| list.at(at)));
        match ends.filter(|_| first < end) {
            Some(((low, _), (high, _))) => {
                let (low, high) = (*low, *high);
                self.put(step, id, Change::Kept { low, high });
            }
            None => self.remove(step, id),
        }
        Ok(count(end.saturating_sub(first)))
    }
}
