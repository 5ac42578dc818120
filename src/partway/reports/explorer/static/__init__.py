"""The files of the explorer's page, by the names under which it asks for them."""

from __future__ import annotations

from pathlib import Path

import partway.execution

HERE = Path(__file__).parent
FILES = {name: HERE / name for name in ("index.html", "app.css", "charts.js", "app.js")}
FILES["trace_html.css"] = Path(partway.execution.__file__).parent / "trace_html.css"
