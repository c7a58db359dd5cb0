/*M!999999\- enable the sandbox mode */ 

/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40101 SET @OLD_CHARACTER_SET_RESULTS=@@CHARACTER_SET_RESULTS */;
/*!40101 SET @OLD_COLLATION_CONNECTION=@@COLLATION_CONNECTION */;
/*!40101 SET NAMES utf8mb4 */;
/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */;
/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */;

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
INSERT INTO `accounts` (`id`, `owner`, `balance`) VALUES (5,'owner-5',1400);
INSERT INTO `accounts` (`id`, `owner`, `balance`) VALUES (6,'owner-6',1000);
INSERT INTO `accounts` (`id`, `owner`, `balance`) VALUES (7,'owner-7',1929);
INSERT INTO `accounts` (`id`, `owner`, `balance`) VALUES (9,'owner-9',1000);
INSERT INTO `accounts` (`id`, `owner`, `balance`) VALUES (10,'owner-10',71);
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
) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `transfers` DISABLE KEYS */;
INSERT INTO `transfers` (`id`, `source`, `target`, `amount`, `made_at`) VALUES (1,'owner-20','owner-14',449.00,NULL);
INSERT INTO `transfers` (`id`, `source`, `target`, `amount`, `made_at`) VALUES (2,'owner-12','owner-19',310.00,'1994-11-18 13:01:22.982');
INSERT INTO `transfers` (`id`, `source`, `target`, `amount`, `made_at`) VALUES (3,'owner-11','owner-5',400.00,'2035-04-15 07:29:48.914');
INSERT INTO `transfers` (`id`, `source`, `target`, `amount`, `made_at`) VALUES (4,'owner-8','owner-19',1000.00,'2021-03-06 07:06:37.593');
INSERT INTO `transfers` (`id`, `source`, `target`, `amount`, `made_at`) VALUES (5,'owner-14','owner-18',1449.00,'2037-05-06 04:15:17.018');
INSERT INTO `transfers` (`id`, `source`, `target`, `amount`, `made_at`) VALUES (6,'owner-10','owner-7',929.00,NULL);
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
INSERT INTO `badges` (`holder`, `code`, `zone`) VALUES (25672,'1e5',-42);
INSERT INTO `badges` (`holder`, `code`, `zone`) VALUES (2147483647,'beta 3015',82);
INSERT INTO `badges` (`holder`, `code`, `zone`) VALUES (NULL,'gamma 7082',46);
INSERT INTO `badges` (`holder`, `code`, `zone`) VALUES (-80208,'gamma 8711',-90);
INSERT INTO `badges` (`holder`, `code`, `zone`) VALUES (-43807,'lime 518',127);
INSERT INTO `badges` (`holder`, `code`, `zone`) VALUES (6588,'Ωmega 6719',-58);
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
INSERT INTO `odd ``Tags``` (`name`, `weight`) VALUES ('a',4901);
INSERT INTO `odd ``Tags``` (`name`, `weight`) VALUES ('Ah',75979);
INSERT INTO `odd ``Tags``` (`name`, `weight`) VALUES ('cHe',44398);
INSERT INTO `odd ``Tags``` (`name`, `weight`) VALUES ('eC',37727);
INSERT INTO `odd ``Tags``` (`name`, `weight`) VALUES ('GB',64785);
INSERT INTO `odd ``Tags``` (`name`, `weight`) VALUES ('hC',49726);
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
INSERT INTO `seats` (`id`, `seat`, `code`, `holder`) VALUES (-94389,1426,'naïve 4751','ends with backslash\\');
INSERT INTO `seats` (`id`, `seat`, `code`, `holder`) VALUES (-34211,-95188,'gamma 6686','gamma 5888');
INSERT INTO `seats` (`id`, `seat`, `code`, `holder`) VALUES (-25144,62176,'Ωmega 9416','NULL');
INSERT INTO `seats` (`id`, `seat`, `code`, `holder`) VALUES (-8234,-62294,'\"quoted\" \\backslash\\ \\\' %s %(x)s ? :name','beta 4463');
INSERT INTO `seats` (`id`, `seat`, `code`, `holder`) VALUES (16867,47363,'1e5','1e5');
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
INSERT INTO `words` (`word`, `note`, `ta``ble`, `order by`) VALUES ('Straße 5635','line\nfeed	tab\r\0nul\Z',6060,'gamma alpha Ωmega');
INSERT INTO `words` (`word`, `note`, `ta``ble`, `order by`) VALUES ('delta 1689',NULL,2147483647,'alpha gamma naïve Straße');
INSERT INTO `words` (`word`, `note`, `ta``ble`, `order by`) VALUES ('lime 2888',NULL,-92065,'{\"u\":1}');
INSERT INTO `words` (`word`, `note`, `ta``ble`, `order by`) VALUES ('Ωmega 1288','beta 6930',-81093,'1e5');
/*!40000 ALTER TABLE `words` ENABLE KEYS */;

CREATE DATABASE /*!32312 IF NOT EXISTS*/ `lab` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */;

USE `lab`;
DROP TABLE IF EXISTS `T4`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `T4` (
  `part` smallint(6) NOT NULL,
  `extra_10` decimal(12,3) NOT NULL DEFAULT -52.257,
  `extra_13` set('p','q','r') DEFAULT NULL,
  `extra_12` varchar(30) DEFAULT 'beta 8164',
  `extra_11` char(8) DEFAULT NULL,
  `id` varchar(40) NOT NULL,
  PRIMARY KEY (`id`,`part`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `T4` DISABLE KEYS */;
/*!40000 ALTER TABLE `T4` ENABLE KEYS */;
DROP TABLE IF EXISTS `t 5`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `t 5` (
  `token` varbinary(16) NOT NULL,
  `v` int(11) DEFAULT NULL,
  PRIMARY KEY (`token`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `t 5` DISABLE KEYS */;
INSERT INTO `t 5` (`token`, `v`) VALUES (0x0000,-27826);
INSERT INTO `t 5` (`token`, `v`) VALUES (0x490C83E9F2,-18938);
INSERT INTO `t 5` (`token`, `v`) VALUES (0x7FAE18F3A86C1BFA4F1C2142FA,3679);
INSERT INTO `t 5` (`token`, `v`) VALUES (0x959631,-46828);
/*!40000 ALTER TABLE `t 5` ENABLE KEYS */;
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
INSERT INTO `t1` (`id`, `extra_1`, `extra_2`, `extra_3`, `tag`) VALUES (15328,'y',NULL,'NULL',-7616);
INSERT INTO `t1` (`id`, `extra_1`, `extra_2`, `extra_3`, `tag`) VALUES (17589,'y','2003-11-25 23:53:45','naïve 9063',NULL);
INSERT INTO `t1` (`id`, `extra_1`, `extra_2`, `extra_3`, `tag`) VALUES (60289,'x',NULL,'日本語 😀🏳️‍🌈 𝒳 ñ',-30874);
INSERT INTO `t1` (`id`, `extra_1`, `extra_2`, `extra_3`, `tag`) VALUES (62512,'y','1997-03-12 21:45:32','gamma 5470',55605);
INSERT INTO `t1` (`id`, `extra_1`, `extra_2`, `extra_3`, `tag`) VALUES (70091,'z','9999-12-31 14:46:34','lime 7605',NULL);
INSERT INTO `t1` (`id`, `extra_1`, `extra_2`, `extra_3`, `tag`) VALUES (71248,'y','1972-03-06 08:51:13','beta 469',-33887);
INSERT INTO `t1` (`id`, `extra_1`, `extra_2`, `extra_3`, `tag`) VALUES (73666,'x','2000-05-16 21:19:33','\\x41\\u0041\\101',-81783);
INSERT INTO `t1` (`id`, `extra_1`, `extra_2`, `extra_3`, `tag`) VALUES (78532,'y','1980-06-16 02:03:21',NULL,89842);
INSERT INTO `t1` (`id`, `extra_1`, `extra_2`, `extra_3`, `tag`) VALUES (87355,'x','1995-05-25 21:12:34','gamma 2972',-2147483648);
INSERT INTO `t1` (`id`, `extra_1`, `extra_2`, `extra_3`, `tag`) VALUES (89285,'z','9999-12-31 01:17:03','Ωmega 5001',NULL);
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
INSERT INTO `t2` (`id`, `extra_4`, `extra_5`, `extra_6`) VALUES (32600,'z',0x01FF,'beta 6332');
INSERT INTO `t2` (`id`, `extra_4`, `extra_5`, `extra_6`) VALUES (69453,'x',0x01FF,'lime 9963');
INSERT INTO `t2` (`id`, `extra_4`, `extra_5`, `extra_6`) VALUES (74397,'y',0x003F,'-0');
INSERT INTO `t2` (`id`, `extra_4`, `extra_5`, `extra_6`) VALUES (81710,'x',0x004D,NULL);
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
INSERT INTO `t3` (`id`, `part`, `extra_7`, `extra_8`, `extra_9`) VALUES (-9223372036854775808,27293,52037,-643284.5762401698,481611.4404146229);
INSERT INTO `t3` (`id`, `part`, `extra_7`, `extra_8`, `extra_9`) VALUES (81716,-12776,-7574,783838.1918489533,-617268.6723017247);
/*!40000 ALTER TABLE `t3` ENABLE KEYS */;
DROP TABLE IF EXISTS `t``6`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `t``6` (
  `id` bigint(20) NOT NULL,
  `extra_14` char(8) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `t``6` DISABLE KEYS */;
INSERT INTO `t``6` (`id`, `extra_14`) VALUES (-9223372036854775808,'Straße 5');
INSERT INTO `t``6` (`id`, `extra_14`) VALUES (69650,'line\nfee');
/*!40000 ALTER TABLE `t``6` ENABLE KEYS */;

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
INSERT INTO `order_items` (`order_id`, `line`, `sku`, `quantity`, `price`) VALUES (2,1,'sku-14',3,49.02);
INSERT INTO `order_items` (`order_id`, `line`, `sku`, `quantity`, `price`) VALUES (4,1,'sku-6',3,749.91);
INSERT INTO `order_items` (`order_id`, `line`, `sku`, `quantity`, `price`) VALUES (4,2,'sku-13',6,79.31);
INSERT INTO `order_items` (`order_id`, `line`, `sku`, `quantity`, `price`) VALUES (4,3,'sku-25',8,486.49);
INSERT INTO `order_items` (`order_id`, `line`, `sku`, `quantity`, `price`) VALUES (4,4,'sku-36',2,910.02);
INSERT INTO `order_items` (`order_id`, `line`, `sku`, `quantity`, `price`) VALUES (5,1,'sku-5',8,570.43);
INSERT INTO `order_items` (`order_id`, `line`, `sku`, `quantity`, `price`) VALUES (5,2,'sku-44',5,535.72);
INSERT INTO `order_items` (`order_id`, `line`, `sku`, `quantity`, `price`) VALUES (6,1,'sku-26',8,768.27);
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
) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `orders` DISABLE KEYS */;
INSERT INTO `orders` (`id`, `account`, `status`, `total`, `created`, `note`) VALUES (1,17,'new',18868.87,'2037-08-26 00:44:43.274','Straße beta beta delta kiwi beta kiwi beta');
INSERT INTO `orders` (`id`, `account`, `status`, `total`, `created`, `note`) VALUES (2,6,'paid',98.04,'1981-03-08 02:01:17.630','now 2');
INSERT INTO `orders` (`id`, `account`, `status`, `total`, `created`, `note`) VALUES (4,39,'sent',6937.73,'1994-06-20 23:00:39.571','now 3');
INSERT INTO `orders` (`id`, `account`, `status`, `total`, `created`, `note`) VALUES (5,43,'new',7242.04,'0000-00-00 00:00:00.000','gamma lime Straße beta beta lime beta');
INSERT INTO `orders` (`id`, `account`, `status`, `total`, `created`, `note`) VALUES (6,11,'new',6146.16,'1999-03-15 20:10:02.257',NULL);
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
INSERT INTO `wallets` (`owner`, `balance`) VALUES ('owner-11',600);
INSERT INTO `wallets` (`owner`, `balance`) VALUES ('owner-12',690);
INSERT INTO `wallets` (`owner`, `balance`) VALUES ('owner-13',1000);
INSERT INTO `wallets` (`owner`, `balance`) VALUES ('owner-15',1000);
INSERT INTO `wallets` (`owner`, `balance`) VALUES ('owner-16',1000);
INSERT INTO `wallets` (`owner`, `balance`) VALUES ('owner-17',1000);
INSERT INTO `wallets` (`owner`, `balance`) VALUES ('owner-18',2449);
INSERT INTO `wallets` (`owner`, `balance`) VALUES ('owner-19',2310);
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
INSERT INTO `amounts` (`v`, `amount`, `day`) VALUES (-537055.2438982523,-819097680061746542452053113573.6777628460,'2035-09-25');
INSERT INTO `amounts` (`v`, `amount`, `day`) VALUES (1e300,-951685.5049768240,'1980-03-14');
INSERT INTO `amounts` (`v`, `amount`, `day`) VALUES (989032.390063415,0.0000002141,'2027-07-22');
INSERT INTO `amounts` (`v`, `amount`, `day`) VALUES (168417.01731203287,0.0000287485,'2029-11-05');
INSERT INTO `amounts` (`v`, `amount`, `day`) VALUES (663647.4227265706,0.0000705216,'1998-08-20');
INSERT INTO `amounts` (`v`, `amount`, `day`) VALUES (284470.520754901,77.5761954147,'1995-12-03');
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
INSERT INTO `bits` (`b`, `v`) VALUES (0x3AA0F7F29094C65D,'gamma 3113');
INSERT INTO `bits` (`b`, `v`) VALUES (0x50F1E56A8BE44E35,'Straße 1402');
INSERT INTO `bits` (`b`, `v`) VALUES (0x758852B94899E508,'Ωmega 3162');
INSERT INTO `bits` (`b`, `v`) VALUES (0x91DB6F942FCA47D7,'alpha 3162');
INSERT INTO `bits` (`b`, `v`) VALUES (0xFFFFFFFFFFFFFFFF,'alpha 9243');
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
INSERT INTO `everything` (`id`, `a_tiny`, `a_utiny`, `a_small`, `a_medium`, `an_uint`, `a_big`, `a_ubig`, `a_float`, `a_double`, `a_decimal`, `a_date`, `a_time`, `a_datetime`, `a_timestamp`, `a_year`, `a_char`, `a_varchar`, `a_binary`, `a_varbinary`, `a_tinytext`, `a_text`, `a_mediumtext`, `a_longtext`, `a_tinyblob`, `a_blob`, `a_mediumblob`, `a_longblob`, `a_bit`, `a_bit1`, `an_enum`, `a_set`, `a_json`) VALUES (0,116,251,747,8388607,NULL,-39509,2399,720.903,-582114.1318926278,4.610245874513653813635351468563,'2008-02-14','517:27:15.840','2012-12-20 20:26:09.609118','2028-05-01 06:21:32',1971,'/*T! comment','delta 2023',NULL,0x2060714BCCB822,'','Straße beta gamma kiwi Straße kiwi','\'; DROP TABLE `t`; --','Ωmega gamma beta Straße',0x022FB57DF725946AB835135FA1B305F19E40,'',0x81A1FF96FBB00CDC212F,0xE697A5E69CAC,0xF1E443A58AA58CD8,0x00,'a \"b\"',NULL,NULL);
INSERT INTO `everything` (`id`, `a_tiny`, `a_utiny`, `a_small`, `a_medium`, `an_uint`, `a_big`, `a_ubig`, `a_float`, `a_double`, `a_decimal`, `a_date`, `a_time`, `a_datetime`, `a_timestamp`, `a_year`, `a_char`, `a_varchar`, `a_binary`, `a_varbinary`, `a_tinytext`, `a_text`, `a_mediumtext`, `a_longtext`, `a_tinyblob`, `a_blob`, `a_mediumblob`, `a_longblob`, `a_bit`, `a_bit1`, `an_enum`, `a_set`, `a_json`) VALUES (18514,NULL,106,9051,47458,56416,-44290,42160,-355.68,-570529.9385099504,-57470553161342376793713020928892896.709900524260029514186419816287,'2018-02-01','101:02:43.350','2004-04-25 15:01:47.418874','2028-04-09 19:34:19',1901,'Ωmega 5024','beta 5129',0x181794F3,0x0000,'beta gamma gamma','/*T! comment */ # -- ;','','Straße Ωmega naïve beta lime lime delta lime',0xE94234B475D1FF49CF718C314E90230A,0xE697A5E69CAC,0xD6B1D1D094ED76BD7A,0x806951022DA52D15277D8D2B90,0xFE7FB5F580C072DB,0x00,NULL,'m0,m4,m6,m9,m10,m11,m14,m16,m17,m19,m20,m22,m25,m26,m27,m28,m30,m31,m32,m33,m34,m36,m37,m39,m40,m41,m42,m45,m49,m50,m52,m53,m54,m55,m57,m58,m59,m60,m61','{\"k\": 74, \"s\": \" leading\", \"list\": [1, 2.5, null, true, \"<&>\"]}');
INSERT INTO `everything` (`id`, `a_tiny`, `a_utiny`, `a_small`, `a_medium`, `an_uint`, `a_big`, `a_ubig`, `a_float`, `a_double`, `a_decimal`, `a_date`, `a_time`, `a_datetime`, `a_timestamp`, `a_year`, `a_char`, `a_varchar`, `a_binary`, `a_varbinary`, `a_tinytext`, `a_text`, `a_mediumtext`, `a_longtext`, `a_tinyblob`, `a_blob`, `a_mediumblob`, `a_longblob`, `a_bit`, `a_bit1`, `an_enum`, `a_set`, `a_json`) VALUES (68451,15,NULL,-32768,68237,2251,57040,80577,NULL,NULL,-6700.817318266109002659713859053694,NULL,'101:15:15.301','2031-12-02 14:07:41.438960','1976-02-17 10:05:36',1901,'kiwi 8036','Ωmega 1162',0xE2000000,0x000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F202122232425262728292A2B2C2D2E2F303132333435363738393A3B3C3D3E3F404142434445464748494A4B4C4D4E4F505152535455565758595A5B5C5D5E5F606162636465666768696A6B6C6D6E6F707172737475767778797A7B7C7D7E7F808182838485868788898A8B8C8D8E8F909192939495969798999A9B9C9D9E9FA0A1A2A3A4A5A6A7A8A9AAABACADAEAFB0B1B2B3B4B5B6B7B8B9BABBBCBDBEBFC0C1C2C3C4C5C6C7C8C9CACBCCCDCECFD0D1D2D3D4D5D6D7D8D9DADBDCDDDEDFE0E1E2E3E4E5E6E7E8E9EAEBECEDEEEFF0F1F2F3F4F5F6F7F8F9FAFBFCFDFEFF,'gamma Ωmega lime naïve delta lime','naïve','1e5','naïve delta Straße lime',0xFC0F9F3C5FCF928EFBE1BDF360AC75E374A5,0xF9CEABD12C,0xA5A63C729F26109D1255D8BAD612F58759A0BF6DCA,0x5C7834315C,0xCAA82F2BE0545A68,0x00,'green','m1,m9,m11,m14,m16,m17,m18,m20,m23,m24,m25,m29,m31,m32,m34,m37,m40,m42,m44,m45,m47,m49,m50,m56,m57,m59,m60,m61,m62','{\"k\": 96, \"s\": \"{\\\"u\\\":1}\", \"list\": [1, 2.5, null, true, \"<&>\"]}');
INSERT INTO `everything` (`id`, `a_tiny`, `a_utiny`, `a_small`, `a_medium`, `an_uint`, `a_big`, `a_ubig`, `a_float`, `a_double`, `a_decimal`, `a_date`, `a_time`, `a_datetime`, `a_timestamp`, `a_year`, `a_char`, `a_varchar`, `a_binary`, `a_varbinary`, `a_tinytext`, `a_text`, `a_mediumtext`, `a_longtext`, `a_tinyblob`, `a_blob`, `a_mediumblob`, `a_longblob`, `a_bit`, `a_bit1`, `an_enum`, `a_set`, `a_json`) VALUES (80624,56,80,29309,5163,51662,89729,87124,-936.826,-108498.97026764753,0.000000000009698430682876255153,'2018-12-13','101:01:14.485','1984-03-14 18:52:18.073813',NULL,0000,'\\x41\\u0041\\1','delta 8759',0x60F92DF5,0xDD3EC76B0CF59ABF3654136F,'','\"quoted\" \\backslash\\ \\\' %s %(x)s ? :name','Straße naïve alpha Straße alpha delta beta kiwi beta',NULL,0x543D98A0C636E18754BB812699189220F1011155C21FB548,NULL,0xC5709A70C48D5A96BD812058027EE781EF4720EAD8D8,0x3471087A05427D93,0x1F7D0D51C439395B,0x01,'green','m1,m2,m5,m6,m7,m8,m10,m11,m14,m17,m18,m19,m23,m24,m25,m28,m29,m31,m36,m39,m40,m41,m43,m45,m46,m50,m51,m52,m54,m56,m58,m60','{\"k\": 75, \"s\": \"\", \"list\": [1, 2.5, null, true, \"<&>\"]}');
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
INSERT INTO `tokens` (`token`, `v`) VALUES (0x0000,71725);
INSERT INTO `tokens` (`token`, `v`) VALUES (0x107F,-43691);
INSERT INTO `tokens` (`token`, `v`) VALUES (0x1477B0D18E66B185,NULL);
INSERT INTO `tokens` (`token`, `v`) VALUES (0x228B,61442);
INSERT INTO `tokens` (`token`, `v`) VALUES (0x5AF84CB6B5C502C7F6A331BCA6,-2147483648);
INSERT INTO `tokens` (`token`, `v`) VALUES (0x889BD80A11,25262);
INSERT INTO `tokens` (`token`, `v`) VALUES (0x9430B2ED51C32CFD20BCBA0157B464,-48006);
INSERT INTO `tokens` (`token`, `v`) VALUES (0xA2BA3A8271160F528507FA,31605);
INSERT INTO `tokens` (`token`, `v`) VALUES (0xB439A8BAE40461500840D52C04,NULL);
INSERT INTO `tokens` (`token`, `v`) VALUES (0xBC14B8ED88,28892);
/*!40000 ALTER TABLE `tokens` ENABLE KEYS */;

/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;
/*!40014 SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS */;
/*!40014 SET UNIQUE_CHECKS=@OLD_UNIQUE_CHECKS */;
/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;
/*!40101 SET CHARACTER_SET_RESULTS=@OLD_CHARACTER_SET_RESULTS */;
/*!40101 SET COLLATION_CONNECTION=@OLD_COLLATION_CONNECTION */;
/*!40111 SET SQL_NOTES=@OLD_SQL_NOTES */;

