-- The least privileges of the applier's user on MySQL, MariaDB and TiDB. Run it as an administrator, with your own user,
-- password and schemas in place of the examples.
--
-- GET_LOCK, KILL of one's own sessions and reading one's own part of the catalogue and process list need no privilege.

CREATE USER IF NOT EXISTS 'applier'@'%' IDENTIFIED BY 'choose-a-password';

-- Bookkeeping: CREATE, ALTER, INDEX and DROP are for migrations only. Without them, let an administrator run `applier migrate`
-- and start with migrations turned off.
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX, DROP ON applier.* TO 'applier'@'%';

-- Each replicated schema: rows.
GRANT SELECT, INSERT, UPDATE, DELETE ON shop.* TO 'applier'@'%';

-- Each replicated schema: DDL. CREATE and DROP also allow CREATE SCHEMA and DROP SCHEMA of that name.
GRANT CREATE, ALTER, INDEX, DROP, REFERENCES, CREATE VIEW, SHOW VIEW ON shop.* TO 'applier'@'%';

-- Optional: names the session that blocks a DDL.
GRANT PROCESS ON *.* TO 'applier'@'%';
