"""A whole HTML page that needs nothing else, loads nothing and runs no script; its policy says so to the browser."""

import base64
import hashlib
from importlib.resources import files

from lomi.report.markup import element, inert


def base_style() -> str:
    """The style sheet that all reports share."""
    return files("lomi.report").joinpath("base.css").read_text(encoding="utf-8")


def _policy(style: str) -> str:
    """Nothing is loaded or run but this one style sheet and pictures from inside the page."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"


def document(title: str, style: str, parts: list[str]) -> str:
    """The page; `title` is any text, `parts` are inert markup, one below the other."""
    head = (
        '<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{inert(_policy(style))}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        '<link rel="icon" href="data:,">\n'
        f"{element('title', inert(title))}\n<style>{style}</style>"
    )
    body = "\n".join(parts)
    whole = ("<!doctype html>", '<html lang="en">', "<head>", head, "</head>", "<body>", "<main>", body, "</main>")
    return "\n".join((*whole, "</body>", "</html>", ""))


def png_source(png: bytes) -> str:
    """A picture as the source of an image inside the page."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def video_source(webp: bytes) -> str:
    """A video as the source of an image inside the page."""
    return f"data:image/webp;base64,{base64.b64encode(webp).decode()}"
