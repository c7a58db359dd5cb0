"""TiCDC's topics in Kafka: partitions, offsets, records. The bytes in the records are ``open_protocol``'s. Read ``reader`` first."""
