//! Tanda's protocols as bytes.
