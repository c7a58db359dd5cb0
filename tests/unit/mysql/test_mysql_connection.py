"""TLS contexts: one per process and choice of the operator."""

import ssl

from applier.database.session import Tls, TlsMode
from applier.mysql.connection import DriverConnection, tls_arguments


def test_sessions_that_check_no_certificate_share_a_context():
    one, other = (DriverConnection(defer_connect=True, **tls_arguments(Tls())) for _ in range(2))
    assert one.ctx is other.ctx
    assert (one.ctx.verify_mode, one.ctx.check_hostname) == (ssl.CERT_NONE, False)
    assert one.ssl
    assert not one._ssl_required


def test_sessions_that_check_certificates_share_a_context():
    tls = Tls(mode=TlsMode.VERIFY_IDENTITY)
    one, other = (DriverConnection(defer_connect=True, **tls_arguments(tls)) for _ in range(2))
    assert one.ctx is other.ctx
    assert (one.ctx.verify_mode, one.ctx.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert one._ssl_required


def test_a_session_without_tls_has_none():
    assert not DriverConnection(defer_connect=True, **tls_arguments(Tls(mode=TlsMode.DISABLED))).ssl
