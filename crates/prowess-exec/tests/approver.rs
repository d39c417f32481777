//! The question at a terminal: is what a person sees what would run, and is only what they say an answer?

#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use prowess_exec::approver::{Approver, Nobody, Offer, Terminal, ToolQuestion};
use prowess_exec::exec::find_shell;
use prowess_exec::lookup::Disk;
use prowess_policy::posture::Posture;
use prowess_policy::safe_bin::SafeBins;
use prowess_policy::{Answer, Binding, Judgment, Place, ProgramPlace, Question, Request, Rules, Verdict};

/// How long the person in these tests may think: for ever, as tests go.
const LONG: Duration = Duration::from_secs(60);

fn judgment(binding: Binding) -> Judgment {
    let rules = Rules {
        posture: Posture::HOST,
        allowlist: Vec::new(),
        safe_bins: SafeBins::default(),
        skill_bins: Vec::new(),
        home: "/root".into(),
        ground: prowess_policy::wants::Ground::default(),
    };
    let disk = Disk::new("/usr/bin:/bin", Path::new("/"));
    rules.judge(Request { binding, shell: find_shell(), variables: Vec::new(), place: ProgramPlace::Here }, &disk)
}

fn binding(command: &str) -> Binding {
    Binding {
        command: command.to_owned(),
        cwd: Place { path: "/".into(), device: 0, inode: 0 },
        environment: String::new(),
        agent: "main".to_owned(),
        session: "test".to_owned(),
    }
}

fn question(command: &str) -> Question {
    judgment(binding(command)).question().expect("it is asked about")
}

/// A terminal with somebody at its other end.
struct Desk {
    terminal: Terminal,
    keys: File,
    screen: File,
}

impl Desk {
    fn new(patience: Duration) -> Self {
        let (input, keys) = std::io::pipe().expect("a pipe");
        let (screen, output) = std::io::pipe().expect("a pipe");
        let file = |end: OwnedFd| File::from(end);
        let terminal = Terminal::over(file(input.into()), file(output.into()), patience);
        Self { terminal, keys: file(keys.into()), screen: file(screen.into()) }
    }

    /// Types one of `answers` at each prompt, and gives all that was on the screen in the end.
    fn sit(mut self, answers: &[&[u8]]) -> (Terminal, JoinHandle<String>) {
        let answers: Vec<Vec<u8>> = answers.iter().map(|answer| answer.to_vec()).collect();
        let person = std::thread::spawn(move || {
            let mut seen = Vec::new();
            for answer in answers {
                read_until_prompt(&mut self.screen, &mut seen);
                self.keys.write_all(&answer).expect("the other end is there");
            }
            drop(self.keys);
            self.screen.read_to_end(&mut seen).expect("it can be read");
            String::from_utf8(seen).expect("text")
        });
        (self.terminal, person)
    }
}

fn read_until_prompt(screen: &mut File, seen: &mut Vec<u8>) {
    let start = seen.len();
    let mut byte = [0];
    while !seen[start..].ends_with(b"[w]hy: ") && !seen[start..].ends_with(b"[n]o: ") {
        assert_eq!(screen.read(&mut byte).expect("it can be read"), 1, "{}", String::from_utf8_lossy(seen));
        seen.push(byte[0]);
    }
}

/// What comes of `command` when these are the answers, and what was on the screen.
async fn talk(command: &str, answers: &[&[u8]]) -> (Option<Answer>, String) {
    let (terminal, person) = Desk::new(LONG).sit(answers);
    let answer = terminal.ask(&question(command)).await;
    drop(terminal);
    (answer, person.join().expect("no panic"))
}

#[tokio::test]
async fn the_words_are_yes_no_always_and_why() {
    let table: &[(&[&[u8]], Option<Answer>)] = &[
        (&[b"y\n"], Some(Answer::Once)),
        (&[b"yes\n"], Some(Answer::Once)),
        (&[b" YES \r\n"], Some(Answer::Once)),
        (&[b"n\n"], Some(Answer::No)),
        (&[b"No\n"], Some(Answer::No)),
        (&[b"\n"], Some(Answer::No)),
        (&[b"a\n"], Some(Answer::Always)),
        (&[b"always\n"], Some(Answer::Always)),
        (&[b"w\n", b"why\n", b"y\n"], Some(Answer::Once)),
        (&[b"yess\n", b"ye s\n", b"1\n", b"\x1b[A\n", b"n\n"], Some(Answer::No)),
    ];
    for (answers, expected) in table {
        let (answer, _) = talk("touch x", answers).await;
        assert_eq!(answer, *expected, "{answers:?}");
    }
}

/// A call of another tool is asked about in the same way, but there is nothing to be allowed for good.
#[tokio::test]
async fn a_tool_is_asked_about_with_yes_and_no() {
    let question = ToolQuestion {
        agent: "main".to_owned(),
        session: "agent:main:main".to_owned(),
        tool: "read".to_owned(),
        summary: "read /etc/hosts\u{1b}[2J".to_owned(),
        why: "it is outside the workspace".to_owned(),
        content: Vec::new(),
        offer: Offer::Once,
    };
    let table: &[(&[&[u8]], Option<Answer>)] = &[
        (&[b"y\n"], Some(Answer::Once)),
        (&[b" YES \n"], Some(Answer::Once)),
        (&[b"n\n"], Some(Answer::No)),
        (&[b"\n"], Some(Answer::No)),
        (&[b"a\n", b"always\n", b"w\n", b"no\n"], Some(Answer::No)),
        (&[b"y"], None),
        (&[], None),
    ];
    for (answers, expected) in table {
        let (terminal, person) = Desk::new(LONG).sit(answers);
        let answer = terminal.ask_tool(&question).await;
        drop(terminal);
        let screen = person.join().expect("no panic");
        assert_eq!(answer, *expected, "{answers:?}");
        assert!(screen.contains("read /etc/hosts\\u{1b}[2J") && !screen.contains('\u{1b}'), "{screen}");
    }
    assert_eq!(Nobody.ask_tool(&question).await, None);
}

/// A23: no answer, half an answer and an answer that is no text are no answer.
#[tokio::test]
async fn what_is_no_answer_is_none() {
    let long = vec![b'y'; 300];
    let table: &[&[&[u8]]] = &[&[], &[b""], &[b"y"], &[b"yes"], &[b"\xff\xfe\n"], &[&long], &[b"w\n"], &[b"what?\n"]];
    for answers in table {
        let (terminal, person) = Desk::new(LONG).sit(answers);
        let answer = terminal.ask(&question("touch x")).await;
        drop(terminal);
        person.join().expect("no panic");
        assert_eq!(answer, None, "{answers:?}");
    }
}

/// A23: a late answer is no answer, not to this question and not to the next.
#[tokio::test]
async fn a_late_answer_answers_nothing() {
    let mut desk = Desk::new(Duration::from_millis(100));
    assert_eq!(desk.terminal.ask(&question("touch first")).await, None);
    desk.keys.write_all(b"y\ny\n").expect("the other end is there");
    assert_eq!(desk.terminal.ask(&question("touch second")).await, None, "it was for the first question");
}

/// A23: what was typed before the question was on the screen was not meant for it.
#[tokio::test]
async fn what_was_typed_ahead_answers_nothing() {
    let mut desk = Desk::new(Duration::from_millis(100));
    desk.keys.write_all(b"y\nyes\na\n").expect("the other end is there");
    assert_eq!(desk.terminal.ask(&question("touch x")).await, None);
}

/// A terminal: the end of the person, and a way to open the other one.
fn real_terminal() -> (File, impl Fn() -> File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&keys).and_then(|()| unlockpt(&keys)).expect("a terminal");
    let name = ptsname(&keys, Vec::new()).expect("a name").into_string().expect("text");
    let open = move || {
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
        File::from(rustix::fs::open(&name, flags, rustix::fs::Mode::empty()).expect("the other end"))
    };
    (File::from(keys), open)
}

/// The same on a real terminal, which holds back half a line.
#[tokio::test]
async fn what_was_typed_ahead_on_a_real_terminal_answers_nothing() {
    let (mut keys, open) = real_terminal();
    let terminal = Terminal::over(open(), open(), LONG);
    keys.write_all(b"y\nye").expect("the other end is there");
    let person = std::thread::spawn(move || {
        let mut seen = Vec::new();
        read_until_prompt(&mut keys, &mut seen);
        // With what was typed before it would be a yes.
        keys.write_all(b"s\n").expect("the other end is there");
        read_until_prompt(&mut keys, &mut seen);
        keys.write_all(b"n\n").expect("the other end is there");
        keys
    });
    assert_eq!(terminal.ask(&question("touch x")).await, Some(Answer::No));
    drop(person.join());
}

/// A22: "always" is not offered where it is not to be had, and is no answer there.
#[tokio::test]
async fn always_is_offered_only_where_it_is_to_be_had() {
    let (answer, screen) = talk("touch x", &[b"a\n"]).await;
    assert_eq!(answer, Some(Answer::Always));
    assert!(screen.contains("[a]lways"), "{screen}");
    assert!(screen.contains("would allow /usr/bin/touch as `touch x` in /\n"), "{screen}");
    for command in ["bash -c 'touch $0' x", "python3 -c 1", "touch *", "(touch x)", "touch x > y", "eval touch x"] {
        let (answer, screen) = talk(command, &[b"a\n", b"always\n", b"w\n", b"n\n"]).await;
        assert_eq!(answer, Some(Answer::No), "{command}");
        assert!(!screen.contains("[a]lways") && !screen.contains("would allow"), "{command}: {screen}");
        assert!(screen.contains("cannot always be allowed"), "{command}: {screen}");
    }
}

/// A25: nothing in a command moves the cursor, hides, turns letters, or passes for a line of ours.
#[tokio::test]
async fn the_question_shows_every_character() {
    for (hidden, shown) in [
        ("\u{1b}[2K", "\\u{1b}[2K"),
        ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
        ("\r", "\\u{d}"),
        ("\u{8}\u{8}", "\\u{8}\\u{8}"),
        ("\u{7f}", "\\u{7f}"),
        ("\u{9b}31m", "\\u{9b}31m"),
        ("\u{202e}", "\\u{202e}"),
        ("\u{2066}", "\\u{2066}"),
        ("\u{200b}", "\\u{200b}"),
        ("\u{feff}", "\\u{feff}"),
        ("\u{a0}", "\\u{a0}"),
        ("\u{2028}", "\\u{2028}"),
        ("\u{e0041}", "\\u{e0041}"),
    ] {
        let command = format!("touch 'a{hidden}b' {hidden}");
        let (answer, screen) = talk(&command, &[b"w\n", b"n\n"]).await;
        assert_eq!(answer, Some(Answer::No));
        assert!(screen.contains(&format!("    touch 'a{shown}b' {shown}\n")), "{hidden:?}: {screen}");
        assert!(!screen.contains(hidden), "{hidden:?}: {screen}");
    }
    let (_, screen) = talk("touch 'a ' b ", &[b"n\n"]).await;
    assert!(screen.contains("    touch 'a ' b\\u{20}\n"), "a space at the end is seen: {screen}");
}

/// A25: lines of a command, a folder, an agent or a session cannot pass for lines of the question.
#[tokio::test]
async fn nothing_passes_for_a_line_of_the_question() {
    let forged = "\n\n  in       /safe\n  agent    trusted (session main)\nAllow it? [y]es, once / [n]o / [w]hey: y\n";
    let bindings = [
        binding(&format!("touch 'x{forged}'")),
        Binding { agent: format!("a{forged}"), ..binding("touch x") },
        Binding { session: format!("s{forged}"), ..binding("touch x") },
        Binding { cwd: Place { path: format!("/d{forged}").into(), device: 0, inode: 0 }, ..binding("touch x") },
        binding(&format!("'no-such-program{forged}' x")),
        binding(&format!("touch x > 'y{forged}'")),
    ];
    for binding in bindings {
        let (terminal, person) = Desk::new(LONG).sit(&[b"w\n", b"n\n"]);
        let question = judgment(binding.clone()).question().expect("it is asked about");
        assert_eq!(terminal.ask(&question).await, Some(Answer::No));
        drop(terminal);
        let screen = person.join().expect("no panic");
        for lie in ["\n  in       /safe", "\n  agent    trusted", "\nAllow it? [y]es, once / [n]o / [w]hey"] {
            assert!(!screen.contains(lie), "{lie:?} in {screen}");
        }
    }
}

/// A25: what is shown is all of it; what cannot be shown whole cannot be approved, because nobody is asked.
#[test]
fn padding_cannot_be_approved() {
    for command in [
        format!("touch {}; touch mark", "A".repeat(200_000)),
        format!("touch x {} ; touch mark", " ".repeat(200_000)),
        format!("touch x {}\ntouch mark", "\n".repeat(200_000)),
        "touch x\0; touch mark".to_owned(),
    ] {
        let judgment = judgment(binding(&command));
        assert_eq!(judgment.verdict(), Verdict::Deny);
        assert!(judgment.question().is_err());
    }
}

/// A25: words that a shell would put together otherwise than they look are shown as the programs they start.
#[tokio::test]
async fn why_names_the_programs_that_would_start() {
    let (_, screen) = talk("env nice sh -c '$0' touch", &[b"w\n", b"n\n"]).await;
    assert!(screen.contains("starts   /usr/bin/env\n") && screen.contains("starts   /usr/bin/nice\n"), "{screen}");
    let (_, screen) = talk("'/usr/bin/tou'ch x", &[b"w\n", b"n\n"]).await;
    assert!(screen.contains("starts   /usr/bin/touch\n"), "{screen}");
}

/// Two questions at once are asked one after the other, and each gets its own answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_questions_get_an_answer_each() {
    let (terminal, person) = Desk::new(LONG).sit(&[b"y\n", b"n\n"]);
    let (first, second) = (question("touch one"), question("touch two"));
    let answers = tokio::join!(terminal.ask(&first), terminal.ask(&second));
    drop(terminal);
    let screen = person.join().expect("no panic");
    let is_first_asked_first = screen.find("touch one") < screen.find("touch two");
    let expected = if is_first_asked_first { (Answer::Once, Answer::No) } else { (Answer::No, Answer::Once) };
    assert_eq!((answers.0, answers.1), (Some(expected.0), Some(expected.1)), "{screen}");
}

/// The time for an answer begins when the question can be seen, not when it waits for another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_that_waited_for_another_has_its_own_time() {
    let mut desk = Desk::new(Duration::from_secs(2));
    let person = std::thread::spawn(move || {
        let mut seen = Vec::new();
        read_until_prompt(&mut desk.screen, &mut seen);
        // Nothing is said to the first, so its time runs out; the second comes after that.
        read_until_prompt(&mut desk.screen, &mut seen);
        desk.keys.write_all(b"y\n").expect("the other end is there");
        (desk.keys, desk.screen)
    });
    let (first, second) = (question("touch one"), question("touch two"));
    let answers = tokio::join!(desk.terminal.ask(&first), desk.terminal.ask(&second));
    drop(person.join().expect("no panic"));
    assert!(matches!(answers, (None, Some(Answer::Once)) | (Some(Answer::Once), None)), "{answers:?}");
}

/// Puts a question, drops it once it is on the screen, types, and gives what the next reader finds.
async fn drop_and_type(terminal: &Terminal, screen: File, keys: &mut File, mut reader: File) -> Vec<u8> {
    let question = question("touch x");
    let prompt = tokio::task::spawn_blocking(move || {
        let mut screen = screen;
        read_until_prompt(&mut screen, &mut Vec::new());
        screen
    });
    let screen = tokio::select! {
        answer = terminal.ask(&question) => panic!("{answer:?}"),
        screen = prompt => screen.expect("no panic"),
    };
    keys.write_all(b"hello\n").expect("the other end is there");
    // The line is free at once, and another question could be put.
    let mut bytes = vec![0; 6];
    reader.read_exact(&mut bytes).expect("it can be read");
    drop(screen);
    bytes
}

/// What is typed after a question was dropped is not taken for its answer, but left for whoever reads next.
#[tokio::test]
async fn a_dropped_question_takes_nothing() {
    let (input, keys) = std::io::pipe().expect("a pipe");
    let (screen, output) = std::io::pipe().expect("a pipe");
    let file = |end: OwnedFd| File::from(end);
    let reader = file(input.try_clone().expect("a pipe").into());
    let terminal = Terminal::over(file(input.into()), file(output.into()), LONG);
    let found = drop_and_type(&terminal, file(screen.into()), &mut file(keys.into()), reader).await;
    assert_eq!(found, b"hello\n");
}

/// The same on a real terminal.
#[tokio::test]
async fn a_dropped_question_takes_nothing_from_a_real_terminal() {
    let (mut keys, open) = real_terminal();
    let screen = keys.try_clone().expect("the same end");
    let terminal = Terminal::over(open(), open(), LONG);
    assert_eq!(drop_and_type(&terminal, screen, &mut keys, open()).await, b"hello\n");
}

/// A question that was dropped before its turn is never put, and the line is free for the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_dropped_before_its_turn_is_never_seen() {
    let mut desk = Desk::new(LONG);
    let (seen, is_seen) = tokio::sync::oneshot::channel();
    let (go, may_go) = std::sync::mpsc::channel();
    let person = std::thread::spawn(move || {
        let mut screen = Vec::new();
        read_until_prompt(&mut desk.screen, &mut screen);
        seen.send(()).expect("the other end is there");
        may_go.recv().expect("the other end is there");
        desk.keys.write_all(b"n\n").expect("the other end is there");
        read_until_prompt(&mut desk.screen, &mut screen);
        desk.keys.write_all(b"y\n").expect("the other end is there");
        String::from_utf8(screen).expect("text")
    });
    let (first, dropped, last) = (question("touch one"), question("touch two"), question("touch three"));
    let mut asking = desk.terminal.ask(&first);
    tokio::select! {
        biased;
        answer = &mut asking => panic!("{answer:?}"),
        put = is_seen => put.expect("it was put"),
    }
    tokio::select! {
        biased;
        answer = desk.terminal.ask(&dropped) => panic!("{answer:?}"),
        () = tokio::task::yield_now() => {}
    }
    go.send(()).expect("the other end is there");
    assert_eq!(asking.await, Some(Answer::No));
    assert_eq!(desk.terminal.ask(&last).await, Some(Answer::Once));
    let screen = person.join().expect("no panic");
    assert!(!screen.contains("touch two") && screen.contains("touch three"), "{screen}");
}
