"""The page in a real browser, without a window; it must be usable with the keyboard alone."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from service_support import make_run, served

from pslrec.serving import Service, ServiceOptions

pytestmark = [
    pytest.mark.browser,
    # Selenium leaves the pipe of its driver to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
TOKEN = "a-token"
CHROMIUM = next(
    (
        path
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (path := shutil.which(name))
    ),
    None,
)
DRIVER = shutil.which("chromedriver")
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--window-size=1200,900",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium comes with pslrec[dev]")
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("needs chromium and its driver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for option in OPTIONS:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(60)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def address(finished_run: Path, titles: Path) -> Iterator[str]:
    with served(Service(finished_run, item_table=titles)) as (port, _):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def wait_for(browser) -> Callable:
    from selenium.webdriver.support.ui import WebDriverWait

    def wait(condition: Callable[[], object]) -> object:
        return WebDriverWait(browser, 30, poll_frequency=0.05).until(lambda _: condition())

    return wait


def find(browser, selector: str) -> list:
    return browser.find_elements("css selector", selector)


def text_of(browser, selector: str) -> str:
    return browser.find_element("css selector", selector).text


def open_page(browser, wait_for, address: str) -> None:
    browser.get("about:blank")
    browser.get_log("browser")  # complaints of tests before, which looked for what is not there
    browser.get(address)
    wait_for(lambda: "items" in text_of(browser, "#facts"))


def complaints(browser) -> list[str]:
    return [
        entry["message"]
        for entry in browser.get_log("browser")
        if entry["level"] in ("SEVERE", "WARNING")
    ]


def names(browser, selector: str) -> list[str]:
    # In one script: a list may be replaced between two questions about its cards.
    script = "return [...document.querySelectorAll(arguments[0])].map((card) => card.dataset.item)"
    return browser.execute_script(script, f"{selector} > li")


def gets(browser) -> list[str]:
    return names(browser, "#gets-list")


def press(browser, card, label: str) -> None:
    """Press a button of a card by keyboard."""
    from selenium.webdriver.common.keys import Keys

    (button,) = [
        each for each in card.find_elements("css selector", "button") if each.text == label
    ]
    button.send_keys(Keys.ENTER)


def show_user(browser, wait_for, address: str, more: str = "") -> None:
    open_page(browser, wait_for, f"{address}/#user=user/3&k=5{more}")
    wait_for(lambda: "recommended" in text_of(browser, "#message"))


def test_page_opens_with_somebody_and_their_recommendations(browser, wait_for, address):
    open_page(browser, wait_for, address)
    wait_for(lambda: gets(browser))
    assert text_of(browser, "#has-title").startswith("History of user/")
    assert find(browser, "#has-list .card")
    assert len(gets(browser)) > 0
    assert not set(gets(browser)) & set(names(browser, "#has-list"))
    # Another one may be the same by chance, but not twenty times.
    first = text_of(browser, "#has-title")
    for _ in range(20):
        browser.find_element("id", "random").click()
        wait_for(lambda: "recommended" in text_of(browser, "#message"))
        if text_of(browser, "#has-title") != first:
            break
    assert text_of(browser, "#has-title") != first
    assert complaints(browser) == []


def test_user_is_typed_and_answered_with_titles_scores_and_reasons(browser, wait_for, address):
    from selenium.webdriver.common.keys import Keys

    open_page(browser, wait_for, address)
    wait_for(lambda: gets(browser))
    field = browser.find_element("id", "user")
    field.clear()
    field.send_keys("user/3", Keys.ENTER)
    wait_for(lambda: "History of user/3" in text_of(browser, "#has-title"))
    # Titles are data: what looks like HTML in them is text.
    card = find(browser, "#gets-list > li")[0]
    assert card.find_element("css selector", ".name").text.startswith("<b>Thing")
    assert not find(browser, "#gets-list b")
    assert card.find_element("css selector", ".why").text.startswith("because of <b>Thing")
    assert float(card.find_element("css selector", ".score").text)
    assert card.find_element("css selector", ".chip").text in ("kind even", "kind odd")
    widths = [bar.size["width"] for bar in find(browser, "#gets-list .track i")]
    assert widths == sorted(widths, reverse=True)
    assert "#user=user%2F3" in browser.current_url
    assert complaints(browser) == []


def test_item_is_found_by_title_added_and_changes_the_list_at_once(browser, wait_for, address):
    from selenium.webdriver.common.keys import Keys

    show_user(browser, wait_for, address)
    before = gets(browser)
    # The list cannot stay the same, since the first item of it is added.
    title = find(browser, "#gets-list .name")[0].text
    number = title.split("Thing ")[1].split("<")[0]
    browser.find_element("css selector", "body").send_keys("/")
    field = browser.switch_to.active_element
    assert field.get_attribute("id") == "search"
    field.send_keys(f"thing {number}<")
    wait_for(lambda: find(browser, "#search-suggestions li"))
    assert field.get_attribute("aria-expanded") == "true"
    field.send_keys(Keys.ARROW_DOWN)
    active = field.get_attribute("aria-activedescendant")
    assert find(browser, f"#{active}")[0].get_attribute("aria-selected") == "true"
    field.send_keys(Keys.ENTER)
    wait_for(lambda: "was added" in text_of(browser, "#message"))
    assert names(browser, "#basket-list") == before[:1]
    assert before[0] not in gets(browser)
    assert len(gets(browser)) == 5
    assert browser.switch_to.active_element.get_attribute("id") == "search"
    press(browser, find(browser, "#basket-list > li")[0], "Remove")
    wait_for(lambda: "was removed" in text_of(browser, "#message"))
    assert gets(browser) == before
    assert complaints(browser) == []


def test_cards_add_and_hide_by_keyboard(browser, wait_for, address):
    show_user(browser, wait_for, address)
    first = gets(browser)[0]
    press(browser, find(browser, "#gets-list > li")[0], "Add")
    wait_for(lambda: names(browser, "#basket-list") == [first])
    assert browser.switch_to.active_element.get_attribute("id") == "gets-title"
    hidden = gets(browser)[0]
    press(browser, find(browser, "#gets-list > li")[0], "Hide")
    wait_for(lambda: "is hidden" in text_of(browser, "#message"))
    assert hidden not in gets(browser)
    assert "(1 on)" in text_of(browser, "#filters summary")
    assert f"hide={hidden}" in browser.current_url


def test_removed_items_of_the_history_may_be_recommended(browser, wait_for, address):
    open_page(browser, wait_for, f"{address}/#user=user/3&k=30")
    wait_for(lambda: "recommended" in text_of(browser, "#message"))
    removed = names(browser, "#has-list")[0]
    assert removed not in gets(browser)
    press(browser, find(browser, "#has-list > li")[0], "Remove")
    wait_for(lambda: "was removed" in text_of(browser, "#message"))
    assert removed not in names(browser, "#has-list")
    assert removed in gets(browser)


def test_filters_choose_by_column_and_condition_and_limit(browser, wait_for, address):
    from selenium.webdriver.support.ui import Select

    open_page(browser, wait_for, f"{address}/#user=user/3")
    wait_for(lambda: "recommended" in text_of(browser, "#message"))
    browser.find_element("css selector", "#filters summary").click()

    def kinds() -> list[str]:
        script = "return [...document.querySelectorAll('#gets-list .chip[title=kind]')].map((chip) => chip.textContent)"
        return browser.execute_script(script)

    # Of two values one may be a mere yes, so the name of the column stands before them.
    assert set(kinds()) == {"kind even", "kind odd"}
    Select(browser.find_element("css selector", "#column-filters select")).select_by_value("even")
    wait_for(lambda: set(kinds()) == {"kind even"})
    n_even = len(gets(browser))
    condition = browser.find_element("id", "where")
    condition.send_keys("number >= 20")
    wait_for(lambda: len(gets(browser)) < n_even)
    assert all(int(item) >= 200 for item in gets(browser) if int(item) < 2**59)
    assert "where=" in browser.current_url
    condition.send_keys(" and nmber > 3")
    wait_for(lambda: "did you mean `number`?" in text_of(browser, "#message"))
    browser.find_element("id", "clear").click()
    wait_for(lambda: set(kinds()) == {"kind even", "kind odd"})
    browser.find_element("id", "most").send_keys("1")
    wait_for(lambda: sorted(kinds()) == ["kind even", "kind odd"])
    assert "(1 on)" in text_of(browser, "#filters summary")


def test_items_to_choose_from_are_picked_by_title_and_dropped_by_keyboard(
    browser, wait_for, address
):
    from selenium.webdriver.common.keys import Keys

    show_user(browser, wait_for, address)
    before = gets(browser)
    titled = {}
    for item, card in zip(before, find(browser, "#gets-list .name"), strict=True):
        if "Thing " in card.text:
            titled[item] = card.text.split("Thing ")[1].split("<")[0]
    first, second = list(titled)[:2]
    browser.find_element("css selector", "#filters summary").send_keys(Keys.ENTER)
    field = browser.find_element("id", "allow")
    # In another order than that of the list, which stays the order of the scores.
    for item, n_picked in ((second, 1), (first, 2)):
        field.send_keys(f"thing {titled[item]}<")
        wait_for(lambda: find(browser, "#allow-suggestions li"))
        assert field.get_attribute("aria-expanded") == "true"
        field.send_keys(Keys.ENTER)
        wait_for(lambda n=n_picked: len(gets(browser)) == n)
    assert gets(browser) == [first, second]
    assert "(1 on)" in text_of(browser, "#filters summary")
    assert browser.switch_to.active_element.get_attribute("id") == "allow"
    assert f"only={first}" in browser.current_url
    # The address brings the choice back.
    browser.refresh()
    wait_for(lambda: gets(browser) == [first, second])
    chips = find(browser, "#allowed-items button")
    assert [chip.get_attribute("aria-label").split()[:4] for chip in chips] == [
        ["no", "longer", "choose", "from"]
    ] * 2
    chips[0].send_keys(Keys.ENTER)
    wait_for(lambda: gets(browser) == [first])
    # The focus stays in the filter, on the chip that is left and then on the field.
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    wait_for(lambda: gets(browser) == before)
    assert browser.switch_to.active_element.get_attribute("id") == "allow"
    assert complaints(browser) == []


def test_similar_items_open_and_close_by_keyboard(browser, wait_for, address):
    from selenium.webdriver.common.keys import Keys

    show_user(browser, wait_for, address)
    card = find(browser, "#gets-list > li")[0]
    title = card.find_element("css selector", ".name").text.rsplit(" ", 1)[0]
    press(browser, card, "Similar")
    wait_for(lambda: text_of(browser, "#near-title") == f"Similar to {title}")
    assert len(find(browser, "#near-list > li")) == 12
    assert browser.switch_to.active_element.get_attribute("id") == "close"
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    wait_for(lambda: not browser.find_element("id", "near").is_displayed())
    assert (
        browser.switch_to.active_element.get_attribute("aria-label") == f"items similar to {title}"
    )


def test_somebody_new_starts_with_popular_items(browser, wait_for, address):
    open_page(browser, wait_for, address)
    wait_for(lambda: gets(browser))
    browser.find_element("id", "nobody").click()
    wait_for(lambda: text_of(browser, "#gets-title") == "Popular items to start with")
    chosen = gets(browser)[0]
    press(browser, find(browser, "#gets-list > li")[0], "Add")
    wait_for(lambda: text_of(browser, "#gets-title") == "Recommended")
    assert text_of(browser, "#has-title") == "Basket: 1 item"
    assert chosen not in gets(browser)
    assert find(browser, "#gets-list .why")


def test_unknown_user_gets_a_sentence_and_the_last_answer_comes_back(browser, wait_for, address):
    show_user(browser, wait_for, address)
    before = gets(browser)
    field = browser.find_element("id", "user")
    field.clear()
    field.send_keys("nobody\n")
    wait_for(lambda: "unknown user `nobody`" in text_of(browser, "#message"))
    browser.back()
    wait_for(lambda: "recommended" in text_of(browser, "#message"))
    assert browser.find_element("id", "user").get_attribute("value") == "user/3"
    assert gets(browser) == before


def test_an_address_brings_basket_and_filters_back(browser, wait_for, address):
    more = "&add=10&hide=20&where=number+%3E+2&most=2+kind"
    show_user(browser, wait_for, address, more)
    wait_for(lambda: names(browser, "#basket-list") == ["10"])
    assert "20" not in gets(browser)
    assert len(gets(browser)) <= 5
    assert browser.find_element("id", "where").get_attribute("value") == "number > 2"
    assert browser.find_element("id", "most").get_attribute("value") == "2"


def test_page_works_without_an_item_table_and_with_users_made_of_histories(
    browser, wait_for, tmp_path
):
    run = make_run(tmp_path / "plain", backbone="history")
    with served(Service(run)) as (port, _):
        show_user(browser, wait_for, f"http://127.0.0.1:{port}")
        assert not find(browser, "#gets-list .chip")
        first = gets(browser)[0]
        assert find(browser, "#gets-list .name")[0].text == first
        browser.find_element("css selector", "#filters summary").click()
        assert browser.find_element("id", "no-filters").is_displayed()
        assert not browser.find_element("id", "where").is_displayed()
        field = browser.find_element("id", "search")
        field.send_keys(first)
        wait_for(lambda: find(browser, "#search-suggestions li"))
        field.send_keys("\n")
        wait_for(lambda: names(browser, "#basket-list") == [first])
        assert complaints(browser) == []
        browser.get("about:blank")


CONTRAST = """
const luminance = (text) => {
  const parts = text.match(/[0-9.]+/g).slice(0, 3).map((part) => {
    const value = part / 255;
    return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
};
const ground = (node) => {
  for (let at = node; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (!/, 0\\)$/.test(colour) && colour !== "transparent") return colour;
  }
  return "rgb(255, 255, 255)";
};
return [...document.querySelectorAll("h1, h2, p, label, button, .name, .id, .chip, .why, .score span, summary")]
  .filter((node) => node.offsetParent && node.textContent.trim())
  .map((node) => {
    const both = [luminance(getComputedStyle(node).color), luminance(ground(node))].sort((one, other) => one - other);
    return [(both[1] + 0.05) / (both[0] + 0.05), node.tagName + "." + node.className + ": " + node.textContent];
  })
  .filter(([ratio]) => ratio < 4.5).map(([ratio, text]) => ratio.toFixed(2) + " " + text);
"""
UNNAMED = """
return [...document.querySelectorAll("input, select, button, [role]")]
  .filter((node) => node.offsetParent)
  .filter((node) => !(node.getAttribute("aria-label") || node.textContent.trim() || (node.labels && node.labels.length)))
  .map((node) => node.outerHTML);
"""


@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_fits_and_can_be_read_in_light_and_dark(browser, wait_for, address, width, scheme):
    try:
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        show_user(browser, wait_for, address, "&where=number+%3E+2")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert browser.execute_script(CONTRAST) == []
        assert browser.execute_script(UNNAMED) == []
        colour = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        is_dark = int(colour.split("(")[1].split(",")[0]) < 128
        assert is_dark == (scheme == "dark")
        left = find(browser, "#has-list")[0].rect
        right = find(browser, "#gets-list")[0].rect
        are_beside = right["x"] >= left["x"] + left["width"]
        assert are_beside == (width == 1200)
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_page_asks_for_the_token_when_there_is_one(browser, wait_for, finished_run):
    with served(Service(finished_run, options=ServiceOptions(token=TOKEN))) as (port, _):
        browser.get(f"http://127.0.0.1:{port}/#user=user/3")
        field = browser.find_element("id", "token")
        wait_for(field.is_displayed)
        assert "needs a token" in text_of(browser, "#message")
        field.send_keys(TOKEN, "\n")
        wait_for(lambda: gets(browser))
        assert not field.is_displayed()
        wait_for(lambda: "items" in text_of(browser, "#facts"))
        browser.get("about:blank")


def test_description_is_shown_as_a_page(browser, wait_for, address):
    browser.get_log("browser")  # those of tests before, which looked for what is not there
    browser.get(f"{address}/docs")
    wait_for(lambda: len(find(browser, "section h2")) > 4)
    assert "POST /recommend" in text_of(browser, "#operations")
    assert complaints(browser) == []


def test_nothing_was_asked_of_any_other_host(browser, wait_for, address):
    browser.get_log("performance")
    open_page(browser, wait_for, address)
    wait_for(lambda: gets(browser))
    hosts = {
        part.split("/")[2].split(":")[0]
        for entry in browser.get_log("performance")
        if '"Network.requestWillBeSent"' in entry["message"]
        for part in entry["message"].split('"')
        if part.startswith(("http://", "https://"))
    }
    assert hosts == {"127.0.0.1"}
