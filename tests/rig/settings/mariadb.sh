#!/bin/sh
# Start one MariaDB for tests, in the foreground: in a container (official or home-built image) or by hand (./servers).
# The data directory is made at the first start and found again at the next, so a restart keeps what was committed.
#
#   RIG_DATA  data directory      RIG_PORT  TCP port      RIG_BIND  address to listen on
#   RIG_OPTIONS  more options of the server: they override those below
#   RIG_TLS_CA, RIG_TLS_CERT, RIG_TLS_KEY  texts in PEM: the server takes connections with TLS only
set -eu
data=${RIG_DATA:-/tmp/mariadb}
user=
if [ "$(id -u)" = 0 ]; then user=--user=mysql; fi

if [ ! -d "$data/mysql" ]; then
  mkdir -p "$data"
  if [ -n "$user" ]; then chown mysql "$data"; fi
  mariadb-install-db --no-defaults $user --datadir="$data" --auth-root-authentication-method=normal --skip-test-db >"$data.log" 2>&1 \
    || { cat "$data.log" >&2; exit 1; }
fi

cat >"$data.init.sql" <<'SQL'
CREATE USER IF NOT EXISTS 'applier_test'@'%' IDENTIFIED BY 'applier_test';
GRANT ALL PRIVILEGES ON *.* TO 'applier_test'@'%' WITH GRANT OPTION;
SQL
chmod a+r "$data.init.sql"

# Texts and not files: a container and a process get them in the same way, and the files belong to whom the server runs as.
set --
if [ -n "${RIG_TLS_CERT:-}" ]; then
  mkdir -p "$data.tls"
  printf '%s' "$RIG_TLS_CA" >"$data.tls/ca.pem"
  printf '%s' "$RIG_TLS_CERT" >"$data.tls/cert.pem"
  printf '%s' "$RIG_TLS_KEY" >"$data.tls/key.pem"
  if [ -n "$user" ]; then chown -R mysql "$data.tls"; fi
  set -- --ssl-ca="$data.tls/ca.pem" --ssl-cert="$data.tls/cert.pem" --ssl-key="$data.tls/key.pem" --require-secure-transport=ON
fi

# Character set and collation are those of a MariaDB from Debian or Docker Hub; the rest is a server that is small and quick to start.
# nosync: a test kills the server and not the machine, so what was written to the page cache is kept. An ALTER TABLE takes a third of
# the time (8 ms instead of 26).
exec mariadbd --no-defaults $user --datadir="$data" --socket="$data/s.sock" --pid-file="$data/pid" --init-file="$data.init.sql" \
  --port="${RIG_PORT:-3306}" --bind-address="${RIG_BIND:-0.0.0.0}" --skip-name-resolve --skip-log-bin \
  --character-set-server=utf8mb4 --collation-server=utf8mb4_general_ci --max-allowed-packet=64M --innodb-buffer-pool-size=128M --innodb-flush-method=nosync --debug-no-sync "$@" ${RIG_OPTIONS:-}
