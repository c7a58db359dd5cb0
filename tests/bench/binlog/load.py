"""The live load, a process of its own: transactions of four rows and a beat, so many a second; each beat's number and time on a line.

``python -m tests.bench.binlog.load URL TRANSACTIONS_PER_S SECONDS``
"""

import sys
import time
from contextlib import closing

from tests.bench.binlog.primary import SCHEMA, TOOLS
from tests.rig.mysql_oracle import connect


def main() -> None:
    url, rate, seconds = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        began = time.monotonic()
        number = 0
        while (now := time.monotonic() - began) < seconds:
            if number >= now * rate:
                time.sleep(0.001)
                continue
            number += 1
            cursor.execute(f"CALL {TOOLS}.step({number})")
            cursor.execute(f"UPDATE {SCHEMA}.beats SET n = {number} WHERE id = 1")
            connection.commit()
            print(number, time.time(), flush=True)


if __name__ == "__main__":
    main()
