"""Opens the pages of a Source in Chromium: accessibility, layout, keyboard, and live changes.

Arguments: the base URL of the Source, the program chromium, a file that is changed to make a
change, a text that the page of changes shows then, a token for administrators, and a folder for
screenshots (or nothing).
Prints each fault as a line, and ends with 1 if there are any.
"""

import signal
import sys
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

PAGES = {
    "source": "/",
    "set": "/papers/about.html",
    "resources": "/papers/resources.html",
    "folder": "/papers/resources.html?prefix=letters/",
    "search": "/papers/resources.html?q=xml&type=application/&since=2020-01-01",
    "resource": "/papers/resource.html?key=notes.txt",
    "image": "/papers/resource.html?key=maps/rhine.png",
    "changes": "/papers/changes.html",
    "entity": "/subjects/r/maps",
    "entities": "/subjects/resources.html",
    "api": "/api/v1",
    "missing": "/missing",
}
ADMIN_PAGES = {
    "admin": "/admin/",
    "admin-sets": "/admin/sets/",
    "admin-set": "/admin/sets/papers?done=scan",
    "admin-deliveries": "/admin/deliveries",
    "admin-topic": "/admin/topics/{topic}",
    "admin-target": "/admin/targets/{target}",
    "admin-log": "/admin/log?level=INFO",
    "admin-missing": "/admin/missing",
}
WIDTHS = (320, 768, 1280)
SHOTS = {
    ("admin", "light", 1280), ("set", "light", 1280), ("resources", "light", 320), ("resource", "light", 768), ("entity", "dark", 768),
}
# Bytes of a page with its style sheet, script and icon; images of the publisher are not counted.
LARGEST = 100_000


class Check:
    def __init__(self, browser, base, token, shots):
        self.browser, self.base, self.token, self.shots = browser, base.rstrip("/"), token, shots
        self.faults = []

    def fault(self, *parts):
        self.faults.append(" ".join(map(str, parts)))

    def page(self, context, name, path):
        page = context.new_page()
        sizes, messages = [], []
        page.on("console", lambda message: messages.append(message.text))
        page.on("response", lambda answer: sizes.append(answer))
        page.goto(self.base + path)
        expected = "404 (Not Found)" if name.endswith("missing") else None
        for message in messages:
            if not (expected and expected in message):
                self.fault(name, "console:", message)
        # The body of a stream of events would never end.
        ours = [answer.headers for answer in sizes if not answer.headers.get("content-type", "").startswith("image/png")]
        total = sum(int(headers.get("content-length", 0)) for headers in ours)
        if total > LARGEST:
            self.fault(name, "has", total, "bytes")
        return page

    def accessibility(self):
        for scheme in ("light", "dark"):
            for width in WIDTHS:
                context = self.browser.new_context(
                    viewport={"width": width, "height": 900}, color_scheme=scheme,
                    reduced_motion="reduce", locale="de-AT",
                )
                signing_in = self.page(context, "sign-in", "/admin/")
                self.look(signing_in, "sign-in", scheme, width)
                self.sign_in(signing_in)
                for name, path in {**PAGES, **self.admin_pages(signing_in)}.items():
                    self.look(self.page(context, name, path), name, scheme, width)
                context.close()

    def sign_in(self, page):
        page.focus("#token")
        page.keyboard.type(self.token)
        page.keyboard.press("Enter")
        page.wait_for_url("**/admin/")

    def admin_pages(self, page):
        """The addresses of the pages for administrators, with the numbers of a topic and a target."""
        page.goto(self.base + "/admin/deliveries")
        number = lambda kind: page.locator(f"a[href*='{kind}/']").first.get_attribute("href").rsplit("/")[-1]
        numbers = {"topic": number("topics"), "target": number("targets")}
        return {name: path.format(**numbers) for name, path in ADMIN_PAGES.items()}

    def look(self, page, name, scheme, width):
        for found in Axe().run(page).response["violations"]:
            nodes = [node["html"][:120] for node in found["nodes"][:2]]
            self.fault(name, scheme, width, found["id"], found["help"], nodes)
        wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        if page.evaluate(wide):
            self.fault(name, scheme, width, "is wider than the screen")
        if self.shots and (name, scheme, width) in SHOTS:
            page.screenshot(path=self.shots / f"{name}-{scheme}-{width}.png")
        if name != "sign-in":
            page.close()

    def administration(self):
        """Scans by keyboard and without scripts; a file that the browser opens cannot act."""
        context = self.browser.new_context(java_script_enabled=False)
        page = self.page(context, "sign-in", "/admin/")
        self.sign_in(page)
        page.goto(self.base + "/admin/sets/papers")
        page.focus("text=Scan now")
        page.keyboard.press("Enter")
        page.wait_for_url("**/admin/sets/papers?done=scan")
        if "The scan has been requested." not in page.inner_text("[role=status]"):
            self.fault("a scan by keyboard is not confirmed")
        cookies = {cookie["name"]: cookie for cookie in context.cookies(self.base + "/admin/")}
        cookie = next(cookie for name, cookie in cookies.items() if name.startswith("abreast_admin_"))
        if not cookie["httpOnly"] or cookie["sameSite"] != "Lax" or cookie["path"] != "/admin":
            self.fault("the cookie is not restricted:", cookie)
        if context.cookies(self.base + "/papers/r/notes.txt"):
            self.fault("the cookie is sent with requests for published files")
        page.click("text=Sign out")
        page.wait_for_url("**/admin/sign-in")
        page.goto(self.base + "/admin/")
        page.wait_for_url("**/admin/sign-in")

    def published_page(self):
        """A published page in a browser that is signed in: its form is refused."""
        context = self.browser.new_context()
        page = self.page(context, "sign-in", "/admin/")
        self.sign_in(page)
        answers = []
        page.on("response", lambda answer: answers.append((answer.url, answer.status)))
        page.goto(self.base + "/papers/r/form.html")
        page.click("button")
        page.wait_for_timeout(500)
        done = [answer for answer in answers if "/admin/api/" in answer[0] and answer[1] < 400]
        if done or "form.html" not in page.url:
            self.fault("a published page reaches the pages for administrators:", page.url, done)

    def keyboard(self):
        page = self.page(self.browser.new_context(), "resources", PAGES["resources"])
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className") != "skip":
            self.fault("the first Tab does not reach the link to the content")
        seen = []
        for _ in range(60):
            page.keyboard.press("Tab")
            seen.append(page.evaluate("document.activeElement.name || document.activeElement.textContent"))
        for wanted in ("q", "prefix", "type", "since", "until", "Search", "notes.txt"):
            if wanted not in seen:
                self.fault(wanted, "is not reached by Tab")
        page.focus("[name=q]")
        page.keyboard.type("NOTES")
        page.keyboard.press("Enter")
        page.wait_for_url("**q=NOTES*")
        if page.locator(".rows li").count() != 1:
            self.fault("a search by keyboard does not find notes.txt")

    def without_script(self, change):
        context = self.browser.new_context(java_script_enabled=False)
        page = self.page(context, "changes", PAGES["changes"])
        before = page.locator(".rows li").count()
        change()
        page.reload()
        if page.locator(".rows li").count() != before:
            # The change was recorded before the page was read again.
            return
        page.wait_for_timeout(3000)
        page.reload()
        if page.locator(".rows li").count() == before:
            self.fault("a page that is read again does not show the change")

    def live(self, change, text):
        page = self.page(self.browser.new_context(), "changes", PAGES["changes"])
        page.wait_for_timeout(1000)
        before = page.locator(".rows li").count()
        change()
        # The policy of the page forbids functions that wait inside the page.
        expect(page.locator(".rows li")).to_have_count(before + 1, timeout=20_000)
        if text not in page.locator(".rows li").first.inner_text():
            self.fault("the newest change is not first:", page.locator(".rows li").first.inner_text())


def main():
    base, chromium, file, text, token, *shots = sys.argv[1:]
    signal.alarm(300)
    file, shots = Path(file), Path(shots[0]) if shots else None

    def change():
        file.write_text(file.read_text() + "one more line\n")

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        check = Check(browser, base, token, shots)
        check.accessibility()
        check.keyboard()
        check.administration()
        check.published_page()
        check.without_script(change)
        check.live(change, text)
        browser.close()
    print("\n".join(check.faults))
    sys.exit(1 if check.faults else 0)


main()
