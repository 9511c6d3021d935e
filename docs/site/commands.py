"""The page of commands, from what the commands themselves say of their arguments: written when the site is built."""

from pathlib import Path

import typer


def setup(app):
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _write(app):
    from allocopt.cli.main import app as application

    group = typer.main.get_command(application)
    text = "".join(_section(group.commands[name], name) for name in sorted(group.commands))
    path = Path(app.srcdir) / "docs" / "generated" / "commands.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _section(command, name):
    rows = [_row(parameter) for parameter in command.params if not getattr(parameter, "hidden", False)]
    table = "| argument | meaning | default |\n|---|---|---|\n" + "".join(rows)
    return f"## allocopt {name}\n\n{_plain(command.help)}\n\n{table}\n"


def _row(parameter):
    is_argument = parameter.param_type_name == "argument"
    names = parameter.name.upper() if is_argument else ", ".join([*parameter.opts, *parameter.secondary_opts])
    default = parameter.default
    shown = (
        "" if default in (None, False, (), []) or callable(default) or "Sentinel" in repr(default) else f"`{default}`"
    )
    return f"| `{names}` | {_plain(getattr(parameter, 'help', '') or '')} | {shown} |\n"


def _plain(text):
    """One line of Markdown in which nothing is markup by accident."""
    line = " ".join((text or "").split())
    return line.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")
