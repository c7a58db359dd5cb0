-- What the applier's user needs on the primary whose binlog it follows ([source] kind = "binlog"). Run this file as an administrator of the
-- primary, with your own user, password and schemas. Repeat the last statement for each replicated schema.

-- Use a host or a network in place of '%', and REQUIRE SSL after the password if the server has a certificate.
CREATE USER IF NOT EXISTS 'applier'@'%' IDENTIFIED BY 'choose-a-password';

-- To read the binlog as a replica, and to see its files and its end. MariaDB calls the second one BINLOG MONITOR, and takes both names.
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'applier'@'%';

-- To see foreign keys with actions, whose effects are not in the binlog. No row is read.
GRANT REFERENCES ON shop.* TO 'applier'@'%';
