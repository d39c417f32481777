//! The helper that sets up what integration tests run, and nothing else.

fn main() {
    prowess_exec::confine::run_if_asked();
}
