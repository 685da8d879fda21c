//! The `tanda` command: each subcommand is a file; this one only tells them apart.

mod acl;
mod amaquet;
mod backup;
mod bench;
mod check_config;
mod config;
mod config_args;
mod confirm;
mod consume;
mod credentials;
mod definitions;
mod durations;
mod encryption;
mod exchange;
mod failure;
mod health;
mod http_door;
mod key;
mod key_parts;
mod moments;
mod note;
mod output;
mod permission;
mod progress;
mod queue;
mod redrive;
mod repair;
mod send;
mod serve;
mod signals;
mod table;
mod target;
mod throttle;
mod top;
mod user;
mod vhost;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::Failure;
use target::TargetArgs;

/// Message bodies are many buffers that are made on one thread and dropped on another, and an idle
/// broker should be small: mimalloc is good at both.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const AFTER_HELP: &str = "\
Exit codes: 0 done; 1 the broker refused or cannot be reached; 2 wrong usage; 3 not found.
Durations are written like 250ms, 30s, 5m, 1h30m.";

/// A message broker: everyone gets a turn, nothing is lost, and you can see why.
#[derive(Debug, Parser)]
#[command(name = "tanda", version, arg_required_else_help = true, after_help = AFTER_HELP)]
struct Cli {
    #[command(flatten)]
    target: TargetArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the broker.
    Serve(config_args::ConfigArgs),
    /// Check a configuration and show what it comes to, without running anything.
    CheckConfig(config_args::ConfigArgs),
    /// Make, change, look at, empty and remove queues.
    #[command(subcommand)]
    Queue(queue::QueueCommand),
    /// Send messages: arguments, files, or lines of standard input.
    Send(Box<send::SendArgs>),
    /// Receive messages: look at them, acknowledge them, or run a command for each.
    Consume(Box<consume::ConsumeArgs>),
    /// Exchanges and bindings, and messages through them.
    #[command(subcommand)]
    Exchange(exchange::ExchangeCommand),
    /// Values, counters, lists, locks and more: one command, those of a script, or a shell.
    Amaquet(amaquet::AmaquetArgs),
    /// Move messages from a dead-letter queue back to its queue.
    Redrive(redrive::RedriveArgs),
    /// Write everything a running broker holds into a file.
    Backup(backup::BackupArgs),
    /// Make a data directory from a backup.
    Restore(backup::RestoreArgs),
    /// Look at a data directory that no broker uses, and save what can be read of a damaged one.
    #[command(subcommand)]
    Repair(repair::RepairCommand),
    /// Runtime configuration: keys and values that scripts read.
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Throttles that consumers declare: limits, buckets, and what waits for them.
    #[command(subcommand)]
    Throttle(throttle::ThrottleCommand),
    /// API keys: make, list and revoke them.
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// What an API key allows.
    #[command(subcommand)]
    Acl(acl::AclCommand),
    /// Users: who logs in with a password or a certificate.
    #[command(subcommand)]
    User(user::UserCommand),
    /// What users may do in virtual hosts.
    #[command(subcommand)]
    Permission(permission::PermissionCommand),
    /// Which routing keys users may use.
    #[command(subcommand)]
    TopicPermission(permission::TopicPermissionCommand),
    /// Virtual hosts: make, list and remove them.
    #[command(subcommand)]
    Vhost(vhost::VhostCommand),
    /// Virtual hosts, users, permissions, exchanges, queues and bindings as one document.
    #[command(subcommand)]
    Definitions(definitions::DefinitionsCommand),
    /// Watch the queues: what waits, for what, and whether it becomes more.
    Top(top::TopArgs),
    /// A short load on a running broker, for a first impression.
    Bench(bench::BenchArgs),
    /// Whether the broker is well.
    Health(health::HealthArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        Command::Serve(args) => return with_no_target(&cli.target, || serve::run(&args)),
        Command::CheckConfig(args) => {
            return with_no_target(&cli.target, || check_config::run(&args));
        }
        Command::Backup(args) => block_on(backup::backup(args, cli.target)),
        Command::Restore(args) => backup::restore(&args, cli.target.json),
        Command::Repair(command) => {
            return repair::run(&command, cli.target.json);
        }
        Command::Queue(command) => block_on(queue::run(command, cli.target)),
        Command::Send(args) => block_on(send::run(*args, cli.target)),
        Command::Consume(args) => block_on(consume::run(*args, cli.target)),
        Command::Exchange(command) => block_on(exchange::run(command, cli.target)),
        Command::Amaquet(args) => block_on(amaquet::run(args, cli.target)),
        Command::Redrive(args) => block_on(redrive::run(args, cli.target)),
        Command::Config(command) => block_on(config::run(command, cli.target)),
        Command::Throttle(command) => block_on(throttle::run(command, cli.target)),
        Command::Key(command) => block_on(key::run(command, cli.target)),
        Command::Acl(command) => block_on(acl::run(command, cli.target)),
        Command::User(command) => block_on(user::run(command, cli.target)),
        Command::Permission(command) => block_on(permission::run(command, cli.target)),
        Command::TopicPermission(command) => block_on(permission::run_topic(command, cli.target)),
        Command::Vhost(command) => block_on(vhost::run(command, cli.target)),
        Command::Definitions(command) => block_on(definitions::run(command, cli.target)),
        Command::Top(args) => block_on(top::run(args, cli.target)),
        Command::Bench(args) => block_on(bench::run(args, cli.target)),
        Command::Health(args) => block_on(health::run(args, cli.target)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Where a broker is found says nothing to the broker itself.
fn with_no_target(target: &TargetArgs, run: impl FnOnce() -> ExitCode) -> ExitCode {
    if target.is_given() {
        let text = "--addr, --http, --json and the flags about API key and TLS before the command \
                    are for commands that call a broker; put the broker's own options after \
                    `serve`";
        return Failure::Usage(text.to_owned()).report();
    }
    run()
}

/// Commands wait for one connection: one thread is enough.
fn block_on(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Failure::io("start the runtime", source))?;
    runtime.block_on(command)
}
