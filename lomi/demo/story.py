"""The story that the demo tells: what the agent does, step by step."""

from typing import NamedTuple

from lomi.demo.agent import Agent
from lomi.demo.apk import DemoApp
from lomi.demo.notebook import Notebook
from lomi.demo.page import Page
from lomi.demo.phone import Phone, named, shows
from lomi.demo.plan import ANSWER, APK, ASKING, EMAIL, FORM, NAME
from lomi.demo.record import DemoFailedError


async def tell(agent: Agent, notebook: Notebook, origin: str, app: DemoApp) -> None:
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
        stage = _Stage(agent, notebook, phone, page)
        await stage.both()
    await _install(stage, app)
    await _meet_windows(stage)
    await _fill_phone(stage)
    await _fill_page(stage)
    with notebook.step("end"):
        await page.close()
        await phone.stop()


class _Stage(NamedTuple):
    agent: Agent
    notebook: Notebook
    phone: Phone
    page: Page

    async def both(self, page: Page | None = None) -> None:
        """Pictures of both sides; of another page when one is named."""
        self.notebook.seen("phone", await self.phone.picture())
        self.notebook.seen("page", await (page or self.page).picture())


async def _install(stage: _Stage, app: DemoApp) -> None:
    phone = stage.phone
    with stage.notebook.step("install"):
        imported = await stage.agent.revised(
            "lomi_artifact_import",
            relativePath=APK,
            kind="android_apk",
            expectedByteLength=len(app.content),
            expectedSha256=app.sha256,
        )
        await phone.install(imported.word("result", "artifactId"), app.sha256)
        await stage.both()
    with stage.notebook.step("launch"):
        await phone.launch(app.package)
        await stage.both()


async def _meet_windows(stage: _Stage) -> None:
    """What comes unasked: a question on the phone, a second window of the page."""
    phone, page = stage.phone, stage.page
    with stage.notebook.step("dialog"):
        await phone.launch(ASKING)
        await phone.tap(named("camera"), "the button Use camera")
        await phone.look(shows(ANSWER), "the question")
        await stage.both()
        await phone.tap(shows(ANSWER), "the answer")
    with stage.notebook.step("popup"):
        popup = await page.popup(await page.click("link", "terms"))
        await stage.both(popup)
        await popup.close()


async def _fill_phone(stage: _Stage) -> None:
    phone = stage.phone
    with stage.notebook.step("phone-form"):
        await phone.launch(FORM)
        await phone.tap(named("name"), "the field Name")
        await phone.type(NAME)
        await phone.tap(named("email"), "the field Email")
        await phone.type(EMAIL)
        await phone.tap(named("agree"), "the box I agree")
        await stage.both()
    with stage.notebook.step("phone-submit"):
        await phone.tap(named("submit"), "the button Submit")
        await phone.look(shows("Submitted"), "that the form was submitted")
        log = await phone.log(FORM)
        if "submitted" not in log.text:
            raise DemoFailedError("the app's log does not hold its line")
        await stage.both()


async def _fill_page(stage: _Stage) -> None:
    page = stage.page
    with stage.notebook.step("page-form"):
        await page.fill("textbox", "Name", NAME)
        await page.fill("textbox", "Email", EMAIL)
        await page.check("I agree to the")
        await stage.both()
    with stage.notebook.step("page-submit"):
        await page.click("button", "Send")
        await page.wait_for(f"Thanks, {NAME}")
        await stage.both()
