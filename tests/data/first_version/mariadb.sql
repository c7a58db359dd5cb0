/*M!999999\- enable the sandbox mode */ 

/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40101 SET @OLD_CHARACTER_SET_RESULTS=@@CHARACTER_SET_RESULTS */;
/*!40101 SET @OLD_COLLATION_CONNECTION=@@COLLATION_CONNECTION */;
/*!40101 SET NAMES utf8mb4 */;
/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */;
/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */;

CREATE DATABASE /*!32312 IF NOT EXISTS*/ `applier` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

USE `applier`;
DROP TABLE IF EXISTS `ddl_ledger`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `ddl_ledger` (
  `name` varchar(64) NOT NULL,
  `ddl_ts` bigint(20) unsigned NOT NULL,
  `identity_hash` varchar(64) NOT NULL,
  `schema_name` varchar(192) NOT NULL,
  `table_name` varchar(192) NOT NULL,
  `touches` longtext NOT NULL,
  `ddl_type` bigint(20) NOT NULL,
  `query` longtext NOT NULL,
  `state` varchar(16) NOT NULL,
  `before_state` longtext NOT NULL,
  `began_at` datetime(6) NOT NULL,
  `ended_at` datetime(6) DEFAULT NULL,
  `error` longtext NOT NULL,
  PRIMARY KEY (`name`,`ddl_ts`,`identity_hash`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `ddl_ledger` DISABLE KEYS */;
INSERT INTO `ddl_ledger` (`name`, `ddl_ts`, `identity_hash`, `schema_name`, `table_name`, `touches`, `ddl_type`, `query`, `state`, `before_state`, `began_at`, `ended_at`, `error`) VALUES ('replica',462422016268173336,'83f7c1c9788d84b44abdf25b3b92eda82a6ec3a1ea82f49e8e80c17d19a7e4a6','bank','','[[\"bank\", \"\"]]',1,'CREATE DATABASE `bank` CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin','done','{\"bank\": null}','2026-11-22 23:04:18.161055','2026-11-22 23:04:18.165293','');
INSERT INTO `ddl_ledger` (`name`, `ddl_ts`, `identity_hash`, `schema_name`, `table_name`, `touches`, `ddl_type`, `query`, `state`, `before_state`, `began_at`, `ended_at`, `error`) VALUES ('replica',462422016526909467,'350f9d71ecb78261c62cf647abcd4efeadafb9d5c335c2751905e908c0926679','shop','','[[\"shop\", \"\"]]',1,'CREATE DATABASE `shop` CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin','done','{\"shop\": null}','2026-11-22 23:04:18.170740','2026-11-22 23:04:18.177442','');
INSERT INTO `ddl_ledger` (`name`, `ddl_ts`, `identity_hash`, `schema_name`, `table_name`, `touches`, `ddl_type`, `query`, `state`, `before_state`, `began_at`, `ended_at`, `error`) VALUES ('replica',462422016689176631,'ce81ed544fd421b970fc25bd2ef72307510c0e431ef6a48b6e186fa55e762616','crm','','[[\"crm\", \"\"]]',1,'CREATE DATABASE `crm` CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin','done','{\"crm\": null}','2026-11-22 23:04:18.186291','2026-11-22 23:04:18.189911','');
INSERT INTO `ddl_ledger` (`name`, `ddl_ts`, `identity_hash`, `schema_name`, `table_name`, `touches`, `ddl_type`, `query`, `state`, `before_state`, `began_at`, `ended_at`, `error`) VALUES ('replica',462422016957349930,'f0fe2ddfe8575399a9719f43461e717d06d99bbc8e2b2ce3d5b35595836f424a','types','','[[\"types\", \"\"]]',1,'CREATE DATABASE `types` CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin','done','{\"types\": null}','2026-11-22 23:04:18.194326','2026-11-22 23:04:18.197380','');
INSERT INTO `ddl_ledger` (`name`, `ddl_ts`, `identity_hash`, `schema_name`, `table_name`, `touches`, `ddl_type`, `query`, `state`, `before_state`, `began_at`, `ended_at`, `error`) VALUES ('replica',462422017216086024,'d6e5349975fcedb8797deca59a5ae5518e1e6f761697c3549de560ebb4adb862','lab','','[[\"lab\", \"\"]]',1,'CREATE DATABASE `lab` CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin','done','{\"lab\": null}','2026-11-22 23:04:18.201900','2026-11-22 23:04:18.207315','');
INSERT INTO `ddl_ledger` (`name`, `ddl_ts`, `identity_hash`, `schema_name`, `table_name`, `touches`, `ddl_type`, `query`, `state`, `before_state`, `began_at`, `ended_at`, `error`) VALUES ('replica',462422017604583430,'db900d0ab04906a7d91e66251733064456c5ccdc04980752811c4f6dbce6bf21','bank','accounts','[[\"bank\", \"accounts\"]]',3,'CREATE TABLE `accounts` (`id` BIGINT NOT NULL,`owner` VARCHAR(64) NOT NULL,`balance` BIGINT NOT NULL,PRIMARY KEY(`id`) /*T![clustered_index] NONCLUSTERED */) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','{\"bank.accounts\": null}','2026-11-22 23:04:18.212917','2026-11-22 23:04:18.218230','');
INSERT INTO `ddl_ledger` (`name`, `ddl_ts`, `identity_hash`, `schema_name`, `table_name`, `touches`, `ddl_type`, `query`, `state`, `before_state`, `began_at`, `ended_at`, `error`) VALUES ('replica',462422017604583433,'42dd117456ded9b1404bf9f3abb08c1b37994fe3b6e289bfd2af85e71fee956f','shop','wallets','[[\"shop\", \"wallets\"]]',3,'CREATE TABLE `wallets` (`owner` VARCHAR(64) NOT NULL,`balance` BIGINT NOT NULL,PRIMARY KEY(`owner`) /*T![clustered_index] NONCLUSTERED */) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','{\"shop.wallets\": null}','2026-11-22 23:04:18.224017','2026-11-22 23:04:18.232400','');
INSERT INTO `ddl_ledger` (`name`, `ddl_ts`, `identity_hash`, `schema_name`, `table_name`, `touches`, `ddl_type`, `query`, `state`, `before_state`, `began_at`, `ended_at`, `error`) VALUES ('replica',462422017978662936,'99af904c3928b552ed51a4b1f54bc488d1637d469f6b91fb22258aa0d3870d55','bank','transfers','[[\"bank\", \"transfers\"]]',3,'CREATE TABLE `transfers` (`id` BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,`source` VARCHAR(64),`target` VARCHAR(64),`amount` DECIMAL(20,2) NOT NULL,`made_at` TIMESTAMP(3) NULL,PRIMARY KEY(`id`) /*T![clustered_index] NONCLUSTERED */,INDEX `by_source`(`source`)) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','{\"bank.transfers\": null}','2026-11-22 23:04:18.238396','2026-11-22 23:04:18.253808','');
INSERT INTO `ddl_ledger` (`name`, `ddl_ts`, `identity_hash`, `schema_name`, `table_name`, `touches`, `ddl_type`, `query`, `state`, `before_state`, `began_at`, `ended_at`, `error`) VALUES ('replica',462422018288254989,'c3f5ca0d963caeae809f8915023a2d286549c7c46ad4cd17aefd6047ce653f21','shop','orders','[[\"shop\", \"orders\"]]',3,'CREATE TABLE `orders` (`id` BIGINT NOT NULL AUTO_INCREMENT,`account` BIGINT NOT NULL,`status` ENUM(\'new\',\'paid\',\'sent\',\'it\'\'s lost\') NOT NULL DEFAULT _UTF8MB4\'new\',`total` DECIMAL(12,2) NOT NULL,`created` DATETIME(3),`note` TEXT,PRIMARY KEY(`id`) /*T![clustered_index] NONCLUSTERED */,INDEX `by_account`(`account`)) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','{\"shop.orders\": null}','2026-11-22 23:04:18.260834','2026-11-22 23:04:18.267090','');
INSERT INTO `ddl_ledger` (`name`, `ddl_ts`, `identity_hash`, `schema_name`, `table_name`, `touches`, `ddl_type`, `query`, `state`, `before_state`, `began_at`, `ended_at`, `error`) VALUES ('replica',462422018444754944,'e4f25ec059c9c2fee783ffc6d534dc359c1593fdc2f20e1a9ddbf4b934d3bf8a','shop','order_items','[[\"shop\", \"order_items\"]]',3,'CREATE TABLE `order_items` (`order_id` BIGINT NOT NULL,`line` SMALLINT NOT NULL,`sku` VARCHAR(32) NOT NULL,`quantity` INT NOT NULL,`price` DECIMAL(10,2),PRIMARY KEY(`order_id`,`line`) /*T![clustered_index] NONCLUSTERED */,INDEX `by_sku`(`sku`,`quantity`)) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','{\"shop.order_items\": null}','2026-11-22 23:04:18.276487','2026-11-22 23:04:18.283663','');
INSERT INTO `ddl_ledger` (`name`, `ddl_ts`, `identity_hash`, `schema_name`, `table_name`, `touches`, `ddl_type`, `query`, `state`, `before_state`, `began_at`, `ended_at`, `error`) VALUES ('replica',462422018533621808,'2ee78fa5ed964fc57e25640e3c4d261b0eafdfc5fee4847be453fb040b244f85','crm','seats','[[\"crm\", \"seats\"]]',3,'CREATE TABLE `seats` (`id` INT NOT NULL,`seat` INT NOT NULL,`code` VARCHAR(40),`holder` VARCHAR(40),PRIMARY KEY(`id`) /*T![clustered_index] NONCLUSTERED */,UNIQUE `one_seat`(`seat`),UNIQUE `one_code`(`code`)) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','{\"crm.seats\": null}','2026-11-22 23:04:18.289782','2026-11-22 23:04:18.298806','');
INSERT INTO `ddl_ledger` (`name`, `ddl_ts`, `identity_hash`, `schema_name`, `table_name`, `touches`, `ddl_type`, `query`, `state`, `before_state`, `began_at`, `ended_at`, `error`) VALUES ('replica',462422018904555557,'03af202660af9ab396fd93676d5305fc5ca33fbb50ca89b47d23eb5a8707a57a','crm','badges','[[\"crm\", \"badges\"]]',3,'CREATE TABLE `badges` (`holder` INT,`code` VARCHAR(40) NOT NULL,`zone` TINYINT NOT NULL,UNIQUE `one_badge`(`code`),UNIQUE `pair`(`code`,`zone`)) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','{\"crm.badges\": null}','2026-11-22 23:04:18.304122','2026-11-22 23:04:18.309171','');
INSERT INTO `ddl_ledger` (`name`, `ddl_ts`, `identity_hash`, `schema_name`, `table_name`, `touches`, `ddl_type`, `query`, `state`, `before_state`, `began_at`, `ended_at`, `error`) VALUES ('replica',462422019226468383,'130c225175aa6217adbe26f2cf830f95df7fb0bdca7bdacb970136045c81c2df','crm','words','[[\"crm\", \"words\"]]',3,'CREATE TABLE `words` (`word` VARCHAR(120) NOT NULL,`note` VARCHAR(200),`ta``ble` INT,`order by` MEDIUMTEXT,PRIMARY KEY(`word`) /*T![clustered_index] NONCLUSTERED */,INDEX `weird ``index```(`ta``ble`)) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','{\"crm.words\": null}','2026-11-22 23:04:18.314368','2026-11-22 23:04:18.341047','');
INSERT INTO `ddl_ledger` (`name`, `ddl_ts`, `identity_hash`, `schema_name`, `table_name`, `touches`, `ddl_type`, `query`, `state`, `before_state`, `began_at`, `ended_at`, `error`) VALUES ('replica',462422019541827590,'749bce65911bcdb960ac4961bc34c1cf109a1c38046a1345f7cd0365ff80a300','crm','odd `Tags`','[[\"crm\", \"odd `tags`\"]]',3,'CREATE TABLE `odd ``Tags``` (`name` VARCHAR(40) CHARACTER SET UTF8MB4 COLLATE utf8mb4_general_ci NOT NULL,`weight` MEDIUMINT UNSIGNED,PRIMARY KEY(`name`) /*T![clustered_index] NONCLUSTERED */) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','{\"crm.odd `tags`\": null}','2026-11-22 23:04:18.350830','2026-11-22 23:04:18.357197','');
INSERT INTO `ddl_ledger` (`name`, `ddl_ts`, `identity_hash`, `schema_name`, `table_name`, `touches`, `ddl_type`, `query`, `state`, `before_state`, `began_at`, `ended_at`, `error`) VALUES ('replica',462422019842244622,'3790a603aabdaf48720a95b59c7d53ec2fa10708d021548771f51345d76fb17e','types','everything','[[\"types\", \"everything\"]]',3,'CREATE TABLE `everything` (`id` BIGINT UNSIGNED NOT NULL,`a_tiny` TINYINT,`a_utiny` TINYINT UNSIGNED,`a_small` SMALLINT,`a_medium` MEDIUMINT,`an_uint` INT UNSIGNED,`a_big` BIGINT,`a_ubig` BIGINT UNSIGNED,`a_float` FLOAT,`a_double` DOUBLE,`a_decimal` DECIMAL(65,30),`a_date` DATE,`a_time` TIME(3),`a_datetime` DATETIME(6),`a_timestamp` TIMESTAMP NULL,`a_year` YEAR,`a_char` CHAR(12),`a_varchar` VARCHAR(300),`a_binary` BINARY(4),`a_varbinary` VARBINARY(300),`a_tinytext` TINYTEXT,`a_text` TEXT,`a_mediumtext` MEDIUMTEXT,`a_longtext` LONGTEXT,`a_tinyblob` TINYBLOB,`a_blob` BLOB,`a_mediumblob` MEDIUMBLOB,`a_longblob` LONGBLOB,`a_bit` BIT(64),`a_bit1` BIT(1),`an_enum` ENUM(\'red\',\'green\',\'it\'\'s\',\'a \"b\"\'),`a_set` SET(\'m0\',\'m1\',\'m2\',\'m3\',\'m4\',\'m5\',\'m6\',\'m7\',\'m8\',\'m9\',\'m10\',\'m11\',\'m12\',\'m13\',\'m14\',\'m15\',\'m16\',\'m17\',\'m18\',\'m19\',\'m20\',\'m21\',\'m22\',\'m23\',\'m24\',\'m25\',\'m26\',\'m27\',\'m28\',\'m29\',\'m30\',\'m31\',\'m32\',\'m33\',\'m34\',\'m35\',\'m36\',\'m37\',\'m38\',\'m39\',\'m40\',\'m41\',\'m42\',\'m43\',\'m44\',\'m45\',\'m46\',\'m47\',\'m48\',\'m49\',\'m50\',\'m51\',\'m52\',\'m53\',\'m54\',\'m55\',\'m56\',\'m57\',\'m58\',\'m59\',\'m60\',\'m61\',\'m62\',\'m63\'),`a_json` JSON,PRIMARY KEY(`id`) /*T![clustered_index] NONCLUSTERED */,UNIQUE `one_ubig`(`a_ubig`),INDEX `by_bit`(`a_bit`)) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','{\"types.everything\": null}','2026-11-22 23:04:18.371097','2026-11-22 23:04:18.378375','');
INSERT INTO `ddl_ledger` (`name`, `ddl_ts`, `identity_hash`, `schema_name`, `table_name`, `touches`, `ddl_type`, `query`, `state`, `before_state`, `began_at`, `ended_at`, `error`) VALUES ('replica',462422019842244625,'097fde4133f9512898808ecaecdbca355c45960617d7346b7e4383f804009832','types','bits','[[\"types\", \"bits\"]]',3,'CREATE TABLE `bits` (`b` BIT(64) NOT NULL,`v` VARCHAR(20),PRIMARY KEY(`b`) /*T![clustered_index] NONCLUSTERED */) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','{\"types.bits\": null}','2026-11-22 23:04:18.388451','2026-11-22 23:04:18.395965','');
INSERT INTO `ddl_ledger` (`name`, `ddl_ts`, `identity_hash`, `schema_name`, `table_name`, `touches`, `ddl_type`, `query`, `state`, `before_state`, `began_at`, `ended_at`, `error`) VALUES ('replica',462422019903324161,'d83691f225d08cbc3219a3db4b7ee93ff3210636daec4832b31522d93dc8448a','types','amounts','[[\"types\", \"amounts\"]]',3,'CREATE TABLE `amounts` (`v` DOUBLE,`amount` DECIMAL(40,10) NOT NULL,`day` DATE NOT NULL,PRIMARY KEY(`amount`,`day`) /*T![clustered_index] NONCLUSTERED */) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','{\"types.amounts\": null}','2026-11-22 23:04:18.403858','2026-11-22 23:04:18.410090','');
INSERT INTO `ddl_ledger` (`name`, `ddl_ts`, `identity_hash`, `schema_name`, `table_name`, `touches`, `ddl_type`, `query`, `state`, `before_state`, `began_at`, `ended_at`, `error`) VALUES ('replica',462422020100718630,'c7af707366abce2d16e9147e11c1cb0ada823421033017ac3520c1bd1149f3ab','types','tokens','[[\"types\", \"tokens\"]]',3,'CREATE TABLE `tokens` (`token` VARBINARY(16) NOT NULL,`v` INT,PRIMARY KEY(`token`) /*T![clustered_index] NONCLUSTERED */) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','{\"types.tokens\": null}','2026-11-22 23:04:18.421532','2026-11-22 23:04:18.427270','');
INSERT INTO `ddl_ledger` (`name`, `ddl_ts`, `identity_hash`, `schema_name`, `table_name`, `touches`, `ddl_type`, `query`, `state`, `before_state`, `began_at`, `ended_at`, `error`) VALUES ('replica',462422020100718631,'5394f114bf0f43f4af813c4565b87226a61d1fe4adacc14ffb696bd56fa7c66e','lab','t1','[[\"lab\", \"t1\"]]',3,'CREATE TABLE `t1` (`id` INT UNSIGNED NOT NULL,`extra_1` ENUM(\'x\',\'y\',\'z\') NOT NULL DEFAULT _UTF8MB4\'y\',`extra_2` DATETIME DEFAULT \'1979-01-01 22:36:20\',`extra_3` VARCHAR(30),`tag` INT,PRIMARY KEY(`id`) /*T![clustered_index] NONCLUSTERED */,UNIQUE `one_tag`(`tag`)) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','{\"lab.t1\": null}','2026-11-22 23:04:18.436663','2026-11-22 23:04:18.444593','');
INSERT INTO `ddl_ledger` (`name`, `ddl_ts`, `identity_hash`, `schema_name`, `table_name`, `touches`, `ddl_type`, `query`, `state`, `before_state`, `began_at`, `ended_at`, `error`) VALUES ('replica',462422020432592913,'f4bbd8651041a57e3f39d958ec78c3afb443c7e7cafc529863b9def14c6f015c','lab','t2','[[\"lab\", \"t2\"]]',3,'CREATE TABLE `t2` (`id` INT UNSIGNED NOT NULL,`extra_4` ENUM(\'x\',\'y\',\'z\') DEFAULT _UTF8MB4\'z\',`extra_5` BIT(9) DEFAULT 52,`extra_6` VARCHAR(30) DEFAULT _UTF8MB4\'Ωmega 3848\',PRIMARY KEY(`id`) /*T![clustered_index] NONCLUSTERED */) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','{\"lab.t2\": null}','2026-11-22 23:04:18.453216','2026-11-22 23:04:18.461756','');
INSERT INTO `ddl_ledger` (`name`, `ddl_ts`, `identity_hash`, `schema_name`, `table_name`, `touches`, `ddl_type`, `query`, `state`, `before_state`, `began_at`, `ended_at`, `error`) VALUES ('replica',462422020567334918,'cb3272b9a9ce431a6703ce6ac9994d18e70fed051e5298623189f39247153b8a','lab','t3','[[\"lab\", \"t3\"]]',3,'CREATE TABLE `t3` (`id` BIGINT NOT NULL,`part` SMALLINT NOT NULL,`extra_7` INT,`extra_8` DOUBLE DEFAULT 227471.29838302382,`extra_9` DOUBLE NOT NULL,PRIMARY KEY(`id`,`part`) /*T![clustered_index] NONCLUSTERED */) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','{\"lab.t3\": null}','2026-11-22 23:04:18.469763','2026-11-22 23:04:18.476420','');
/*!40000 ALTER TABLE `ddl_ledger` ENABLE KEYS */;
DROP TABLE IF EXISTS `known_table`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `known_table` (
  `name` varchar(64) NOT NULL,
  `schema_name` varchar(192) NOT NULL,
  `table_name` varchar(192) NOT NULL,
  `since_ts` bigint(20) unsigned NOT NULL,
  PRIMARY KEY (`name`,`schema_name`,`table_name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `known_table` DISABLE KEYS */;
INSERT INTO `known_table` (`name`, `schema_name`, `table_name`, `since_ts`) VALUES ('replica','bank','accounts',462422017604583430);
INSERT INTO `known_table` (`name`, `schema_name`, `table_name`, `since_ts`) VALUES ('replica','bank','transfers',462422017978662936);
INSERT INTO `known_table` (`name`, `schema_name`, `table_name`, `since_ts`) VALUES ('replica','crm','badges',462422018904555557);
INSERT INTO `known_table` (`name`, `schema_name`, `table_name`, `since_ts`) VALUES ('replica','crm','odd `tags`',462422019541827590);
INSERT INTO `known_table` (`name`, `schema_name`, `table_name`, `since_ts`) VALUES ('replica','crm','seats',462422018533621808);
INSERT INTO `known_table` (`name`, `schema_name`, `table_name`, `since_ts`) VALUES ('replica','crm','words',462422019226468383);
INSERT INTO `known_table` (`name`, `schema_name`, `table_name`, `since_ts`) VALUES ('replica','lab','t1',462422020100718631);
INSERT INTO `known_table` (`name`, `schema_name`, `table_name`, `since_ts`) VALUES ('replica','lab','t2',462422020432592913);
INSERT INTO `known_table` (`name`, `schema_name`, `table_name`, `since_ts`) VALUES ('replica','lab','t3',462422020567334918);
INSERT INTO `known_table` (`name`, `schema_name`, `table_name`, `since_ts`) VALUES ('replica','shop','order_items',462422018444754944);
INSERT INTO `known_table` (`name`, `schema_name`, `table_name`, `since_ts`) VALUES ('replica','shop','orders',462422018288254989);
INSERT INTO `known_table` (`name`, `schema_name`, `table_name`, `since_ts`) VALUES ('replica','shop','wallets',462422017604583433);
INSERT INTO `known_table` (`name`, `schema_name`, `table_name`, `since_ts`) VALUES ('replica','types','amounts',462422019903324161);
INSERT INTO `known_table` (`name`, `schema_name`, `table_name`, `since_ts`) VALUES ('replica','types','bits',462422019842244625);
INSERT INTO `known_table` (`name`, `schema_name`, `table_name`, `since_ts`) VALUES ('replica','types','everything',462422019842244622);
INSERT INTO `known_table` (`name`, `schema_name`, `table_name`, `since_ts`) VALUES ('replica','types','tokens',462422020100718630);
/*!40000 ALTER TABLE `known_table` ENABLE KEYS */;
DROP TABLE IF EXISTS `owner`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `owner` (
  `name` varchar(64) NOT NULL,
  `epoch` bigint(20) NOT NULL,
  `run_id` varchar(32) NOT NULL,
  `host` varchar(255) NOT NULL,
  `process` bigint(20) NOT NULL,
  `started_at` datetime(6) NOT NULL,
  `heartbeat_at` datetime(6) NOT NULL,
  PRIMARY KEY (`name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `owner` DISABLE KEYS */;
/*!40000 ALTER TABLE `owner` ENABLE KEYS */;
DROP TABLE IF EXISTS `owner_session`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `owner_session` (
  `name` varchar(64) NOT NULL,
  `token` varchar(64) NOT NULL,
  `host` varchar(255) NOT NULL,
  `process` bigint(20) NOT NULL,
  `opened_at` datetime(6) NOT NULL,
  PRIMARY KEY (`name`,`token`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `owner_session` DISABLE KEYS */;
INSERT INTO `owner_session` (`name`, `token`, `host`, `process`, `opened_at`) VALUES ('replica','applier:8294651713d041ba9b105e278dc36a4b','vm',17388,'2026-11-22 23:04:18.544924');
/*!40000 ALTER TABLE `owner_session` ENABLE KEYS */;
DROP TABLE IF EXISTS `progress`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `progress` (
  `name` varchar(64) NOT NULL,
  `epoch` bigint(20) NOT NULL,
  `window_id` bigint(20) NOT NULL,
  `checkpoint_ts` bigint(20) unsigned NOT NULL,
  `start_ts` bigint(20) unsigned NOT NULL,
  `updated_at` datetime(6) NOT NULL,
  PRIMARY KEY (`name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `progress` DISABLE KEYS */;
INSERT INTO `progress` (`name`, `epoch`, `window_id`, `checkpoint_ts`, `start_ts`, `updated_at`) VALUES ('replica',1,45,462422022883377154,0,'2026-11-22 23:04:18.583540');
/*!40000 ALTER TABLE `progress` ENABLE KEYS */;
DROP TABLE IF EXISTS `quarantine`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `quarantine` (
  `name` varchar(64) NOT NULL,
  `topic` varchar(249) NOT NULL,
  `partition_number` bigint(20) NOT NULL,
  `record_offset` bigint(20) NOT NULL,
  `event_index` bigint(20) NOT NULL,
  `piece` bigint(20) NOT NULL,
  `schema_name` varchar(192) NOT NULL,
  `table_name` varchar(192) NOT NULL,
  `handle_key` longtext NOT NULL,
  `commit_ts` bigint(20) unsigned NOT NULL,
  `record` longblob NOT NULL,
  `error` longtext NOT NULL,
  `state` varchar(16) NOT NULL,
  `found_at` datetime(6) NOT NULL,
  PRIMARY KEY (`name`,`topic`,`partition_number`,`record_offset`,`event_index`,`piece`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `quarantine` DISABLE KEYS */;
/*!40000 ALTER TABLE `quarantine` ENABLE KEYS */;
DROP TABLE IF EXISTS `schema_version`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `schema_version` (
  `version_num` varchar(32) NOT NULL,
  PRIMARY KEY (`version_num`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `schema_version` DISABLE KEYS */;
INSERT INTO `schema_version` (`version_num`) VALUES ('0001');
/*!40000 ALTER TABLE `schema_version` ENABLE KEYS */;
DROP TABLE IF EXISTS `stream`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `stream` (
  `name` varchar(64) NOT NULL,
  `topic` varchar(249) NOT NULL,
  `partition_number` bigint(20) NOT NULL,
  `topic_id` varchar(64) NOT NULL,
  `next_offset` bigint(20) NOT NULL,
  `resolved_ts` bigint(20) unsigned NOT NULL,
  PRIMARY KEY (`name`,`topic`,`partition_number`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `stream` DISABLE KEYS */;
INSERT INTO `stream` (`name`, `topic`, `partition_number`, `topic_id`, `next_offset`, `resolved_ts`) VALUES ('replica','changefeed',0,'',45,462422027848384559);
INSERT INTO `stream` (`name`, `topic`, `partition_number`, `topic_id`, `next_offset`, `resolved_ts`) VALUES ('replica','changefeed',1,'',53,462422027848384559);
INSERT INTO `stream` (`name`, `topic`, `partition_number`, `topic_id`, `next_offset`, `resolved_ts`) VALUES ('replica','changefeed',2,'',58,462422027848384559);
/*!40000 ALTER TABLE `stream` ENABLE KEYS */;

CREATE DATABASE /*!32312 IF NOT EXISTS*/ `bank` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

USE `bank`;
DROP TABLE IF EXISTS `accounts`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `accounts` (
  `id` bigint(20) NOT NULL,
  `owner` varchar(64) NOT NULL,
  `balance` bigint(20) NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `accounts` DISABLE KEYS */;
INSERT INTO `accounts` (`id`, `owner`, `balance`) VALUES (1,'owner-1',1000);
INSERT INTO `accounts` (`id`, `owner`, `balance`) VALUES (2,'owner-2',1000);
INSERT INTO `accounts` (`id`, `owner`, `balance`) VALUES (3,'owner-3',1000);
INSERT INTO `accounts` (`id`, `owner`, `balance`) VALUES (4,'owner-4',1000);
INSERT INTO `accounts` (`id`, `owner`, `balance`) VALUES (5,'owner-5',1000);
INSERT INTO `accounts` (`id`, `owner`, `balance`) VALUES (6,'owner-6',1000);
INSERT INTO `accounts` (`id`, `owner`, `balance`) VALUES (7,'owner-7',1000);
INSERT INTO `accounts` (`id`, `owner`, `balance`) VALUES (8,'owner-8',1000);
INSERT INTO `accounts` (`id`, `owner`, `balance`) VALUES (9,'owner-9',1000);
INSERT INTO `accounts` (`id`, `owner`, `balance`) VALUES (10,'owner-10',1000);
/*!40000 ALTER TABLE `accounts` ENABLE KEYS */;
DROP TABLE IF EXISTS `transfers`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `transfers` (
  `id` bigint(20) unsigned NOT NULL AUTO_INCREMENT,
  `source` varchar(64) DEFAULT NULL,
  `target` varchar(64) DEFAULT NULL,
  `amount` decimal(20,2) NOT NULL,
  `made_at` timestamp(3) NULL DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `by_source` (`source`)
) ENGINE=InnoDB AUTO_INCREMENT=3 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `transfers` DISABLE KEYS */;
INSERT INTO `transfers` (`id`, `source`, `target`, `amount`, `made_at`) VALUES (1,'owner-20','owner-14',449.00,NULL);
INSERT INTO `transfers` (`id`, `source`, `target`, `amount`, `made_at`) VALUES (2,'owner-12','owner-19',310.00,'1994-11-18 13:01:22.982');
/*!40000 ALTER TABLE `transfers` ENABLE KEYS */;

CREATE DATABASE /*!32312 IF NOT EXISTS*/ `crm` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

USE `crm`;
DROP TABLE IF EXISTS `badges`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `badges` (
  `holder` int(11) DEFAULT NULL,
  `code` varchar(40) NOT NULL,
  `zone` tinyint(4) NOT NULL,
  UNIQUE KEY `one_badge` (`code`),
  UNIQUE KEY `pair` (`code`,`zone`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `badges` DISABLE KEYS */;
INSERT INTO `badges` (`holder`, `code`, `zone`) VALUES (2147483647,'lime 518',0);
/*!40000 ALTER TABLE `badges` ENABLE KEYS */;
DROP TABLE IF EXISTS `odd ``Tags```;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `odd ``Tags``` (
  `name` varchar(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL,
  `weight` mediumint(8) unsigned DEFAULT NULL,
  PRIMARY KEY (`name`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `odd ``Tags``` DISABLE KEYS */;
/*!40000 ALTER TABLE `odd ``Tags``` ENABLE KEYS */;
DROP TABLE IF EXISTS `seats`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `seats` (
  `id` int(11) NOT NULL,
  `seat` int(11) NOT NULL,
  `code` varchar(40) DEFAULT NULL,
  `holder` varchar(40) DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `one_seat` (`seat`),
  UNIQUE KEY `one_code` (`code`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `seats` DISABLE KEYS */;
INSERT INTO `seats` (`id`, `seat`, `code`, `holder`) VALUES (-6768,-2147483648,'Ωmega 3380','ends with backslash\\');
INSERT INTO `seats` (`id`, `seat`, `code`, `holder`) VALUES (70726,-74583,'ends with backslash\\','lime 5594');
/*!40000 ALTER TABLE `seats` ENABLE KEYS */;
DROP TABLE IF EXISTS `words`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `words` (
  `word` varchar(120) NOT NULL,
  `note` varchar(200) DEFAULT NULL,
  `ta``ble` int(11) DEFAULT NULL,
  `order by` mediumtext DEFAULT NULL,
  PRIMARY KEY (`word`),
  KEY `weird ``index``` (`ta``ble`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `words` DISABLE KEYS */;
/*!40000 ALTER TABLE `words` ENABLE KEYS */;

CREATE DATABASE /*!32312 IF NOT EXISTS*/ `lab` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

USE `lab`;
DROP TABLE IF EXISTS `t1`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `t1` (
  `id` int(10) unsigned NOT NULL,
  `extra_1` enum('x','y','z') NOT NULL DEFAULT 'y',
  `extra_2` datetime DEFAULT '1979-01-01 22:36:20',
  `extra_3` varchar(30) DEFAULT NULL,
  `tag` int(11) DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `one_tag` (`tag`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `t1` DISABLE KEYS */;
INSERT INTO `t1` (`id`, `extra_1`, `extra_2`, `extra_3`, `tag`) VALUES (4159,'y','1000-01-01 06:19:27','line\nfeed	tab\r\0nul\Z',-44479);
INSERT INTO `t1` (`id`, `extra_1`, `extra_2`, `extra_3`, `tag`) VALUES (62512,'y','1986-12-12 12:57:41','gamma 5470',-91290);
INSERT INTO `t1` (`id`, `extra_1`, `extra_2`, `extra_3`, `tag`) VALUES (73666,'x','2000-05-16 21:19:33','\\x41\\u0041\\101',-81783);
INSERT INTO `t1` (`id`, `extra_1`, `extra_2`, `extra_3`, `tag`) VALUES (78532,'x','1000-01-01 07:05:39','lime 6963',NULL);
INSERT INTO `t1` (`id`, `extra_1`, `extra_2`, `extra_3`, `tag`) VALUES (89285,'y','1980-06-16 02:03:21',NULL,89842);
/*!40000 ALTER TABLE `t1` ENABLE KEYS */;
DROP TABLE IF EXISTS `t2`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `t2` (
  `id` int(10) unsigned NOT NULL,
  `extra_4` enum('x','y','z') DEFAULT 'z',
  `extra_5` bit(9) DEFAULT b'110100',
  `extra_6` varchar(30) DEFAULT 'Ωmega 3848',
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `t2` DISABLE KEYS */;
/*!40000 ALTER TABLE `t2` ENABLE KEYS */;
DROP TABLE IF EXISTS `t3`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `t3` (
  `id` bigint(20) NOT NULL,
  `part` smallint(6) NOT NULL,
  `extra_7` int(11) DEFAULT NULL,
  `extra_8` double DEFAULT 227471.29838302382,
  `extra_9` double NOT NULL,
  PRIMARY KEY (`id`,`part`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `t3` DISABLE KEYS */;
/*!40000 ALTER TABLE `t3` ENABLE KEYS */;

CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

USE `shop`;
DROP TABLE IF EXISTS `order_items`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `order_items` (
  `order_id` bigint(20) NOT NULL,
  `line` smallint(6) NOT NULL,
  `sku` varchar(32) NOT NULL,
  `quantity` int(11) NOT NULL,
  `price` decimal(10,2) DEFAULT NULL,
  PRIMARY KEY (`order_id`,`line`),
  KEY `by_sku` (`sku`,`quantity`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `order_items` DISABLE KEYS */;
INSERT INTO `order_items` (`order_id`, `line`, `sku`, `quantity`, `price`) VALUES (1,1,'sku-11',9,655.68);
INSERT INTO `order_items` (`order_id`, `line`, `sku`, `quantity`, `price`) VALUES (1,2,'sku-29',8,202.82);
INSERT INTO `order_items` (`order_id`, `line`, `sku`, `quantity`, `price`) VALUES (1,3,'sku-9',3,932.27);
INSERT INTO `order_items` (`order_id`, `line`, `sku`, `quantity`, `price`) VALUES (1,4,'sku-17',9,949.82);
INSERT INTO `order_items` (`order_id`, `line`, `sku`, `quantity`, `price`) VALUES (2,1,'sku-14',2,49.02);
/*!40000 ALTER TABLE `order_items` ENABLE KEYS */;
DROP TABLE IF EXISTS `orders`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `orders` (
  `id` bigint(20) NOT NULL AUTO_INCREMENT,
  `account` bigint(20) NOT NULL,
  `status` enum('new','paid','sent','it''s lost') NOT NULL DEFAULT 'new',
  `total` decimal(12,2) NOT NULL,
  `created` datetime(3) DEFAULT NULL,
  `note` text DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `by_account` (`account`)
) ENGINE=InnoDB AUTO_INCREMENT=3 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `orders` DISABLE KEYS */;
INSERT INTO `orders` (`id`, `account`, `status`, `total`, `created`, `note`) VALUES (1,17,'new',18868.87,'2037-08-26 00:44:43.274','Straße beta beta delta kiwi beta kiwi beta');
INSERT INTO `orders` (`id`, `account`, `status`, `total`, `created`, `note`) VALUES (2,6,'new',98.04,'1981-03-08 02:01:17.630','Ωmega alpha delta delta gamma alpha delta beta Straße');
/*!40000 ALTER TABLE `orders` ENABLE KEYS */;
DROP TABLE IF EXISTS `wallets`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `wallets` (
  `owner` varchar(64) NOT NULL,
  `balance` bigint(20) NOT NULL,
  PRIMARY KEY (`owner`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `wallets` DISABLE KEYS */;
INSERT INTO `wallets` (`owner`, `balance`) VALUES ('owner-11',1000);
INSERT INTO `wallets` (`owner`, `balance`) VALUES ('owner-12',690);
INSERT INTO `wallets` (`owner`, `balance`) VALUES ('owner-13',1000);
INSERT INTO `wallets` (`owner`, `balance`) VALUES ('owner-14',1449);
INSERT INTO `wallets` (`owner`, `balance`) VALUES ('owner-15',1000);
INSERT INTO `wallets` (`owner`, `balance`) VALUES ('owner-16',1000);
INSERT INTO `wallets` (`owner`, `balance`) VALUES ('owner-17',1000);
INSERT INTO `wallets` (`owner`, `balance`) VALUES ('owner-18',1000);
INSERT INTO `wallets` (`owner`, `balance`) VALUES ('owner-19',1310);
INSERT INTO `wallets` (`owner`, `balance`) VALUES ('owner-20',551);
/*!40000 ALTER TABLE `wallets` ENABLE KEYS */;

CREATE DATABASE /*!32312 IF NOT EXISTS*/ `types` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

USE `types`;
DROP TABLE IF EXISTS `amounts`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `amounts` (
  `v` double DEFAULT NULL,
  `amount` decimal(40,10) NOT NULL,
  `day` date NOT NULL,
  PRIMARY KEY (`amount`,`day`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `amounts` DISABLE KEYS */;
/*!40000 ALTER TABLE `amounts` ENABLE KEYS */;
DROP TABLE IF EXISTS `bits`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `bits` (
  `b` bit(64) NOT NULL,
  `v` varchar(20) DEFAULT NULL,
  PRIMARY KEY (`b`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `bits` DISABLE KEYS */;
INSERT INTO `bits` (`b`, `v`) VALUES (0x3AA0F7F29094C65D,NULL);
/*!40000 ALTER TABLE `bits` ENABLE KEYS */;
DROP TABLE IF EXISTS `everything`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `everything` (
  `id` bigint(20) unsigned NOT NULL,
  `a_tiny` tinyint(4) DEFAULT NULL,
  `a_utiny` tinyint(3) unsigned DEFAULT NULL,
  `a_small` smallint(6) DEFAULT NULL,
  `a_medium` mediumint(9) DEFAULT NULL,
  `an_uint` int(10) unsigned DEFAULT NULL,
  `a_big` bigint(20) DEFAULT NULL,
  `a_ubig` bigint(20) unsigned DEFAULT NULL,
  `a_float` float DEFAULT NULL,
  `a_double` double DEFAULT NULL,
  `a_decimal` decimal(65,30) DEFAULT NULL,
  `a_date` date DEFAULT NULL,
  `a_time` time(3) DEFAULT NULL,
  `a_datetime` datetime(6) DEFAULT NULL,
  `a_timestamp` timestamp NULL DEFAULT NULL,
  `a_year` year(4) DEFAULT NULL,
  `a_char` char(12) DEFAULT NULL,
  `a_varchar` varchar(300) DEFAULT NULL,
  `a_binary` binary(4) DEFAULT NULL,
  `a_varbinary` varbinary(300) DEFAULT NULL,
  `a_tinytext` tinytext DEFAULT NULL,
  `a_text` text DEFAULT NULL,
  `a_mediumtext` mediumtext DEFAULT NULL,
  `a_longtext` longtext DEFAULT NULL,
  `a_tinyblob` tinyblob DEFAULT NULL,
  `a_blob` blob DEFAULT NULL,
  `a_mediumblob` mediumblob DEFAULT NULL,
  `a_longblob` longblob DEFAULT NULL,
  `a_bit` bit(64) DEFAULT NULL,
  `a_bit1` bit(1) DEFAULT NULL,
  `an_enum` enum('red','green','it''s','a "b"') DEFAULT NULL,
  `a_set` set('m0','m1','m2','m3','m4','m5','m6','m7','m8','m9','m10','m11','m12','m13','m14','m15','m16','m17','m18','m19','m20','m21','m22','m23','m24','m25','m26','m27','m28','m29','m30','m31','m32','m33','m34','m35','m36','m37','m38','m39','m40','m41','m42','m43','m44','m45','m46','m47','m48','m49','m50','m51','m52','m53','m54','m55','m56','m57','m58','m59','m60','m61','m62','m63') DEFAULT NULL,
  `a_json` longtext DEFAULT NULL CHECK (json_valid(`a_json`)),
  PRIMARY KEY (`id`),
  UNIQUE KEY `one_ubig` (`a_ubig`),
  KEY `by_bit` (`a_bit`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `everything` DISABLE KEYS */;
INSERT INTO `everything` (`id`, `a_tiny`, `a_utiny`, `a_small`, `a_medium`, `an_uint`, `a_big`, `a_ubig`, `a_float`, `a_double`, `a_decimal`, `a_date`, `a_time`, `a_datetime`, `a_timestamp`, `a_year`, `a_char`, `a_varchar`, `a_binary`, `a_varbinary`, `a_tinytext`, `a_text`, `a_mediumtext`, `a_longtext`, `a_tinyblob`, `a_blob`, `a_mediumblob`, `a_longblob`, `a_bit`, `a_bit1`, `an_enum`, `a_set`, `a_json`) VALUES (0,86,189,-527,14114,62980,-39509,2399,-134.134,547517.2566309171,4.610245874513653813635351468563,'2008-02-14','-517:07:06.376','1987-03-26 00:45:35.165875','1987-08-12 17:54:35',2155,' leading','',0x00000000,0x17977AB2E8C0CA9045EBFDA58635,'','lime beta Straße naïve lime',NULL,'Ωmega gamma beta Straße',0x688993712403CDB06B84196121EF9692579DDD071D,'',0x81A1FF96FBB00CDC212F,0x32690591D2B7B36D0FFC823CFE832FA6FAA7F08B3C5A,0xF1E443A58AA58CD8,0x00,'red','m0,m2,m5,m6,m7,m8,m9,m10,m12,m15,m16,m19,m22,m23,m25,m26,m28,m31,m32,m33,m34,m38,m39,m43,m45,m46,m51,m52,m53,m54,m55,m58,m59,m62,m63','{\"k\": 5, \"s\": \"{\\\"u\\\":1}\", \"list\": [1, 2.5, null, true, \"<&>\"]}');
/*!40000 ALTER TABLE `everything` ENABLE KEYS */;
DROP TABLE IF EXISTS `tokens`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `tokens` (
  `token` varbinary(16) NOT NULL,
  `v` int(11) DEFAULT NULL,
  PRIMARY KEY (`token`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `tokens` DISABLE KEYS */;
INSERT INTO `tokens` (`token`, `v`) VALUES (0x228B,31605);
INSERT INTO `tokens` (`token`, `v`) VALUES (0x9430B2ED51C32CFD20BCBA0157B464,-48006);
INSERT INTO `tokens` (`token`, `v`) VALUES (0xA2BA3A8271160F528507FA,2914);
INSERT INTO `tokens` (`token`, `v`) VALUES (0xB439A8BAE40461500840D52C04,NULL);
/*!40000 ALTER TABLE `tokens` ENABLE KEYS */;

/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;
/*!40014 SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS */;
/*!40014 SET UNIQUE_CHECKS=@OLD_UNIQUE_CHECKS */;
/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;
/*!40101 SET CHARACTER_SET_RESULTS=@OLD_CHARACTER_SET_RESULTS */;
/*!40101 SET COLLATION_CONNECTION=@OLD_COLLATION_CONNECTION */;
/*!40111 SET SQL_NOTES=@OLD_SQL_NOTES */;

