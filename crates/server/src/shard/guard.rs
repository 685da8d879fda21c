//! What happens when a thread that everything hangs on panics.

/// Runs `body`; a panic in it ends the process. A broken invariant of ours must not go on
/// answering, and a broker without its shard thread would only hang. What was confirmed is on disk.
pub(super) fn abort_on_panic(thread: &str, body: impl FnOnce()) {
    struct Abort<'a>(&'a str);

    impl Drop for Abort<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                tracing::error!(
                    thread = self.0,
                    "a bug: the thread panicked, so the broker stops; confirmed messages are safe"
                );
                std::process::abort();
            }
        }
    }

    let _abort = Abort(thread);
    body();
}
