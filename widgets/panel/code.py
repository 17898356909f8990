"""The settings in force as code: for this package, and as plain torch."""

from typing import TYPE_CHECKING

from workbench.settings import Settings

if TYPE_CHECKING:
    from workbench.widgets.panel.desk import Desk


def settings_call(settings: Settings) -> str:
    """The settings as they are typed."""
    inside = ", ".join(f"{name}={value!r}" for name, value in settings.changes().items())
    return f"wb.Settings({inside})"


def code(desk: "Desk") -> str:
    """What is in force, to paste into the next cell or into a script without this package."""
    settings = desk.session.state.settings
    ours = f"settings = {settings_call(settings)}\nwb.profile(work, settings)\n"
    return f"# With this package:\n{ours}\n# In plain torch:\n{plain(desk, settings)}"


def plain(desk: "Desk", settings: Settings) -> str:
    """The same in torch's own words."""
    from workbench.tuning.paste import pasted
    from workbench.workload.workload import is_data_set

    work = desk.work
    look = {
        "effective": dict(desk.effective),
        "batch_kind": "sequence",
        "source": "dataset" if is_data_set(work.data, work.batch_size) else "loader",
        "has_loss": work.loss is not None,
    }
    return pasted(settings, look, work.title)
