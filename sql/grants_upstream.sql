-- The least privileges of the user of source.upstream, which reads rows that were too large for Kafka. Run this file on upstream's TiDB as an
-- administrator, with your own user, password and schemas. Repeat the last line for each replicated schema.
--
-- SELECT is all: it allows SHOW COLUMNS and SHOW INDEX, too. To set tidb_snapshot in the own session needs no privilege.

-- Use a host or a network in place of '%', and REQUIRE SSL after the password if the server has a certificate.
CREATE USER IF NOT EXISTS 'reader'@'%' IDENTIFIED BY 'choose-a-password';

GRANT SELECT ON shop.* TO 'reader'@'%';
