BEGIN;
CREATE TABLE applier_schema_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT applier_schema_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "applier_schema_version" VALUES('0001');
CREATE TABLE applier_progress (
	name TEXT NOT NULL, 
	epoch BIGINT NOT NULL, 
	window_id BIGINT NOT NULL, 
	checkpoint_ts BLOB NOT NULL, 
	start_ts BLOB NOT NULL, 
	updated_at TEXT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "applier_progress" VALUES('replica',1,24,462422022883377154,0,'2026-11-22 23:04:17.734');
CREATE TABLE applier_owner (
	name TEXT NOT NULL, 
	epoch BIGINT NOT NULL, 
	run_id TEXT NOT NULL, 
	host TEXT NOT NULL, 
	process BIGINT NOT NULL, 
	started_at TEXT NOT NULL, 
	heartbeat_at TEXT NOT NULL, 
	PRIMARY KEY (name)
);
CREATE TABLE applier_owner_session (
	name TEXT NOT NULL, 
	token TEXT NOT NULL, 
	host TEXT NOT NULL, 
	process BIGINT NOT NULL, 
	opened_at TEXT NOT NULL, 
	PRIMARY KEY (name, token)
);
CREATE TABLE applier_stream (
	name TEXT NOT NULL, 
	topic TEXT NOT NULL, 
	partition_number BIGINT NOT NULL, 
	topic_id TEXT NOT NULL, 
	next_offset BIGINT NOT NULL, 
	resolved_ts BLOB NOT NULL, 
	PRIMARY KEY (name, topic, partition_number)
);
INSERT INTO "applier_stream" VALUES('replica','changefeed',1,'',53,462422027848384559);
INSERT INTO "applier_stream" VALUES('replica','changefeed',0,'',45,462422027848384559);
INSERT INTO "applier_stream" VALUES('replica','changefeed',2,'',58,462422027848384559);
CREATE TABLE applier_known_table (
	name TEXT NOT NULL, 
	schema_name TEXT NOT NULL, 
	table_name TEXT NOT NULL, 
	since_ts BLOB NOT NULL, 
	PRIMARY KEY (name, schema_name, table_name)
);
INSERT INTO "applier_known_table" VALUES('replica','bank','accounts',462422017604583430);
INSERT INTO "applier_known_table" VALUES('replica','shop','wallets',462422017604583433);
INSERT INTO "applier_known_table" VALUES('replica','bank','transfers',462422017978662936);
INSERT INTO "applier_known_table" VALUES('replica','shop','orders',462422018288254989);
INSERT INTO "applier_known_table" VALUES('replica','shop','order_items',462422018444754944);
INSERT INTO "applier_known_table" VALUES('replica','crm','seats',462422018533621808);
INSERT INTO "applier_known_table" VALUES('replica','crm','badges',462422018904555557);
INSERT INTO "applier_known_table" VALUES('replica','crm','words',462422019226468383);
INSERT INTO "applier_known_table" VALUES('replica','crm','odd `tags`',462422019541827590);
INSERT INTO "applier_known_table" VALUES('replica','types','everything',462422019842244622);
INSERT INTO "applier_known_table" VALUES('replica','types','bits',462422019842244625);
INSERT INTO "applier_known_table" VALUES('replica','types','amounts',462422019903324161);
INSERT INTO "applier_known_table" VALUES('replica','types','tokens',462422020100718630);
INSERT INTO "applier_known_table" VALUES('replica','lab','t1',462422020100718631);
INSERT INTO "applier_known_table" VALUES('replica','lab','t2',462422020432592913);
INSERT INTO "applier_known_table" VALUES('replica','lab','t3',462422020567334918);
CREATE TABLE applier_ddl_ledger (
	name TEXT NOT NULL, 
	ddl_ts BLOB NOT NULL, 
	identity_hash TEXT NOT NULL, 
	schema_name TEXT NOT NULL, 
	table_name TEXT NOT NULL, 
	touches TEXT NOT NULL, 
	ddl_type BIGINT NOT NULL, 
	"query" TEXT NOT NULL, 
	state TEXT NOT NULL, 
	before_state TEXT NOT NULL, 
	began_at TEXT NOT NULL, 
	ended_at TEXT, 
	error TEXT NOT NULL, 
	PRIMARY KEY (name, ddl_ts, identity_hash)
);
INSERT INTO "applier_ddl_ledger" VALUES('replica',462422016268173336,'83f7c1c9788d84b44abdf25b3b92eda82a6ec3a1ea82f49e8e80c17d19a7e4a6','bank','','[["bank", ""]]',1,'CREATE DATABASE `bank` CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin','done','','2026-11-22 23:04:17.589','2026-11-22 23:04:17.589','');
INSERT INTO "applier_ddl_ledger" VALUES('replica',462422016526909467,'350f9d71ecb78261c62cf647abcd4efeadafb9d5c335c2751905e908c0926679','shop','','[["shop", ""]]',1,'CREATE DATABASE `shop` CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin','done','','2026-11-22 23:04:17.593','2026-11-22 23:04:17.593','');
INSERT INTO "applier_ddl_ledger" VALUES('replica',462422016689176631,'ce81ed544fd421b970fc25bd2ef72307510c0e431ef6a48b6e186fa55e762616','crm','','[["crm", ""]]',1,'CREATE DATABASE `crm` CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin','done','','2026-11-22 23:04:17.596','2026-11-22 23:04:17.596','');
INSERT INTO "applier_ddl_ledger" VALUES('replica',462422016957349930,'f0fe2ddfe8575399a9719f43461e717d06d99bbc8e2b2ce3d5b35595836f424a','types','','[["types", ""]]',1,'CREATE DATABASE `types` CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin','done','','2026-11-22 23:04:17.599','2026-11-22 23:04:17.599','');
INSERT INTO "applier_ddl_ledger" VALUES('replica',462422017216086024,'d6e5349975fcedb8797deca59a5ae5518e1e6f761697c3549de560ebb4adb862','lab','','[["lab", ""]]',1,'CREATE DATABASE `lab` CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin','done','','2026-11-22 23:04:17.602','2026-11-22 23:04:17.602','');
INSERT INTO "applier_ddl_ledger" VALUES('replica',462422017604583430,'db900d0ab04906a7d91e66251733064456c5ccdc04980752811c4f6dbce6bf21','bank','accounts','[["bank", "accounts"]]',3,'CREATE TABLE `accounts` (`id` BIGINT NOT NULL,`owner` VARCHAR(64) NOT NULL,`balance` BIGINT NOT NULL,PRIMARY KEY(`id`) /*T![clustered_index] NONCLUSTERED */) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','','2026-11-22 23:04:17.606','2026-11-22 23:04:17.606','');
INSERT INTO "applier_ddl_ledger" VALUES('replica',462422017604583433,'42dd117456ded9b1404bf9f3abb08c1b37994fe3b6e289bfd2af85e71fee956f','shop','wallets','[["shop", "wallets"]]',3,'CREATE TABLE `wallets` (`owner` VARCHAR(64) NOT NULL,`balance` BIGINT NOT NULL,PRIMARY KEY(`owner`) /*T![clustered_index] NONCLUSTERED */) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','','2026-11-22 23:04:17.614','2026-11-22 23:04:17.614','');
INSERT INTO "applier_ddl_ledger" VALUES('replica',462422017978662936,'99af904c3928b552ed51a4b1f54bc488d1637d469f6b91fb22258aa0d3870d55','bank','transfers','[["bank", "transfers"]]',3,'CREATE TABLE `transfers` (`id` BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,`source` VARCHAR(64),`target` VARCHAR(64),`amount` DECIMAL(20,2) NOT NULL,`made_at` TIMESTAMP(3) NULL,PRIMARY KEY(`id`) /*T![clustered_index] NONCLUSTERED */,INDEX `by_source`(`source`)) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','','2026-11-22 23:04:17.619','2026-11-22 23:04:17.619','');
INSERT INTO "applier_ddl_ledger" VALUES('replica',462422018288254989,'c3f5ca0d963caeae809f8915023a2d286549c7c46ad4cd17aefd6047ce653f21','shop','orders','[["shop", "orders"]]',3,'CREATE TABLE `orders` (`id` BIGINT NOT NULL AUTO_INCREMENT,`account` BIGINT NOT NULL,`status` ENUM(''new'',''paid'',''sent'',''it''''s lost'') NOT NULL DEFAULT _UTF8MB4''new'',`total` DECIMAL(12,2) NOT NULL,`created` DATETIME(3),`note` TEXT,PRIMARY KEY(`id`) /*T![clustered_index] NONCLUSTERED */,INDEX `by_account`(`account`)) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','','2026-11-22 23:04:17.625','2026-11-22 23:04:17.625','');
INSERT INTO "applier_ddl_ledger" VALUES('replica',462422018444754944,'e4f25ec059c9c2fee783ffc6d534dc359c1593fdc2f20e1a9ddbf4b934d3bf8a','shop','order_items','[["shop", "order_items"]]',3,'CREATE TABLE `order_items` (`order_id` BIGINT NOT NULL,`line` SMALLINT NOT NULL,`sku` VARCHAR(32) NOT NULL,`quantity` INT NOT NULL,`price` DECIMAL(10,2),PRIMARY KEY(`order_id`,`line`) /*T![clustered_index] NONCLUSTERED */,INDEX `by_sku`(`sku`,`quantity`)) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','','2026-11-22 23:04:17.633','2026-11-22 23:04:17.633','');
INSERT INTO "applier_ddl_ledger" VALUES('replica',462422018533621808,'2ee78fa5ed964fc57e25640e3c4d261b0eafdfc5fee4847be453fb040b244f85','crm','seats','[["crm", "seats"]]',3,'CREATE TABLE `seats` (`id` INT NOT NULL,`seat` INT NOT NULL,`code` VARCHAR(40),`holder` VARCHAR(40),PRIMARY KEY(`id`) /*T![clustered_index] NONCLUSTERED */,UNIQUE `one_seat`(`seat`),UNIQUE `one_code`(`code`)) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','','2026-11-22 23:04:17.639','2026-11-22 23:04:17.639','');
INSERT INTO "applier_ddl_ledger" VALUES('replica',462422018904555557,'03af202660af9ab396fd93676d5305fc5ca33fbb50ca89b47d23eb5a8707a57a','crm','badges','[["crm", "badges"]]',3,'CREATE TABLE `badges` (`holder` INT,`code` VARCHAR(40) NOT NULL,`zone` TINYINT NOT NULL,UNIQUE `one_badge`(`code`),UNIQUE `pair`(`code`,`zone`)) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','','2026-11-22 23:04:17.645','2026-11-22 23:04:17.645','');
INSERT INTO "applier_ddl_ledger" VALUES('replica',462422019226468383,'130c225175aa6217adbe26f2cf830f95df7fb0bdca7bdacb970136045c81c2df','crm','words','[["crm", "words"]]',3,'CREATE TABLE `words` (`word` VARCHAR(120) NOT NULL,`note` VARCHAR(200),`ta``ble` INT,`order by` MEDIUMTEXT,PRIMARY KEY(`word`) /*T![clustered_index] NONCLUSTERED */,INDEX `weird ``index```(`ta``ble`)) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','','2026-11-22 23:04:17.650','2026-11-22 23:04:17.650','');
INSERT INTO "applier_ddl_ledger" VALUES('replica',462422019541827590,'749bce65911bcdb960ac4961bc34c1cf109a1c38046a1345f7cd0365ff80a300','crm','odd `Tags`','[["crm", "odd `tags`"]]',3,'CREATE TABLE `odd ``Tags``` (`name` VARCHAR(40) CHARACTER SET UTF8MB4 COLLATE utf8mb4_general_ci NOT NULL,`weight` MEDIUMINT UNSIGNED,PRIMARY KEY(`name`) /*T![clustered_index] NONCLUSTERED */) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','','2026-11-22 23:04:17.658','2026-11-22 23:04:17.658','');
INSERT INTO "applier_ddl_ledger" VALUES('replica',462422019842244622,'3790a603aabdaf48720a95b59c7d53ec2fa10708d021548771f51345d76fb17e','types','everything','[["types", "everything"]]',3,'CREATE TABLE `everything` (`id` BIGINT UNSIGNED NOT NULL,`a_tiny` TINYINT,`a_utiny` TINYINT UNSIGNED,`a_small` SMALLINT,`a_medium` MEDIUMINT,`an_uint` INT UNSIGNED,`a_big` BIGINT,`a_ubig` BIGINT UNSIGNED,`a_float` FLOAT,`a_double` DOUBLE,`a_decimal` DECIMAL(65,30),`a_date` DATE,`a_time` TIME(3),`a_datetime` DATETIME(6),`a_timestamp` TIMESTAMP NULL,`a_year` YEAR,`a_char` CHAR(12),`a_varchar` VARCHAR(300),`a_binary` BINARY(4),`a_varbinary` VARBINARY(300),`a_tinytext` TINYTEXT,`a_text` TEXT,`a_mediumtext` MEDIUMTEXT,`a_longtext` LONGTEXT,`a_tinyblob` TINYBLOB,`a_blob` BLOB,`a_mediumblob` MEDIUMBLOB,`a_longblob` LONGBLOB,`a_bit` BIT(64),`a_bit1` BIT(1),`an_enum` ENUM(''red'',''green'',''it''''s'',''a "b"''),`a_set` SET(''m0'',''m1'',''m2'',''m3'',''m4'',''m5'',''m6'',''m7'',''m8'',''m9'',''m10'',''m11'',''m12'',''m13'',''m14'',''m15'',''m16'',''m17'',''m18'',''m19'',''m20'',''m21'',''m22'',''m23'',''m24'',''m25'',''m26'',''m27'',''m28'',''m29'',''m30'',''m31'',''m32'',''m33'',''m34'',''m35'',''m36'',''m37'',''m38'',''m39'',''m40'',''m41'',''m42'',''m43'',''m44'',''m45'',''m46'',''m47'',''m48'',''m49'',''m50'',''m51'',''m52'',''m53'',''m54'',''m55'',''m56'',''m57'',''m58'',''m59'',''m60'',''m61'',''m62'',''m63''),`a_json` JSON,PRIMARY KEY(`id`) /*T![clustered_index] NONCLUSTERED */,UNIQUE `one_ubig`(`a_ubig`),INDEX `by_bit`(`a_bit`)) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','','2026-11-22 23:04:17.666','2026-11-22 23:04:17.666','');
INSERT INTO "applier_ddl_ledger" VALUES('replica',462422019842244625,'097fde4133f9512898808ecaecdbca355c45960617d7346b7e4383f804009832','types','bits','[["types", "bits"]]',3,'CREATE TABLE `bits` (`b` BIT(64) NOT NULL,`v` VARCHAR(20),PRIMARY KEY(`b`) /*T![clustered_index] NONCLUSTERED */) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','','2026-11-22 23:04:17.672','2026-11-22 23:04:17.672','');
INSERT INTO "applier_ddl_ledger" VALUES('replica',462422019903324161,'d83691f225d08cbc3219a3db4b7ee93ff3210636daec4832b31522d93dc8448a','types','amounts','[["types", "amounts"]]',3,'CREATE TABLE `amounts` (`v` DOUBLE,`amount` DECIMAL(40,10) NOT NULL,`day` DATE NOT NULL,PRIMARY KEY(`amount`,`day`) /*T![clustered_index] NONCLUSTERED */) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','','2026-11-22 23:04:17.679','2026-11-22 23:04:17.679','');
INSERT INTO "applier_ddl_ledger" VALUES('replica',462422020100718630,'c7af707366abce2d16e9147e11c1cb0ada823421033017ac3520c1bd1149f3ab','types','tokens','[["types", "tokens"]]',3,'CREATE TABLE `tokens` (`token` VARBINARY(16) NOT NULL,`v` INT,PRIMARY KEY(`token`) /*T![clustered_index] NONCLUSTERED */) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','','2026-11-22 23:04:17.684','2026-11-22 23:04:17.684','');
INSERT INTO "applier_ddl_ledger" VALUES('replica',462422020100718631,'5394f114bf0f43f4af813c4565b87226a61d1fe4adacc14ffb696bd56fa7c66e','lab','t1','[["lab", "t1"]]',3,'CREATE TABLE `t1` (`id` INT UNSIGNED NOT NULL,`extra_1` ENUM(''x'',''y'',''z'') NOT NULL DEFAULT _UTF8MB4''y'',`extra_2` DATETIME DEFAULT ''1979-01-01 22:36:20'',`extra_3` VARCHAR(30),`tag` INT,PRIMARY KEY(`id`) /*T![clustered_index] NONCLUSTERED */,UNIQUE `one_tag`(`tag`)) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','','2026-11-22 23:04:17.689','2026-11-22 23:04:17.689','');
INSERT INTO "applier_ddl_ledger" VALUES('replica',462422020432592913,'f4bbd8651041a57e3f39d958ec78c3afb443c7e7cafc529863b9def14c6f015c','lab','t2','[["lab", "t2"]]',3,'CREATE TABLE `t2` (`id` INT UNSIGNED NOT NULL,`extra_4` ENUM(''x'',''y'',''z'') DEFAULT _UTF8MB4''z'',`extra_5` BIT(9) DEFAULT 52,`extra_6` VARCHAR(30) DEFAULT _UTF8MB4''Ωmega 3848'',PRIMARY KEY(`id`) /*T![clustered_index] NONCLUSTERED */) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','','2026-11-22 23:04:17.694','2026-11-22 23:04:17.694','');
INSERT INTO "applier_ddl_ledger" VALUES('replica',462422020567334918,'cb3272b9a9ce431a6703ce6ac9994d18e70fed051e5298623189f39247153b8a','lab','t3','[["lab", "t3"]]',3,'CREATE TABLE `t3` (`id` BIGINT NOT NULL,`part` SMALLINT NOT NULL,`extra_7` INT,`extra_8` DOUBLE DEFAULT 227471.29838302382,`extra_9` DOUBLE NOT NULL,PRIMARY KEY(`id`,`part`) /*T![clustered_index] NONCLUSTERED */) ENGINE = InnoDB DEFAULT CHARACTER SET = UTF8MB4 DEFAULT COLLATE = UTF8MB4_BIN','done','','2026-11-22 23:04:17.702','2026-11-22 23:04:17.702','');
CREATE TABLE applier_quarantine (
	name TEXT NOT NULL, 
	topic TEXT NOT NULL, 
	partition_number BIGINT NOT NULL, 
	record_offset BIGINT NOT NULL, 
	event_index BIGINT NOT NULL, 
	piece BIGINT NOT NULL, 
	schema_name TEXT NOT NULL, 
	table_name TEXT NOT NULL, 
	handle_key TEXT NOT NULL, 
	commit_ts BLOB NOT NULL, 
	record BLOB NOT NULL, 
	error TEXT NOT NULL, 
	state TEXT NOT NULL, 
	found_at TEXT NOT NULL, 
	PRIMARY KEY (name, topic, partition_number, record_offset, event_index, piece)
);
CREATE TABLE "bank.accounts" (
  "id" INTEGER PRIMARY KEY NOT NULL /*: bigint NOT NULL */,
  "owner" TEXT NOT NULL /*: varchar(64) NOT NULL */,
  "balance" INTEGER NOT NULL /*: bigint NOT NULL */
) STRICT;
INSERT INTO "bank.accounts" VALUES(1,'owner-1',1000);
INSERT INTO "bank.accounts" VALUES(2,'owner-2',1000);
INSERT INTO "bank.accounts" VALUES(3,'owner-3',1000);
INSERT INTO "bank.accounts" VALUES(4,'owner-4',1000);
INSERT INTO "bank.accounts" VALUES(5,'owner-5',1000);
INSERT INTO "bank.accounts" VALUES(6,'owner-6',1000);
INSERT INTO "bank.accounts" VALUES(7,'owner-7',1000);
INSERT INTO "bank.accounts" VALUES(8,'owner-8',1000);
INSERT INTO "bank.accounts" VALUES(9,'owner-9',1000);
INSERT INTO "bank.accounts" VALUES(10,'owner-10',1000);
CREATE TABLE "shop.wallets" (
  "owner" TEXT NOT NULL /*: varchar(64) NOT NULL */,
  "balance" INTEGER NOT NULL /*: bigint NOT NULL */,
  PRIMARY KEY ("owner")
) STRICT;
INSERT INTO "shop.wallets" VALUES('owner-17',1000);
INSERT INTO "shop.wallets" VALUES('owner-11',1000);
INSERT INTO "shop.wallets" VALUES('owner-18',1000);
INSERT INTO "shop.wallets" VALUES('owner-13',1000);
INSERT INTO "shop.wallets" VALUES('owner-16',1000);
INSERT INTO "shop.wallets" VALUES('owner-15',1000);
INSERT INTO "shop.wallets" VALUES('owner-12',690);
INSERT INTO "shop.wallets" VALUES('owner-19',1310);
INSERT INTO "shop.wallets" VALUES('owner-20',551);
INSERT INTO "shop.wallets" VALUES('owner-14',1449);
CREATE TABLE "bank.transfers" (
  "id" ANY NOT NULL /*: bigint unsigned NOT NULL */,
  "source" TEXT /*: varchar(64) */,
  "target" TEXT /*: varchar(64) */,
  "amount" TEXT NOT NULL /*: decimal(20,2) NOT NULL */,
  "made_at" TEXT /*: timestamp(3) */,
  PRIMARY KEY ("id")
) STRICT;
INSERT INTO "bank.transfers" VALUES(1,'owner-20','owner-14','449.00',NULL);
INSERT INTO "bank.transfers" VALUES(2,'owner-12','owner-19','310.00','1994-11-18 13:01:22.982');
CREATE TABLE "shop.orders" (
  "id" INTEGER PRIMARY KEY NOT NULL /*: bigint NOT NULL */,
  "account" INTEGER NOT NULL /*: bigint NOT NULL */,
  "status" TEXT NOT NULL /*: enum('new','paid','sent','it''s lost') NOT NULL DEFAULT 'new' */,
  "total" TEXT NOT NULL /*: decimal(12,2) NOT NULL */,
  "created" TEXT /*: datetime(3) */,
  "note" TEXT /*: text */
) STRICT;
INSERT INTO "shop.orders" VALUES(1,17,'new','18868.87','2037-08-26 00:44:43.274','Straße beta beta delta kiwi beta kiwi beta');
INSERT INTO "shop.orders" VALUES(2,6,'new','98.04','1981-03-08 02:01:17.630','Ωmega alpha delta delta gamma alpha delta beta Straße');
CREATE TABLE "shop.order_items" (
  "order_id" INTEGER NOT NULL /*: bigint NOT NULL */,
  "line" INTEGER NOT NULL /*: smallint NOT NULL */,
  "sku" TEXT NOT NULL /*: varchar(32) NOT NULL */,
  "quantity" INTEGER NOT NULL /*: int NOT NULL */,
  "price" TEXT /*: decimal(10,2) */,
  PRIMARY KEY ("order_id","line")
) STRICT;
INSERT INTO "shop.order_items" VALUES(1,2,'sku-29',8,'202.82');
INSERT INTO "shop.order_items" VALUES(1,3,'sku-9',3,'932.27');
INSERT INTO "shop.order_items" VALUES(1,4,'sku-17',9,'949.82');
INSERT INTO "shop.order_items" VALUES(1,1,'sku-11',9,'655.68');
INSERT INTO "shop.order_items" VALUES(2,1,'sku-14',2,'49.02');
CREATE TABLE "crm.seats" (
  "id" INTEGER PRIMARY KEY NOT NULL /*: int NOT NULL */,
  "seat" INTEGER NOT NULL /*: int NOT NULL */,
  "code" TEXT /*: varchar(40) */,
  "holder" TEXT /*: varchar(40) */
) STRICT;
INSERT INTO "crm.seats" VALUES(-6768,-2147483648,'Ωmega 3380','ends with backslash\');
INSERT INTO "crm.seats" VALUES(70726,-74583,'ends with backslash\','lime 5594');
CREATE TABLE "crm.badges" (
  "holder" INTEGER /*: int */,
  "code" TEXT NOT NULL /*: varchar(40) NOT NULL */,
  "zone" INTEGER NOT NULL /*: tinyint NOT NULL */
) STRICT;
INSERT INTO "crm.badges" VALUES(2147483647,'lime 518',0);
CREATE TABLE "crm.words" (
  "word" TEXT NOT NULL /*: varchar(120) NOT NULL */,
  "note" TEXT /*: varchar(200) */,
  "ta`ble" INTEGER /*: int */,
  "order by" TEXT /*: mediumtext */,
  PRIMARY KEY ("word")
) STRICT;
CREATE TABLE "crm.odd `Tags`" (
  "name" TEXT NOT NULL /*: varchar(40) NOT NULL */,
  "weight" INTEGER /*: mediumint unsigned */,
  PRIMARY KEY ("name")
) STRICT;
CREATE TABLE "types.everything" (
  "id" ANY NOT NULL /*: bigint unsigned NOT NULL */,
  "a_tiny" INTEGER /*: tinyint */,
  "a_utiny" INTEGER /*: tinyint unsigned */,
  "a_small" INTEGER /*: smallint */,
  "a_medium" INTEGER /*: mediumint */,
  "an_uint" INTEGER /*: int unsigned */,
  "a_big" INTEGER /*: bigint */,
  "a_ubig" ANY /*: bigint unsigned */,
  "a_float" REAL /*: float */,
  "a_double" REAL /*: double */,
  "a_decimal" TEXT /*: decimal(65,30) */,
  "a_date" TEXT /*: date */,
  "a_time" TEXT /*: time(3) */,
  "a_datetime" TEXT /*: datetime(6) */,
  "a_timestamp" TEXT /*: timestamp */,
  "a_year" INTEGER /*: year */,
  "a_char" TEXT /*: char(12) */,
  "a_varchar" TEXT /*: varchar(300) */,
  "a_binary" BLOB /*: binary(4) */,
  "a_varbinary" BLOB /*: varbinary(300) */,
  "a_tinytext" TEXT /*: tinytext */,
  "a_text" TEXT /*: text */,
  "a_mediumtext" TEXT /*: mediumtext */,
  "a_longtext" TEXT /*: longtext */,
  "a_tinyblob" BLOB /*: tinyblob */,
  "a_blob" BLOB /*: blob */,
  "a_mediumblob" BLOB /*: mediumblob */,
  "a_longblob" BLOB /*: longblob */,
  "a_bit" ANY /*: bit(64) */,
  "a_bit1" INTEGER /*: bit(1) */,
  "an_enum" TEXT /*: enum('red','green','it''s','a "b"') */,
  "a_set" TEXT /*: set('m0','m1','m2','m3','m4','m5','m6','m7','m8','m9','m10','m11','m12','m13','m14','m15','m16','m17','m18','m19','m20','m21','m22','m23','m24','m25','m26','m27','m28','m29','m30','m31','m32','m33','m34','m35','m36','m37','m38','m39','m40','m41','m42','m43','m44','m45','m46','m47','m48','m49','m50','m51','m52','m53','m54','m55','m56','m57','m58','m59','m60','m61','m62','m63') */,
  "a_json" TEXT /*: json */,
  PRIMARY KEY ("id")
) STRICT;
INSERT INTO "types.everything" VALUES(0,86,189,-527,14114,62980,-39509,2399,-134.134,547517.2566309171,'4.610245874513653813635351468563','2008-02-14','-517:07:06.376','1987-03-26 00:45:35.165875','1987-08-12 17:54:35',2155,' leading','',X'00000000',X'17977ab2e8c0ca9045ebfda58635','','lime beta Straße naïve lime',NULL,'Ωmega gamma beta Straße',X'688993712403cdb06b84196121ef9692579ddd071d',X'',X'81a1ff96fbb00cdc212f',X'32690591d2b7b36d0ffc823cfe832fa6faa7f08b3c5a','17430130836105432280',0,'red','m0,m2,m5,m6,m7,m8,m9,m10,m12,m15,m16,m19,m22,m23,m25,m26,m28,m31,m32,m33,m34,m38,m39,m43,m45,m46,m51,m52,m53,m54,m55,m58,m59,m62,m63','{"k": 5, "s": "{\"u\":1}", "list": [1, 2.5, null, true, "<&>"]}');
CREATE TABLE "types.bits" (
  "b" ANY NOT NULL /*: bit(64) NOT NULL */,
  "v" TEXT /*: varchar(20) */,
  PRIMARY KEY ("b")
) STRICT;
INSERT INTO "types.bits" VALUES(4224649071653340765,NULL);
CREATE TABLE "types.amounts" (
  "v" REAL /*: double */,
  "amount" TEXT NOT NULL /*: decimal(40,10) NOT NULL */,
  "day" TEXT NOT NULL /*: date NOT NULL */,
  PRIMARY KEY ("amount","day")
) STRICT;
CREATE TABLE "types.tokens" (
  "token" BLOB NOT NULL /*: varbinary(16) NOT NULL */,
  "v" INTEGER /*: int */,
  PRIMARY KEY ("token")
) STRICT;
INSERT INTO "types.tokens" VALUES(X'9430b2ed51c32cfd20bcba0157b464',-48006);
INSERT INTO "types.tokens" VALUES(X'228b',31605);
INSERT INTO "types.tokens" VALUES(X'a2ba3a8271160f528507fa',2914);
INSERT INTO "types.tokens" VALUES(X'b439a8bae40461500840d52c04',NULL);
CREATE TABLE "lab.t1" (
  "id" INTEGER PRIMARY KEY NOT NULL /*: int unsigned NOT NULL */,
  "extra_1" TEXT NOT NULL /*: enum('x','y','z') NOT NULL DEFAULT 'y' */,
  "extra_2" TEXT /*: datetime DEFAULT '1979-01-01 22:36:20' */,
  "extra_3" TEXT /*: varchar(30) */,
  "tag" INTEGER /*: int */
) STRICT;
INSERT INTO "lab.t1" VALUES(4159,'y','1000-01-01 06:19:27',CAST(X'6c696e650a66656564097461620d006e756c1a080c7f' AS TEXT),-44479);
INSERT INTO "lab.t1" VALUES(62512,'y','1986-12-12 12:57:41','gamma 5470',-91290);
INSERT INTO "lab.t1" VALUES(73666,'x','2000-05-16 21:19:33','\x41\u0041\101',-81783);
INSERT INTO "lab.t1" VALUES(78532,'x','1000-01-01 07:05:39','lime 6963',NULL);
INSERT INTO "lab.t1" VALUES(89285,'y','1980-06-16 02:03:21',NULL,89842);
CREATE TABLE "lab.t2" (
  "id" INTEGER PRIMARY KEY NOT NULL /*: int unsigned NOT NULL */,
  "extra_4" TEXT /*: enum('x','y','z') DEFAULT 'z' */,
  "extra_5" INTEGER /*: bit(9) DEFAULT 52 */,
  "extra_6" TEXT /*: varchar(30) DEFAULT 'Ωmega 3848' */
) STRICT;
CREATE TABLE "lab.t3" (
  "id" INTEGER NOT NULL /*: bigint NOT NULL */,
  "part" INTEGER NOT NULL /*: smallint NOT NULL */,
  "extra_7" INTEGER /*: int */,
  "extra_8" REAL /*: double DEFAULT 227471.29838302382 */,
  "extra_9" REAL NOT NULL /*: double NOT NULL */,
  PRIMARY KEY ("id","part")
) STRICT;
CREATE INDEX "bank.transfers.by_source" /*: `source` */ ON "bank.transfers" ("source");
CREATE INDEX "shop.orders.by_account" /*: `account` */ ON "shop.orders" ("account");
CREATE INDEX "shop.order_items.by_sku" /*: `sku`,`quantity` */ ON "shop.order_items" ("sku","quantity");
CREATE UNIQUE INDEX "crm.seats.one_seat" /*: `seat` */ ON "crm.seats" ("seat");
CREATE UNIQUE INDEX "crm.seats.one_code" /*: `code` */ ON "crm.seats" ("code");
CREATE UNIQUE INDEX "crm.badges.one_badge" /*: `code` */ ON "crm.badges" ("code");
CREATE UNIQUE INDEX "crm.badges.pair" /*: `code`,`zone` */ ON "crm.badges" ("code","zone");
CREATE INDEX "crm.words.weird `index`" /*: `ta``ble` */ ON "crm.words" ("ta`ble");
CREATE UNIQUE INDEX "types.everything.one_ubig" /*: `a_ubig` */ ON "types.everything" ("a_ubig");
CREATE INDEX "types.everything.by_bit" /*: `a_bit` */ ON "types.everything" ("a_bit");
CREATE UNIQUE INDEX "lab.t1.one_tag" /*: `tag` */ ON "lab.t1" ("tag");
COMMIT;
