"""The page in a real browser, without a window; it must be usable with the keyboard alone."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from service_support import served

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
    browser.get(address)
    wait_for(lambda: "items" in text_of(browser, "#facts"))


def complaints(browser) -> list[str]:
    return [
        entry["message"]
        for entry in browser.get_log("browser")
        if entry["level"] in ("SEVERE", "WARNING")
    ]


def test_user_is_typed_and_answered_with_titles_scores_and_reasons(browser, wait_for, address):
    from selenium.webdriver.common.keys import Keys

    open_page(browser, wait_for, address)
    assert browser.switch_to.active_element.get_attribute("id") == "user"
    browser.switch_to.active_element.send_keys("user/3", Keys.ENTER)
    wait_for(lambda: find(browser, "#gets-list li"))
    # Titles are data: what looks like HTML in them is text.
    assert "<b>Thing" in text_of(browser, "#gets-list li a")
    assert not find(browser, "#gets-list b")
    assert find(browser, "#has-list li")
    assert text_of(browser, "#gets-list li .why").startswith("near ")
    assert float(text_of(browser, "#gets-list li .score"))
    assert "#user=user%2F3" in browser.current_url
    assert complaints(browser) == []


def test_similar_items_open_and_close_by_keyboard(browser, wait_for, address):
    from selenium.webdriver.common.keys import Keys

    open_page(browser, wait_for, f"{address}/#user=user/3&k=5")
    wait_for(lambda: len(find(browser, "#gets-list > li")) == 5)
    link = find(browser, "#gets-list li a")[0]
    title = link.text
    link.send_keys(Keys.ENTER)
    wait_for(lambda: text_of(browser, "#near-title") == f"Like {title}")
    assert len(find(browser, "#near-list li")) == 10
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    wait_for(lambda: not browser.find_element("id", "near").is_displayed())
    assert browser.switch_to.active_element.text == title


def test_history_is_pasted_and_unknown_items_are_named(browser, wait_for, address):
    from selenium.webdriver.common.keys import Keys

    open_page(browser, wait_for, address)
    browser.find_element("css selector", "input[value=history]").send_keys(Keys.SPACE)
    field = browser.find_element("id", "history")
    wait_for(field.is_displayed)
    field.send_keys("10\n20\nno-such\n")
    field.send_keys(Keys.CONTROL, Keys.ENTER)
    wait_for(lambda: "not in the model: no-such" in text_of(browser, "#message"))
    assert text_of(browser, "#has-title") == "Has 2 items"
    assert len(find(browser, "#gets-list > li")) == 20


def test_unknown_user_gets_a_sentence_and_the_last_answer_comes_back(browser, wait_for, address):
    open_page(browser, wait_for, f"{address}/#user=user/3&k=5")
    wait_for(lambda: find(browser, "#gets-list li"))
    field = browser.find_element("id", "user")
    field.clear()
    field.send_keys("nobody\n")
    wait_for(lambda: "unknown user `nobody`" in text_of(browser, "#message"))
    assert not browser.find_element("id", "answer").is_displayed()
    browser.back()
    wait_for(lambda: browser.find_element("id", "answer").is_displayed())
    assert browser.find_element("id", "user").get_attribute("value") == "user/3"


def test_page_fits_a_phone_and_follows_the_dark(browser, wait_for, address):
    try:
        metrics = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        open_page(browser, wait_for, f"{address}/#user=user/3&k=5")
        wait_for(lambda: find(browser, "#gets-list li"))
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 360
        grounds = []
        for scheme in ("light", "dark"):
            media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
            grounds.append(
                browser.execute_script("return getComputedStyle(document.body).backgroundColor")
            )
        assert grounds[0] != grounds[1]
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
        wait_for(lambda: find(browser, "#gets-list li"))
        assert not field.is_displayed()
        wait_for(lambda: "items" in text_of(browser, "#facts"))
        browser.get("about:blank")


def test_description_is_shown_as_a_page(browser, wait_for, address):
    complaints(browser)  # those of tests before, which looked for what is not there
    browser.get(f"{address}/docs")
    wait_for(lambda: len(find(browser, "section h2")) > 4)
    assert "POST /recommend" in text_of(browser, "#operations")
    assert complaints(browser) == []


def test_nothing_was_asked_of_any_other_host(browser, wait_for, address):
    browser.get_log("performance")
    open_page(browser, wait_for, address)
    hosts = {
        part.split("/")[2].split(":")[0]
        for entry in browser.get_log("performance")
        if '"Network.requestWillBeSent"' in entry["message"]
        for part in entry["message"].split('"')
        if part.startswith(("http://", "https://"))
    }
    assert hosts == {"127.0.0.1"}
