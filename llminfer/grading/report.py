"""Results as a page: Markdown and HTML, each complete in itself.

What a student wrote or printed stands in them as text: escaped, with a policy that lets a browser run nothing and fetch
nothing.
"""

import base64
import hashlib
import re
from collections.abc import Sequence
from html import escape

from llminfer.grading.explanations import WORDS, Part, cases, headline, parts, plain, verdict
from llminfer.grading.results import ExerciseResult, GroupResult, Status

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --good: #1a7f37; --bad: #c62828; }
@media (prefers-color-scheme: dark) { :root { --good: #57c776; --bad: #ff7b72; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; }
h2 { font-size: 1.2rem; margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: 1rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .2rem; }
table { border-collapse: collapse; } td, th { padding: .2rem .9rem .2rem 0; text-align: left; vertical-align: top; }
th { font-weight: 600; } td.number { text-align: right; white-space: nowrap; }
pre { background: var(--soft); padding: .6rem .8rem; overflow-x: auto; font-size: .85rem; line-height: 1.35; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(16rem, 1fr)); gap: 0 1.5rem; }
td.name { white-space: nowrap; }
.good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; } .about { opacity: .75; }
footer { margin-top: 3rem; font-size: .85rem; opacity: .75; }
"""
_POLICY = "default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'"
_QUIET = (Status.NOT_RUN, Status.NOT_DONE)


def markdown(results: Sequence[ExerciseResult], heading: str = "", lines: Sequence[str] = ()) -> str:
    """A Markdown page. heading and lines: plain text that stands above the exercises."""
    page = [f"# {_escaped(heading)}"] if heading else []
    page += ["\n".join(f"- {_escaped(line)}" for line in lines)] if lines else []
    page.append(f"**{_escaped(verdict(results))}**")
    for result in results:
        page.append(f"## {_escaped(result.exercise)}: {_escaped(result.title)}")
        rows = ["| | group | right | points | |", "|---|---|---:|---:|---|"]
        rows += ["| " + " | ".join(map(_escaped, _row(group))) + " |" for group in result.groups]
        page.append("\n".join(rows))
        if result.failure:
            page.append(_escaped(": ".join(w for w in (headline(result.failure), result.failure.message) if w)))
            for part in parts(result.failure):
                if part.verbatim:
                    page += [f"**{part.title}**", _fenced(part.text)]
                else:
                    page.append(f"**{part.title}:** {_escaped(part.text)}")
    page.append("---")
    page.append("  \n".join(map(_escaped, _colophon(results))))
    return "\n\n".join(page) + "\n"


def html(results: Sequence[ExerciseResult], heading: str = "", lines: Sequence[str] = ()) -> str:
    """A whole HTML page, which needs no other file. heading and lines: plain text that stands above the exercises."""
    policy = _POLICY.format(base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode())
    title = escape(plain(heading or "llminfer grade"))
    body = [f"<h1>{title}</h1>"]
    body += ["<ul>", *(f"<li>{escape(plain(line))}</li>" for line in lines), "</ul>"] if lines else []
    body.append(f"<p><strong>{escape(verdict(results))}</strong></p>")
    if len(results) > 1:
        body.append(_overview(results))
    body += [piece for place, result in enumerate(results) for piece in _section(result, place)]
    body.append("<footer>" + "<br>".join(map(escape, _colophon(results))) + "</footer>")
    head = [
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>{title}</title>",
        f"<style>{STYLE}</style>",
    ]
    page = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        *head,
        "</head>",
        "<body>",
        *body,
        "</body>",
        "</html>",
        "",
    ]
    return "\n".join(page)


def _row(group: GroupResult) -> tuple[str, str, str, str, str]:
    note = group.note if group.visible else ": ".join(words for words in ("hidden", group.note) if words)
    return WORDS[group.status], group.name, cases(group), f"{group.points:g} of {group.max_points:g}", note


def _colophon(results: Sequence[ExerciseResult]) -> list[str]:
    """How this was found: what held the code, versions of tests and packages."""
    told = list(dict.fromkeys(plain(result.isolation) for result in results if result.isolation))
    versions = ", ".join(f"{result.exercise} {result.version}" for result in results if result.version)
    told += [f"Versions of the tests: {plain(versions)}"] if versions else []
    found = list(dict.fromkeys(", ".join(f"{k} {v}" for k, v in result.fingerprint.items()) for result in results))
    return told + [plain(line) for line in found if line]


def _overview(results: Sequence[ExerciseResult]) -> str:
    rows = [
        f'<tr><td>{_word(result.status)}</td><td><a href="#e{place}">{escape(plain(result.exercise))}</a></td>'
        f'<td class="number">{result.points:g} of {result.max_points:g}</td><td>{escape(plain(result.title))}</td></tr>'
        for place, result in enumerate(results)
    ]
    heads = "<tr><th></th><th>exercise</th><th>points</th><th></th></tr>"
    return f"<table>\n{heads}\n{chr(10).join(rows)}\n</table>"


def _section(result: ExerciseResult, place: int) -> list[str]:
    body = [f'<h2 id="e{place}">{escape(plain(result.exercise))}: {escape(plain(result.title))}</h2>']
    rows = []
    for group in result.groups:
        _, name, right, points, note = (escape(plain(cell)) for cell in _row(group))
        rows.append(
            f'<tr><td>{_word(group.status)}</td><td class="name">{name}</td><td class="number">{right}</td>'
            f'<td class="number">{points}</td><td class="about">{note}</td></tr>'
        )
    heads = "<tr><th></th><th>group</th><th>right</th><th>points</th><th></th></tr>"
    body += [f"<table>\n{heads}\n{chr(10).join(rows)}\n</table>"]
    if failure := result.failure:
        words = f"<strong>{escape(headline(failure))}</strong><br>" if headline(failure) else ""
        body.append(f"<p>{words}{escape(plain(failure.message))}</p>")
        body += _told(parts(failure))
    return body


def _told(told: Sequence[Part]) -> list[str]:
    """The parts of an explanation; what was expected stands beside what came."""
    pieces = []
    for part in told:
        text = escape(part.text)
        if not part.verbatim:
            pieces.append(f"<p><strong>{part.title}:</strong> {text}</p>")
        elif part.title == "Got" and pieces and "<h3>Expected" in pieces[-1]:
            pieces[-1] = f'<div class="pair">{pieces[-1]}<div><h3>Got</h3><pre>{text}</pre></div></div>'
        else:
            pieces.append(f"<div><h3>{part.title}</h3><pre>{text}</pre></div>")
    return pieces


def _word(status: Status) -> str:
    kind = "good" if status in (Status.OK, Status.COLLECTED) else "" if status in _QUIET else "bad"
    return f'<span class="{kind}">{WORDS[status]}</span>'


def _escaped(text: str) -> str:
    """Text for Markdown: one line in which no letter has a meaning of its own."""
    return re.sub(r"([\\`*_\[\]<>#|~$&!])", r"\\\1", " ".join(plain(text).split()))


def _fenced(text: str) -> str:
    """A block in a fence that the text itself cannot close."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"
