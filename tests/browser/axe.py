"""What axe-core finds in a page; the library brings the script, nothing is fetched."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page


def complaints_of(page: Page, within: str | None = None) -> list[str]:
    """Each violation as its rule and the elements that break it."""
    found = Axe().run(page, context=within).response["violations"]
    return [f"{each['id']}: {[node['target'] for node in each['nodes']]}" for each in found]
