-- The least privileges of the applier's user on MySQL and MariaDB (and TiDB: by its manual, untested). Run it as an administrator, with
-- your own user, password and schemas in place of the examples; the last block once for each replicated schema. The applier's tests on
-- MySQL and MariaDB run as a user that was made by this very file.
--
-- No privilege is needed for GET_LOCK, for KILL of the user's own sessions, and for the session variables that the applier sets.
-- So give this user to nobody else.

-- With a host or a network in place of '%', and REQUIRE SSL (or REQUIRE X509) behind the password, where the server has a certificate.
CREATE USER IF NOT EXISTS 'applier'@'%' IDENTIFIED BY 'choose-a-password';

-- Bookkeeping, in the schema that [sink] schema names (applier, if it names none). CREATE, ALTER, INDEX, DROP and REFERENCES are for
-- migrations, and for the scratch table by which the applier tells whether a DDL has run, or whether the sink has its result already.
-- Without them such a DDL stops the applier, and you decide.
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX, DROP, REFERENCES ON applier.* TO 'applier'@'%';

-- Optional, recommended: the ids of tables, by which an EXCHANGE PARTITION that a crash interrupted is settled without asking
-- you, and the name of the session that blocks a DDL. It also shows other sessions' statements.
GRANT PROCESS ON *.* TO 'applier'@'%';
-- On MySQL that name is found in GRANT SELECT ON performance_schema.* as well.

-- Optional, not given here: a view whose DEFINER is another user than this one stops the applier (exit code 4), because a user that may
-- make such views may act as any other. Set create_view = "skip" under [ddl], or grant SET USER (MariaDB), SET_USER_ID (MySQL 8.0),
-- SET_ANY_DEFINER and ALLOW_NONEXISTENT_DEFINER (MySQL 8.4), RESTRICTED_USER_ADMIN or SUPER (TiDB).

-- Optional, not given here (MySQL): a server with sql_generate_invisible_primary_key = ON stops the applier at its start, and one with
-- sql_require_primary_key = ON at the first table without a primary key. Set them to OFF, or GRANT SESSION_VARIABLES_ADMIN ON *.*: the
-- applier then does it for its own sessions.

-- Each replicated schema: rows (REPLACE and DELETE; no row is updated), then DDL. CREATE and DROP also allow CREATE SCHEMA and DROP SCHEMA
-- of that name; SHOW VIEW lets a view be compared before and after its DDL; TRIGGER lets the table check see triggers, which would change
-- rows (the applier makes none). In a schema's name write \_ for _ (`my\_shop`.*): a bare _ stands for any character.
GRANT SELECT, INSERT, DELETE ON shop.* TO 'applier'@'%';
GRANT CREATE, ALTER, INDEX, DROP, REFERENCES, CREATE VIEW, SHOW VIEW, TRIGGER ON shop.* TO 'applier'@'%';
