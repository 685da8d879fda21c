//! The broker under a fake clock, disk and network.
