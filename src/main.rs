//! The witnessmark command.

fn main() -> std::process::ExitCode {
    witnessmark::cli::main()
}
