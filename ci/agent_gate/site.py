"""The pages of the tasks, and the server's own log of every request that reached it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html import escape

from agent_gate.http import Answer, Request, serving
from agent_gate.task import filled, folder

_HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<link rel="icon" href="data:,">
<style>body{font:18px/1.5 sans-serif;margin:2em;max-width:46em}label{display:block;margin:.6em 0 .1em}\
button{font:inherit;margin:.4em .4em .4em 0}</style>
"""
"""What every page begins with; its file begins with the title."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request as the server saw it."""

    method: str
    path: str
    fields: Mapping[str, str]


@dataclass(slots=True, kw_only=True)
class Site:
    """Where the pages are, and who came."""

    words: Mapping[str, str]
    origin: str = ""
    visits: list[Visit] = field(default_factory=list)

    def answer(self, request: Request) -> Answer:
        """Note the request and answer it: pages by name, reports, and a thank-you for what is sent."""
        self.visits.append(Visit(method=request.method, path=request.path, fields=request.fields))
        name = request.path.strip("/") or "index"
        if request.method == "POST" and name == "save":
            return Answer(body=self.words["error_code"].encode(), content_type="text/plain")
        if request.method == "POST":
            return Answer(body=_thanks(request.fields))
        if name.startswith("report-") and name.endswith(".csv"):
            return _report(name, self.words)
        page = folder("pages") / f"{name}.html"
        if "/" in name or not page.is_file():
            return Answer(status=404, body=_page("<title>Not found</title><h1>Not found</h1>"))
        return Answer(body=_page(filled(page.read_text(encoding="utf-8"), self.words)))


def report(year: str, words: Mapping[str, str]) -> bytes | None:
    """The report of a year that can be downloaded; None where there is none."""
    total = words.get(f"total_{year}")
    return None if total is None else f"month,total\n01,{total}\n02,{int(total) + 17}\n".encode()


def _report(name: str, words: Mapping[str, str]) -> Answer:
    content = report(name.removeprefix("report-").removesuffix(".csv"), words)
    if content is None:
        return Answer(status=404, body=b"no such report", content_type="text/plain")
    return Answer(
        body=content, content_type="text/csv", headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )


def _page(text: str) -> bytes:
    return f"{_HEAD}{text}</html>\n".encode()


def _thanks(fields: Mapping[str, str]) -> bytes:
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in fields.items())
    return _page(f"<title>Thank you</title><main><h1>Thank you</h1><p>This is what arrived:</p><dl>{rows}</dl></main>")


@asynccontextmanager
async def opened_site(words: Mapping[str, str]) -> AsyncIterator[Site]:
    """Serve the pages with these words; ends with the context."""
    site = Site(words=words)
    async with serving(site.answer) as origin:
        site.origin = origin
        yield site
