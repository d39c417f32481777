//! The glue between configured models and what is shown of them.

use std::time::Duration;

use prowess_agent::model::Api;
use prowess_agent::provider::{Endpoint, Remote};
use prowess_agent::settings::{Choice, Configured, Key as Access, Origin, Settings, choose};

use prowess_host::Failure;

use super::offer::{Answer, Key, Offer, report};
use crate::cli::{Globals, ModelsArgs};
use crate::output::Report;

/// A question that is on its way.
type Asking = tokio::task::JoinHandle<Result<Vec<String>, String>>;

/// How long an endpoint may take to say which models it has.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn run(args: ModelsArgs, globals: &Globals) -> Result<Report, Failure> {
    let context = globals.context()?;
    let env = |name: &str| context.config.env().get(name).map(str::to_owned);
    let settings = Settings::read(context.config.tree(), Some(context.agent.id.as_str()), env);
    let chosen = match choose(&settings, None) {
        Ok(Choice::Wire { first, .. }) => Some(first.id()),
        Ok(Choice::Embedded) => Some("embedded".to_owned()),
        Ok(Choice::Scripted(_)) | Err(_) => None,
    };
    let mut offers = vec![embedded(chosen.as_deref())];
    offers.extend(settings.models.iter().map(|model| offer(model, chosen.as_deref())));
    if args.probe {
        probe(&settings.models, &mut offers[1..])?;
    }
    for problem in &settings.problems {
        crate::chat::tell(&format!("warning: {}", crate::output::safe(problem)));
    }
    report(&offers, globals.json)
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
        Access::Present(_) => Key::In("set".to_owned()),
        Access::NotNeeded => Key::NotNeeded,
        Access::Unset(variable) => Key::Missing(variable.clone()),
        Access::Elsewhere(place) => Key::Missing(place.clone()),
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

/// Whether two models are asked at the same place in the same way, so that one answer is good for both.
fn is_same_place(a: &Configured, b: &Configured) -> bool {
    let place = |model: &Configured| (model.base_url.clone(), model.api, model.auth);
    place(a) == place(b) && a.access == b.access && a.key == b.key && a.headers == b.headers
}

/// Asks all endpoints that could be asked, side by side; models of one endpoint with one key share its answer.
fn probe(models: &[Configured], offers: &mut [Offer]) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::ours)?;
    runtime.block_on(async {
        let mut asked: Vec<(&Configured, Asking)> = Vec::new();
        for model in models.iter().filter(|model| model.is_usable()) {
            if asked.iter().any(|(other, _)| is_same_place(other, model)) {
                continue;
            }
            let remote = Remote::new(Endpoint::from(model)).map_err(|error| error.to_string());
            let list = tokio::spawn(async move { remote?.models(PATIENCE).await.map_err(|error| error.to_string()) });
            asked.push((model, list));
        }
        for (asked, list) in asked {
            let list = list.await.unwrap_or_else(|error| Err(error.to_string()));
            let same = models.iter().zip(offers.iter_mut()).filter(|(model, _)| is_same_place(asked, model));
            for (model, offer) in same {
                offer.answer = Some(match &list {
                    Ok(names) => Answer::listing(names, &model.model),
                    Err(why) => Answer::Silent(why.clone()),
                });
            }
        }
    });
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
