-- The least privileges for `applier verify`, on upstream (TiDB, MySQL, MariaDB) and on the sink. Run this file as an administrator on each
-- of them, with your own user, password and schemas. The user sees all rows of the replicated schemas and changes nothing.
CREATE USER IF NOT EXISTS 'applier_verify'@'%' IDENTIFIED BY 'choose-a-password';
-- Each replicated schema. In its name write \_ for _ (`my\_shop`.*): a bare _ stands for any character.
GRANT SELECT ON shop.* TO 'applier_verify'@'%';
-- On the sink: the bookkeeping, for the checkpoint and the tables that the replica has written. If [sink] schema names another, use that one.
GRANT SELECT ON applier.* TO 'applier_verify'@'%';
