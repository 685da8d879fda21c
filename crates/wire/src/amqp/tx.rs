//! Class `tx`: transactions (§1.9).

use super::methods::methods;

methods! {
    /// A method of the class `tx`.
    class Tx = 90, "tx";

    /// From the client: publishes and acknowledgements wait for `commit` from now on.
    Select = 10, "select" {}

    /// From the server: answers `select`.
    SelectOk = 11, "select-ok" {}

    /// From the client: does what has waited.
    Commit = 20, "commit" {}

    /// From the server: answers `commit`.
    CommitOk = 21, "commit-ok" {}

    /// From the client: forgets what has waited.
    Rollback = 30, "rollback" {}

    /// From the server: answers `rollback`.
    RollbackOk = 31, "rollback-ok" {}
}
