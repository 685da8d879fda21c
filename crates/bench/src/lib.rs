//! Load generator and workloads.
