-- The users of the demonstration, on both of its databases. In production give the applier the privileges of sql/grants.sql, schema by schema, and another password.
CREATE USER IF NOT EXISTS 'applier'@'%' IDENTIFIED BY 'compose-demo';
GRANT ALL PRIVILEGES ON *.* TO 'applier'@'%';
