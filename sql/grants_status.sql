-- The least privileges to look: `applier status`, `applier ddl list`, a dashboard. Run this file as an administrator, with your own user
-- and password. The user sees the bookkeeping (which holds the texts of DDLs and, in quarantine, rows) and can change nothing. It sees
-- nothing of the replicated schemas.
CREATE USER IF NOT EXISTS 'applier_status'@'%' IDENTIFIED BY 'choose-a-password';
-- If [sink] schema names another schema, use that one.
GRANT SELECT ON applier.* TO 'applier_status'@'%';
