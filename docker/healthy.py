"""HEALTHCHECK of the container: exit code 0 if /ready answers 200, else 1.

It asks where the settings say that the service listens: at an address, by TLS, or at a socket of this host. Where
clients need a certificate, it shows the service's own. If the authority of the clients did not sign that, the service
turns it away, and by that shows only that it answers: the exit code is 0 then, too.
"""

import http.client
import os
import socket
import ssl
import sys
from pathlib import Path

SECONDS, greeted = 4, False
setting = os.environ.get
host = (setting("GRAMVEC_HOST", "").split() or ["127.0.0.1"])[0]
host = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104 (not listened on: asked)
connection = http.client.HTTPConnection(host, int(setting("GRAMVEC_PORT", "8000")), timeout=SECONDS)
certificate, ask_for_one = setting("GRAMVEC_TLS_CERTIFICATE"), setting("GRAMVEC_TLS_CLIENT_CA")
try:
    if path := setting("GRAMVEC_UNIX_SOCKET"):
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(SECONDS)
        connection.sock.connect(path)
    else:
        connection.connect()
    if certificate:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # whose certificate it is, is known here
        if ask_for_one:
            file, password = setting("GRAMVEC_TLS_KEY_PASSWORD_FILE"), ""
            if file:
                password = Path(file).read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
            context.load_cert_chain(certificate, setting("GRAMVEC_TLS_KEY"), password)
        connection.sock = context.wrap_socket(connection.sock)
        greeted = True
    connection.request("GET", "/ready")
    answer = connection.getresponse()
    sys.exit(f"/ready: {answer.status} {answer.read(300).decode(errors='replace')}" if answer.status != 200 else 0)
except (OSError, http.client.HTTPException) as error:
    # In TLS 1.3 a server says after its greeting whether it takes the certificate; before, in 1.2, by an alert.
    turned_away = greeted or "ALERT" in str(getattr(error, "reason", ""))
    sys.exit(0 if ask_for_one and turned_away and not isinstance(error, TimeoutError) else f"/ready: {error}")
