// Who is at the door? The token comes from the address once, from what was kept, or from the person.

const NAME = "prowess.token";

/** The token that is known, if any. One in the address is kept for this tab and taken out of the address. */
export function known() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(NAME, given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(NAME) ?? localStorage.getItem(NAME) ?? "";
}

/** Forgets it everywhere. */
export function forget() {
  sessionStorage.removeItem(NAME);
  localStorage.removeItem(NAME);
}

/** Asks the person, and calls `enter` with what they typed. */
export function ask(why, enter) {
  const by = (id) => document.getElementById(id);
  const word = document.documentElement.dataset.auth === "password" ? "password" : "token";
  const [door, form, secret, error] = [by("door"), by("door-form"), by("door-secret"), by("door-error")];
  by("house").hidden = true;
  by("door-what").textContent = word;
  by("door-key").textContent = word;
  by("door-label").textContent = word === "password" ? "Password" : "Token";
  door.hidden = false;
  error.hidden = !why;
  error.textContent = why ?? "";
  secret.value = "";
  form.onsubmit = (event) => {
    event.preventDefault();
    const text = secret.value.trim();
    if (!text) return;
    sessionStorage.setItem(NAME, text);
    if (by("door-remember").checked) localStorage.setItem(NAME, text);
    secret.value = "";
    door.hidden = true;
    enter(text);
  };
  secret.focus();
}
