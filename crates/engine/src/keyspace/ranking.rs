//! Members in the order of their scores, equal scores in the order of their bytes.
//!
//! A weight-balanced tree: each node knows how many are below it, so places are found
//! in O(log n) steps. A table of hashes leads from a member to its node, without a second copy of
//! the member.

use ahash::RandomState;
use core::cmp::Ordering;

use crate::steady::{Chunks, SteadyTable};

/// No node.
const NIL: u32 = u32::MAX;
/// How many times as heavy one side may be as the other (Adams' trees; 3 and 2 are the only
/// integers that are known to work).
const HEAVIER: u64 = 3;
/// From where on a double rotation is wanted.
const DOUBLE: u64 = 2;

#[derive(Debug)]
struct Node {
    left: u32,
    right: u32,
    size: u32,
    score: f64,
    member: Box<str>,
}

/// A ranking.
#[derive(Debug)]
pub(super) struct Ranking {
    nodes: Chunks<Node>,
    free: Vec<u32>,
    root: u32,
    by_member: SteadyTable<u32>,
    hasher: RandomState,
    text_bytes: usize,
}

/// Two members in their order.
fn order(left: (f64, &str), right: (f64, &str)) -> Ordering {
    let by_score = left.0.total_cmp(&right.0);
    by_score.then_with(|| left.1.as_bytes().cmp(right.1.as_bytes()))
}

impl Ranking {
    pub(super) fn new(hasher: &RandomState) -> Self {
        Self {
            nodes: Chunks::new(),
            free: Vec::new(),
            root: NIL,
            by_member: SteadyTable::new(),
            hasher: hasher.clone(),
            text_bytes: 0,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.by_member.len()
    }

    pub(super) const fn memory_bytes(&self) -> usize {
        // One entry of the table takes about nine bytes, half of them empty.
        self.nodes.capacity() * (size_of::<Node>() + 9) + self.text_bytes
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "numbers of nodes are made here and checked by the tests of this file"
    )]
    fn at(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "numbers of nodes are made here and checked by the tests of this file"
    )]
    fn at_mut(&mut self, node: u32) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    fn size(&self, node: u32) -> u32 {
        if node == NIL { 0 } else { self.at(node).size }
    }

    fn key(&self, node: u32) -> (f64, &str) {
        let node = self.at(node);
        (node.score, &node.member)
    }

    fn find(&self, member: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(member);
        let found = |node: &u32| &*self.at(*node).member == member;
        self.by_member.find(hash, found).copied()
    }

    pub(super) fn score(&self, member: &str) -> Option<f64> {
        self.find(member).map(|node| self.at(node).score)
    }

    /// Sets a member's score.
    pub(super) fn set(&mut self, member: &str, score: f64) {
        self.remove(member);
        let node = Node {
            left: NIL,
            right: NIL,
            size: 1,
            score,
            member: member.into(),
        };
        self.text_bytes += member.len();
        let number = match self.free.pop() {
            Some(number) => {
                *self.at_mut(number) = node;
                number
            }
            None => {
                self.nodes.push(node);
                u32::try_from(self.nodes.len() - 1).unwrap_or(NIL)
            }
        };
        self.root = self.insert(self.root, number);
        let (nodes, hasher) = (&self.nodes, &self.hasher);
        let hash_of = |node: &u32| {
            let node = nodes.get(*node as usize);
            hasher.hash_one(node.map_or("", |node| &node.member))
        };
        let hash = hasher.hash_one(member);
        self.by_member.insert_unique(hash, number, hash_of);
    }

    /// True when it was there.
    pub(super) fn remove(&mut self, member: &str) -> bool {
        let hash = self.hasher.hash_one(member);
        let nodes = &self.nodes;
        let is_it = |node: &u32| {
            let node = nodes.get(*node as usize);
            node.is_some_and(|node| &*node.member == member)
        };
        let Some(number) = self.by_member.remove(hash, is_it) else {
            return false;
        };
        self.root = self.take_out(self.root, number);
        let node = self.at_mut(number);
        let member = core::mem::take(&mut node.member);
        self.text_bytes -= member.len();
        self.free.push(number);
        true
    }

    /// Removes some member; for taking a ranking apart. False when there is none.
    pub(super) fn shrink(&mut self) -> bool {
        self.nodes.pop();
        self.nodes.len() > 0
    }

    fn insert(&mut self, tree: u32, new: u32) -> u32 {
        if tree == NIL {
            return new;
        }
        if order(self.key(new), self.key(tree)).is_lt() {
            let left = self.insert(self.at(tree).left, new);
            self.at_mut(tree).left = left;
        } else {
            let right = self.insert(self.at(tree).right, new);
            self.at_mut(tree).right = right;
        }
        self.balanced(tree)
    }

    /// The tree without this node, which is in it.
    fn take_out(&mut self, tree: u32, node: u32) -> u32 {
        if tree == NIL {
            return NIL;
        }
        let (left, right) = (self.at(tree).left, self.at(tree).right);
        if tree == node {
            return self.joined(left, right);
        }
        if order(self.key(node), self.key(tree)).is_lt() {
            let left = self.take_out(left, node);
            self.at_mut(tree).left = left;
        } else {
            let right = self.take_out(right, node);
            self.at_mut(tree).right = right;
        }
        self.balanced(tree)
    }

    /// Two trees as one; all of the left one come first.
    fn joined(&mut self, left: u32, right: u32) -> u32 {
        if left == NIL {
            return right;
        }
        if right == NIL {
            return left;
        }
        let middle = if self.size(left) > self.size(right) {
            let last = self.edge(left, |node| node.right);
            let left = self.take_out(left, last);
            self.at_mut(last).left = left;
            self.at_mut(last).right = right;
            last
        } else {
            let first = self.edge(right, |node| node.left);
            let right = self.take_out(right, first);
            self.at_mut(first).left = left;
            self.at_mut(first).right = right;
            first
        };
        self.balanced(middle)
    }

    fn edge(&self, tree: u32, next: impl Fn(&Node) -> u32) -> u32 {
        let mut node = tree;
        while next(self.at(node)) != NIL {
            node = next(self.at(node));
        }
        node
    }

    fn count(&mut self, tree: u32) {
        let (left, right) = (self.at(tree).left, self.at(tree).right);
        self.at_mut(tree).size = self.size(left) + self.size(right) + 1;
    }

    /// The tree, whose sides are balanced and may differ by one node too much.
    fn balanced(&mut self, tree: u32) -> u32 {
        self.count(tree);
        let (left, right) = (self.at(tree).left, self.at(tree).right);
        let (l, r) = (u64::from(self.size(left)), u64::from(self.size(right)));
        if l + r <= 1 {
            return tree;
        }
        if r > HEAVIER * l {
            let (inner, outer) = (self.at(right).left, self.at(right).right);
            if u64::from(self.size(inner)) >= DOUBLE * u64::from(self.size(outer)) {
                let right = self.turned_right(right);
                self.at_mut(tree).right = right;
            }
            return self.turned_left(tree);
        }
        if l > HEAVIER * r {
            let (outer, inner) = (self.at(left).left, self.at(left).right);
            if u64::from(self.size(inner)) >= DOUBLE * u64::from(self.size(outer)) {
                let left = self.turned_left(left);
                self.at_mut(tree).left = left;
            }
            return self.turned_right(tree);
        }
        tree
    }

    fn turned_left(&mut self, tree: u32) -> u32 {
        let top = self.at(tree).right;
        self.at_mut(tree).right = self.at(top).left;
        self.count(tree);
        self.at_mut(top).left = tree;
        self.count(top);
        top
    }

    fn turned_right(&mut self, tree: u32) -> u32 {
        let top = self.at(tree).left;
        self.at_mut(tree).left = self.at(top).right;
        self.count(tree);
        self.at_mut(top).right = tree;
        self.count(top);
        top
    }

    /// How many come before the first one that `is_before` does not hold for; it holds for all
    /// before one that it holds for.
    fn count_where(&self, is_before: impl Fn((f64, &str)) -> bool) -> usize {
        let (mut node, mut count) = (self.root, 0);
        while node != NIL {
            if is_before(self.key(node)) {
                count += self.size(self.at(node).left) as usize + 1;
                node = self.at(node).right;
            } else {
                node = self.at(node).left;
            }
        }
        count
    }

    /// The place of a member, from 0, lowest score first.
    pub(super) fn rank(&self, member: &str) -> Option<usize> {
        let found = self.find(member)?;
        let key = self.key(found);
        Some(self.count_where(|other| order(other, key).is_lt()))
    }

    /// The places of scores from `min` to `max`: the first one, and the first one behind them.
    pub(super) fn places(&self, min: f64, max: f64) -> (usize, usize) {
        let first = self.count_where(|(score, _)| score < min);
        let end = self.count_where(|(score, _)| score <= max);
        (first, end.max(first))
    }

    /// The member at a place.
    pub(super) fn select(&self, place: usize) -> Option<(&str, f64)> {
        let (mut node, mut left) = (self.root, place);
        while node != NIL {
            let before = self.size(self.at(node).left) as usize;
            match left.cmp(&before) {
                Ordering::Less => node = self.at(node).left,
                Ordering::Equal => {
                    let (score, member) = self.key(node);
                    return Some((member, score));
                }
                Ordering::Greater => {
                    left -= before + 1;
                    node = self.at(node).right;
                }
            }
        }
        None
    }

    /// Members of nodes from this number on, in no order; `None` behind the last one. A member
    /// keeps its number until it leaves or gets another score.
    pub(super) fn node(&self, number: usize) -> Option<Option<(&str, f64)>> {
        let node = self.nodes.get(number)?;
        // A free node has no member that leads to it.
        let number = u32::try_from(number).ok()?;
        let is_used = self.find(&node.member) == Some(number);
        Some(is_used.then_some((&*node.member, node.score)))
    }

    pub(super) fn assert_invariants(&self) {
        assert_eq!(
            self.size(self.root) as usize,
            self.len(),
            "nodes in the tree"
        );
        let used = self.nodes.len() - self.free.len();
        assert_eq!(used, self.len(), "nodes in use");
        let mut before: Option<(f64, &str)> = None;
        let (mut stack, mut node) = (Vec::new(), self.root);
        while node != NIL || !stack.is_empty() {
            while node != NIL {
                let (left, right) = (self.at(node).left, self.at(node).right);
                let (l, r) = (u64::from(self.size(left)), u64::from(self.size(right)));
                assert!(
                    l + r <= 1 || (l <= HEAVIER * r && r <= HEAVIER * l),
                    "{l} {r}"
                );
                assert_eq!(u64::from(self.size(node)), l + r + 1);
                stack.push(node);
                node = left;
            }
            let Some(next) = stack.pop() else { break };
            let key = self.key(next);
            assert!(before.is_none_or(|before| order(before, key).is_lt()));
            assert_eq!(self.find(key.1), Some(next));
            before = Some(key);
            node = self.at(next).right;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ranking() -> Ranking {
        Ranking::new(&RandomState::with_seeds(1, 2, 3, 4))
    }

    proptest! {
        #[test]
        fn is_a_sorted_list(
            ops in proptest::collection::vec((0_u8..4, 0_u8..40, -3_i8..3), 0..300),
            min in -4_i8..4,
            max in -4_i8..4,
        ) {
            let mut tree = ranking();
            let mut list: Vec<(f64, String)> = Vec::new();
            for (op, member, score) in ops {
                let member = format!("m{member}");
                let before = list.iter().position(|(_, it)| *it == member);
                if let Some(before) = before {
                    list.remove(before);
                }
                if op == 0 {
                    prop_assert_eq!(tree.remove(&member), before.is_some());
                } else {
                    tree.set(&member, score.into());
                    list.push((score.into(), member));
                }
                list.sort_by(|a, b| order((a.0, &a.1), (b.0, &b.1)));
                tree.assert_invariants();
            }
            prop_assert_eq!(tree.len(), list.len());
            for (place, (score, member)) in list.iter().enumerate() {
                prop_assert_eq!(tree.rank(member), Some(place));
                prop_assert_eq!(tree.score(member), Some(*score));
                prop_assert_eq!(tree.select(place), Some((member.as_str(), *score)));
            }
            prop_assert_eq!(tree.select(list.len()), None);
            prop_assert_eq!(tree.rank("x"), None);
            let (min, max) = (f64::from(min), f64::from(max));
            let (first, end) = tree.places(min, max);
            let within: Vec<_> = (first..end).filter_map(|at| tree.select(at)).collect();
            let expected = list.iter().filter(|(it, _)| (min..=max).contains(it));
            let expected: Vec<_> = expected.map(|(it, member)| (member.as_str(), *it)).collect();
            prop_assert_eq!(within, expected);
            let mut nodes: Vec<_> = (0..).map_while(|at| tree.node(at)).flatten().collect();
            nodes.sort_by(|a, b| order((a.1, a.0), (b.1, b.0)));
            let expected: Vec<_> = list.iter().map(|(it, member)| (member.as_str(), *it)).collect();
            prop_assert_eq!(nodes, expected);
        }
    }

    #[test]
    fn members_in_order_and_in_reverse_stay_balanced() {
        let mut tree = ranking();
        for number in 0..2_000 {
            tree.set(&format!("{number:05}"), f64::from(number));
            tree.set(&format!("r{number:05}"), f64::from(-number));
        }
        tree.assert_invariants();
        for number in 0..1_000 {
            assert!(tree.remove(&format!("{number:05}")));
        }
        tree.assert_invariants();
        assert_eq!(tree.rank("r01999"), Some(0));
        assert_eq!(tree.rank("01999"), Some(2_999));
    }
}
