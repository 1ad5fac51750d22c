"""The story that the demo tells: what the agent does, step by step."""

from lomi.demo.agent import Agent
from lomi.demo.notebook import Notebook
from lomi.demo.page import Page
from lomi.demo.phone import Phone, named, shows
from lomi.demo.plan import EMAIL, NAME

FORM = "lomi.paper.form"


async def tell(agent: Agent, notebook: Notebook, origin: str) -> None:
    """Run every step; pictures of both sides end each one from the moment on that the side is there.

    Raises:
        DemoFailedError: a step can't go on.
    """
    with notebook.step("boot"):
        phone = await Phone.open(agent)
        await phone.start()
        await phone.look(shows("Form"), "the launcher")
        notebook.seen("phone", await phone.picture())
    with notebook.step("page"):
        page = await Page.open(agent, f"{origin}/")
        notebook.seen("phone", await phone.picture())
        notebook.seen("page", await page.picture())
    with notebook.step("phone-form"):
        await phone.launch(FORM)
        await phone.tap(named("name"), "the field Name")
        await phone.type(NAME)
        await phone.tap(named("email"), "the field Email")
        await phone.type(EMAIL)
        await phone.tap(named("agree"), "the box I agree")
        await _both(notebook, phone, page)
    with notebook.step("phone-submit"):
        await phone.tap(named("submit"), "the button Submit")
        await phone.look(shows("Submitted"), "that the form was submitted")
        await _both(notebook, phone, page)
    with notebook.step("page-form"):
        await page.fill("textbox", "Name", NAME)
        await page.fill("textbox", "Email", EMAIL)
        await page.check("I agree to the")
        await _both(notebook, phone, page)
    with notebook.step("page-submit"):
        await page.click("button", "Send")
        await page.wait_for(f"Thanks, {NAME}")
        await _both(notebook, phone, page)
    with notebook.step("end"):
        await page.close()
        await phone.stop()


async def _both(notebook: Notebook, phone: Phone, page: Page) -> None:
    notebook.seen("phone", await phone.picture())
    notebook.seen("page", await page.picture())
