"""TLS to the database as the configuration says it: which keys go together."""

from applier.config.value import refuse
from applier.sinks.settings import Tls, TlsMode

_TELL_BY_CA = frozenset({TlsMode.VERIFY_CA, TlsMode.VERIFY_IDENTITY})


def tls_of(mode: TlsMode | None, ca: str | None, cert: str | None, key: str | None) -> Tls:
    """Return the settings, or refuse a combination that would promise more than it keeps.

    Without a mode: with a CA the server's identity is verified; with a certificate of our own TLS is required.
    """
    if key and not cert:
        raise refuse("sets tls_key without tls_cert", "Give the certificate that belongs to the key")
    chosen = mode or (TlsMode.VERIFY_IDENTITY if ca else TlsMode.REQUIRED if cert else TlsMode.PREFERRED)
    if ca and chosen not in _TELL_BY_CA:
        raise refuse(f'sets tls_ca, which tls_mode = "{chosen}" does not look at', 'Set tls_mode = "verify_identity", or leave it out')
    if cert and chosen in {TlsMode.DISABLED, TlsMode.PREFERRED}:
        raise refuse(f'sets tls_cert, which tls_mode = "{chosen}" may not send', 'Set tls_mode = "verify_identity" or "required"')
    return Tls(mode=chosen, ca=ca, cert=cert, key=key)
