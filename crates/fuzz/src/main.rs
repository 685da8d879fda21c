//! Writes the inputs to begin with into folders for a fuzzer: `tanda-fuzz FOLDER`.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1) else {
        return fail("say which folder to write the inputs to");
    };
    match write_seeds(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("{}: {error}", Path::new(&folder).display())),
    }
}

fn fail(problem: &str) -> ExitCode {
    // Nobody is left to tell when this fails.
    drop(writeln!(std::io::stderr(), "tanda-fuzz: {problem}"));
    ExitCode::FAILURE
}

fn write_seeds(folder: &Path) -> std::io::Result<()> {
    for seed in tanda_fuzz::seeds::all() {
        let folder = folder.join(seed.target);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(seed.name), seed.input)?;
    }
    Ok(())
}
