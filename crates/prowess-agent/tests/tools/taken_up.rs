//! Skills that come into use because a command names their files.

use std::os::unix::fs::symlink;

use prowess_agent::event::{Event, How};
use serde_json::{Value, json};

use crate::workshop::{Person, Turn, Workshop, write};

fn shop() -> Workshop {
    let skills = [("spot", "", "x"), ("spotify", "", "x"), ("notes", "allowed-tools: Read", "x")];
    let shop = Workshop::with(&Value::Null, &skills);
    for skill in ["spot", "spotify", "notes"] {
        let script = write(&shop.manual(skill).with_file_name("play.sh"), "printenv | grep ^SECRET_OF_ || echo none\n");
        assert!(script.exists());
    }
    symlink(shop.root().join("skills"), shop.root().join("home/skills")).expect("a link");
    shop
}

#[tokio::test]
async fn a_command_that_names_a_file_of_a_skill_takes_it_up() {
    let shop = shop();
    let base = shop.root().join("skills").display().to_string();
    let table = [
        (format!("sh {base}/spotify/play.sh"), "SECRET_OF_SPOTIFY=secret-of-spotify", &["spotify"][..]),
        (format!("sh '{base}/spot/play.sh'"), "SECRET_OF_SPOT=secret-of-spot", &["spot"]),
        ("sh ~/skills/spotify/play.sh".to_owned(), "SECRET_OF_SPOTIFY=secret-of-spotify", &["spotify"]),
        (format!("sh {base}/spot/../spotify/play.sh"), "SECRET_OF_SPOTIFY=secret-of-spotify", &["spotify"]),
        (format!("cd {base}/spotify && sh ./play.sh"), "SECRET_OF_SPOTIFY=secret-of-spotify", &["spotify"]),
        ("sh ../skills/spotify/play.sh".to_owned(), "none", &[]),
        (format!("cat {base}/spoti/x; echo none"), "none", &[]),
        (format!("ls {base}; echo none"), "none", &[]),
    ];
    for (command, expected, names) in table {
        let turn = Turn::new("test");
        let result = shop.call(&turn, "exec", json!({"command": command})).await;
        assert!(result.text().ends_with(expected), "{command}: {}", result.text());
        assert_eq!(turn.uses.names(), names, "{command}");
        let told: Vec<Event> =
            turn.seen().into_iter().filter(|event| matches!(event, Event::SkillUsed { .. })).collect();
        let used =
            |skill: &&str| Event::SkillUsed { skill: (*skill).to_owned(), path: shop.manual(skill), how: How::Named };
        assert_eq!(told, names.iter().map(used).collect::<Vec<_>>(), "{command}");
    }
}

#[tokio::test]
async fn a_skill_that_is_in_use_is_not_taken_up_again() {
    let shop = shop();
    let turn = Turn::new("test");
    shop.take_up(&turn, "spotify");
    let command = format!("sh {}", shop.manual("spotify").with_file_name("play.sh").display());
    shop.call(&turn, "exec", json!({"command": command})).await;
    assert_eq!(turn.uses.all().iter().map(|one| one.how).collect::<Vec<_>>(), [How::Called]);
}

/// The list of a skill counts for the command that takes it up.
#[tokio::test]
async fn a_skill_that_is_taken_up_has_its_say_about_the_command() {
    let shop = shop();
    let turn = Turn::with(Person::unwilling());
    let command = format!("sh {}", shop.manual("notes").with_file_name("play.sh").display());
    let result = shop.call(&turn, "exec", json!({"command": command})).await;
    assert!(
        result.is_error && result.text().contains("the skill `notes` in use lists other tools"),
        "{}",
        result.text()
    );
    assert_eq!(turn.person.times(), 1);
}
