"""Reads the pages of a static site: every resource is reached without scripts, no link is dead, and
the search finds names in Chromium.

Arguments: the folder of the site, its port on 127.0.0.1, the program chromium, a text and the
number of the names that contain it. Prints each fault as a line, and ends with 1 if there are any.
"""

import functools
import html
import http.server
import re
import signal
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def crawl(base, faults):
    """The resources that links of pages lead to, from the first page."""
    resources, seen, open_ = set(), set(), [base]
    while open_:
        address = open_.pop()
        if address in seen or not address.startswith(base):
            continue
        seen.add(address)
        try:
            body = urllib.request.urlopen(address, timeout=20).read()
        except urllib.error.HTTPError as error:
            faults.append(f"{address}: {error}")
            continue
        if "/r/" in address:
            resources.add(address)
        elif address.endswith((".html", "/")):
            if len(body) > 100_000:
                faults.append(f"{address} has {len(body)} bytes")
            for link in re.findall('href="([^"]*)"', body.decode()):
                open_.append(urllib.parse.urljoin(address, html.unescape(link)).split("#")[0])
    return resources


def report(message, faults):
    # Browsers search an icon for files, which have no page.
    if not message.location["url"].endswith("/favicon.ico"):
        faults.append(f"console: {message.text}")


def main():
    site, port, chromium, text, number = sys.argv[1:]
    signal.alarm(240)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), functools.partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base, faults = f"http://127.0.0.1:{port}/", []
    print(len(crawl(base, faults)), "resources")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for width in (320, 1280):
            page = browser.new_context(viewport={"width": width, "height": 900}).new_page()
            page.on("console", lambda message: report(message, faults))
            page.goto(base + "papers/resources.html")
            page.focus("[name=q]")
            page.keyboard.type(text.upper())
            page.keyboard.press("Enter")
            expect(page.locator("#result")).to_contain_text(f"{number} resources found", timeout=20_000)
            if page.locator("#found a").count() != min(int(number), 100):
                faults.append(f"{page.locator('#found a').count()} names are shown")
            for found in Axe().run(page).response["violations"]:
                faults.append(f"{width} {found['id']} {found['help']}")
            if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
                faults.append(f"{width}: wider than the screen")
            page.click("#found a >> nth=0")
            page.wait_for_url("**/papers/r/**")
        browser.close()
    print("\n".join(faults))
    sys.exit(1 if faults else 0)


main()
