//! The page of the documentation is what the table says.

use tanda_wire::amaquet::command::document;

/// With `TANDA_WRITE_DOCS=1` in the environment the page is written instead.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test of the repository, not of a deterministic crate"
)]
fn the_page_matches_the_table() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/amaquet-commands.md"
    );
    let page = document();
    if std::env::var_os("TANDA_WRITE_DOCS").is_some() {
        std::fs::write(path, page).unwrap();
        return;
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        found == page,
        "docs/amaquet-commands.md does not match the table of commands; run \
         `TANDA_WRITE_DOCS=1 cargo test -p tanda-wire --test amaquet`"
    );
}
