//! Transcripts: what is left of a conversation after any kill, and whoever wrote it?

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use prowess_agent::message::{Message, User};
use prowess_agent::session::{Body, Context, EntryId, OpenError, ReadError, SaveError, SessionKey, Sessions, note};
use prowess_testkit::Tree;
use serde_json::{Value, json};

const ID: &str = "5f0c1a52-6a3e-4a0e-9d0b-000000000001";

/// Waits for something that is done on another thread.
fn finished<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

fn key() -> SessionKey {
    SessionKey::new("main", "main")
}

fn says(text: &str) -> Message {
    Message::User(User { timestamp: 7, ..User::says(text) })
}

fn texts(messages: &[Value]) -> Vec<String> {
    let text = |message: &Value| match &message["content"] {
        Value::String(text) => text.clone(),
        content => content[0]["text"].as_str().unwrap_or_default().to_owned(),
    };
    messages.iter().map(text).collect()
}

/// A state directory with the main session in a known file.
struct State {
    tree: Tree,
    sessions: Sessions,
}

impl State {
    fn new() -> Self {
        let tree = Tree::new();
        let sessions = Sessions::new(&tree.path("state"), "main");
        Self { tree, sessions }
    }

    /// With this as the file of the main session.
    fn with(bytes: &[u8]) -> Self {
        let state = Self::new();
        fs::create_dir_all(state.sessions.folder()).expect("a folder");
        let index = json!({"agent:main:main": {"sessionId": ID, "updatedAt": 1}});
        fs::write(state.sessions.folder().join("sessions.json"), index.to_string()).expect("an index");
        fs::write(state.file(), bytes).expect("a transcript");
        state
    }

    fn file(&self) -> PathBuf {
        self.sessions.folder().join(format!("{ID}.jsonl"))
    }

    fn open(&self) -> prowess_agent::session::Transcript {
        self.sessions.open(&key(), &self.tree.path("")).expect("a session always opens")
    }

    fn context(&self) -> Context {
        self.open().context()
    }
}

/// A transcript of real appends.
fn written(words: &[&str]) -> Vec<u8> {
    let state = State::with(b"");
    let mut transcript = state.open();
    for word in words {
        transcript.message(&says(word)).expect("room on the disk");
    }
    fs::read(state.file()).expect("a transcript")
}

#[test]
fn a_session_is_found_again() {
    let state = State::new();
    let mut transcript = state.open();
    let id = transcript.id().to_owned();
    transcript.append(Body::ModelChange { provider: "p", model: "m" }).expect("room on the disk");
    transcript.message(&says("hello")).expect("room on the disk");
    transcript
        .append(Body::Custom { kind: note::SKILLS, data: json!({"fingerprint": "f"}) })
        .expect("room on the disk");
    finished(transcript.sync()).expect("a disk");
    let before = transcript.context();
    let file = transcript.path().to_owned();
    drop(transcript);

    let transcript = state.open();
    assert_eq!(transcript.id(), id);
    assert_eq!(transcript.context(), before);
    assert_eq!(texts(&before.messages), ["hello"]);
    assert_eq!(before.model, Some(("p".to_owned(), "m".to_owned())));
    assert_eq!(before.skills, Some(json!({"fingerprint": "f"})));
    assert_eq!(transcript.mended(), [""; 0]);
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(state.sessions.folder()), 0o700);
    assert_eq!(mode(&state.sessions.folder().join("sessions.json")), 0o600);
}

#[test]
fn lines_are_what_openclaw_writes() {
    let state = State::new();
    let mut transcript = state.open();
    let first = transcript.message(&says("hello")).expect("room on the disk");
    transcript.message(&says("again")).expect("room on the disk");
    let text = fs::read_to_string(transcript.path()).expect("a transcript");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(
        (&lines[0]["type"], &lines[0]["version"], &lines[0]["id"]),
        (&json!("session"), &json!(3), &json!(transcript.id()))
    );
    assert_eq!(lines[0]["cwd"], json!(state.tree.path("")));
    assert_eq!((&lines[1]["parentId"], &lines[2]["parentId"]), (&Value::Null, &json!(first.as_str())));
    let id = first.as_str();
    assert!(id.len() == 8 && id.chars().all(|c| c.is_ascii_hexdigit()), "{id}");
}

#[test]
fn a_file_cut_at_any_byte_goes_on() {
    let words = ["one", "zwei — ü", "three\nlines"];
    let bytes = written(&words);
    let ends: Vec<usize> = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).collect();
    let state = State::with(b"");
    for cut in 0..=bytes.len() {
        fs::write(state.file(), &bytes[..cut]).expect("a transcript");
        let mut transcript = state.open();
        // Every line is there whose last character is, with or without its end; the first line is the header.
        let whole = ends.iter().filter(|end| **end <= cut).count().saturating_sub(1);
        assert_eq!(texts(&transcript.context().messages), words[..whole], "cut at {cut}");
        transcript.message(&says("after")).expect("room on the disk");
        let now = transcript.context();
        drop(transcript);
        assert_eq!(state.context(), now, "cut at {cut}");
        assert_eq!(texts(&now.messages).len(), whole + 1, "cut at {cut}");
        let after = fs::read(state.file()).expect("a transcript");
        assert!(after.starts_with(&bytes[..cut]), "cut at {cut}: something was overwritten");
    }
}

/// What the peer takes for the first line: the first that is JSON as it stands.
fn first_line(text: &[u8]) -> Value {
    let mut lines = text.split(|byte| *byte == b'\n').map(String::from_utf8_lossy);
    lines.find_map(|line| serde_json::from_str(&line).ok()).expect("a line")
}

/// Which bytes go wrong, and what becomes of them.
fn damage() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    let byte = prop_oneof![any::<u8>(), Just(0), Just(b'\n'), Just(b'"'), Just(b'}'), Just(0xc3)];
    prop::collection::vec((any::<prop::sample::Index>(), byte), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_file_loses_only_damaged_lines(damage in damage()) {
        // However few bytes are changed, none of them becomes another.
        let words: Vec<String> = ('a'..='l').map(|letter| format!("{} ü", letter.to_string().repeat(8))).collect();
        let mut bytes = written(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let line_of = |bytes: &[u8], at: usize| bytes[..at].split(|byte| *byte == b'\n').count() - 1;
        let pristine = bytes.clone();
        let mut hurt = Vec::new();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            let line = line_of(&pristine, at);
            hurt.push(line);
            if pristine[at] == b'\n' {
                hurt.push(line + 1);
            }
            bytes[at] = byte;
        }
        let state = State::with(&bytes);
        let mut transcript = state.open();
        let found = texts(&transcript.context().messages);
        let unhurt: Vec<&String> =
            words.iter().enumerate().filter(|(place, _)| !hurt.contains(&(place + 1))).map(|(_, word)| word).collect();
        let still: Vec<&String> = found.iter().filter(|word| unhurt.contains(word)).collect();
        prop_assert_eq!(still, unhurt);
        transcript.message(&says("after")).expect("room on the disk");
        let now = transcript.context();
        drop(transcript);
        prop_assert_eq!(now.messages.len(), found.len() + 1);
        prop_assert_eq!(state.context().messages, now.messages);
        // Whoever reads the first line that can be read finds the header: so does the peer.
        let text = fs::read(state.file()).expect("a transcript");
        prop_assert_eq!(&first_line(&text)["type"], "session");
    }
}

#[test]
fn what_is_no_transcript_at_all_becomes_one() {
    let table: [&[u8]; 7] =
        [b"", b"\n\n\n", &[0; 5_000], b"\xff\xfe\xfd", b"[]\n{}\n", b"hello", b"{\"type\":\"session\"}"];
    for bytes in table {
        let state = State::with(bytes);
        let mut transcript = state.open();
        assert!(transcript.context().messages.is_empty());
        transcript.message(&says("hello")).expect("room on the disk");
        drop(transcript);
        assert_eq!(texts(&state.context().messages), ["hello"], "{bytes:?}");
        let text = fs::read(state.file()).expect("a transcript");
        assert_eq!(first_line(&text)["type"], "session", "{bytes:?}");
    }
}

fn file_of(lines: &[Value]) -> String {
    lines.iter().flat_map(|line| [line.to_string(), "\n".to_owned()]).collect()
}

/// A conversation as OpenClaw 2026.3.2 leaves it: a branch, a summary, and kinds of entries that we do not have.
fn of_the_peer() -> String {
    let lines = [
        json!({"type": "session", "version": 3, "id": ID, "timestamp": "2026-03-02T10:00:00.000Z", "cwd": "/home/a"}),
        json!({"type": "model_change", "id": "00000001", "parentId": null, "timestamp": "2026-03-02T10:00:00.001Z", "provider": "anthropic", "modelId": "claude"}),
        json!({"type": "thinking_level_change", "id": "00000002", "parentId": "00000001", "timestamp": "2026-03-02T10:00:00.002Z", "thinkingLevel": "low"}),
        json!({"type": "custom", "customType": "model-snapshot", "data": {"timestamp": 1}, "id": "00000003", "parentId": "00000002", "timestamp": "2026-03-02T10:00:00.003Z"}),
        json!({"type": "message", "id": "00000004", "parentId": "00000003", "timestamp": "2026-03-02T10:00:01.000Z", "message": {"role": "user", "content": [{"type": "text", "text": "old"}], "timestamp": 1}}),
        json!({"type": "message", "id": "00000005", "parentId": "00000004", "timestamp": "2026-03-02T10:00:02.000Z", "message": {"role": "user", "content": [{"type": "text", "text": "kept"}], "timestamp": 2}}),
        json!({"type": "compaction", "id": "00000006", "parentId": "00000005", "timestamp": "2026-03-02T10:00:03.000Z", "summary": "It began.", "firstKeptEntryId": "00000005", "tokensBefore": 100, "details": {"readFiles": []}, "fromHook": false}),
        json!({"type": "message", "id": "00000007", "parentId": "00000006", "timestamp": "2026-03-02T10:00:04.000Z", "message": {"role": "user", "content": "abandoned", "timestamp": 3}}),
        json!({"type": "branch_summary", "id": "00000008", "parentId": "00000006", "timestamp": "2026-03-02T10:00:05.000Z", "fromId": "00000007", "summary": ""}),
        json!({"type": "label", "id": "00000009", "parentId": "00000008", "timestamp": "2026-03-02T10:00:06.000Z", "targetId": "00000005", "label": "x"}),
        json!({"type": "brand_new", "id": "0000000a", "parentId": "00000009", "timestamp": "2026-03-02T10:00:07.000Z", "data": {"deep": [1]}}),
        json!({"type": "message", "id": "0000000b", "parentId": "0000000a", "timestamp": "2026-03-02T10:00:08.000Z", "message": {"role": "user", "content": "new", "timestamp": 4}}),
    ];
    file_of(&lines)
}

#[test]
fn a_session_of_openclaw_goes_on() {
    let state = State::with(of_the_peer().as_bytes());
    let mut transcript = state.open();
    assert_eq!(transcript.mended(), [""; 0]);
    let context = transcript.context();
    assert_eq!(texts(&context.messages), ["kept", "new"]);
    assert_eq!(context.summary.map(|summary| summary.text).as_deref(), Some("It began."));
    assert_eq!(context.thinking.as_deref(), Some("low"));
    let id = transcript.message(&says("ours")).expect("room on the disk");
    drop(transcript);
    let text = fs::read_to_string(state.file()).expect("a transcript");
    let ours = text.strip_prefix(&of_the_peer()).expect("what the peer wrote is as it was");
    let ours: Value = serde_json::from_str(ours).expect("JSON");
    assert_eq!((&ours["id"], &ours["parentId"]), (&json!(id.as_str()), &json!("0000000b")));
    assert_eq!(texts(&state.context().messages), ["kept", "new", "ours"]);
}

#[test]
fn older_versions_are_brought_to_the_newest() {
    let first = [
        json!({"type": "session", "id": ID, "timestamp": "t", "cwd": "/home/a", "extra": 1}),
        json!({"type": "message", "timestamp": "t", "message": {"role": "user", "content": "a"}}),
        json!({"type": "message", "timestamp": "t", "message": {"role": "hookMessage", "content": "b", "timestamp": 1}}),
        json!({"type": "compaction", "timestamp": "t", "summary": "s", "firstKeptEntryIndex": 2, "tokensBefore": 1}),
        json!({"type": "message", "timestamp": "t", "message": {"role": "user", "content": "c"}}),
    ];
    let text = file_of(&first);
    let state = State::with(text.as_bytes());
    let transcript = state.open();
    assert_eq!(texts(&transcript.context().messages), ["b", "c"]);
    assert_eq!(transcript.mended().len(), 1);
    drop(transcript);
    let stored = state.sessions.read("main").expect("it is there");
    let header = stored.header.expect("a header");
    assert_eq!((&header["version"], &header["cwd"], &header["extra"]), (&json!(3), &json!("/home/a"), &json!(1)));
    assert_eq!(stored.entries[1]["message"]["role"], "custom");
    assert_eq!(stored.entries[2]["firstKeptEntryId"], stored.entries[1]["id"]);
    assert_eq!(stored.entries[2]["parentId"], stored.entries[1]["id"]);
    assert_eq!(texts(&stored.context.messages), ["b", "c"]);
    let kept: Vec<PathBuf> = fs::read_dir(state.sessions.folder())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().contains(".jsonl.bak-"))
        .collect();
    assert_eq!(fs::read_to_string(&kept[0]).expect("the old one"), text);
    assert_eq!(state.open().mended(), [""; 0], "once is enough");
}

#[test]
fn a_summary_takes_the_place_of_what_it_stands_for() {
    let state = State::new();
    let mut transcript = state.open();
    let ids: Vec<EntryId> =
        ["a", "b", "c"].iter().map(|word| transcript.message(&says(word)).expect("room on the disk")).collect();
    let details = Some(json!({"readFiles": ["x"]}));
    let body = Body::Compaction { summary: "s", first_kept: &ids[2], tokens_before: 9, details: details.clone() };
    transcript.append(body).expect("room on the disk");
    transcript.message(&says("d")).expect("room on the disk");
    let context = transcript.context();
    assert_eq!(texts(&context.messages), ["c", "d"]);
    assert_eq!(context.ids[0], ids[2]);
    assert_eq!(context.summary.as_ref().and_then(|summary| summary.details.clone()), details);
    drop(transcript);
    assert_eq!(state.context(), context);
    let stored = state.sessions.read("agent:main:main").expect("it is there");
    assert_eq!(texts(&stored.conversation), ["a", "b", "c", "d"]);
}

#[test]
fn a_session_has_one_owner() {
    let state = State::new();
    let transcript = state.open();
    let error = state.sessions.open(&key(), Path::new("/")).expect_err("it is taken");
    assert!(matches!(error, OpenError::Busy { pid: Some(pid), .. } if pid == std::process::id()), "{error}");
    assert!(error.to_string().contains("choose another session"), "{error}");
    // Looking is always allowed, and other sessions are other sessions.
    state.sessions.read("main").expect("it is there");
    state.sessions.open(&SessionKey::new("main", "other"), Path::new("/")).expect("another session");
    drop(transcript);
    state.open();
}

#[test]
fn a_session_that_was_taken_over_is_not_written_to() {
    let state = State::new();
    let mut transcript = state.open();
    let mut lock = transcript.path().as_os_str().to_owned();
    lock.push(".lock");
    fs::remove_file(&lock).expect("it was there");
    fs::write(&lock, format!("{{\"pid\":{}}}", std::process::id())).expect("a file");
    let before = fs::read(transcript.path()).expect("a transcript");
    let error = transcript.message(&says("hello")).expect_err("it is somebody else's");
    assert!(matches!(error, SaveError::Taken { .. }), "{error}");
    assert_eq!(fs::read(transcript.path()).expect("a transcript"), before);
}

#[test]
fn a_line_that_could_not_be_read_again_is_not_written() {
    let state = State::new();
    let mut transcript = state.open();
    let error = transcript.message(&says(&"x".repeat(65 * 1_024 * 1_024))).expect_err("too long");
    assert!(matches!(error, SaveError::TooLong { .. }), "{error}");
    transcript.message(&says("short")).expect("room on the disk");
    drop(transcript);
    assert_eq!(texts(&state.context().messages), ["short"]);
}

#[test]
fn links_that_lead_out_are_refused() {
    let outside = of_the_peer();
    let state = State::with(b"");
    fs::remove_file(state.file()).expect("it was there");
    let elsewhere = state.tree.path("elsewhere.jsonl");
    for make in [true, false] {
        if make {
            fs::write(&elsewhere, &outside).expect("a file");
        } else {
            fs::remove_file(&elsewhere).expect("it was there");
        }
        symlink(&elsewhere, state.file()).expect("a link");
        let error = state.sessions.open(&key(), Path::new("/")).expect_err("it leads out");
        assert!(matches!(error, OpenError::Outside(_)), "{error}");
        if make {
            assert!(matches!(state.sessions.read(ID), Err(ReadError::Open(OpenError::Outside(_)))));
            assert_eq!(fs::read_to_string(&elsewhere).expect("a file"), outside);
        }
        fs::remove_file(state.file()).expect("it was there");
    }
    assert!(!elsewhere.exists());
    // A link within the folder is another name for the same session.
    fs::write(state.sessions.folder().join("real.jsonl"), &outside).expect("a file");
    symlink("real.jsonl", state.file()).expect("a link");
    assert_eq!(texts(&state.context().messages), ["kept", "new"]);
}

#[test]
fn a_key_of_another_agent_is_refused() {
    let state = State::new();
    let error = state.sessions.open(&SessionKey::new("ops", "main"), Path::new("/")).expect_err("not ours");
    assert!(matches!(error, OpenError::OtherAgent { .. }), "{error}");
}

#[test]
fn a_reset_begins_anew_and_loses_nothing() {
    let state = State::new();
    let mut transcript = state.open();
    let old = transcript.id().to_owned();
    transcript.message(&says("What is the weather?")).expect("room on the disk");
    drop(transcript);
    let new = state.sessions.reset(&key()).expect("an index").id;
    assert_ne!(new, old);
    let mut transcript = state.open();
    assert_eq!(transcript.id(), new);
    assert!(transcript.context().messages.is_empty());
    transcript.message(&says("And now?")).expect("room on the disk");
    let listed = state.sessions.list().expect("an index");
    let mut shown: Vec<_> =
        listed.iter().map(|one| (one.key.as_deref(), one.id.as_str(), one.messages, one.title.as_deref())).collect();
    shown.sort_unstable();
    assert_eq!(
        shown,
        [
            (None, old.as_str(), 1, Some("What is the weather?")),
            (Some("agent:main:main"), new.as_str(), 1, Some("And now?"))
        ]
    );
    assert_eq!(texts(&state.sessions.read(&old[..8]).expect("it is there").conversation), ["What is the weather?"]);
    assert_eq!(state.sessions.read("Main").expect("it is there").id, new);
    assert!(matches!(state.sessions.read("nothing"), Err(ReadError::Unknown(_))));
    assert!(matches!(state.sessions.read(""), Ok(stored) if stored.id == new), "no name is the main session");
}

#[test]
fn an_ambiguous_beginning_is_asked_about() {
    let state = State::with(b"");
    for id in ["abc1", "abc2", "abc"] {
        fs::write(state.sessions.folder().join(format!("{id}.jsonl")), of_the_peer()).expect("a transcript");
    }
    assert!(
        matches!(state.sessions.read("ab"), Err(ReadError::Ambiguous { ids, .. }) if ids == ["abc", "abc1", "abc2"])
    );
    assert_eq!(state.sessions.read("abc").expect("the very one").id, "abc");
    assert!(matches!(state.sessions.read("../main"), Err(ReadError::Unknown(_))));
}

#[test]
fn the_index_survives_writers_on_eight_threads() {
    let state = State::new();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let sessions = &state.sessions;
            scope.spawn(move || {
                for number in 0..8 {
                    let key = SessionKey::new("main", &format!("t{thread}-{number}"));
                    let mut transcript = sessions.open(&key, Path::new("/")).expect("a session");
                    transcript.message(&says("hi")).expect("room on the disk");
                    finished(transcript.sync()).expect("a disk");
                }
            });
        }
    });
    let listed = state.sessions.list().expect("an index");
    let keys: std::collections::BTreeSet<String> = listed.iter().filter_map(|one| one.key.clone()).collect();
    assert_eq!((listed.len(), keys.len()), (64, 64));
    let left: Vec<String> = fs::read_dir(state.sessions.folder())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| Path::new(name).extension() != Some("jsonl".as_ref()))
        .collect();
    assert_eq!(left, ["sessions.json"], "no lock and no temporary file is left");
}

fn updated(state: &State) -> u64 {
    let text = fs::read_to_string(state.sessions.folder().join("sessions.json")).expect("an index");
    let index: Value = serde_json::from_str(&text).expect("JSON");
    index["agent:main:main"]["updatedAt"].as_u64().expect("a time")
}

fn forget_time(state: &State) {
    let index = json!({"agent:main:main": {"sessionId": ID, "updatedAt": 1}});
    fs::write(state.sessions.folder().join("sessions.json"), index.to_string()).expect("an index");
}

#[test]
fn the_index_is_told_at_first_and_at_last() {
    let state = State::with(b"");
    let mut transcript = state.open();
    assert_eq!(updated(&state), 1, "nothing was said yet");
    assert_eq!(finished(transcript.sync()).expect("a disk"), None);
    assert!(updated(&state) > 1);
    forget_time(&state);
    assert_eq!(finished(transcript.sync()).expect("a disk"), None);
    assert_eq!(updated(&state), 1, "not for every turn");
    drop(transcript);
    assert!(updated(&state) > 1);
    forget_time(&state);
    drop(state.open());
    assert_eq!(updated(&state), 1, "nothing was said");
}

#[test]
fn a_conversation_goes_on_without_its_index() {
    let state = State::with(b"");
    let mut transcript = state.open();
    transcript.message(&says("hello")).expect("room on the disk");
    let index = state.sessions.folder().join("sessions.json");
    fs::remove_file(&index).expect("it was there");
    fs::create_dir(&index).expect("a folder");
    let notice = finished(transcript.sync()).expect("the transcript is safe").expect("a notice");
    assert!(notice.contains("sessions.json") && notice.contains("not a regular file"), "{notice}");
    drop(transcript);
    assert_eq!(texts(&written_messages(&state)), ["hello"]);
}

fn written_messages(state: &State) -> Vec<Value> {
    let text = fs::read_to_string(state.file()).expect("a transcript");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    lines.filter(|line| line["type"] == "message").map(|line| line["message"].clone()).collect()
}

#[test]
fn a_pipe_in_place_of_the_index_is_refused() {
    let state = State::with(b"");
    let index = state.sessions.folder().join("sessions.json");
    fs::remove_file(&index).expect("it was there");
    assert!(std::process::Command::new("mkfifo").arg(&index).status().expect("mkfifo").success());
    let error = state.sessions.open(&key(), &state.tree.path("")).expect_err("no index").to_string();
    assert!(error.contains("sessions.json: it is not a regular file"), "{error}");
    assert!(state.sessions.list().is_err() && state.sessions.read("main").is_err());
    assert!(state.sessions.has(&key()).is_err() && state.sessions.reset(&key()).is_err());
}

#[test]
fn a_broken_index_is_told() {
    let state = State::with(b"");
    fs::write(state.sessions.folder().join("sessions.json"), "{").expect("an index");
    let transcript = state.open();
    let told = transcript.mended().join(" ");
    assert!(told.contains("rebuilt from the transcripts") && told.contains("sessions.json.broken-1"), "{told}");
    drop(transcript);
    assert_eq!(state.open().mended(), [""; 0], "once is enough");
    fs::write(state.sessions.folder().join("sessions.json"), "{").expect("an index");
    assert!(state.sessions.reset(&key()).expect("a new one").mended.is_some());
}

#[test]
fn a_key_is_known_or_not() {
    let state = State::with(b"");
    assert!(state.sessions.has(&key()).expect("an index"));
    assert!(!state.sessions.has(&SessionKey::new("main", "nosuch")).expect("an index"));
}
