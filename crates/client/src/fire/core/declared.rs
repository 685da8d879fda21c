//! What a program declared through a client, to be declared again on the next connection.
//!
//! Owns: exchanges, queues and bindings in the order they were made, the names that the server
//! gave, and what goes together with what. Refuses to know: requests, and subscriptions.

use std::collections::BTreeMap;

use crate::fire::topology::{Binding, Destination, Exchange, Queue};

/// The most exchanges, queues and bindings that are remembered.
pub(crate) const DECLARED_MAX: usize = 64 * 1024;

#[derive(Debug)]
struct Numbered<T> {
    /// Later ones have higher numbers.
    number: u64,
    item: T,
}

#[derive(Debug)]
struct KnownQueue {
    queue: Queue,
    /// The name the server knows it by; another than the program's only when the server chose it
    /// anew after a reconnect.
    current: String,
}

/// Exchanges, queues and bindings.
#[derive(Debug, Default)]
pub(crate) struct Declared {
    exchanges: BTreeMap<String, Numbered<Exchange>>,
    /// By the name the program uses.
    queues: BTreeMap<String, Numbered<KnownQueue>>,
    bindings: BTreeMap<Binding, u64>,
    newest: u64,
    is_renamed: bool,
}

impl Declared {
    /// Whether no more is remembered.
    pub(crate) fn is_full(&self) -> bool {
        self.exchanges.len() + self.queues.len() + self.bindings.len() >= DECLARED_MAX
    }

    /// An exchange was declared.
    pub(crate) fn add_exchange(&mut self, exchange: Exchange) {
        let number = self.number();
        let name = exchange.name().to_owned();
        let item = exchange;
        self.exchanges.insert(name, Numbered { number, item });
    }

    /// A queue was declared; the server calls it `name`.
    pub(crate) fn add_queue(&mut self, queue: Queue, name: &str) {
        let number = self.number();
        let item = KnownQueue {
            queue,
            current: name.to_owned(),
        };
        self.queues
            .insert(name.to_owned(), Numbered { number, item });
    }

    /// A binding was made.
    pub(crate) fn add_binding(&mut self, binding: Binding) {
        let number = self.number();
        self.bindings.entry(binding).or_insert(number);
    }

    /// A binding was removed, and with its last one an auto-delete exchange.
    pub(crate) fn remove_binding(&mut self, binding: &Binding) {
        if self.bindings.remove(binding).is_some() {
            self.drop_unbound(binding.source());
        }
    }

    /// An exchange was deleted, and all bindings from and to it.
    pub(crate) fn remove_exchange(&mut self, name: &str) {
        self.exchanges.remove(name);
        let to = Destination::Exchange(name.to_owned());
        self.remove_bindings(|binding| binding.source() == name || *binding.destination() == to);
    }

    /// An exchange is not declared any more; bindings from and to it are tried nevertheless.
    pub(crate) fn forget_exchange(&mut self, name: &str) {
        self.exchanges.remove(name);
    }

    /// A queue was deleted, by its program's name, and all bindings to it.
    pub(crate) fn remove_queue(&mut self, name: &str) {
        self.queues.remove(name);
        let to = Destination::Queue(name.to_owned());
        self.remove_bindings(|binding| *binding.destination() == to);
    }

    /// The last subscription to a queue ended: the server deletes it if it is auto-delete.
    pub(crate) fn on_unused(&mut self, name: &str) {
        if let Some(known) = self.queues.get(name)
            && known.item.queue.is_auto_delete()
        {
            self.remove_queue(name);
        }
    }

    /// The name that the server knows a queue by, given the one that the program uses.
    pub(crate) fn current<'a>(&'a self, name: &'a str) -> &'a str {
        match self.queues.get(name) {
            Some(known) => &known.item.current,
            None => name,
        }
    }

    /// The server chose another name for a queue.
    pub(crate) fn rename(&mut self, name: &str, current: String) {
        if let Some(known) = self.queues.get_mut(name) {
            known.item.current = current;
            self.is_renamed = true;
        }
    }

    /// Whether the server chose a name anew for any queue, so that names need a look.
    pub(crate) const fn is_renamed(&self) -> bool {
        self.is_renamed
    }

    pub(crate) fn exchange(&self, name: &str) -> Option<&Exchange> {
        self.exchanges.get(name).map(|known| &known.item)
    }

    /// A queue by its program's name.
    pub(crate) fn queue(&self, name: &str) -> Option<&Queue> {
        self.queues.get(name).map(|known| &known.item.queue)
    }

    /// The names of all exchanges, oldest first.
    pub(crate) fn exchanges_by_age(&self) -> Vec<String> {
        by_age(self.exchanges.iter().map(|(name, it)| (it.number, name)))
    }

    /// The program's names of all queues, oldest first.
    pub(crate) fn queues_by_age(&self) -> Vec<String> {
        by_age(self.queues.iter().map(|(name, it)| (it.number, name)))
    }

    /// All bindings, oldest first.
    pub(crate) fn bindings_by_age(&self) -> Vec<Binding> {
        by_age(self.bindings.iter().map(|(it, number)| (*number, it)))
    }

    const fn number(&mut self) -> u64 {
        self.newest += 1;
        self.newest
    }

    fn remove_bindings(&mut self, is_gone: impl Fn(&Binding) -> bool) {
        let gone: Vec<Binding> = self
            .bindings
            .keys()
            .filter(|binding| is_gone(binding))
            .cloned()
            .collect();
        for binding in gone {
            self.remove_binding(&binding);
        }
    }

    fn drop_unbound(&mut self, exchange: &str) {
        let is_bound = self
            .bindings
            .keys()
            .any(|binding| binding.source() == exchange);
        if !is_bound
            && self
                .exchange(exchange)
                .is_some_and(Exchange::is_auto_delete)
        {
            self.remove_exchange(exchange);
        }
    }
}

fn by_age<'a, T: Clone + 'a>(items: impl Iterator<Item = (u64, &'a T)>) -> Vec<T> {
    let mut items: Vec<(u64, &T)> = items.collect();
    items.sort_by_key(|(number, _)| *number);
    items.into_iter().map(|(_, item)| item.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fire::topology::ExchangeKind;

    fn exchange(name: &str) -> Exchange {
        Exchange::new(name, ExchangeKind::Topic)
    }

    #[test]
    fn everything_comes_back_in_the_order_it_was_made() {
        let mut declared = Declared::default();
        declared.add_exchange(exchange("z"));
        declared.add_exchange(exchange("a"));
        declared.add_queue(Queue::named("y"), "y");
        declared.add_queue(Queue::named("b"), "b");
        let (first, second) = (Binding::to_queue("z", "y"), Binding::to_queue("a", "b"));
        declared.add_binding(first.clone());
        declared.add_binding(second.clone());
        declared.add_binding(first.clone());
        assert_eq!(declared.exchanges_by_age(), ["z", "a"]);
        assert_eq!(declared.queues_by_age(), ["y", "b"]);
        assert_eq!(declared.bindings_by_age(), [first, second]);
    }

    #[test]
    fn what_the_server_deletes_with_something_goes_with_it() {
        let mut declared = Declared::default();
        declared.add_exchange(exchange("keeps"));
        declared.add_exchange(exchange("goes").auto_delete());
        declared.add_queue(Queue::named("q").auto_delete(), "q");
        declared.add_binding(Binding::to_queue("keeps", "q").key("1"));
        declared.add_binding(Binding::to_queue("goes", "q").key("2"));
        declared.on_unused("q");
        assert!(declared.queue("q").is_none());
        assert_eq!(declared.bindings_by_age(), []);
        assert_eq!(declared.exchanges_by_age(), ["keeps"]);
    }

    #[test]
    fn a_deleted_exchange_takes_bindings_of_both_sides() {
        let mut declared = Declared::default();
        declared.add_exchange(exchange("a"));
        declared.add_exchange(exchange("b"));
        declared.add_queue(Queue::named("q"), "q");
        let kept = Binding::to_queue("b", "q");
        declared.add_binding(Binding::to_queue("a", "q"));
        declared.add_binding(Binding::to_exchange("b", "a"));
        declared.add_binding(kept.clone());
        declared.remove_exchange("a");
        assert_eq!(declared.bindings_by_age(), [kept]);
        declared.on_unused("q");
        assert!(declared.queue("q").is_some(), "it is not auto-delete");
    }

    #[test]
    fn the_first_name_of_a_server_named_queue_stays_good() {
        let mut declared = Declared::default();
        declared.add_queue(Queue::server_named().exclusive(), "amq.gen-1");
        assert_eq!(declared.current("amq.gen-1"), "amq.gen-1");
        declared.rename("amq.gen-1", "amq.gen-2".to_owned());
        assert_eq!(declared.current("amq.gen-1"), "amq.gen-2");
        assert_eq!(declared.queue("amq.gen-1").map(Queue::name), Some(""));
        assert_eq!(declared.current("other"), "other");
    }
}
