-- The least privileges of the applier's user on MySQL and MariaDB (and TiDB, untested). Run this file as an administrator, with your own
-- user, password and schemas. Repeat the last block for each replicated schema. The applier's tests on MySQL and MariaDB run as the user
-- that this file creates.
--
-- GET_LOCK, KILL of the user's own sessions, and the session variables that the applier sets need no privilege. KILL reaches every
-- session of the user: use the user for nothing else.

-- Use a host or a network in place of '%', and REQUIRE SSL (or REQUIRE X509) after the password if the server has a certificate.
CREATE USER IF NOT EXISTS 'applier'@'%' IDENTIFIED BY 'choose-a-password';

-- Bookkeeping, in the schema that [sink] schema names (default: applier). CREATE, ALTER, INDEX, DROP and REFERENCES are for migrations,
-- and for a scratch table: with it the applier decides whether a DDL has run, or whether the sink has its result already. Without them such
-- a DDL stops the applier and an operator decides.
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX, DROP, REFERENCES ON applier.* TO 'applier'@'%';

-- Optional, recommended: PROCESS shows the ids of tables, which settle an EXCHANGE PARTITION that a crash has interrupted, and the
-- session that blocks a DDL. It also shows the statements of other sessions.
GRANT PROCESS ON *.* TO 'applier'@'%';
-- On MySQL, GRANT SELECT ON performance_schema.* shows the blocking session, too.

-- Optional, not granted here: a view whose DEFINER is another user stops the applier (exit code 4), because a user that may create such
-- views may act as any other user. Set create_view = "skip" under [ddl], or grant SET USER (MariaDB), SET_USER_ID (MySQL 8.0),
-- SET_ANY_DEFINER and ALLOW_NONEXISTENT_DEFINER (MySQL 8.4), RESTRICTED_USER_ADMIN or SUPER (TiDB).

-- Optional, not granted here (MySQL): sql_generate_invisible_primary_key = ON stops the applier at its start, and
-- sql_require_primary_key = ON at the first table without a primary key. Set both to OFF, or GRANT SESSION_VARIABLES_ADMIN ON *.*:
-- then the applier does so in its own sessions.

-- Each replicated schema: rows (REPLACE and DELETE; UPDATE is for a binlog whose tables have foreign keys with actions), then DDL. CREATE and DROP also allow CREATE SCHEMA and DROP SCHEMA
-- of that name. SHOW VIEW lets the applier compare a view before and after its DDL. TRIGGER lets the table check see triggers, which would
-- change rows; the applier creates none. In a schema's name write \_ for _ (`my\_shop`.*): a bare _ stands for any character.
GRANT SELECT, INSERT, UPDATE, DELETE ON shop.* TO 'applier'@'%';
GRANT CREATE, ALTER, INDEX, DROP, REFERENCES, CREATE VIEW, SHOW VIEW, TRIGGER ON shop.* TO 'applier'@'%';
