//! The glue between configured models and what is shown of them.

use std::time::Duration;

use prowess_agent::model::Api;
use prowess_agent::provider::{Clients, Endpoint, Remote, Wrong};
use prowess_agent::settings::{Choice, Configured, Key as Access, Origin, Settings, choose};

use futures_util::stream::{self, StreamExt as _};
use prowess_host::{Failure, model_settings};

use super::offer::{Answer, Key, Offer, report};
use crate::cli::{Globals, ModelsArgs};
use crate::output::Report;

/// How long a model may take to begin an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// How many models are asked at once.
const AT_ONCE: usize = 8;

pub(crate) fn run(args: ModelsArgs, globals: &Globals) -> Result<Report, Failure> {
    let settings = model_settings(&globals.context()?);
    let chosen = match choose(&settings, None) {
        Ok(Choice::Wire { first, .. }) => Some(first.id()),
        Ok(Choice::Embedded) => Some("embedded".to_owned()),
        Ok(Choice::Scripted(_)) | Err(_) => None,
    };
    let mut offers = vec![embedded(chosen.as_deref())];
    offers.extend(settings.models.iter().map(|model| offer(model, chosen.as_deref())));
    if args.probe {
        probe(&settings, &mut offers[1..])?;
    }
    for problem in &settings.problems {
        crate::chat::tell(&format!("warning: {}", crate::output::safe(problem)));
    }
    let fails = offers.iter().any(|offer| matches!(offer.answer, Some(Answer::Fails { .. })));
    Ok(report(&offers, globals.json)?.code(u8::from(fails)))
}

fn embedded(chosen: Option<&str>) -> Offer {
    Offer {
        name: "embedded".to_owned(),
        api: Api::Embedded.word().to_owned(),
        url: None,
        from: "built in".to_owned(),
        key: Key::NotNeeded,
        is_default: chosen == Some("embedded"),
        answer: None,
    }
}

fn offer(model: &Configured, chosen: Option<&str>) -> Offer {
    let from = match model.origin {
        Origin::BuiltIn => "built in".to_owned(),
        Origin::Environment => "the environment".to_owned(),
        Origin::Config => format!("models.providers.{}", model.provider),
    };
    let key = match &model.access {
        Access::Present(_, from) => Key::In(from.to_string()),
        Access::NotNeeded => Key::NotNeeded,
        Access::Unset(variable) => Key::Missing(variable.clone()),
        Access::Elsewhere(place) => Key::Missing(place.clone()),
        Access::Expired(profile) => Key::Expired(profile.clone()),
        Access::Missing => Key::Missing(format!("models.providers.{}.apiKey", model.provider)),
    };
    Offer {
        name: model.id(),
        api: model.api.word().to_owned(),
        url: Some(without_secrets(&model.base_url)),
        from,
        key,
        is_default: chosen == Some(model.id().as_str()),
        answer: None,
    }
}

/// An address without what may be secret in it: the name and password before the host, and what follows `?`. One that
/// is none is not shown, for there is no telling what of it is secret.
fn without_secrets(url: &str) -> String {
    let url = url.trim();
    let Some((scheme, rest)) = url.split_once("://") else { return NO_ADDRESS.to_owned() };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = rest.find(['/', '\\']).map_or((rest, ""), |at| rest.split_at(at));
    let host = authority.rsplit('@').next().unwrap_or_default();
    let port = host.rsplit_once(':').map(|(_, port)| port).filter(|_| !host.ends_with(']'));
    let is_host = !host.is_empty() && port.is_none_or(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    if is_host { format!("{scheme}://{host}{path}") } else { NO_ADDRESS.to_owned() }
}

const NO_ADDRESS: &str = "(not an address)";

/// Asks every model that could be asked for a word, some at once.
fn probe(settings: &Settings, offers: &mut [Offer]) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::ours)?;
    let clients = &Clients::default();
    let thinking = settings.thinking.unwrap_or_default();
    let asked = settings.models.iter().zip(offers).filter(|(model, _)| model.is_usable());
    let asking = asked.map(|(model, offer)| async move {
        offer.answer = Some(match Remote::sharing(Endpoint::from(model), clients) {
            Err(error) => Answer::Fails { wrong: Wrong::Address, why: error.to_string() },
            Ok(remote) => match remote.probe(thinking, PATIENCE).await {
                Ok(()) => Answer::Answers,
                Err(error) => Answer::Fails { wrong: error.wrong(), why: error.to_string() },
            },
        });
    });
    runtime.block_on(stream::iter(asking).buffer_unordered(AT_ONCE).collect::<()>());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_secrets() {
        let table = [
            ("https://api.example.com/v1", "https://api.example.com/v1"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("https://me:s3cret@host:8443/v1?key=s3cret#s3cret", "https://host:8443/v1"),
            ("https://me:s3cr@et@host/v1", "https://host/v1"),
            ("https://s3cret@[::1]:80/a@b", "https://[::1]:80/a@b"),
            ("https://[::1]/v1", "https://[::1]/v1"),
            // The password has a slash in it, so this is no address.
            ("https://me:s3/cret@host/v1", NO_ADDRESS),
            ("me:s3cret@host", NO_ADDRESS),
            ("https://", NO_ADDRESS),
            ("", NO_ADDRESS),
        ];
        for (url, expected) in table {
            assert_eq!(without_secrets(url), expected, "{url}");
        }
    }
}
