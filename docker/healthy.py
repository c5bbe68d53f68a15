"""HEALTHCHECK of the container: exit code 0 if /ready answers 200, else 1."""

import http.client
import os
import ssl
import sys

host = (os.environ.get("GRAMVEC_HOST", "").split() or ["127.0.0.1"])[0]
port = int(os.environ.get("GRAMVEC_PORT", "8000"))
host = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104 (not listened on: asked)
try:
    if os.environ.get("GRAMVEC_TLS_CERTIFICATE"):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # whose certificate it is, is known here
        connection = http.client.HTTPSConnection(host, port, timeout=4, context=context)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=4)
    connection.request("GET", "/ready")
    answer = connection.getresponse()
    sys.exit(f"/ready: {answer.status} {answer.read(300).decode(errors='replace')}" if answer.status != 200 else 0)
except OSError as error:
    sys.exit(f"/ready: {error}")
