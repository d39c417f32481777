//! A workshop for tools: a state directory, a workspace, a home, skills on disk, and somebody to ask.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prowess_agent::event::{Event, Events, How};
use prowess_agent::skills::{SkillSet, Uses};
use prowess_agent::tool::{Call, Scope, ToolSet, ToolSettings, standard};
use prowess_exec::approver::{Approver, ToolQuestion};
use prowess_exec::job::{Limits, Runner};
use prowess_exec::{Exec, Setting, SkillShare, ToolResult};
use prowess_policy::posture::{Ask, Security};
use prowess_policy::{Answer, ExecSettings, Question, SandboxChoice};
use prowess_skills::{Budget, Candidate, Catalog, Filters, Finding, Gate, Skill, SkillsConfig, Snapshot, Tier, World};
use serde_json::Value;
use tempfile::TempDir;

/// Far longer than anything takes. It is there so that a test that hangs says so.
const PATIENCE: Duration = Duration::from_secs(120);

/// Somebody who answers everything in one way, and remembers what they were asked.
#[derive(Default)]
pub(crate) struct Person {
    pub(crate) consent: Option<Answer>,
    pub(crate) answer: Option<Answer>,
    pub(crate) asked: Mutex<Vec<ToolQuestion>>,
    pub(crate) commands: Mutex<Vec<String>>,
}

impl Person {
    pub(crate) fn willing() -> Self {
        Self { consent: Some(Answer::Once), answer: Some(Answer::Once), ..Self::default() }
    }

    pub(crate) fn unwilling() -> Self {
        Self { consent: Some(Answer::No), answer: Some(Answer::No), ..Self::default() }
    }

    /// How often they were asked about tools.
    pub(crate) fn times(&self) -> usize {
        self.asked.lock().expect("no panic").len()
    }
}

impl Approver for Person {
    fn ask<'a>(&'a self, question: &'a Question) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'a>> {
        let command = question.judgment().request().binding.command.clone();
        self.commands.lock().expect("no panic").push(command);
        Box::pin(std::future::ready(self.answer))
    }

    fn ask_tool<'a>(&'a self, question: &'a ToolQuestion) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'a>> {
        self.asked.lock().expect("no panic").push(question.clone());
        Box::pin(std::future::ready(self.consent))
    }
}

/// One turn of one conversation.
#[derive(Default)]
pub(crate) struct Turn {
    pub(crate) session: String,
    pub(crate) uses: Uses,
    pub(crate) person: Person,
    pub(crate) events: Arc<Mutex<Vec<Event>>>,
}

impl Turn {
    pub(crate) fn new(session: &str) -> Self {
        Self { session: session.to_owned(), ..Self::default() }
    }

    pub(crate) fn with(person: Person) -> Self {
        Self { person, ..Self::new("test") }
    }

    pub(crate) fn seen(&self) -> Vec<Event> {
        self.events.lock().expect("no panic").clone()
    }
}

pub(crate) struct Workshop {
    root: TempDir,
    pub(crate) exec: Arc<Exec>,
    pub(crate) setting: Setting,
    pub(crate) tools: ToolSet,
    pub(crate) skills: Arc<SkillSet>,
}

impl Workshop {
    /// A workshop in which commands run without being asked about.
    pub(crate) fn new() -> Self {
        Self::with(&Value::Null, &[])
    }

    /// The same with a `tools` section and with skills: their names, the rest of their frontmatter and their texts.
    pub(crate) fn with(section: &Value, skills: &[(&str, &str, &str)]) -> Self {
        let root = TempDir::new().expect("a folder");
        let base = root.path().canonicalize().expect("it is there");
        for dir in ["state", "ws", "home", "home/.ssh", "skills"] {
            std::fs::create_dir(base.join(dir)).expect("a folder");
        }
        write(&base.join("home/.ssh/id"), "KEY");
        write(&base.join("state/openclaw.json"), "{}");
        let settings = ExecSettings {
            security: Some(Security::Full),
            ask: Some(Ask::Off),
            sandbox: SandboxChoice::Off,
            ..ExecSettings::default()
        };
        let home = base.join("home");
        let host_env = [("PATH", "/usr/bin:/bin"), ("HOME", home.to_str().expect("text")), ("LANG", "C.UTF-8")];
        let setting = Setting {
            agent: "main".to_owned(),
            session: "none".to_owned(),
            workspace: base.join("ws"),
            home: home.clone(),
            settings,
            host_env: host_env.map(|(name, value)| (name.to_owned(), value.into())).to_vec(),
            skills: Vec::new(),
            readable: Vec::new(),
            hidden: vec![base.join("home/.ssh"), base.join("state/openclaw.json")],
            skill_bins: Vec::new(),
        };
        let nobody = Arc::new(prowess_exec::approver::Nobody);
        let helper = PathBuf::from(env!("CARGO_BIN_EXE_prowess-agent-helper"));
        let exec = Arc::new(Exec::new(&base.join("state"), nobody, Runner::new(Limits::default()), helper));
        let tool_settings = ToolSettings::read(section, &Value::Null);
        let tools = standard(Arc::clone(&exec), setting.clone(), &tool_settings);
        let tools = ToolSet::new(tools).allowed_by(&tool_settings);
        let skills = Arc::new(skill_set(&base.join("skills"), skills));
        Self { root, exec, setting, tools, skills }
    }

    /// The same with other settings of exec.
    pub(crate) fn exec_settings(mut self, change: impl FnOnce(&mut ExecSettings)) -> Self {
        change(&mut self.setting.settings);
        let settings = ToolSettings::default();
        self.tools = ToolSet::new(standard(Arc::clone(&self.exec), self.setting.clone(), &settings));
        self
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.root.path().canonicalize().expect("it is there")
    }

    pub(crate) fn ws(&self, path: &str) -> PathBuf {
        self.setting.workspace.join(path)
    }

    /// Writes a file into the workspace.
    pub(crate) fn file(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        write(&self.ws(path), content)
    }

    /// Calls a tool in `turn`.
    pub(crate) async fn call(&self, turn: &Turn, name: &str, arguments: Value) -> ToolResult {
        let heard = Arc::clone(&turn.events);
        let events = Events::to(move |event| heard.lock().expect("no panic").push(event));
        let scope = Scope {
            agent: "main",
            session: &turn.session,
            workspace: &self.setting.workspace,
            home: &self.setting.home,
            skills: &self.skills,
            uses: &turn.uses,
            approver: &turn.person,
            events: &events,
        };
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let call = self.tools.call(name, Call { id: "call_1", arguments: &arguments }, &scope);
        tokio::time::timeout(PATIENCE, call).await.expect("this should not take so long")
    }

    /// The `SKILL.md` of a skill.
    pub(crate) fn manual(&self, skill: &str) -> PathBuf {
        self.root().join("skills").join(skill).join("SKILL.md")
    }

    /// Notes that a turn uses a skill, as a slash command does.
    pub(crate) fn take_up(&self, turn: &Turn, skill: &str) {
        assert!(turn.uses.note(self.skills.find(skill).expect("there is one"), How::Called));
    }
}

/// Skills on disk. Each brings `SECRET_OF_<NAME>` and `<NAME>_API_KEY` to its commands; one called `keyless` cannot.
fn skill_set(dir: &Path, skills: &[(&str, &str, &str)]) -> SkillSet {
    let candidates = skills.iter().map(|(name, extra, body)| {
        let file = dir.join(name).join("SKILL.md");
        write(&file, format!("---\nname: {name}\ndescription: about {name}\n{extra}\n---\n{body}\n"));
        let text = std::fs::read(&file).expect("it is there");
        let (skill, _) = Skill::parse(&text, &file, Tier::Managed).expect("a skill");
        Candidate { dir: skill.dir().to_owned(), tier: skill.tier, outcome: Ok(skill.into()) }
    });
    let catalog = Catalog::merge(vec![Finding { candidates: candidates.collect(), problems: Vec::new() }]);
    let (world, config, filters) = (World::default(), SkillsConfig::default(), Filters::default());
    let gate = Gate { world: &world, config: &config, filters: &filters };
    let snapshot = Snapshot::take(&catalog, &gate, None, &Budget::from(&prowess_skills::Limits::default()));
    let share = |skill: &Skill| {
        if skill.name.as_str() == "keyless" {
            return Err("its key is in a vault that is closed".to_owned());
        }
        let name = skill.name.as_str().to_uppercase();
        let vars = vec![
            (format!("SECRET_OF_{name}"), format!("secret-of-{}", skill.name).into()),
            (format!("{name}_API_KEY"), format!("key-of-{}", skill.name).into()),
        ];
        let (name, key) = (skill.name.to_string(), skill.key().to_owned());
        Ok(SkillShare { vars, name, key, ..SkillShare::default() })
    };
    SkillSet::new(snapshot, Vec::new(), Arc::new(share))
}

/// Writes a file, and the folders above it.
pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) -> PathBuf {
    std::fs::create_dir_all(path.parent().expect("a folder above")).expect("a folder");
    std::fs::write(path, content).expect("the file is written");
    path.to_owned()
}
