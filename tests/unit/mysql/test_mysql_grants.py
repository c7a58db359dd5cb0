"""Whether a user sees triggers, read from SHOW GRANTS."""

import pytest

from applier.model.events import TableName
from applier.mysql.grants import TriggerVisibility

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
