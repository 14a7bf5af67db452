"""The page in a real browser: what people see, by mouse, by keys, and by what screen readers are told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPSConnection
from typing import Any

import pytest
from tests.conftest import free_port
from tests.console.webdriver import Browser, missing

from pilothouse.cli.console import sign_in
from pilothouse.testing.in_process import InProcessServer
from pilothouse.testing.users import Person, Users

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
NAMED = {"button", "link", "textbox", "searchbox", "combobox", "checkbox", "tab", "grid", "dialog", "img", "region"}


@pytest.fixture(scope="module")
def server() -> Iterator[InProcessServer]:
    with InProcessServer("--console") as running:
        yield running


@pytest.fixture(scope="module")
def opened(server: InProcessServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser that the administrator is signed in with."""
    browser = Browser(tmp_path_factory.mktemp("profile"), free_port())
    try:
        browser.resize(1280, 800)
        browser.open(sign_in(server.data_dir))
        browser.has(".who", "kubernetes-admin")
        yield browser
        assert browser.problems() == []
    finally:
        browser.close()


@pytest.fixture(scope="module")
def reader(server: InProcessServer) -> Iterator[Person]:
    """Somebody who may read most things and change nothing."""
    users = Users(server)
    try:
        yield users.service_account("reader", role="view")
    finally:
        users.close()


@pytest.fixture
def page(opened: Browser) -> Browser:
    go(opened, "#/objects/configmaps?namespace=default")
    opened.has(".live.live", "live")
    return opened


def go(browser: Browser, address: str) -> None:
    browser.run("location.hash = arguments[0]", address)


def go_and_wait(browser: Browser, address: str) -> None:
    """As ``go``; returns when the page has heard of it."""
    heard = "addEventListener('hashchange', () => setTimeout(resolve), { once: true })"
    browser.run(f"return new Promise((resolve) => {{ {heard}; location.hash = arguments[0]; }});", address)


def enter(browser: Browser, person: Person) -> None:
    """Sign in at the form."""
    browser.has("#credential")
    browser.run("document.querySelector('#credential').value = arguments[0]", person.kubeconfig.read_text())
    browser.click(".login .button", "Sign in")
    browser.has(".who", person.name)


def make(server: InProcessServer, name: str, **data: str) -> dict[str, Any]:
    answer = server.call("POST", CONFIG_MAPS, {"metadata": {"name": name}, "data": data})
    assert answer.status == 201, answer.body
    made: dict[str, Any] = answer.json
    return made


def make_many(server: InProcessServer, count: int) -> None:
    """Many objects over one connection."""
    connection = HTTPSConnection("127.0.0.1", server.port, timeout=60, context=server.ssl_context())
    for number in range(count):
        body = json.dumps({"metadata": {"name": f"many-{number:03}"}})
        connection.request("POST", CONFIG_MAPS, body, {"Content-Type": "application/json"})
        assert connection.getresponse().read()
    connection.close()


def row(name: str) -> tuple[str, str]:
    return ".grid-row .name", name


def test_the_ticket_does_not_stay_in_the_address(page: Browser) -> None:
    assert "ticket" not in page.run("return location.href")
    assert page.run("return Object.keys(localStorage).length") == 0


def test_kinds_are_those_of_the_server(page: Browser, server: InProcessServer) -> None:
    page.has(".kinds a", "Deployment")
    page.type(".kinds input", "cm")
    page.wait(lambda: page.run("return document.querySelectorAll('.kinds a').length") == 1, "one kind")
    assert page.text(".kinds a") == "ConfigMap"
    page.run("const i = document.querySelector('.kinds input'); i.value = ''; i.dispatchEvent(new Event('input'));")


def test_a_list_is_live(page: Browser, server: InProcessServer) -> None:
    make(server, "comes")
    page.has(*row("comes"))
    server.call("DELETE", f"{CONFIG_MAPS}/comes")
    page.wait(lambda: "comes" not in page.text(".grid-body"), "the row to go")


def test_search_and_many_rows(page: Browser, server: InProcessServer) -> None:
    make_many(server, 90)
    page.wait(lambda: int(page.text(".count").split()[0]) >= 90, "all rows")
    assert page.run("return document.querySelectorAll('.grid-row').length") < 60
    assert int(page.run("return document.querySelector('.grid').getAttribute('aria-rowcount')")) > 90
    page.run("document.querySelector('.grid').scrollTop = 1e6")
    page.has(*row("many-089"))
    page.run("document.activeElement.blur()")
    page.press("/")
    page.wait(lambda: page.run("return document.activeElement.id") == "search", "the focus")
    page.type("#search", "many-042")
    page.wait(lambda: page.text(".count").startswith("1 of "), "one row")
    assert "q=many-042" in page.run("return location.hash")


def test_by_keys_alone(page: Browser, server: InProcessServer) -> None:
    make(server, "a-first", key="value")
    page.has(*row("a-first"))
    page.run("document.querySelector('.grid').focus()")
    page.wait(lambda: page.run("return document.querySelector('.grid').ariaActiveDescendantElement !== null"), "a row")
    page.press("Enter")
    page.has(".detail h2", "a-first")
    page.has(".yaml", "key: value")
    page.run("document.querySelector('#tab-yaml').focus()")
    page.press("ArrowRight")
    page.has("#tab-events[aria-selected=true]")
    page.press("Escape")
    page.wait(lambda: not page.run("return document.querySelector('.detail')"), "the object to close")
    assert page.run("return document.activeElement.className") == "grid"


def test_editing_with_the_servers_checks(page: Browser, server: InProcessServer) -> None:
    make(server, "edited", colour="blue")
    page.click(*row("edited"))
    page.click(".panel .button", "Edit")
    change(page, "colour: blue", "colour: green\n  Bad Key!: x")
    page.click(".panel .button", "Save")
    page.has(".panel .problem", "Bad Key!")
    change(page, "\n  Bad Key!: x", "\nunknown: field")
    page.click(".panel .button", "Check")
    page.has(".panel .problem", 'unknown field "unknown"')
    change(page, "\nunknown: field", "")
    page.click(".panel .button", "Check")
    page.has(".toast", "would accept")
    assert server.call("GET", f"{CONFIG_MAPS}/edited").json["data"] == {"colour": "blue"}
    page.click(".panel .button", "Save")
    page.has(".yaml", "colour: green")
    assert server.call("GET", f"{CONFIG_MAPS}/edited").json["data"] == {"colour": "green"}
    page.click("[role=tab]", "History")
    page.has(".versions strong", "pilothouse-console")
    page.has(".diff .plus", "colour: green")
    page.has(".diff .minus", "colour: blue")


def change(page: Browser, old: str, new: str) -> None:
    page.has(".yaml-editor")
    script = "const e = document.querySelector('.yaml-editor'); e.value = e.value.replace(arguments[0], arguments[1]);"
    page.run(script, old, new)


@pytest.mark.parametrize("tab", ["", "&tab=unheard-of"])
def test_an_address_without_a_tab_that_exists_means_the_first(page: Browser, server: InProcessServer, tab: str) -> None:
    """Also when the page goes from such an address to another one of the same object."""
    name = f"tabless{len(tab)}"
    make(server, name, key="value")
    go(page, f"#/objects/configmaps?namespace=default&open=default/{name}{tab}")
    page.has(".yaml", f"name: {name}")
    go_and_wait(page, f"#/objects/configmaps?namespace=default&open=default/{name}{tab}&q={name}")
    page.has("#tab-yaml[aria-selected=true]")
    assert page.problems() == []
    page.has(".yaml", "key: value")


def test_creating_and_deleting(page: Browser, server: InProcessServer) -> None:
    page.click(".toolbar .button", "Create")
    page.has("dialog[open] h2", "Create ConfigMap")
    page.click("dialog .button", "Create")
    page.click(*row("configmap-1"))
    page.click(".panel .button", "Delete")
    page.click("dialog .danger", "Delete")
    page.wait(lambda: server.call("GET", f"{CONFIG_MAPS}/configmap-1").status == 404, "the object to go")


def test_events_of_an_object(page: Browser, server: InProcessServer) -> None:
    uid = make(server, "eventful")["metadata"]["uid"]
    event = {
        "metadata": {"name": "eventful.1"},
        "involvedObject": {"kind": "ConfigMap", "namespace": "default", "name": "eventful", "uid": uid},
        "reason": "Shaken",
        "message": "not stirred",
        "type": "Warning",
    }
    page.click(*row("eventful"))
    page.click("[role=tab]", "Events")
    page.has(".panel", "No events")
    assert server.call("POST", "/api/v1/namespaces/default/events", event).status == 201
    page.has(".timeline .warn", "not stirred")


def test_requests_as_they_happen(page: Browser, server: InProcessServer) -> None:
    go(page, "#/requests")
    page.has(".tile", "Loop lag")
    make(server, "requested")
    page.has(".requests-table td", "configmaps default")
    page.click(".requests-table tr", "create")
    page.has(".journey .step-name", "authorization")
    page.has(".journey .step-name", "NamespaceLifecycle")
    page.has(".journey .step-name", "Create sqlite")
    page.click("[role=tab]", "Watches")
    page.has(".state-panel th", "Waiting")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("address", ["#/objects/namespaces?open=/default", "#/requests"])
def test_everything_has_a_name_and_can_be_read(opened: Browser, scheme: str, address: str) -> None:
    opened.prefer(scheme)
    go(opened, address)
    opened.has(".detail .y-key, .tile")
    nodes = opened.accessible()
    assert {role for role, _ in nodes} >= {"button", "link"}
    assert [role for role, name in nodes if role in NAMED and not name] == []
    assert opened.run(_CONTRAST) == []
    opened.prefer("light")


@pytest.mark.parametrize(("width", "height"), [(390, 844), (768, 1024), (1920, 1080)])
def test_no_size_makes_the_page_wider_than_the_screen(opened: Browser, width: int, height: int) -> None:
    opened.resize(width, height)
    for address in ("#/objects/configmaps", "#/requests"):
        go(opened, address)
        opened.has(".grid-row, .tile")
        assert opened.run("return document.documentElement.scrollWidth") <= width
    opened.resize(1280, 800)


def test_who_signs_in_gets_nothing_of_who_was_there_before(
    opened: Browser, server: InProcessServer, reader: Person
) -> None:
    """Neither the kinds nor a view, however late the server answers and wherever the address goes meanwhile."""
    make(server, "late")
    go(opened, "#/objects/configmaps?namespace=default")
    opened.click("#sign-out")
    opened.has("#credential")
    go_and_wait(opened, "#/objects/configmaps")
    opened.has("#credential")
    opened.run(_HOLD)
    enter(opened, reader)
    go_and_wait(opened, "#/objects/configmaps?namespace=default&open=default/late")
    assert opened.run("return document.querySelector('.objects')") is None
    opened.run("window.release()")
    opened.has(".panel", "You may read this, not change it.")
    assert opened.problems() == []


def test_an_answer_to_who_has_gone_does_not_sign_out_who_came(opened: Browser, reader: Person) -> None:
    opened.click("#sign-out")
    enter(opened, reader)
    go(opened, "#/objects/configmaps")
    opened.has(".objects")
    assert opened.run(_ASK_AS_SOMEBODY_ELSE, reader.token) == 401
    assert opened.text(".who") == reader.name
    opened.has(".objects")


def test_a_user_who_may_only_read(opened: Browser, server: InProcessServer, reader: Person) -> None:
    """Signs out and in: the last test of this browser."""
    make(server, "readable")
    opened.click("#sign-out")
    opened.type("#credential", "not a kubeconfig")
    opened.click(".login .button", "Sign in")
    opened.has("#login-problem", "no token")
    enter(opened, reader)
    go(opened, "#/objects/configmaps?namespace=default&open=default/readable")
    opened.has(".panel", "You may read this, not change it.")
    go(opened, "#/objects/configmaps?namespace=default&open=default/missing")
    opened.has(".panel .problem", 'configmaps "missing" not found')
    assert not opened.run(
        "return [...document.querySelectorAll('.button')].some((b) => /Edit|Delete/.test(b.textContent))"
    )
    go(opened, "#/objects/secrets")
    opened.has(".problem", "You may not do this")
    go(opened, "#/requests")
    opened.has(".problem", "/console/requests")


_HOLD = """
const asked = window.fetch, held = [];
window.fetch = (path, ...rest) => path === "/apis"
  ? new Promise((go) => held.push(go)).then(() => asked(path, ...rest)) : asked(path, ...rest);
window.release = () => { window.fetch = asked; held.forEach((go) => go()); };
"""
"""From here on discovery is not answered, until ``release`` is called."""

_ASK_AS_SOMEBODY_ELSE = """
const [own] = arguments, key = "pilothouse-token";
return import("/console/api.js").then(({ ask }) => {
  sessionStorage.setItem(key, "of-somebody-else");
  const answered = ask("/api").catch((error) => error.code);
  sessionStorage.setItem(key, own);
  return answered;
});
"""

_CONTRAST = """
const parse = (text) => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  canvas.fillStyle = text;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
};
const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
const ground = (element) => {
  const layers = [];
  for (let e = element; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
  return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
};
const light = ([r, g, b]) => {
  const [x, y, z] = [r, g, b].map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
};
const found = new Set();
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  if (!own || !element.checkVisibility() || element.closest(".grid-row.touched, .toast, [disabled]")) continue;
  const behind = ground(element), text = over(parse(getComputedStyle(element).color), behind);
  const [a, b] = [light(text), light(behind)].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < 4.5) found.add(`${element.className || element.tagName} ${ratio.toFixed(2)}`);
}
return [...found];
"""
