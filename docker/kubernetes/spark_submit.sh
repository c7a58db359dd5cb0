#!/bin/sh
# Spark on Kubernetes: the driver in the applier's pod, executors in pods of their own. Run it in place of `applier run`: in the Deployment
# set  serviceAccountName: applier-driver, automountServiceAccountToken: true, command: [sh, /etc/applier/spark_submit.sh], remove args,
# put this file and spark_executor.yaml into the ConfigMap, and apply spark_rights.yaml. A SQLite sink needs a local master.
# Namespace and image: NAMESPACE, IMAGE in the environment.
set -eu
home=$(python -c 'import pyspark; print(pyspark.__path__[0])')
submit=$(python -c 'import applier; print(applier.__path__[0])')/submit.py
exec "$home/bin/spark-submit" \
  --master k8s://https://kubernetes.default.svc \
  --deploy-mode client \
  --name applier \
  --conf spark.kubernetes.namespace="${NAMESPACE:-default}" \
  --conf spark.kubernetes.container.image="${IMAGE:-applier:local}" \
  --conf spark.kubernetes.executor.podTemplateFile=/etc/applier/spark_executor.yaml \
  --conf spark.kubernetes.executor.podTemplateContainerName=executor \
  --conf spark.kubernetes.driver.pod.name="$(hostname)" \
  --conf spark.driver.host=applier-driver \
  --conf spark.driver.bindAddress=0.0.0.0 \
  --conf spark.driver.port=7078 \
  --conf spark.driver.blockManager.port=7079 \
  --conf spark.pyspark.python=/opt/applier/bin/python \
  --conf spark.executor.instances=2 \
  --conf spark.executor.cores=2 \
  --conf spark.executor.memory=1g \
  --conf spark.executor.memoryOverhead=1g \
  --driver-java-options "-XX:TieredStopAtLevel=1 -XX:+UseParallelGC -Xmn256m" \
  "$submit" run --config /etc/applier/applier.toml
