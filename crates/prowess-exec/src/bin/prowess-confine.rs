//! The helper alone, for those who use the library without the command.

fn main() {
    prowess_exec::confine::run_if_asked();
    eprintln!("prowess-confine: started by prowess-exec, not by hand");
    std::process::exit(2);
}
