"""An executed notebook as one HTML file that needs nothing else."""

import base64
import gzip
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.pages.assets import plotly_script, stylesheet
from workbench.pages.escape import visible
from workbench.reporting.worker import Job

if TYPE_CHECKING:
    from nbformat import NotebookNode

TEMPLATE = "report.html"
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
