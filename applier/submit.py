"""The program for spark-submit: ``spark-submit --py-files applier.zip applier/submit.py catchup --config applier.toml``."""

from applier.__main__ import main

if __name__ == "__main__":
    main()
