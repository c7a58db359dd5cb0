"""``python -m applier``: the command, where its script is not on the path (the demo starts its runs so)."""

from applier.cli.main import main

if __name__ == "__main__":
    main()
