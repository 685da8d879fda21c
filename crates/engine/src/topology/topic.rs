//! Which patterns of words match a routing key.
//!
//! Words are what stands between dots; an empty key has none. In a pattern `*` stands for one word
//! and `#` for any number, also none (AMQP 0-9-1, 3.1.3.3, as RabbitMQ reads it).
//!
//! The patterns are one tree by words. Matching goes over a key once and holds the set of places of
//! the tree where it can be; a place counts once, so the work is at most words times places however
//! many `#` there are.

use core::hash::{Hash, Hasher};

use ahash::RandomState;
use hashbrown::{Equivalent, HashMap};

/// A place in the tree.
type Node = u32;

const ROOT: Node = 0;
/// No place.
const NIL: Node = u32::MAX;

/// A tree of patterns, each with what is found by it.
#[derive(Debug)]
pub(crate) struct TopicTree<T> {
    places: Vec<Place<T>>,
    free: Vec<Node>,
    edges: HashMap<Edge, Node, RandomState>,
}

#[derive(Debug)]
struct Place<T> {
    parent: Node,
    /// Where any one word leads.
    star: Node,
    /// Where any number of words leads; it is a place that every word leads to again.
    hash: Node,
    /// It is the `hash` of its parent.
    is_hash: bool,
    /// Places below it.
    children: u32,
    found: Vec<T>,
}

/// A word that leads from one place to another.
#[derive(Debug, PartialEq, Eq)]
struct Edge {
    from: Node,
    word: Box<[u8]>,
}

/// An edge that is looked for.
struct Step<'a>(Node, &'a [u8]);

impl Hash for Edge {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Step(self.from, &self.word).hash(state);
    }
}

impl Hash for Step<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
        self.1.hash(state);
    }
}

impl Equivalent<Edge> for Step<'_> {
    fn equivalent(&self, edge: &Edge) -> bool {
        self.0 == edge.from && self.1 == &*edge.word
    }
}

/// What matching works with, for many trees.
#[derive(Debug, Default)]
pub(crate) struct TopicScratch {
    here: Vec<Node>,
    next: Vec<Node>,
    /// The step in which a place was reached last.
    reached: Vec<u64>,
    step: u64,
}

/// The words of a key or pattern.
fn words(key: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = (!key.is_empty()).then_some(key);
    core::iter::from_fn(move || {
        let key = rest?;
        match key.iter().position(|byte| *byte == b'.') {
            Some(at) => {
                let (word, dot) = key.split_at(at);
                rest = dot.get(1..);
                Some(word)
            }
            None => rest.take(),
        }
    })
}

impl<T: Copy + PartialEq> TopicTree<T> {
    pub(crate) fn new(hasher: &RandomState) -> Self {
        Self {
            places: vec![Place::new(NIL, false)],
            free: Vec::new(),
            edges: HashMap::with_hasher(hasher.clone()),
        }
    }

    /// Adds what is found by a pattern.
    pub(crate) fn insert(&mut self, pattern: &[u8], found: T) {
        let mut at = ROOT;
        for word in words(pattern) {
            at = match self.child(at, word) {
                NIL => self.add(at, word),
                child => child,
            };
        }
        if let Some(place) = self.places.get_mut(at as usize) {
            place.found.push(found);
        }
    }

    /// Removes what was added by [`Self::insert`].
    pub(crate) fn remove(&mut self, pattern: &[u8], found: T) {
        let mut path = Vec::new();
        let mut at = ROOT;
        for word in words(pattern) {
            path.push(word);
            at = self.child(at, word);
        }
        let Some(place) = self.places.get_mut(at as usize) else {
            return;
        };
        if let Some(index) = place.found.iter().position(|it| *it == found) {
            place.found.swap_remove(index);
        }
        // Places that lead nowhere any more go, from the end.
        while let Some(word) = path.pop() {
            let Some(place) = self.places.get(at as usize) else {
                return;
            };
            if place.children > 0 || !place.found.is_empty() {
                return;
            }
            let parent = place.parent;
            self.unlink(parent, word);
            self.free.push(at);
            at = parent;
        }
    }

    /// Appends what is found by the patterns that match `key`, each as often as it was added.
    pub(crate) fn matches(&self, key: &[u8], scratch: &mut TopicScratch, out: &mut Vec<T>) {
        scratch
            .reached
            .resize(self.places.len().max(scratch.reached.len()), 0);
        scratch.here.clear();
        scratch.step += 1;
        self.reach(ROOT, scratch);
        core::mem::swap(&mut scratch.here, &mut scratch.next);
        for word in words(key) {
            if scratch.here.is_empty() {
                return;
            }
            scratch.step += 1;
            let mut here = core::mem::take(&mut scratch.here);
            for node in here.drain(..) {
                let Some(place) = self.places.get(node as usize) else {
                    continue;
                };
                if place.is_hash {
                    self.reach(node, scratch);
                }
                if place.star != NIL {
                    self.reach(place.star, scratch);
                }
                if let Some(child) = self.edges.get(&Step(node, word)) {
                    self.reach(*child, scratch);
                }
            }
            scratch.here = core::mem::replace(&mut scratch.next, here);
        }
        for node in scratch.here.drain(..) {
            if let Some(place) = self.places.get(node as usize) {
                out.extend_from_slice(&place.found);
            }
        }
    }

    /// A place is reached, and what follows it without a word.
    fn reach(&self, mut node: Node, scratch: &mut TopicScratch) {
        while let Some(place) = self.places.get(node as usize) {
            let Some(reached) = scratch.reached.get_mut(node as usize) else {
                return;
            };
            if *reached == scratch.step {
                return;
            }
            *reached = scratch.step;
            scratch.next.push(node);
            node = place.hash;
        }
    }

    fn child(&self, at: Node, word: &[u8]) -> Node {
        let Some(place) = self.places.get(at as usize) else {
            return NIL;
        };
        match word {
            b"*" => place.star,
            b"#" => place.hash,
            word => self.edges.get(&Step(at, word)).copied().unwrap_or(NIL),
        }
    }

    fn add(&mut self, parent: Node, word: &[u8]) -> Node {
        let place = Place::new(parent, word == b"#");
        let node = if let Some(node) = self.free.pop() {
            if let Some(free) = self.places.get_mut(node as usize) {
                *free = place;
            }
            node
        } else {
            #[expect(clippy::cast_possible_truncation, reason = "bounded by bindings_max")]
            let node = self.places.len() as Node;
            self.places.push(place);
            node
        };
        if let Some(parent) = self.places.get_mut(parent as usize) {
            parent.children += 1;
            match word {
                b"*" => parent.star = node,
                b"#" => parent.hash = node,
                _ => {}
            }
        }
        if !matches!(word, b"*" | b"#") {
            let word = word.into();
            self.edges.insert(Edge { from: parent, word }, node);
        }
        node
    }

    fn unlink(&mut self, parent: Node, word: &[u8]) {
        if let Some(parent) = self.places.get_mut(parent as usize) {
            parent.children -= 1;
            match word {
                b"*" => parent.star = NIL,
                b"#" => parent.hash = NIL,
                _ => {}
            }
        }
        if !matches!(word, b"*" | b"#") {
            self.edges.remove(&Step(parent, word));
        }
    }

    /// What can be found.
    pub(crate) fn len(&self) -> usize {
        self.places.iter().map(|place| place.found.len()).sum()
    }
}

impl<T> Place<T> {
    const fn new(parent: Node, is_hash: bool) -> Self {
        Self {
            parent,
            star: NIL,
            hash: NIL,
            is_hash,
            children: 0,
            found: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hasher() -> RandomState {
        RandomState::with_seeds(1, 2, 3, 4)
    }

    /// By definition: each `#` tries all numbers of words.
    fn naive(pattern: &[&[u8]], key: &[&[u8]]) -> bool {
        match (pattern.split_first(), key.split_first()) {
            (None, None) => true,
            (None, Some(_)) => false,
            (Some((word, rest)), _) if *word == b"#" => {
                (0..=key.len()).any(|skipped| naive(rest, &key[skipped..]))
            }
            (Some(_), None) => false,
            (Some((word, rest)), Some((first, key))) => {
                (*word == b"*" || word == first) && naive(rest, key)
            }
        }
    }

    fn matched(patterns: &[&str], key: &str) -> Vec<usize> {
        let mut tree = TopicTree::new(&hasher());
        for (n, pattern) in patterns.iter().enumerate() {
            tree.insert(pattern.as_bytes(), n);
        }
        let mut found = Vec::new();
        tree.matches(key.as_bytes(), &mut TopicScratch::default(), &mut found);
        found.sort_unstable();
        found
    }

    /// Pitfall 34, line by line.
    #[test]
    fn topics_match_as_rabbitmq_matches_them() {
        for (pattern, key, matches) in [
            ("a.*.c.#", "a.b.c", true),
            ("a.*.c.#", "a.b.c.d.e", true),
            ("a.*.c.#", "a.c", false),
            ("a.#", "a", true),
            ("a.#", "a.", true),
            ("a.#", "b", false),
            ("a.#.b", "a.b", true),
            ("a.#.b", "a.x.y.b", true),
            ("a.#.b", "a", false),
            ("#.b", "a.b", true),
            ("#.b", "a..b", true),
            ("#.b", "b", true),
            ("#", "", true),
            ("#", "a.b", true),
            ("#.#", "", true),
            ("*", "", false),
            ("*", "a", true),
            ("*", "a.b", false),
            ("", "", true),
            ("", "a", false),
            ("", ".", false),
            ("#", ".", true),
            ("*.#", ".", true),
            ("*.#", "", false),
            ("*.*", ".", true),
            ("*", ".", false),
            ("a.b", "a.b", true),
            ("a.b", "A.b", false),
            ("a*", "a*", true),
            ("a*", "ab", false),
        ] {
            let expected = if matches { vec![0] } else { Vec::new() };
            assert_eq!(matched(&[pattern], key), expected, "{pattern:?} {key:?}");
        }
    }

    #[test]
    fn many_hashes_and_a_long_key_take_few_steps() {
        // By trying, this would take longer than the universe has.
        let pattern = format!("{}x", "#.a.".repeat(60));
        let key = "a.".repeat(126);
        assert_eq!(matched(&[&pattern, "#"], &key), [1]);
    }

    proptest! {
        #[test]
        fn trees_match_as_trying_does(
            patterns in prop::collection::vec("(#|\\*|a|b|)(\\.(#|\\*|a|b|)){0,5}", 1..12),
            gone in prop::collection::vec(any::<bool>(), 12),
            keys in prop::collection::vec("(a|b|c|)(\\.(a|b|c|)){0,6}", 1..12),
        ) {
            let mut tree = TopicTree::new(&hasher());
            for (n, pattern) in patterns.iter().enumerate() {
                tree.insert(pattern.as_bytes(), n);
            }
            let is_gone = |n: usize| gone[n];
            for (n, pattern) in patterns.iter().enumerate().filter(|(n, _)| is_gone(*n)) {
                tree.remove(pattern.as_bytes(), n);
            }
            let mut scratch = TopicScratch::default();
            for key in &keys {
                let key: Vec<_> = words(key.as_bytes()).collect();
                let expected: Vec<_> = (0..patterns.len())
                    .filter(|n| !is_gone(*n))
                    .filter(|n| naive(&words(patterns[*n].as_bytes()).collect::<Vec<_>>(), &key))
                    .collect();
                let mut found = Vec::new();
                tree.matches(&key.join(&b'.'), &mut scratch, &mut found);
                found.sort_unstable();
                prop_assert_eq!(found, expected, "{:?}", key);
            }
            for (n, pattern) in patterns.iter().enumerate().filter(|(n, _)| !is_gone(*n)) {
                tree.remove(pattern.as_bytes(), n);
            }
            prop_assert!(tree.edges.is_empty());
            prop_assert_eq!(tree.free.len() + 1, tree.places.len());
        }
    }
}
