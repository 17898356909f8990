"""An executed notebook as one HTML file that needs nothing else."""

import base64
import gzip
import json
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.pages.assets import plotly_script, stylesheet
from workbench.pages.escape import visible
from workbench.reporting.privacy import Guard
from workbench.reporting.worker import Job

if TYPE_CHECKING:
    from nbformat import NotebookNode

TEMPLATE = "report.html"
PLOTLY = "application/vnd.plotly.v1+json"
PICTURES = frozenset({"image/png", "image/jpeg"})
MOST_LETTERS = 200_000
"""Of one output in the notebook that is kept; the page has it whole."""
_PLOTLY_HERE = "@@plotly.js@@"


def export(notebook: Path, out: Path, job: Job) -> None:
    """Write the outputs of an executed notebook as a page.

    Inputs are folded away at the end. What papermill injected (paths of this machine) and what was
    written to stderr (warnings with such paths) stays out.
    """
    import nbformat

    read: Any = nbformat.read  # nbformat and nbconvert carry no types
    nb = without_local_traces(read(notebook, as_version=4))
    page = render(nb, job)
    out.write_text(page.replace(_PLOTLY_HERE, packed_plotly(), 1), encoding="utf-8")


def guard_notebook(path: Path, guard: Guard) -> None:
    """Guard all that an executed notebook says, and take out the parameters that it was given.

    A notebook that was not saved, or only in part, is left as it is.
    """
    try:
        nb = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return
    told = [cell for cell in nb["cells"] if not _injected(cell)]
    nb["cells"] = _guarded(told, guard)
    nb["metadata"].get("papermill", {}).pop("parameters", None)
    nb["metadata"] = _guarded(nb["metadata"], guard)
    path.write_text(json.dumps(nb, ensure_ascii=False), encoding="utf-8")


def _injected(cell: Any) -> bool:
    return "injected-parameters" in cell.get("metadata", {}).get("tags", [])


def _guarded(value: Any, guard: Guard) -> Any:
    if isinstance(value, str):
        return value if value.startswith("data:image/") else guard(value)
    if isinstance(value, list):
        whole = value and all(isinstance(each, str) for each in value)
        return [guard("".join(value))] if whole else [_guarded(each, guard) for each in value]
    if isinstance(value, dict):
        return {name: v if name in PICTURES else _guarded(v, guard) for name, v in value.items()}
    return value


def small(path: Path) -> bytes:
    """An executed notebook without what only a page needs: large outputs keep their text."""
    nb = json.loads(path.read_bytes())
    for cell in nb["cells"]:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            for kind in ("text/html", PLOTLY):
                if len("".join(data.get(kind, ""))) > MOST_LETTERS or (
                    kind == PLOTLY and len(json.dumps(data.get(kind, ""))) > MOST_LETTERS
                ):
                    del data[kind]
    return json.dumps(nb, indent=1, ensure_ascii=False).encode()


def render(nb: "NotebookNode", job: Job) -> str:
    """The page, with a mark in the place of plotly.js."""
    from nbconvert.exporters.templateexporter import TemplateExporter

    ours = files("workbench.reporting")
    exporter_class: Any = TemplateExporter
    exporter = exporter_class(
        template_paths=[str(ours)],
        template_file=TEMPLATE,
        template_name="",
    )
    style = stylesheet() + (ours / "report.css").read_text(encoding="utf-8")
    unpack = (ours / "unpack.js").read_text(encoding="utf-8")
    details: dict[str, Any] = {
        "title": visible(job.title),
        "heading": None if job.heading is None else visible(job.heading),
        "footer": job.footer,
        "style": style,
        "unpack": unpack,
        "plotly": _PLOTLY_HERE,
    }
    page: str = exporter.from_notebook_node(nb, resources={"report": details})[0]
    return page


def without_local_traces(nb: "NotebookNode") -> "NotebookNode":
    """The notebook without injected parameters and without what went to stderr."""
    nb.cells = [
        cell for cell in nb.cells if "injected-parameters" not in cell.metadata.get("tags", [])
    ]
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
    return nb


def packed_plotly() -> str:
    """plotly.js, compressed, as text: the page's script unpacks it (docs/decisions)."""
    packed = gzip.compress(plotly_script(), compresslevel=9, mtime=0)
    return base64.b64encode(packed).decode("ascii")
