"""`python -m cantus.configure`: which backend `cantus.tensor_ops` takes."""

from __future__ import annotations

import argparse
import json
import sys

from . import tensor_ops


def main(arguments: list[str] | None = None) -> int:
    """Prints the settings, or writes `backend.json` in the working folder."""
    parser = argparse.ArgumentParser(prog="python -m cantus.configure", description="The backend of cantus.tensor_ops.")
    parser.add_argument("--show", action="store_true", help="print the settings, and which backends there are")
    parser.add_argument("--backend", choices=["auto", *tensor_ops.NAMES], help="the backend to take, or auto")
    parser.add_argument("--priority", help='names in the order in which they are tried, as "cpp,cuda,opencl,python"')
    options = parser.parse_args(arguments)
    try:
        settings = tensor_ops.settings()
    except ValueError as error:
        if options.backend is None and options.priority is None:
            print(f"error: {error}", file=sys.stderr)
            return 2
        settings = {"backend": "auto", "priority": list(tensor_ops.PRIORITY)}
    if options.backend is not None:
        settings["backend"] = options.backend
    if options.priority is not None:
        names = [name.strip() for name in options.priority.split(",") if name.strip()]
        unknown = [name for name in names if name not in tensor_ops.NAMES]
        if unknown or not names:
            print(f"error: {', '.join(unknown) or 'nothing'} is no backend (there are {', '.join(tensor_ops.NAMES)})", file=sys.stderr)
            return 2
        settings["priority"] = names
    if options.backend is not None or options.priority is not None:
        path = tensor_ops.settings_files()[0]
        path.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        print(f"wrote {path.resolve()}")
        tensor_ops.reload()
    if options.show or (options.backend is None and options.priority is None):
        info = tensor_ops.get_backend_info()
        print(json.dumps(settings | {"active": info["name"], "available": info["available"], "reasons": info["reasons"]}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
