"""TLS to the database: which keys go together."""

from applier.config.value import refuse
from applier.database.tls import Tls, TlsMode
from applier.model.remedy import Remedy

_VERIFYING = frozenset({TlsMode.VERIFY_CA, TlsMode.VERIFY_IDENTITY})


def tls_of(mode: TlsMode | None, ca: str | None, cert: str | None, key: str | None) -> Tls:
    """Return the settings; refuse a combination that is less safe than it looks.

    Without a mode: with a CA the server's identity is verified; with a client certificate TLS is required.
    """
    if key and not cert:
        raise refuse("sets tls_key without tls_cert", Remedy("config.set-tls-cert", "Set tls_cert to the certificate of the key"))
    # PREFERRED is what MySQL's own clients do by default: it protects from listening, not from a false server.
    chosen = mode or (TlsMode.VERIFY_IDENTITY if ca else TlsMode.REQUIRED if cert else TlsMode.PREFERRED)
    if ca and chosen not in _VERIFYING:
        raise refuse(
            f'sets tls_ca, which tls_mode = "{chosen}" ignores',
            Remedy("config.verify-or-remove-tls-mode", 'Set tls_mode = "verify_identity", or leave it out'),
        )
    if cert and chosen in {TlsMode.DISABLED, TlsMode.PREFERRED}:
        raise refuse(
            f'sets tls_cert, but tls_mode = "{chosen}" does not require TLS',
            Remedy("config.verify-or-require-tls", 'Set tls_mode = "verify_identity" or "required"'),
        )
    return Tls(mode=chosen, ca=ca, cert=cert, key=key)
