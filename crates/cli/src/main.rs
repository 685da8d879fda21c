//! The `tanda` command: each subcommand is a file; this one only tells them apart.

mod check_config;
mod config_args;
mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Message bodies are many buffers that are made on one thread and dropped on another, and an idle
/// broker should be small: mimalloc is good at both.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A message broker: everyone gets a turn, nothing is lost, and you can see why.
#[derive(Debug, Parser)]
#[command(name = "tanda", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the broker.
    Serve(config_args::ConfigArgs),
    /// Check a configuration and show what it comes to, without running anything.
    CheckConfig(config_args::ConfigArgs),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Serve(args) => serve::run(&args),
        Command::CheckConfig(args) => check_config::run(&args),
    }
}
