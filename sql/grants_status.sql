-- The least privileges for looking only: `applier status`, `applier ddl list`, a dashboard. Run it as an administrator, with your own user
-- and password in place of the examples. The user sees the bookkeeping (the texts of DDLs and, in quarantine, rows are in it), and
-- can change nothing; it sees nothing of the replicated schemas.
CREATE USER IF NOT EXISTS 'applier_status'@'%' IDENTIFIED BY 'choose-a-password';
-- Another schema where [sink] schema names one.
GRANT SELECT ON applier.* TO 'applier_status'@'%';
