//! The `tollgate` program: its command line (README.md, Commands), one file per command.

mod admin;
mod admin_key;
mod audit;
mod backup;
mod channel;
mod chat;
mod client;
mod common;
mod completions;
mod doctor;
mod first_writes;
mod generation;
mod health;
mod image;
mod import;
mod init;
mod key;
mod manual;
mod new_file;
mod reconcile;
mod serve;
mod speech;
mod token;
mod user;
mod video;

use std::pin::Pin;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tollgate_config::providers::add_providers;

use common::{Common, Failed, print_to_stderr};

/// A self-hosted gateway in front of every generation model.
#[derive(Parser)]
#[command(name = "tollgate", version, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the gateway
    Serve(serve::Serve),
    /// Write a first configuration from the providers' keys in the environment, and test its channels
    Init(init::Init),
    /// Check the health of a running gateway; exit 1 if it is not healthy
    Health(health::Health),
    /// Check what the gateway needs; print one line per finding with what to do; exit 1 if the gateway cannot work
    Doctor(doctor::Doctor),
    /// Create, credit, list and disable users
    #[command(subcommand)]
    User(user::User),
    /// Create, list and revoke API keys
    #[command(subcommand)]
    Key(key::Key),
    /// Create users and API keys from a file, such as those of another gateway
    Import(import::Import),
    /// List and test the configured channels
    #[command(subcommand)]
    Channel(channel::Channel),
    /// Create, list and disable admins of the console
    #[command(subcommand)]
    Admin(admin::Admin),
    /// Create, list and revoke tokens of the admin API
    #[command(subcommand)]
    Token(token::Token),
    /// Print the admin key
    AdminKey,
    /// Check every money and task invariant; exit 1 if one does not hold
    Audit(audit::Audit),
    /// Copy the embedded database to a file, also while the gateway runs
    Backup(backup::Backup),
    /// Restore the embedded database from a backup
    Restore(backup::Restore),
    /// Compare the tokens of a channel's chats with what the provider's usage API reports, by model and day
    Reconcile(reconcile::Reconcile),
    /// Print a script that completes commands in a shell
    Completions(completions::Completions),
    /// Write the manual pages into a folder
    #[command(hide = true)]
    Manual(manual::Manual),
    /// Generate images on any gateway and save them
    Image(Box<image::Image>),
    /// Generate a video on any gateway and save it
    Video(Box<video::Video>),
    /// Generate speech from a text on any gateway and save the audio
    Speech(Box<speech::Speech>),
    /// Chat with a model on any gateway; the reply is printed as it streams
    Chat(Box<chat::Chat>),
}

/// Runs the command in the process's arguments. Exit status: 0 success, 1 failure, 2 invalid usage.
fn main() -> ExitCode {
    add_providers(tollgate_sandbox::PROVIDERS);
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(e) => {
            print_to_stderr(&format!("cannot start: {e}"));
            return ExitCode::FAILURE;
        }
    };
    // Boxed: the runtime's code is then compiled once for this type, not once for each function that polls it.
    let command: Pin<Box<dyn Future<Output = _>>> = Box::pin(dispatch(cli));
    let result = runtime.block_on(command);
    // The exit does not wait for blocking threads, such as one that generates an image.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed(sentence)) => {
            if let Some(sentence) = sentence {
                print_to_stderr(&sentence);
            }
            ExitCode::FAILURE
        }
    }
}

async fn dispatch(cli: Cli) -> Result<(), Failed> {
    let Cli { common, command } = cli;
    match command {
        Command::Serve(serve) => serve.run(&common).await,
        Command::Init(init) => init.run(&common).await,
        Command::Health(health) => health.run(&common).await,
        Command::Completions(completions) => completions.run::<Cli>(),
        Command::Manual(manual) => manual.run::<Cli>(),
        Command::Doctor(doctor) => doctor.run(&common).await,
        Command::User(user) => user.run(&common).await,
        Command::Key(key) => key.run(&common).await,
        Command::Import(import) => import.run(&common).await,
        Command::Channel(channel) => channel.run(&common).await,
        Command::Chat(chat) => chat.run(&common).await,
        Command::Admin(admin) => admin.run(&common).await,
        Command::Token(token) => token.run(&common).await,
        Command::AdminKey => admin_key::run(&common),
        Command::Audit(audit) => audit.run(&common).await,
        Command::Backup(backup) => backup.run(&common).await,
        Command::Restore(restore) => restore.run(&common).await,
        Command::Reconcile(reconcile) => reconcile.run(&common).await,
        Command::Image(image) => image.run(&common).await,
        Command::Video(video) => video.run(&common).await,
        Command::Speech(speech) => speech.run(&common).await,
    }
}
