"""``python -m applier``: the command, where its script is not on the path (the demo starts its catch-ups this way)."""

from applier.cli.main import main

if __name__ == "__main__":
    main()
