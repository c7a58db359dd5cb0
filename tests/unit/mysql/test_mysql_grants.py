"""Whether a user sees triggers, read from SHOW GRANTS."""

import pytest

from applier.model.events import TableName
from applier.mysql.grants import TriggerVisibility, account, account_of, all_tables, grant

ORDERS = TableName("my_shop", "orders")


@pytest.mark.parametrize(
    "grant",
    [
        "GRANT ALL PRIVILEGES ON *.* TO `root`@`%` WITH GRANT OPTION",
        "GRANT ALL PRIVILEGES ON `my_shop`.* TO `a`@`%`",
        "GRANT SELECT, TRIGGER ON `my\\_shop`.* TO `a`@`%`",
        "GRANT TRIGGER, CREATE VIEW ON `my%`.* TO `a`@`%`",
        "GRANT TRIGGER ON `MY_SHOP`.`orders` TO `a`@`%`",
    ],
)
def test_a_grant_of_the_privilege_shows_triggers(grant: str) -> None:
    assert TriggerVisibility(["GRANT USAGE ON *.* TO `a`@`%`", grant]).shows(ORDERS)


@pytest.mark.parametrize(
    "grant",
    [
        "GRANT SELECT, CREATE VIEW ON *.* TO `a`@`%`",
        "GRANT TRIGGER ON `my\\_shop2`.* TO `a`@`%`",
        "GRANT TRIGGER ON `myXshop`.* TO `a`@`%`",
        "GRANT TRIGGER ON `my_shop`.`items` TO `a`@`%`",
        "GRANT `trigger` TO `a`@`%`",
        "GRANT PROXY ON ''@'%' TO 'root'@'%'",
    ],
)
def test_other_grants_do_not(grant: str) -> None:
    assert not TriggerVisibility([grant]).shows(ORDERS)


def test_a_partial_revoke_hides_triggers() -> None:
    assert not TriggerVisibility(["GRANT TRIGGER ON *.* TO `a`@`%`", "REVOKE TRIGGER ON `my_shop`.* FROM `a`@`%`"]).shows(ORDERS)


def test_a_server_without_triggers_has_none_to_hide() -> None:
    assert TriggerVisibility([], has_triggers=False).shows(ORDERS)


def test_a_grant_has_no_wild_character_and_quotes_what_a_name_may_hold():
    assert all_tables("my_sh%op`s") == r"`my\_sh\%op``s`.*"
    assert account("o'ne\\", "10.0.0.%") == r"'o''ne\\'@'10.0.0.%'"
    assert account_of("a@b@%") == ("a@b", "%")
    assert grant(["SELECT", "INSERT"], "shop", "u", "%") == "GRANT SELECT, INSERT ON `shop`.* TO 'u'@'%'"
    assert grant(["PROCESS"], "", "u", "%") == "GRANT PROCESS ON *.* TO 'u'@'%'"
