"""The entry point of ``applier`` and of ``python -m applier``. It imports almost nothing, so that Ctrl-C is answered from the start."""

from applier.cli.interrupt import end_on_interrupt


def main() -> None:
    """Run the command and exit with its code."""
    end_on_interrupt()
    from applier.cli.main import main as run_command  # noqa: PLC0415 - the import takes most of the first half second

    run_command()


if __name__ == "__main__":
    main()
