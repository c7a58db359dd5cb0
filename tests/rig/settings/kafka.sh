#!/bin/sh
# Start one Kafka (KRaft, broker and controller in one) for tests, in the foreground: in a container (official or
# home-built image) or by hand (./servers). The log is formatted at the first start and found again at the next.
#
#   RIG_DATA  data directory      RIG_PORT  TCP port      RIG_BIND  address to listen on (empty: all)
#   RIG_ADVERTISED  host:port under which the tests reach it      RIG_KAFKA_LIBS  directory of the jars
#   RIG_TLS_CERT, RIG_TLS_KEY  texts in PEM: clients need TLS, SCRAM-SHA-512 and privileges; RIG_USER with RIG_PASSWORD has all of them
set -eu
here=$(cd "$(dirname "$0")" && pwd)
data=${RIG_DATA:-/tmp/kafka}
port=${RIG_PORT:-9092}
mkdir -p "$data"

protocol=PLAINTEXT
users=
if [ -n "${RIG_TLS_CERT:-}" ]; then
  protocol=SASL_SSL
  users="--add-scram SCRAM-SHA-512=[name=$RIG_USER,password=$RIG_PASSWORD]"
  printf '%s\n%s\n' "$RIG_TLS_KEY" "$RIG_TLS_CERT" >"$data/keystore.pem"
fi

# INTERNAL is apart from CLIENT because the broker must reach itself, and the advertised address is one of the host.
# The short session lets a broker that was killed come back at once (its old registration must expire first).
# Topics are made by the tests: a name that is missing is an error of the test, not a topic with one partition.
cat >"$data/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((port + 2))
controller.listener.names=CONTROLLER
inter.broker.listener.name=INTERNAL
listeners=CLIENT://${RIG_BIND:-}:$port,INTERNAL://127.0.0.1:$((port + 1)),CONTROLLER://127.0.0.1:$((port + 2))
advertised.listeners=CLIENT://${RIG_ADVERTISED:-127.0.0.1:$port},INTERNAL://127.0.0.1:$((port + 1))
listener.security.protocol.map=CLIENT:$protocol,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$data/log
auto.create.topics.enable=false
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
group.initial.rebalance.delay.ms=0
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
log.initial.task.delay.ms=1000
log.retention.check.interval.ms=1000
PROPERTIES
if [ -n "$users" ]; then
  cat >>"$data/server.properties" <<PROPERTIES
sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.client.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:$RIG_USER;User:ANONYMOUS
listener.name.client.ssl.keystore.type=PEM
listener.name.client.ssl.keystore.location=$data/keystore.pem
PROPERTIES
fi

kafka() {
  main=$1
  shift
  set -- java -Xms64m -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData \
    -Dlog4j2.configurationFile="$here/log4j2.properties" -cp "${RIG_KAFKA_LIBS:-/opt/kafka/libs}/*" "$main" "$@"
  if [ "$main" = kafka.Kafka ]; then exec "$@"; fi
  "$@"
}

if [ ! -f "$data/log/meta.properties" ]; then
  kafka kafka.tools.StorageTool format --cluster-id AAAAAAAAAAAAAAAAAAAAAA --config "$data/server.properties" $users >"$data/format.log" 2>&1 \
    || { cat "$data/format.log" >&2; exit 1; }
fi
kafka kafka.Kafka "$data/server.properties"
